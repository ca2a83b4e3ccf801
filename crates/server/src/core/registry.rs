//! All commands by name: one row for each, built once from the tables of the data families and of the server.
//! A row is looked up on the path of every request: a name is packed into two integers, a multiplier chosen
//! at start-up makes their hash perfect, and one comparison confirms that it is this name and no other.
//!
//! Data families and the server may each hold a part of one container (MEMORY USAGE reads a key, MEMORY PURGE
//! does not): rows of the same name are joined, their subcommands together.
//!
//! `rename-command` changes what a command is called, or takes its name away, and nothing else about it:
//! statistics, COMMAND and error texts go on with its own name, as in Redis.
//!
//! A row holds its handler. A table of handlers beside the rows was measured and is dearer
//! (docs/decisions/handlers-in-the-row.md).
use crate::core::call::{ServerCommand, ServerRun};
use crate::state::acl::{Catalog, Known, absent};
use crate::state::config::Rename;
use base::word::is_same_word;
use command::{Acl, Arity, Command, DataRun, Doc, FixedKeys, Flags, KeySpec, Long, Parts};
use resp::Args;
use std::hint::cold_path;

/// What runs a command: a function of keys, or one of the server.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    Data(DataRun),
    Server(ServerRun),
}

impl Run {
    fn is_container(self) -> bool {
        matches!(self, Run::Data(DataRun::Container) | Run::Server(ServerRun::Container))
    }
}

impl From<DataRun> for Run {
    fn from(run: DataRun) -> Run {
        Run::Data(run)
    }
}

impl From<ServerRun> for Run {
    fn from(run: ServerRun) -> Run {
        Run::Server(run)
    }
}

/// All that is known of a command or a subcommand. Made at the start, never changed.
pub(crate) struct Row {
    /// Lower case; subcommands as `client|list`.
    pub(crate) full_name: String,
    /// In upper case, without the name of its container.
    pub(crate) name: &'static str,
    /// What clients call it: its name, or the one that `rename-command` gave it; empty if that took its name
    /// away.
    pub(crate) called: Vec<u8>,
    /// That name packed; None where another name could have the same word.
    word: Option<Word>,
    pub(crate) arity: Arity,
    pub(crate) flags: Flags,
    pub(crate) acl: Acl,
    pub(crate) keys: &'static [KeySpec],
    /// Which arguments are keys, as far as that is the same in every request.
    pub(crate) fixed_keys: FixedKeys,
    pub(crate) doc: &'static Doc,
    /// Whether its grammar marks arguments as secret.
    has_secrets: bool,
    pub(crate) parts: Parts,
    pub(crate) at_once: Option<&'static Long>,
    pub(crate) run: Run,
    pub(crate) subcommands: Vec<Row>,
    /// Dense over rows and subcommands: the place of its statistics in every worker's counters.
    pub(crate) number: usize,
}

impl Row {
    /// The row of a command of any table; `container` is the lower-case name of the container that it belongs
    /// to.
    fn new<R: Copy + Into<Run>>(command: &'static Command<R>, container: Option<&str>) -> Row {
        let lower = command.name.to_ascii_lowercase();
        let subcommands: Vec<Row> = command.subcommands.iter().map(|s| Row::new(s, Some(&lower))).collect();
        let fixed_keys = match &subcommands[..] {
            [] => command.fixed_keys(),
            subcommands => fixed_keys_of_container(subcommands),
        };
        Row {
            full_name: container.map_or_else(|| lower.clone(), |c| format!("{c}|{lower}")),
            name: command.name,
            called: command.name.into(),
            word: Word::of_letters(command.name.as_bytes()),
            arity: command.arity,
            flags: command.flags,
            acl: command.acl,
            keys: command.keys,
            fixed_keys,
            doc: &command.doc,
            has_secrets: command::has_secrets(command.doc.args),
            parts: command.parts,
            at_once: command.at_once,
            run: command.run.into(),
            subcommands,
            number: 0,
        }
    }

