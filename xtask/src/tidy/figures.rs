//! The figures of style that tidy prints beside its complaints, each with its mark. A figure that has reached
//! its mark is kept there: tidy complains when it is lost. Beside every figure stand the parts of the
//! workspace that are outside the mark themselves. Most figures leave tests out.
use super::Complaint;
use super::functions::{Function, functions};
use super::source::Source;
use super::widths;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// One figure, its mark, and which parts of the workspace are to blame when it is missed.
struct Figure {
    name: &'static str,
    value: usize,
    mark: RangeInclusive<usize>,
    /// The parts that are outside the mark themselves, with their values.
    outside: Vec<(String, usize)>,
    /// Whether losing the mark is a complaint. Set it when the mark is reached.
    is_kept: bool,
}

/// Prints all figures and complains of marks that are lost.
pub(crate) fn check(sources: &[Source]) -> Vec<Complaint> {
    let figures = [
        function_lines("lines of a function, p50", 50, 7, sources),
        function_lines("lines of a function, p90", 90, 29, sources),
        file_lines(sources),
        comments(sources),
        documented(sources),
        assertions(sources),
        wide_lines("comment lines of more than 110 columns", widths::wide_comments, sources),
        wide_lines("code lines of more than 120 columns", widths::wide_code, sources),
    ];
    for figure in &figures {
        let is_new = figure.is_reached() && !figure.is_kept;
        println!("{}{}", figure.shown(), if is_new { "; reached: make it a rule, by `is_kept`" } else { "" });
    }
    figures.iter().filter(|figure| figure.is_kept && !figure.is_reached()).map(Figure::complaint).collect()
}

impl Figure {
    fn is_reached(&self) -> bool {
        self.mark.contains(&self.value)
    }

    fn shown(&self) -> String {
        let (least, most) = (*self.mark.start(), *self.mark.end());
        let mark = match (least, most) {
            (0, 0) => "none".to_string(),
            (0, most) => format!("at most {most}"),
            (least, usize::MAX) => format!("at least {least}"),
            _ => format!("{least} to {most}"),
        };
        let outside: Vec<String> =
            self.outside.iter().map(|(part, value)| format!("{part} {value}")).collect();
        let outside =
            if outside.is_empty() { String::new() } else { format!("; outside it: {}", outside.join(", ")) };
        format!("{}: {} ({mark}){outside}", self.name, self.value)
    }

    fn complaint(&self) -> Complaint {
        Complaint::whole("workspace", format!("{}: it had reached this mark", self.shown()))
    }
}

fn function_lines(name: &'static str, percent: usize, most: usize, sources: &[Source]) -> Figure {
    let all = sources.iter().flat_map(functions).filter(|f| !f.is_test);
    let value = percentile(all.map(|f| f.len).collect(), percent);
    Figure { name, value, mark: 0..=most, outside: Vec::new(), is_kept: true }
}

fn file_lines(sources: &[Source]) -> Figure {
    let value = percentile(sources.iter().map(|source| source.lines.len()).collect(), 90);
    Figure { name: "lines of a file, p90", value, mark: 0..=899, outside: Vec::new(), is_kept: true }
}

/// The value that so many percent of a list do not exceed.
fn percentile(mut list: Vec<usize>, percent: usize) -> usize {
    list.sort_unstable();
    let rank = (list.len() * percent).div_ceil(100);
    list.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

fn comments(sources: &[Source]) -> Figure {
    let share = |source: &Source| {
        let lines = || source.lines.iter().filter(|line| !line.is_test && !line.is_blank());
        Share { part: lines().filter(|line| line.is_comment()).count(), of: lines().count() }
    };
    shares("comments in percent of lines", 100, 15..=30, sources.iter(), share)
}

/// What other crates call; `unreachable_pub` sees to it that nothing else is `pub`.
fn documented(sources: &[Source]) -> Figure {
    let share = |source: &Source| {
        let public: Vec<Function> =
            functions(source).into_iter().filter(|f| f.is_public && !f.is_test).collect();
        Share { part: public.iter().filter(|f| f.is_documented).count(), of: public.len() }
    };
    let name = "public functions with documentation, in percent";
    shares(name, 100, 80..=usize::MAX, sources.iter(), share)
}

/// The mark is that of `pack`, where bytes are packed; the others are shown beside it.
fn assertions(sources: &[Source]) -> Figure {
    let share = |source: &Source| {
        let lines =
            || source.lines.iter().filter(|line| !line.is_test && !line.is_blank() && !line.is_comment());
        let asserts = ["assert!(", "assert_eq!(", "assert_ne!("];
        let found = |code: &str| asserts.iter().map(|name| code.matches(name).count()).sum::<usize>();
        Share { part: lines().map(|line| found(&line.code)).sum(), of: lines().count() }
    };
    let crates = || sources.iter().filter(|source| source.crate_name().is_some());
    let name = "assertions in 1,000 lines of code, in pack";
    let figure = shares(name, 1000, 20..=usize::MAX, crates(), share);
    let value = by_part(crates(), share).get("pack").map_or(0, |share| share.per(1000));
    Figure { value, ..figure }
}

/// A part of a whole, as two counts.
#[derive(Clone, Copy, Default)]
struct Share {
    part: usize,
    of: usize,
}

impl Share {
    fn per(self, whole: usize) -> usize {
        (self.part * whole).checked_div(self.of).unwrap_or_default()
    }

    fn add(&mut self, other: Share) {
        self.part += other.part;
        self.of += other.of;
    }
}

fn by_part<'s>(
    sources: impl Iterator<Item = &'s Source>,
    share: impl Fn(&Source) -> Share,
) -> BTreeMap<&'s str, Share> {
    let mut parts: BTreeMap<&str, Share> = BTreeMap::new();
    sources.for_each(|source| parts.entry(source.part()).or_default().add(share(source)));
    parts
}

