//! Users as text: the file that `aclfile` names, and lines `user` of the configuration.
//!
//! A line of the file is `user`, a name, and rules, separated by single spaces; there are no quotes (but
//! inside parentheses), and no comments. All of the file is in force or nothing of it: the error names
//! everything that is wrong, in Redis's words.
use super::accounts::{DEFAULT_USER, Users};
use super::rule::{RuleError, Rules, has_spaces};
use super::user::User;
use crate::state::config::{UserLine, merged, quoted, reason};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How many bytes a file may have.
const BYTES_MAX: u64 = 64 << 20;

/// The text of the file that makes these users.
pub(crate) fn written(users: &Users) -> Vec<u8> {
    let mut text = Vec::new();
    for user in users.all() {
        text.extend(user.line());
        text.push(b'\n');
    }
    text
}

/// Reads the users of the file, to be put in the place of the present ones. It waits for the disk.
pub(crate) fn load(file: &Path, present: &Users, rules: &Rules<'_>) -> Result<Users, Vec<u8>> {
    let name = file.display().to_string();
    let cannot = |error: std::io::Error| {
        format!("Error loading ACLs, opening file '{name}': {}", reason(&error)).into_bytes()
    };
    let mut text = Vec::new();
    let opened = File::open(file).map_err(cannot)?;
    opened.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(cannot)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(format!("Error loading ACLs: '{name}' has more than {} MB", BYTES_MAX >> 20).into());
    }
    read(&text, &name, present, rules)
}

/// The users of a file, to be put in the place of the present ones; `name` is what errors call the file. The
/// error names everything that is wrong.
pub(crate) fn read(text: &[u8], name: &str, present: &Users, rules: &Rules<'_>) -> Result<Users, Vec<u8>> {
    let (mut users, mut faults, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (index, line) in text.split(|b| *b == b'\n').enumerate() {
        let place = Place { file: name, line: index + 1 };
        if let Some(user) = read_line(trimmed(line, b" \t\r\n"), &place, &mut names, rules, &mut faults) {
            users.push(user);
        }
    }
    if faults.is_empty() {
        return Ok(present.replaced_by(users, rules));
    }
    faults.extend_from_slice(
        b"WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
    );
    Err(faults)
}

/// Where a line stands.
struct Place<'f> {
    file: &'f str,
    line: usize,
}

/// The user of a line; None where there is none, or something is wrong, which is appended to `faults`.
fn read_line(
    line: &[u8],
    place: &Place<'_>,
    names: &mut BTreeSet<Vec<u8>>,
    rules: &Rules<'_>,
    faults: &mut Vec<u8>,
) -> Option<User> {
    let Place { file, line: number } = place;
    if line.is_empty() {
        return None;
    }
    // No name and no pattern has one, so the file was damaged, and what else it says cannot be relied on.
    if line.contains(&0) {
        faults.extend(format!("{file}:{number}: there is a NUL in the line. ").bytes());
        return None;
    }
    let mut words = line.split(|b| *b == b' ');
    let Some(name) = words.next().filter(|word| *word == b"user").and_then(|_| words.next()) else {
        let fault = format!("{file}:{number} should start with user keyword followed by the username. ");
        faults.extend(fault.bytes());
        return None;
    };
    if has_spaces(name) {
        faults.extend(format!("'{file}:{number}: username '").bytes());
        faults.extend_from_slice(name);
        faults.extend_from_slice(b"' contains invalid characters. ");
        return None;
    }
    if !names.insert(name.to_vec()) {
        faults.extend_from_slice(b"WARNING: Duplicate user '");
        faults.extend_from_slice(name);
        faults.extend(format!("' found on line {number}. ").bytes());
        return None;
    }
    let Ok(all) = merged(words) else {
        faults.extend(format!("{file}:{number}: Unmatched parenthesis in selector definition.").bytes());
        return None;
    };
    let mut user = User::new(0, name, rules.channels);
    apply_all(&mut user, &all, place, rules, faults);
    Some(user)
}

/// Applies the rules of a line. Of the faults every unknown name is told, with its rule, which holds no
/// secret; of the others only the first, without its rule, which may be a password.
fn apply_all(user: &mut User, all: &[Vec<u8>], place: &Place<'_>, rules: &Rules<'_>, faults: &mut Vec<u8>) {
    let Place { file, line: number } = place;
    let mut has_fault = false;
    for rule in all {
        let rule = trimmed(rule, b"\t\r\n");
        match user.apply(rule, rules) {
            Ok(()) => {}
            Err(why @ RuleError::Unknown) => {
                faults.extend(format!("{file}:{number}: Error in applying operation '").bytes());
                faults.extend_from_slice(rule);
                faults.extend(format!("': {}. ", why.text()).bytes());
            }
            Err(why) if !has_fault => {
                faults.extend(format!("{file}:{number}: {}. ", why.text()).bytes());
                has_fault = true;
            }
            Err(_) => {}
        }
    }
}

fn trimmed<'t>(text: &'t [u8], set: &[u8]) -> &'t [u8] {
    let is_kept = |b: &u8| !set.contains(b);
    let start = text.iter().position(is_kept).unwrap_or(text.len());
    let end = text.iter().rposition(is_kept).map_or(start, |last| last + 1);
    &text[start..end]
}

/// What is wrong with the rules of a line `user` of the configuration, if anything is.
pub(crate) fn check(line: &UserLine, rules: &Rules<'_>) -> Result<(), &'static str> {
    let mut user = User::new(0, &line.name, rules.channels);
    line.rules.iter().try_for_each(|rule| user.apply(rule, rules)).map_err(RuleError::text)
}

/// Lines `user` of the configuration that make these users. Words are quoted there where they have to be.
pub(crate) fn lines(users: &Users) -> Vec<Vec<u8>> {
    let needs_quotes = |word: &[u8]| word.is_empty() || word.iter().any(|b| b"\"'".contains(b));
    let word = |word: &[u8]| if needs_quotes(word) { quoted(word) } else { word.to_vec() };
    let line = |line: Vec<u8>| line.split(|b| *b == b' ').map(word).collect::<Vec<_>>().join(&b' ');
    users.all().map(|user| line(user.line())).collect()
}

impl Users {
    /// Adds the user of a line of the configuration. The default user's line says all of what that user is.
    pub(crate) fn declare(&mut self, line: &UserLine, rules: &Rules<'_>) -> Result<(), String> {
        if has_spaces(&line.name) {
            return Err("Spaces not allowed in ACL usernames".into());
        }
        if line.name == DEFAULT_USER {
            self.set(DEFAULT_USER, &[b"reset".to_vec()], rules).expect("this rule is always right");
        }
        self.set(&line.name, &line.rules, rules).map_err(|(rule, why)| {
            format!(
                "Error loading ACL rule '{}' for the user named '{}': {}",
                String::from_utf8_lossy(rule),
                String::from_utf8_lossy(&line.name),
                why.text()
            )
        })
    }
}
