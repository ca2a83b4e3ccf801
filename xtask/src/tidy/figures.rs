//! The figures that tidy prints beside its complaints: how long functions and files are and how much is explained,
//! with the targets of CONVENTIONS.md, section 9. Tests count where a rule forbids, not here.
use super::functions::functions;
use super::source::Source;

pub(crate) fn print(sources: &[Source]) {
    let mut lengths: Vec<usize> =
        sources.iter().flat_map(functions).filter(|f| !f.is_test).map(|f| f.len).collect();
    lengths.sort_unstable();
    let long = lengths.iter().filter(|len| **len > 70).count();
    let mut files: Vec<usize> = sources.iter().map(|s| s.lines.len()).collect();
    files.sort_unstable();
    let (p50, p90) = (percentile(&lengths, 50), percentile(&lengths, 90));
    println!(
        "functions: {}, lines p50 {p50} (under 8), p90 {p90} (under 30), over 70: {long} (none)",
        lengths.len()
    );
    println!("files: {}, lines p90 {} (under 900)", files.len(), percentile(&files, 90));
    println!("comments: {}% of lines outside tests (20 to 35)", comment_percent(sources));
}

/// The value that so many percent of a sorted list do not exceed.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

fn comment_percent(sources: &[Source]) -> usize {
    let lines = || sources.iter().flat_map(|s| &s.lines).filter(|line| !line.is_test && !line.is_blank());
    let comments = lines().filter(|line| line.is_comment()).count();
    (comments * 100).checked_div(lines().count()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_members_of_the_list() {
        let list: Vec<usize> = (1..=10).collect();
        assert_eq!((percentile(&list, 50), percentile(&list, 90), percentile(&[], 50)), (5, 9, 0));
    }

    #[test]
    fn comments_are_counted_among_lines_with_text() {
        let source = Source::new("crates/base/src/a.rs", "//! A.\n\nfn a() {} // b\nfn c() {}\nfn d() {}\n");
        assert_eq!(comment_percent(&[source]), 25);
    }
}
