//! The commands that a selector allows: a bit for each, and the rules that made the bits, as ACL LIST shows
//! them.
//!
//! The text of the rules cannot be had from the bits: a category may gain a command with the next version,
//! and `+@read -keys` is to mean then what was said now. So rules are kept, beginning with `+@all` or
//! `-@all`, which forget all before them. A rule takes the place of an earlier one about the same thing, and
//! one about a command also of those about its subcommands:
//!
//! ```text
//! +config|get -config   ->  -@all -config
//! +@read -get +@read    ->  -@all -get +@read
//! ```
//!
//! What is true of commands that come later is kept beside the bits (`allows_others`): it is what decides
//! between `+@all` and `-@all` in the text.
use super::catalog::{Catalog, category};
use super::rule::{RuleError, has_spaces, is_word};
use crate::state::config::until_nul;
use std::collections::{BTreeMap, BTreeSet};

/// See the file's opener. A new one allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Commands {
    /// A bit for each command, by number; commands behind the end are not allowed.
    allowed: Vec<u64>,
    /// Nothing was taken away since `+@all`.
    allows_all: bool,
    /// Of `+@all` and `-@all`, `+@all` was the last.
    allows_others: bool,
    /// Commands, by number, that may run with these first arguments only.
    first_args: BTreeMap<usize, BTreeSet<Vec<u8>>>,
    /// The rules since `+@all` or `-@all`, each with its sign.
    rules: Vec<Vec<u8>>,
}

impl Commands {
    /// Whether every command may run.
    pub(super) fn allows_all(&self) -> bool {
        self.allows_all
    }

    /// Whether a command may run with this first argument.
    pub(super) fn allows(&self, number: usize, first_arg: Option<&[u8]>) -> bool {
        if self.allows_all || self.bit(number) {
            return true;
        }
        let Some((first, allowed)) = first_arg.zip(self.first_args.get(&number)) else { return false };
        allowed.iter().any(|arg| until_nul(first).eq_ignore_ascii_case(arg))
    }

    fn bit(&self, number: usize) -> bool {
        self.allowed.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// `+@all` and `-@all` with their other names.
    pub(super) fn set_all(&mut self, is_allowed: bool, catalog: &Catalog) {
        let words = if is_allowed { catalog.count().div_ceil(64) } else { 0 };
        *self = Commands {
            allowed: vec![u64::MAX; words],
            allows_all: is_allowed,
            allows_others: is_allowed,
            ..Commands::default()
        };
    }

    /// A rule that begins with a sign.
    pub(super) fn apply(&mut self, rule: &[u8], catalog: &Catalog) -> Result<(), RuleError> {
        let rule = until_nul(rule);
        if is_word(rule, &["+@all"]) || is_word(rule, &["-@all"]) {
            self.set_all(rule[0] == b'+', catalog);
            return Ok(());
        }
        let (sign, name) = rule.split_first().ok_or(RuleError::Syntax)?;
        let is_allowed = *sign == b'+';
        if let Some(named) = name.strip_prefix(b"@") {
            let category = category(named).ok_or(RuleError::Unknown)?;
            catalog.in_category(category).for_each(|number| self.set(number, is_allowed, catalog));
        } else if let Some(bar) = name.iter().rposition(|b| *b == b'|').filter(|_| is_allowed) {
            self.allow_part(&name[..bar], &name[bar + 1..], catalog)?;
        } else {
            let number = catalog.find(name).ok_or(RuleError::Unknown)?;
            self.set(number, is_allowed, catalog);
        }
        self.note(*sign, name);
        Ok(())
    }

    /// `+command|part`: a subcommand, or a first argument where the command has no subcommands.
    fn allow_part(&mut self, name: &[u8], part: &[u8], catalog: &Catalog) -> Result<(), RuleError> {
        let number = catalog.find(name).ok_or(RuleError::Unknown)?;
        let known = catalog.at(number);
        if known.name.contains('|') {
            return Err(RuleError::FirstArgOfSubcommand);
        }
        // Where the rule is read back, blanks and quotes would make another rule of it.
        if part.is_empty() || has_spaces(part) || part.iter().any(|b| b"\"'".contains(b)) {
            return Err(RuleError::Syntax);
        }
        if !known.subcommands.is_empty() {
            let number = catalog.find(&[name, b"|", part].concat()).ok_or(RuleError::Unknown)?;
            self.set_bit(number, true);
            return Ok(());
        }
        self.first_args.entry(number).or_default().insert(part.to_ascii_lowercase());
        Ok(())
    }

    /// A command with all its subcommands.
    fn set(&mut self, number: usize, is_allowed: bool, catalog: &Catalog) {
        self.first_args.remove(&number);
        self.set_bit(number, is_allowed);
        catalog.at(number).subcommands.clone().for_each(|number| self.set_bit(number, is_allowed));
    }

    fn set_bit(&mut self, number: usize, is_allowed: bool) {
        let (word, bit) = (number / 64, 1 << (number % 64));
        if self.allowed.len() <= word {
            self.allowed.resize(word + 1, 0);
        }
        if is_allowed {
            self.allowed[word] |= bit;
        } else {
            self.allowed[word] &= !bit;
            self.allows_all = false;
        }
    }

    /// Keeps a rule, and drops those that have no effect any more because of it.
    fn note(&mut self, sign: u8, name: &[u8]) {
        let name = name.to_ascii_lowercase();
        let is_about_it = |rule: &Vec<u8>| {
            let rest = rule[1..].strip_prefix(name.as_slice());
            rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'|')
        };
        self.rules.retain(|rule| !is_about_it(rule));
        self.rules.push([&[sign], name.as_slice()].concat());
    }

    /// The rules, of which the first is `+@all` or `-@all`.
    pub(super) fn words(&self) -> impl Iterator<Item = &[u8]> {
        let all: &[u8] = if self.allows_others { b"+@all" } else { b"-@all" };
        std::iter::once(all).chain(self.rules.iter().map(Vec::as_slice))
    }
}
