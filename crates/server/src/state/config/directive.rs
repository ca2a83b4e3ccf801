//! Lines of a configuration file that are no settings: they have no value that CONFIG GET could show.
//! (`include` is in `source`, because it reads on.)
use super::setting::{Outcome, Words};
use super::values::Config;

/// A line of `rename-command`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// What it is called up to this line.
    pub from: Vec<u8>,
    /// Empty: it cannot be called any more.
    pub to: Vec<u8>,
}

/// Says what is wrong with the renaming so far, if anything is: the settings do not know the commands.
pub(crate) type RenameCheck = dyn Fn(&[Rename]) -> Result<(), &'static str>;

/// Names that Redis has given up and still accepts in a file.
const RETIRED: &[&str] =
    &["io-threads-do-reads", "list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"];

/// Does what a line of the file says, if its name is one of these; None if it is none.
pub(super) fn apply(
    config: &mut Config,
    name: &[u8],
    values: Words<'_>,
    check: &RenameCheck,
) -> Option<Outcome> {
    let is = |word: &str| word.as_bytes().eq_ignore_ascii_case(name);
    if values.is_empty() {
        return None;
    }
    match values {
        [from, to] if is("rename-command") => Some(rename(config, from, to, check)),
        [user, rules @ ..] if is("user") => Some(declare(user, rules)),
        _ if is("loadmodule") => Some(Err("not supported: there are no modules".into())),
        _ if is("sentinel") => Some(Err("sentinel directive while not in sentinel mode".into())),
        _ if RETIRED.iter().any(|retired| is(retired)) => Some(Ok(())),
        _ => None,
    }
}

fn rename(config: &mut Config, from: &[u8], to: &[u8], check: &RenameCheck) -> Outcome {
    config.renamed_commands.push(Rename { from: from.into(), to: to.into() });
    check(&config.renamed_commands).map_err(Into::into)
}

/// A line `user`. A file that Redis has rewritten describes the default user, who may do everything without a
/// password; that line is true here too.
fn declare(user: &[u8], rules: Words<'_>) -> Outcome {
    const WITHOUT_LIMITS: &[&str] = &[
        "on",
        "nopass",
        "sanitize-payload",
        "skip-sanitize-payload",
        "~*",
        "allkeys",
        "&*",
        "allchannels",
        "+@all",
        "allcommands",
    ];
    let has = |word: &str| rules.iter().any(|rule| rule.eq_ignore_ascii_case(word.as_bytes()));
    let is_free = |rule: &&[u8]| WITHOUT_LIMITS.iter().any(|w| rule.eq_ignore_ascii_case(w.as_bytes()));
    if user == b"default" && rules.iter().all(is_free) && has("on") && has("nopass") {
        return Ok(());
    }
    Err("not supported: there are no ACL users yet; `requirepass` sets a password for everybody".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(renames: &[Rename]) -> Result<(), &'static str> {
        let is_known = |rename: &Rename| rename.from == b"get";
        renames.iter().all(is_known).then_some(()).ok_or("No such command in rename-command")
    }

    fn line(text: &str) -> Option<Result<(), String>> {
        let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        apply(&mut Config::default(), words[0], &words[1..], &check)
    }

    #[test]
    fn lines_that_are_no_settings_are_followed_or_refused() {
        for (text, done) in [
            ("hz 10", None),
            ("loadmodule", None),
            ("rename-command get", None),
            ("lua-replicate-commands yes", Some(Ok(()))),
            ("RENAME-COMMAND get fetch", Some(Ok(()))),
            ("rename-command nope fetch", Some(Err("No such command in rename-command"))),
            ("user default on nopass sanitize-payload ~* &* +@all", Some(Ok(()))),
            ("loadmodule /x.so a", Some(Err("not supported: there are no modules"))),
            ("sentinel monitor x", Some(Err("sentinel directive while not in sentinel mode"))),
        ] {
            assert_eq!(line(text), done.map(|d| d.map_err(String::from)), "{text}");
        }
        for text in
            ["user default on >x ~* +@all", "user x on nopass", "user default on", "user default nopass"]
        {
            assert!(line(text).unwrap().unwrap_err().starts_with("not supported: "), "{text}");
        }
    }
}