    /// The subcommand of this name, in any case. It compares with one after the other: few containers have
    /// many.
    pub(crate) fn subcommand(&self, name: &[u8]) -> Option<&Row> {
        self.subcommands.iter().find(|s| is_same_word(s.name.as_bytes(), name))
    }

    /// Puts the places of all keys among the arguments into `positions`, in the order of the key specs.
    pub(crate) fn extract_keys(&self, args: &Args<'_>, positions: &mut Vec<u32>) {
        positions.clear();
        command::key_positions(self.keys, args, positions);
    }

    /// The places of the arguments that nobody but the client may read, ascending. Nothing is allocated for a
    /// command without secrets.
    pub(crate) fn secrets(&self, args: &Args<'_>) -> Vec<usize> {
        if !self.has_secrets {
            return Vec::new();
        }
        let first = 1 + usize::from(self.full_name.contains('|'));
        command::secrets(self.doc.args, args, first)
    }

    /// The key, if the request has exactly one and `args` is long enough.
    pub(crate) fn only_key<'a>(&self, args: &Args<'a>) -> Option<&'a [u8]> {
        self.fixed_keys.only_key(args)
    }

    /// Which argument is the first key, in every request of this command that has keys: what dispatch can
    /// know before it has looked at the arguments.
    #[inline]
    pub(crate) fn first_key(&self) -> Option<usize> {
        self.fixed_keys.first()
    }

    /// Takes over the part of the same container that another family holds.
    fn join(&mut self, mut other: Row) {
        assert!(
            self.run.is_container() || other.run.is_container(),
            "{} is in two families' tables",
            self.name
        );
        if !other.run.is_container() {
            std::mem::swap(self, &mut other);
        }
        self.subcommands.append(&mut other.subcommands);
        self.fixed_keys = fixed_keys_of_container(&self.subcommands);
    }
}

fn fixed_keys_of_container(subcommands: &[Row]) -> FixedKeys {
    FixedKeys::of_container(subcommands.iter().map(|row| row.fixed_keys))
}

/// See the file's opener.
pub(crate) struct Registry {
    /// In the order of the tables.
    pub(crate) rows: Vec<Row>,
    /// For each number, where its row is.
    places: Vec<Place>,
    index: Index,
}

#[derive(Clone, Copy)]
struct Place {
    row: usize,
    subcommand: Option<usize>,
}

impl Registry {
    /// Every command by its own name. `families` are the server's tables; those of the data are known.
    pub(crate) fn new(families: &[&[&'static ServerCommand]]) -> Registry {
        Registry::renamed(families, &[]).expect("the names of the tables are told apart, which a test shows")
    }

    /// Every command, with these renamed one after the other (`rename-command`); or what is wrong with one of
    /// the renames, in Redis's words. Those that only Redis has may be renamed as well: files of those who
    /// take dangerous commands away name them.
    pub(crate) fn renamed(
        families: &[&[&'static ServerCommand]],
        renames: &[Rename],
    ) -> Result<Registry, &'static str> {
        let mut rows = rows(families);
        let mut absent: Vec<Vec<u8>> = absent::names().map(Vec::from).collect();
        for Rename { from, to } in renames {
            let here = rows.iter().map(|row| &row.called[..]);
            let all: Vec<&[u8]> = here.chain(absent.iter().map(Vec::as_slice)).collect();
            let called = |name: &[u8]| {
                all.iter().position(|called| !name.is_empty() && called.eq_ignore_ascii_case(name))
            };
            let at = called(from).ok_or("No such command in rename-command")?;
            // Its own name, which it gives up at that moment, is not in its way.
            if called(to).is_some_and(|other| other != at) {
                return Err("Target command name already exists");
            }
            match at.checked_sub(rows.len()) {
                Some(at) => absent[at].clone_from(to),
                None => {
                    rows[at].called.clone_from(to);
                    rows[at].word = Word::of_letters(to);
                }
            }
        }
        let places = number(&mut rows);
        let index = Index::new(&rows).ok_or("The new name is too much like that of another command")?;
        Ok(Registry { rows, places, index })
    }

    /// The row of a command's name in any case; the container's row where it has subcommands. On the path of
    /// every request: one multiplication and one comparison, or two where the name is not of letters alone.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Row> {
        let word = Word::of(name);
        let row = self.rows.get(self.index.candidate(word))?;
        if row.word == Some(word) {
            return Some(row);
        }
        cold_path();
        is_same_word(&row.called, name).then_some(row)
    }

    /// The rows that a name leads to: all but those whose name `rename-command` took away.
    pub(crate) fn callable(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.called.is_empty())
    }

    /// How many rows and subcommands there are together.
    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    /// The row or subcommand with this `Row::number`, which must be one.
    pub(crate) fn row(&self, number: usize) -> &Row {
        let place = self.places[number];
        let row = &self.rows[place.row];
        place.subcommand.map_or(row, |s| &row.subcommands[s])
    }

    /// Names, categories and subcommands of all commands, which the rules of users refer to.
    pub(crate) fn catalog(&self) -> Catalog {
        let known = |row: &Row| Known {
            name: row.full_name.clone(),
            categories: row.acl.with_implied(row.flags),
            subcommands: row.number + 1..row.number + 1 + row.subcommands.len(),
        };
        Catalog::new(self.all().map(known).collect())
    }

    /// All rows and subcommands, by number.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Row> {
        (0..self.count()).map(|number| self.row(number))
    }
}

