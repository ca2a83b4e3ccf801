//! The texts of error replies stand together, one file a crate, as named functions: two commands that refuse
//! the same thing cannot drift apart, and whoever compares them with the peer's reads one page.
use super::Complaint;
use super::source::Source;

/// The files that hold them.
const FILES: [&str; 4] = [
    "crates/command/src/error.rs",
    "crates/server/src/core/error.rs",
    "crates/resp/src/reply.rs",
    "crates/script/src/error.rs",
];

/// What an error begins with, in Redis and here.
const CODES: [&str; 32] = [
    "ASK",
    "BUSY",
    "BUSYGROUP",
    "BUSYKEY",
    "CLUSTERDOWN",
    "CROSSSLOT",
    "DENIED",
    "ERR",
    "EXECABORT",
    "INPROG",
    "INVALIDOBJ",
    "IOERR",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOAUTH",
    "NOGOODSLAVE",
    "NOGROUP",
    "NOMASTERLINK",
    "NOPERM",
    "NOPROTO",
    "NOREPLICAS",
    "NOSCRIPT",
    "NOTBUSY",
    "NOTREADY",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "UNBLOCKED",
    "WRONGPASS",
    "WRONGTYPE",
];

pub(crate) fn elsewhere(source: &Source) -> Vec<Complaint> {
    if source.crate_name().is_none() || FILES.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let literals = source.literals.iter().filter(|literal| !source.lines[literal.line].is_test);
    let texts = literals.filter(|literal| is_error(&literal.text));
    let message = format!("the text of an error: it belongs to the others, in {}", FILES[..2].join(" or "));
    texts.map(|literal| Complaint::new(source, literal.line, &message)).collect()
}

fn is_error(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    text.split_once(' ').is_some_and(|(code, _)| CODES.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn texts_of_errors_stand_in_their_files() {
        let text = "// \"ERR x\"\nfn a() {\n    f(\"ERR no\");\n    f(b\"-WRONGTYPE no\");\n    f(\"ERROR no\");\n    \
                    f(\"ERR\");\n}\n\
                    #[cfg(test)]\nmod tests {\n    f(\"ERR no\");\n}\n";
        check(elsewhere, "crates/command/src/stream/id.rs", text, &[3, 4]);
        check(elsewhere, "crates/server/src/core/dispatch/mod.rs", text, &[3, 4]);
        check(elsewhere, "crates/command/src/error.rs", text, &[]);
        check(elsewhere, "xtask/src/bench/crowd.rs", text, &[]);
        check(elsewhere, "crates/server/tests/all/input.rs", text, &[]);
    }
}
