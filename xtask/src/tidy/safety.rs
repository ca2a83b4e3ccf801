//! Rules about what may go wrong while running: unsafe code has its zones and its reasons, and nothing but a
//! test panics without saying why it cannot.
use super::Complaint;
use super::source::{Line, Source};

/// Where `unsafe` is allowed.
const UNSAFE_CRATES: [&str; 3] = ["pack", "net", "lua"];

/// How far above the word its reason may stand, comments and attributes not counted.
const LINES_BETWEEN_MAX: usize = 3;

pub(crate) fn unsafety(source: &Source) -> Vec<Complaint> {
    let lines = source.lines.iter().enumerate().filter(|(_, line)| line.has_word("unsafe"));
    let message = |(at, line): (usize, &Line)| {
        let is_zone = source.crate_name().is_some_and(|name| UNSAFE_CRATES.contains(&name));
        if !is_zone && source.path.starts_with("crates/") {
            return Some((
                at,
                "unsafe outside pack, net and lua: it stays where its proofs, sanitizers and fuzzers are",
            ));
        }
        let needs_reason = is_zone && declares_unsafe(&line.code) && !keeps_a_trait(source, at);
        (needs_reason && !has_reason(source, at)).then_some((
            at,
            "unsafe without SAFETY: the comment says why it is sound, or a reader has to guess",
        ))
    };
    lines.filter_map(message).map(|(at, text)| Complaint::new(source, at, text)).collect()
}

/// Blocks, functions, traits and implementations; not the type `unsafe fn(...)` or an attribute.
fn declares_unsafe(code: &str) -> bool {
    let behind = code.split("unsafe").nth(1).unwrap_or_default().trim_start();
    !behind.starts_with("fn(") && !behind.starts_with('(') && !behind.starts_with('_')
}

/// Whether the line is a method of `impl Trait for Type`: what its callers vouch for is written at the trait.
fn keeps_a_trait(source: &Source, at: usize) -> bool {
    let indent = |line: &Line| line.code.len() - line.code.trim_start().len();
    let own = indent(&source.lines[at]);
    let is_method = source.lines[at].code.trim_start().starts_with("unsafe fn");
    let around =
        source.lines[..at].iter().rev().find(|line| !line.code.trim().is_empty() && indent(line) < own);
    is_method && around.is_some_and(|line| line.has_word("impl") && line.has_word("for"))
}

/// Whether a comment on the line or above it, with a few lines of the same statement between, gives the
/// reason.
fn has_reason(source: &Source, at: usize) -> bool {
    let mut between = 0;
    for line in source.lines[..=at].iter().rev() {
        let text = line.text.to_ascii_lowercase();
        if text.contains("safety:") || text.contains("# safety") {
            return true;
        }
        let is_neutral = line.is_comment() || line.code.trim_start().starts_with("#[");
        between += usize::from(!is_neutral);
        if line.is_blank() || between > LINES_BETWEEN_MAX + 1 {
            return false;
        }
    }
    false
}

pub(crate) fn unwraps(source: &Source) -> Vec<Complaint> {
    let lines = source.lines.iter().enumerate();
    let found = lines.filter(|(_, line)| !line.is_test && line.code.contains(".unwrap()"));
    let message =
        "unwrap outside a test: handle it, or expect(\"why it cannot fail\") with the reason in sight";
    found.map(|(at, _)| Complaint::new(source, at, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn unsafe_stays_in_its_zones() {
        let text = "// SAFETY: a is in bounds.\nlet x = unsafe { f() };\n";
        check(unsafety, "crates/pack/src/a.rs", text, &[]);
        check(unsafety, "crates/base/src/a.rs", text, &[2]);
        check(unsafety, "crates/base/src/a.rs", "// unsafe is not used\n#![forbid(unsafe_code)]\n", &[]);
    }

    #[test]
    fn unsafe_says_why_it_is_sound() {
        let good = "/// # Safety\n/// `p` is valid.\n#[inline]\npub unsafe fn f(p: *const u8) {}\n\n\
                    // SAFETY: as above.\nlet x = g(\n    unsafe { f(p) },\n);\ntype F = unsafe fn(u8);\n";
        check(unsafety, "crates/pack/src/a.rs", good, &[]);
        let good =
            "// SAFETY: as A.\nunsafe impl G for A {\n    unsafe fn f() {}\n\n    unsafe fn g() {}\n}\n";
        check(unsafety, "crates/pack/src/a.rs", good, &[]);
        check(unsafety, "crates/pack/src/a.rs", "impl A {\n    unsafe fn f() {}\n}\n", &[2]);
        let bad = "pub unsafe fn f() {}\n\nfn g() {\n    unsafe { f() }\n}\nunsafe impl Send for X {}\n";
        check(unsafety, "crates/pack/src/a.rs", bad, &[1, 4, 6]);
    }

    #[test]
    fn only_tests_unwrap() {
        check(
            unwraps,
            "crates/base/src/a.rs",
            "a.unwrap_or(1);\nb.expect(\"it was just put there\");\n",
            &[],
        );
        check(
            unwraps,
            "crates/base/src/a.rs",
            "a.unwrap();\n#[cfg(test)]\nmod tests {\n    b.unwrap();\n}\n",
            &[1],
        );
    }
}