/// The rows of the data's tables and of the server's, joined.
fn rows(families: &[&[&'static ServerCommand]]) -> Vec<Row> {
    let data = command::FAMILIES.iter().copied().flatten().map(|c| Row::new(c, None));
    let server = families.iter().copied().flatten().map(|c| Row::new(c, None));
    let mut rows: Vec<Row> = Vec::new();
    for row in data.chain(server) {
        match rows.iter_mut().find(|r| r.name == row.name) {
            Some(first) => first.join(row),
            None => rows.push(row),
        }
    }
    rows
}

/// Numbers rows and subcommands, and returns where the row of each number is.
fn number(rows: &mut [Row]) -> Vec<Place> {
    let mut places = Vec::new();
    for (row, r) in rows.iter_mut().enumerate() {
        r.number = places.len();
        places.push(Place { row, subcommand: None });
        for (subcommand, s) in r.subcommands.iter_mut().enumerate() {
            s.number = places.len();
            places.push(Place { row, subcommand: Some(subcommand) });
        }
    }
    places
}

/// A perfect hash from names to rows: no two names fall on one slot.
struct Index {
    multiplier: u64,
    /// Row numbers by hash; `EMPTY` where no name falls.
    slots: Box<[u16; SLOTS]>,
}

/// Some twenty for each name: with fewer slots a multiplier is harder to find, with more the index takes more
/// cache.
const SLOTS: usize = 4096;
const EMPTY: u16 = u16::MAX;

impl Index {
    /// Tries multipliers until no two names fall on one slot; None where none can tell two names apart.
    fn new(rows: &[Row]) -> Option<Index> {
        let named = || rows.iter().enumerate().filter(|(_, row)| !row.called.is_empty());
        let mut all: Vec<u64> = named().map(|(_, row)| Word::of(&row.called).mixed()).collect();
        all.sort_unstable();
        if all.windows(2).any(|two| two[0] == two[1]) {
            return None;
        }
        let mut random = base::random::Random::new(0);
        loop {
            let mut index = Index { multiplier: random.next_u64() | 1, slots: Box::new([EMPTY; SLOTS]) };
            if named().all(|(at, row)| index.claim(&row.called, at)) {
                return Some(index);
            }
        }
    }

    /// Enters a name, and returns whether its slot was free.
    fn claim(&mut self, name: &[u8], row: usize) -> bool {
        let slot = &mut self.slots[slot(Word::of(name), self.multiplier)];
        let is_free = *slot == EMPTY;
        *slot = row as u16;
        is_free
    }

    /// The index of the only row that may have this name, or an index beyond the last row.
    #[inline]
    fn candidate(&self, word: Word) -> usize {
        usize::from(self.slots[slot(word, self.multiplier)])
    }
}

#[inline]
fn slot(word: Word, multiplier: u64) -> usize {
    (word.mixed().wrapping_mul(multiplier) >> (64 - SLOTS.ilog2())) as usize
}

/// A name in a form that is quick to compare: its length, its beginning and its end, with upper-case letters
/// made lower-case. Beginning and end are 8 bytes each, of a name shorter than 8 bytes 4 each, and of one
/// shorter than 4 all of it. Two different names may have the same word: other bytes are changed along with
/// the letters, and the middle of a name longer than 16 bytes is left out.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word {
    head: u64,
    tail: u64,
    len: usize,
}

impl Word {
    /// The longest name of which no byte is left out.
    const LEN_MAX: usize = 16;

    #[inline]
    fn of(name: &[u8]) -> Word {
        const FOLD: u64 = 0x2020_2020_2020_2020;
        let (head, tail) = match name {
            [] => (0, 0),
            [a] => (u64::from(*a), 0),
            [a, b] => (u64::from(*a), u64::from(*b)),
            [a, b, c] => (u64::from(*a), u64::from(*b) << 8 | u64::from(*c)),
            _ => match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
                (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
                _ => (four(name.first_chunk()), four(name.last_chunk())),
            },
        };
        Word { head: head | FOLD, tail: tail | FOLD, len: name.len() }
    }

    /// The word of a name of at most 16 letters and nothing else; None for other names. No other name has
    /// that word, in any case, because folding turns no other byte into a letter.
    fn of_letters(name: &[u8]) -> Option<Word> {
        let is_whole = name.len() <= Word::LEN_MAX && name.iter().all(u8::is_ascii_alphabetic);
        is_whole.then(|| Word::of(name))
    }

    /// The word as one integer. [`Index::new`] makes sure that it differs between all names in use.
    #[inline]
    fn mixed(self) -> u64 {
        self.head ^ self.tail.rotate_left(27) ^ (self.len as u64).rotate_right(8)
    }
}

fn four(chunk: Option<&[u8; 4]>) -> u64 {
    chunk.map_or(0, |c| u64::from(u32::from_le_bytes(*c)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::families::FAMILIES;

    #[test]
    fn every_name_is_found_in_any_case_and_no_other() {
        let registry = Registry::new(FAMILIES);
        for row in &registry.rows {
            let lower = row.name.to_ascii_lowercase();
            assert_eq!(registry.find(row.name.as_bytes()).map(|r| r.number), Some(row.number));
            assert_eq!(registry.find(lower.as_bytes()).map(|r| r.number), Some(row.number));
            assert!(registry.find(format!("{lower}~").as_bytes()).is_none());
        }
        for name in ["", "x", "ab", "abc", "nosuchcommand", "a-name-longer-than-sixteen-bytes"] {
            assert!(registry.find(name.as_bytes()).is_none(), "{name}");
        }
    }

    /// Changes every bit of every byte: by its word alone `RESTORE\rASKING` would be RESTORE-ASKING.
    #[test]
    fn a_name_with_one_bit_changed_is_found_only_where_that_is_its_case() {
        let registry = Registry::new(FAMILIES);
        for row in &registry.rows {
            for bit in 0..8 * row.name.len() {
                let mut name = row.name.as_bytes().to_vec();
                name[bit / 8] ^= 1 << (bit % 8);
                let same = registry.rows.iter().find(|r| r.name.as_bytes().eq_ignore_ascii_case(&name));
                assert_eq!(registry.find(&name).map(|r| r.number), same.map(|r| r.number), "{name:?}");
            }
        }
    }

    /// Makes many requests, most of which would fail, and compares the keys that the row knows without the
    /// arguments with those that the key specs find.
    #[test]
    fn the_keys_known_early_are_those_of_the_key_specs() {
        let registry = Registry::new(FAMILIES);
        let (mut only, mut first) = (0, 0);
        for (row, word, len) in registry.all().flat_map(|row| {
            ["1", "2", "STREAMS", "key"]
                .into_iter()
                .flat_map(move |word| (1..9).map(move |len| (row, word, len)))
        }) {
            let (buffer, span) =
                (word.repeat(len), |at| resp::Span { start: at * word.len(), len: word.len() });
            let spans: Vec<resp::Span> = (0..len).map(span).collect();
            let args = Args::new(buffer.as_bytes(), &spans);
            let mut positions = Vec::new();
            command::key_positions(row.keys, &args, &mut positions);
            if !row.subcommands.is_empty() || !row.arity.accepts(len) {
                continue;
            }
            let name = &row.full_name;
            if let Some(key) = row.only_key(&args) {
                assert_eq!(positions.len(), 1, "{name} of {len}");
                assert!(std::ptr::eq(key, args.at(positions[0] as usize)), "{name} of {len}");
                only += 1;
            }
            if let (Some(early), Some(position)) = (row.first_key(), positions.first()) {
                assert_eq!(early, *position as usize, "{name} of {len}");
                first += 1;
            }
        }
        assert!(only > 500 && first > only, "{only} {first}");
        for (name, expected) in [("DEL", Some(1)), ("COPY", Some(1)), ("OBJECT", Some(2)), ("CLIENT", None)] {
            assert_eq!(registry.find(name.as_bytes()).and_then(Row::first_key), expected, "{name}");
        }
    }

    #[test]
    fn a_renamed_command_is_found_by_its_new_name_alone() {
        let rename = |from: &str, to: &str| Rename { from: from.into(), to: to.into() };
        let registry = Registry::renamed(
            FAMILIES,
            &[rename("get", "Fetch"), rename("CONFIG", ""), rename("SET", "GET")],
        )
        .unwrap();
        assert_eq!(registry.find(b"fetch").unwrap().name, "GET");
        assert_eq!(registry.find(b"get").unwrap().name, "SET");
        for gone in ["set", "config", ""] {
            assert!(registry.find(gone.as_bytes()).is_none(), "{gone}");
        }
        assert_eq!(registry.callable().count(), registry.rows.len() - 1);
        let hardened = [rename("SYNC", ""), rename("failover", "hidden"), rename("get", "sync")];
        let registry = Registry::renamed(FAMILIES, &hardened).unwrap();
        assert_eq!(registry.find(b"sync").unwrap().name, "GET");
        assert!(registry.find(b"hidden").is_none());
        let own = [rename("get", "get"), rename("SET", "set"), rename("incr", ""), rename("get", "INCR")];
        let registry = Registry::renamed(FAMILIES, &own).unwrap();
        assert_eq!(registry.find(b"incr").unwrap().name, "GET");
        assert_eq!(registry.find(b"SET").unwrap().name, "SET");
        for (renames, why) in [
            (vec![rename("nope", "x")], "No such command in rename-command"),
            (vec![rename("get", ""), rename("get", "x")], "No such command in rename-command"),
            (vec![rename("get", "set")], "Target command name already exists"),
            (vec![rename("get", "SYNC")], "Target command name already exists"),
            (vec![rename("failover", "get")], "Target command name already exists"),
            (vec![rename("sync", ""), rename("sync", "x")], "No such command in rename-command"),
            (
                vec![rename("get", "12345678-a-12345678"), rename("set", "12345678-b-12345678")],
                "The new name is too much like that of another command",
            ),
        ] {
            assert_eq!(Registry::renamed(FAMILIES, &renames).err(), Some(why));
        }
    }

    #[test]
    fn numbers_are_dense_and_lead_back_to_their_rows() {
        let registry = Registry::new(FAMILIES);
        for (number, row) in registry.all().enumerate() {
            assert_eq!(row.number, number);
        }
    }
}
