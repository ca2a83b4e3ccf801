//! What the rules need to know of commands: names, categories, and which are subcommands of which. The
//! registry makes it; the number of a command here is the number of its row. Those of Redis that are not here
//! (`absent`) have the numbers behind, because rules may name them too.
use super::absent;
use command::Acl;
use std::collections::BTreeMap;
use std::ops::Range;

/// A command or a subcommand.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Lower case; a subcommand's as `config|get`. What `rename-command` calls it does not matter.
    pub(crate) name: String,
    /// Its categories, with those that its flags imply.
    pub(crate) categories: Acl,
    /// The numbers of its subcommands.
    pub(crate) subcommands: Range<usize>,
}

/// See the file's opener.
#[derive(Debug)]
pub(crate) struct Catalog {
    all: Vec<Known>,
    /// How many of them can run.
    present: usize,
    numbers: BTreeMap<String, usize>,
}

impl Catalog {
    /// A catalog of these commands, which stand in the order of their numbers, and of those that are absent.
    pub(crate) fn new(mut all: Vec<Known>) -> Catalog {
        let present = all.len();
        all.extend(absent::known());
        let numbers = all.iter().enumerate().map(|(number, known)| (known.name.clone(), number)).collect();
        Catalog { all, present, numbers }
    }

    /// How many there are, subcommands and absent commands included.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// The command of this number, which must be one.
    pub(crate) fn at(&self, number: usize) -> &Known {
        &self.all[number]
    }

    /// The number of the command of this name, in any case; of a subcommand as `config|get`.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        self.numbers.get(&name).copied()
    }

    /// Whether the command of this number can run: it is not of those that only Redis has.
    pub(crate) fn is_present(&self, number: usize) -> bool {
        number < self.present
    }

    /// The numbers of all in a category, ascending, absent commands included.
    pub(crate) fn in_category(&self, category: Acl) -> impl Iterator<Item = usize> {
        self.all
            .iter()
            .enumerate()
            .filter(move |(_, known)| known.categories.has(category))
            .map(|(number, _)| number)
    }
}

/// The category of this name, in any case, without the `@`.
pub(crate) fn category(name: &[u8]) -> Option<Acl> {
    let named = |(_, known): &&(Acl, &str)| known.as_bytes().eq_ignore_ascii_case(name);
    Acl::NAMES.iter().find(named).map(|(category, _)| *category)
}