/// A figure that is a share: of a hundred, or of a thousand.
fn shares<'s>(
    name: &'static str,
    whole: usize,
    mark: RangeInclusive<usize>,
    sources: impl Iterator<Item = &'s Source>,
    share: impl Fn(&Source) -> Share,
) -> Figure {
    let parts = by_part(sources, share);
    let mut all = Share::default();
    parts.values().for_each(|share| all.add(*share));
    let is_outside = |share: &&Share| share.of > 0 && !mark.contains(&share.per(whole));
    let outside = parts.iter().filter(|(_, share)| is_outside(share));
    let outside = outside.map(|(part, share)| (part.to_string(), share.per(whole))).collect();
    Figure { name, value: all.per(whole), mark, outside, is_kept: true }
}

fn wide_lines(name: &'static str, wide: fn(&Source) -> Vec<usize>, sources: &[Source]) -> Figure {
    let share = |source: &Source| Share { part: wide(source).len(), of: 1 };
    let parts = by_part(sources.iter(), share);
    let value = parts.values().map(|share| share.part).sum();
    let outside = parts.iter().filter(|(_, share)| share.part > 0);
    let outside = outside.map(|(part, share)| (part.to_string(), share.part)).collect();
    Figure { name, value, mark: 0..=0, outside, is_kept: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::new(path, text)
    }

    #[test]
    fn percentiles_are_members_of_the_list() {
        let list: Vec<usize> = (1..=10).rev().collect();
        assert_eq!(
            (percentile(list.clone(), 50), percentile(list, 90), percentile(Vec::new(), 50)),
            (5, 9, 0)
        );
    }

    #[test]
    fn comments_are_counted_among_lines_with_text() {
        let a = source("crates/base/src/a.rs", "//! A.\n\nfn a() {} // b\nfn c() {}\nfn d() {}\n");
        let b = source("crates/pack/src/b.rs", "fn b() {}\n#[cfg(test)]\nmod tests {\n    // c\n}\n");
        let figure = comments(&[a, b]);
        assert_eq!(
            (figure.value, figure.outside.as_slice()),
            (20, &[("base".into(), 25), ("pack".into(), 0)][1..])
        );
        assert_eq!(figure.shown(), "comments in percent of lines: 20 (15 to 30); outside it: pack 0");
    }

    #[test]
    fn public_functions_with_a_doc_comment_are_counted() {
        let text = "/// A.\n#[inline]\n#[cfg(any(\n    test,\n    unix\n))]\npub fn a() {}\n\npub const fn b() {}\n\
                    pub(crate) fn c() {}\n// Not for users.\npub fn d() {}\nfn e() {}\n";
        assert_eq!(documented(&[source("crates/base/src/a.rs", text)]).value, 33);
    }

    #[test]
    fn assertions_are_those_of_pack_and_outside_tests() {
        let text = "// assert!(a)\nfn a() {\n    debug_assert!(b, \"assert!()\");\n}\nconst _: () = assert!(c == 1);\n\
                    #[cfg(test)]\nmod tests {\n    assert!(d);\n}\n";
        let other = source("crates/base/src/a.rs", "fn a() {}\n");
        let figure =
            assertions(&[source("crates/pack/src/a.rs", text), other, source("xtask/src/b.rs", text)]);
        assert_eq!((figure.value, figure.outside), (500, vec![("base".to_string(), 0)]));
    }

    #[test]
    fn a_mark_that_was_reached_is_kept() {
        let figure = |value, is_kept| Figure { name: "a", value, mark: 0..=7, outside: Vec::new(), is_kept };
        assert!(figure(7, true).is_reached() && !figure(8, true).is_reached());
        let message = figure(8, true).complaint().message;
        assert_eq!(message, "a: 8 (at most 7): it had reached this mark");
    }
}
