//! Lines of a configuration file that are no settings: they have no value that CONFIG GET could show.
//! (`include` is in `source`, because it reads on.)
use super::rules::merged;
use super::setting::{Outcome, Words};
use super::values::{ChannelDefault, Config, Rename, UserLine};

/// Checks of lines that the settings cannot make themselves, because they do not know the commands.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'c> {
    /// Says what is wrong with the lines `rename-command` so far, if anything is.
    pub(crate) renames: &'c dyn Fn(&[Rename]) -> Result<(), &'static str>,
    /// Says what is wrong with the rules of a user, if anything is.
    pub(crate) user: &'c dyn Fn(&UserLine, ChannelDefault) -> Result<(), &'static str>,
}

impl Checks<'_> {
    /// Finds nothing wrong.
    #[cfg(test)]
    pub(crate) const NONE: Checks<'static> = Checks { renames: &|_| Ok(()), user: &|_, _| Ok(()) };
}

/// Names that Redis has given up and still accepts in a file.
const RETIRED: &[&str] =
    &["io-threads-do-reads", "list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"];

/// Does what a line of the file says, if its name is one of these; None if it is none.
pub(super) fn apply(
    config: &mut Config,
    name: &[u8],
    values: Words<'_>,
    checks: Checks<'_>,
) -> Option<Outcome> {
    let is = |word: &str| word.as_bytes().eq_ignore_ascii_case(name);
    if values.is_empty() {
        return None;
    }
    match values {
        [from, to] if is("rename-command") => Some(rename(config, from, to, checks)),
        [user, rules @ ..] if is("user") => Some(declare(config, user, rules, checks)),
        _ if is("loadmodule") => Some(Err("not supported: there are no modules".into())),
        _ if is("sentinel") => Some(Err("sentinel directive while not in sentinel mode".into())),
        _ if RETIRED.iter().any(|retired| is(retired)) => Some(Ok(())),
        _ => None,
    }
}

fn rename(config: &mut Config, from: &[u8], to: &[u8], checks: Checks<'_>) -> Outcome {
    config.renamed_commands.push(Rename { from: from.into(), to: to.into() });
    let checked = (checks.renames)(&config.renamed_commands).map_err(Into::into);
    if checked.is_err() {
        // Whoever reads on finds out what else is wrong.
        config.renamed_commands.pop();
    }
    checked
}

/// A line `user`. Each user has one at most.
fn declare(config: &mut Config, name: &[u8], rules: Words<'_>, checks: Checks<'_>) -> Outcome {
    let wrong = |why: &str| format!("Error in user declaration '{}': {why}", String::from_utf8_lossy(name));
    if config.declared_users.iter().any(|other| other.name == name) {
        return Err(wrong("Duplicate user found. A user can only be defined once in config files"));
    }
    let rules = merged(rules.iter().copied()).map_err(|_| wrong("Wrong format"))?;
    let line = UserLine { name: name.to_vec(), rules };
    (checks.user)(&line, config.acl_channels_default).map_err(wrong)?;
    config.declared_users.push(line);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECKS: Checks<'static> = Checks {
        renames: &|renames| {
            let is_known = |rename: &Rename| rename.from == b"get";
            renames.iter().all(is_known).then_some(()).ok_or("No such command in rename-command")
        },
        user: &|user, _| {
            let is_wrong = user.rules.iter().any(|rule| rule == b"foo");
            if is_wrong { Err("Syntax error") } else { Ok(()) }
        },
    };

    fn apply_to(config: &mut Config, text: &str) -> Option<Result<(), String>> {
        let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        apply(config, words[0], &words[1..], CHECKS)
    }

    #[test]
    fn lines_that_are_no_settings_are_followed_or_refused() {
        for (text, done) in [
            ("hz 10", None),
            ("loadmodule", None),
            ("rename-command get", None),
            ("user", None),
            ("lua-replicate-commands yes", Some(Ok(()))),
            ("RENAME-COMMAND get fetch", Some(Ok(()))),
            ("rename-command nope fetch", Some(Err("No such command in rename-command"))),
            ("USER default on nopass sanitize-payload ~* &* +@all", Some(Ok(()))),
            ("user bob on foo", Some(Err("Error in user declaration 'bob': Syntax error"))),
            ("user bob on (+get", Some(Err("Error in user declaration 'bob': Wrong format"))),
            ("loadmodule /x.so a", Some(Err("not supported: there are no modules"))),
            ("sentinel monitor x", Some(Err("sentinel directive while not in sentinel mode"))),
        ] {
            let done = done.map(|d: Result<(), &str>| d.map_err(String::from));
            assert_eq!(apply_to(&mut Config::default(), text), done, "{text}");
        }
    }

    #[test]
    fn a_user_is_declared_once_with_selectors_joined() {
        let mut config = Config::default();
        apply_to(&mut config, "user bob on (+get ~a) ~b").unwrap().unwrap();
        let rules = ["on", "(+get ~a)", "~b"].map(|rule| rule.as_bytes().to_vec()).to_vec();
        assert_eq!(config.declared_users, [UserLine { name: b"bob".to_vec(), rules }]);
        let why = "Error in user declaration 'bob': Duplicate user found. A user can only be defined once in \
                   config files";
        assert_eq!(apply_to(&mut config, "user bob off").unwrap().unwrap_err(), why);
    }
}
