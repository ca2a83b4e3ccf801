//! Rules about functions: one job, seen on one screen.
use super::Complaint;
use super::source::{End, Source};

/// More than one screen.
const LINES_MAX: usize = 70;

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: String,
    /// The index of the line with `fn`.
    pub(crate) start: usize,
    /// From `fn` to the closing brace, both included, without blank lines.
    pub(crate) len: usize,
    pub(crate) is_test: bool,
    /// `pub` without a restriction: part of what the crate offers to others.
    pub(crate) is_public: bool,
    pub(crate) is_documented: bool,
}

/// The functions of a file, nested ones too; closures belong to the function around them.
pub(crate) fn functions(source: &Source) -> Vec<Function> {
    let starts = source.lines.iter().enumerate().filter(|(_, line)| line.has_word("fn"));
    starts
        .filter_map(|(start, line)| {
            let name = function_name(&line.code)?;
            let (end, _) = source.item_end(start).filter(|(_, how)| *how == End::Block)?;
            let len = source.lines[start..=end].iter().filter(|line| !line.is_blank()).count();
            let is_public = line.code.trim_start().starts_with("pub ");
            let is_documented = is_documented(source, start);
            Some(Function { name, start, len, is_test: line.is_test, is_public, is_documented })
        })
        .collect()
}

/// Whether a doc comment stands above the item, with attributes and other comments between.
fn is_documented(source: &Source, start: usize) -> bool {
    let mut is_in_attribute = false;
    for line in source.lines[..start].iter().rev() {
        let code = line.code.trim();
        if line.is_comment() {
            if line.text.trim_start().starts_with("///") {
                return true;
            }
        } else if code.starts_with("#[") {
            is_in_attribute = false;
        } else if code.ends_with(")]") {
            is_in_attribute = true;
        } else if !is_in_attribute {
            return false;
        }
    }
    false
}

/// The name behind `fn`; `None` for the type `fn(...)`.
fn function_name(code: &str) -> Option<String> {
    let behind = code.split_once("fn ")?.1;
    let name: String = behind.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

pub(crate) fn length(source: &Source) -> Vec<Complaint> {
    let long = functions(source).into_iter().filter(|f| f.len > LINES_MAX);
    long.map(|f| {
        let message = format!(
            "{} has {} lines, {LINES_MAX} at most: a function does one job and is seen on one screen",
            f.name, f.len
        );
        Complaint::new(source, f.start, message)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn a_function_fits_one_screen() {
        let body = |lines| format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines));
        check(length, "crates/base/src/a.rs", &body(68), &[]);
        check(length, "crates/base/src/a.rs", &body(69), &[1]);
    }

    #[test]
    fn declarations_and_types_are_no_functions() {
        let text =
            "trait T {\n    fn a(x: [u8; 2]);\n}\ntype F = fn(u8) -> u8;\nstruct S {\n    run: fn(),\n}\n";
        assert!(functions(&Source::new("a.rs", text)).is_empty());
    }

    #[test]
    fn braces_in_text_do_not_count() {
        let text = "fn a(x: [u8; 2]) -> char {\n    // }\n\n    f(\"}\");\n    '}'\n}\nfn b() {}\n";
        let found: Vec<_> =
            functions(&Source::new("a.rs", text)).into_iter().map(|f| (f.name, f.len)).collect();
        assert_eq!(found, [("a".to_string(), 5), ("b".to_string(), 1)]);
    }
}
