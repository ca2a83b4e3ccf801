//! A log: entries in the order of their ids, each a list of fields and values. A stream keeps its entries in
//! one.
//!
//! ```text
//!          sealed: Tree<ByEntry>             tail
//!    +----------+----------+----------+   +--------+
//!    | leaf     | leaf     | leaf     |   | leaf   |  <- entries come here
//!    +----------+----------+----------+   +--------+
//! ```
//!
//! Entries come at the end only, so the last leaf lies beside the tree, and appending touches nothing else.
//! They come to rows (`rows.rs`). When the leaf is full and another begins, its entries are turned into
//! columns (`columns.rs`), which take half the bytes and are read as quickly; that costs as much as writing
//! its rows did, once a leaf.
//!
//! Where all entries of the last leaf are deleted, the one before it is the last again, and stays one of
//! columns: as full as it is, nothing comes to it. So a job that is added behind a full leaf and deleted when
//! it is done costs a leaf of one entry, and no other leaf is turned for it. The leaf before becomes rows
//! again only if an entry does fit into it (a shorter one than that for which it was full) or goes from it.
//!
//! XTRIM with `~` removes whole nodes, and users see how many entries went; so a leaf takes as many entries
//! as a node of Redis would (`stream-node-max-bytes`, `stream-node-max-entries`), those that are deleted
//! counted too: each leaf adds up the bytes that they would take in Redis's format. Between calls: no leaf is
//! empty, and only an empty log has no tail.
//!
//! The tree keeps the number of entries below each node, so how many there are between two ids takes two
//! descents, whatever their number.
//!
//! Cloning costs an increment for the tail and one for the tree.
mod cell;
mod column;
mod columns;
pub mod records;
mod rows;

use crate::memory::arena::Moves;
use crate::memory::block::{self, Block};
use crate::tree::node::Inner;
use crate::tree::order::{ByEntry, EntryMark};
use crate::tree::stats::Stats;
use crate::tree::{Node, Path, Tree};
use columns::Columns;
pub use columns::Sheet;
use rows::{Head, KIND_ROWS, Rows};
pub use rows::{Pairs, Row, Visit};
use std::ops::ControlFlow;

pub use crate::tree::order::Id;

/// When a leaf is full, as the settings say it; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `stream-node-max-bytes`
    pub bytes: u64,
    /// `stream-node-max-entries`
    pub entries: u64,
}

/// Without a limit a leaf ends here all the same: an edit inside a leaf moves what lies behind it.
pub const LEAF_BYTES_MAX: u64 = 64 << 10;

impl Limits {
    /// Whether a leaf takes one more entry, of so many bytes of text.
    fn takes(&self, leaf: &Block, text_bytes: usize) -> bool {
        let head = Head::read(leaf);
        self.has_room(NodeSize { bytes: head.size, added: head.added }, text_bytes)
    }

    /// Whether a leaf of this size takes one more entry, of so many bytes of text.
    pub fn has_room(&self, size: NodeSize, text_bytes: usize) -> bool {
        let bytes_max = if self.bytes == 0 { LEAF_BYTES_MAX } else { self.bytes.min(LEAF_BYTES_MAX) };
        u64::from(size.bytes) + (text_bytes as u64) < bytes_max
            && (self.entries == 0 || u64::from(size.added) < self.entries)
    }
}

/// What says when a leaf is full: how many bytes its entries take as a node of Redis, and how many ever came
/// to it, with those that are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSize {
    pub bytes: u32,
    pub added: u32,
}

/// Which entries go when a log is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// The oldest, until so many are left.
    MaxLen(u64),
    /// Those before this id.
    MinId(Id),
}

/// How far a trim goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    Exact,
    /// Whole leaves only, and at most so many entries.
    Leaves {
        entries_max: u64,
    },
}

/// The direction of a walk: upwards is towards greater ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
}

/// See the top of this file. A clone costs two increments and is never disturbed by later edits.
#[derive(Clone)]
pub struct Log {
    sealed: Tree<ByEntry, Block>,
    tail: Option<Block>,
    len: u64,
}

#[derive(Clone, Copy)]
enum Location {
    Sealed(Path),
    Tail,
}

impl Default for Log {
    fn default() -> Log {
        Log::new()
    }
}

impl Log {
    /// Without entries. Allocates nothing.
    pub const fn new() -> Log {
        Log { sealed: Tree::new(), tail: None, len: 0 }
    }

    /// How many entries there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry. Its id is greater than any that is here. Writes behind the last entry of the last leaf,
    /// and once a leaf turns the one before into columns.
    #[inline]
    pub fn append(&mut self, id: Id, pairs: &impl Pairs, limits: &Limits) {
        debug_assert!(self.last_id().is_none_or(|last| last < id), "{id:?}");
        self.len += 1;
        match &mut self.tail {
            Some(tail) if limits.takes(tail, pairs.text_bytes()) => {
                open(tail);
                rows::append(tail, id, pairs);
            }
            _ => self.append_leaf(id, pairs),
        }
    }

    /// Adds an entry that begins a leaf though the last has room: where a node of a file begins.
    pub fn append_apart(&mut self, id: Id, pairs: &impl Pairs) {
        debug_assert!(self.last_id().is_none_or(|last| last < id), "{id:?}");
        self.len += 1;
        self.append_leaf(id, pairs);
    }

    /// Adds entries, of which there are some, as a leaf. It is one of rows if more come to it (`grows`), and
    /// otherwise one of columns where these are shorter. Costs a part of what adding them one by one does.
    pub fn append_sheet(&mut self, names: &impl Pairs, sheet: &Sheet<'_>, size: NodeSize, grows: bool) {
        debug_assert!(self.last_id() < sheet.ids.first().copied(), "ids rise");
        let columns = if grows { None } else { sheet.leaf(names, size) };
        let leaf = columns.unwrap_or_else(|| rows::leaf_of(names, sheet, size));
        debug_assert_eq!(Leaf::open(&leaf).count(), sheet.ids.len() as u64);
        self.len += sheet.ids.len() as u64;
        if let Some(old) = self.tail.replace(leaf) {
            self.seal(old);
        }
        self.assert_shape();
    }

    /// The last leaf has all entries of a node of a file, and is as full as that.
    pub fn note_node(&mut self, size: NodeSize) {
        if let Some(tail) = &mut self.tail {
            rows::set_size(tail, size);
        }
    }

    /// Gives back the room for what comes next, if that is much.
    pub fn fit(&mut self) {
        if let Some(tail) = &mut self.tail
            && tail[0] == KIND_ROWS
            && rows::slack_bytes(tail) > tail.len() / 64
        {
            rows::shrink(tail);
        }
    }

    /// Begins a leaf with this entry: the first with room for it alone, each other as long as the one before
    /// became.
    #[cold]
    fn append_leaf(&mut self, id: Id, pairs: &impl Pairs) {
        let mut room = 0;
        if let Some(old) = self.tail.take() {
            room = Head::read(&old).end as usize - rows::HEAD_BYTES;
            self.seal(old);
        }
        let mut leaf = rows::start(id, rows::empty_node_bytes(pairs), room);
        rows::append(&mut leaf, id, pairs);
        debug_assert_eq!(Leaf::open(&leaf).count(), 1);
        self.tail = Some(leaf);
    }

    /// Puts a leaf behind which another begins behind the others of the tree, as columns where that is
    /// shorter.
    fn seal(&mut self, full: Block) {
        let Head { base, count, .. } = Head::read(&full);
        let leaf = columns::close(full);
        debug_assert!(count > 0 && Leaf::open(&leaf).count() == u64::from(count));
        debug_assert!(self.sealed.last().is_none_or(|last| self.sealed.mark(&last).least < base), "{base:?}");
        let mark = EntryMark { count: u64::from(count), least: base };
        match self.sealed.last() {
            None => drop(self.sealed.plant(mark, leaf)),
            Some(mut last) => self.sealed.insert_after(&mut last, mark, leaf),
        }
    }

    /// The least id; None where the log is empty.
    pub fn first_id(&self) -> Option<Id> {
        self.first_location().and_then(|location| self.leaf(&location).first_id())
    }

    /// The greatest id; None where the log is empty. One look at the last leaf.
    pub fn last_id(&self) -> Option<Id> {
        self.tail.as_ref().and_then(|tail| Leaf::open(tail).last_id())
    }

    /// Lends the entry `id`; None where it is not there. One descent, and a search in a leaf of about a
    /// hundred.
    pub fn find<R>(&self, id: Id, look: impl FnOnce(&Row<'_>) -> R) -> Option<R> {
        let (mut look, mut found) = (Some(look), None);
        let _ = self.leaf(&self.seek(id)?).visit_up(id, &mut |row| {
            if row.id == id {
                found = look.take().map(|look| look(row));
            }
            ControlFlow::Break(())
        });
        found
    }

    /// Whether the entry `id` is there.
    pub fn contains(&self, id: Id) -> bool {
        self.seek(id).is_some_and(|location| self.leaf(&location).contains(id))
    }

    /// Visits entries from `from` on, itself included, until told to stop.
    pub fn visit(&self, from: Id, direction: Direction, visit: &mut Visit<'_>) {
        let mut next = self.seek(from);
        while let Some(location) = next {
            let leaf = self.leaf(&location);
            let flow = match direction {
                Direction::Up => leaf.visit_up(from, visit),
                Direction::Down => leaf.visit_down(from, visit),
            };
            if flow.is_break() {
                return;
            }
            next = match direction {
                Direction::Up => self.after(&location),
                Direction::Down => self.before(&location),
            };
        }
    }

    /// How many entries there are between two ids, both included. Two descents, and the ids of two leaves.
    pub fn count_between(&self, (start, end): (Id, Id)) -> u64 {
        if start > end {
            return 0;
        }
        let count =
            end.next().map_or(self.len, |behind| self.count_before(behind)) - self.count_before(start);
        debug_assert!(count <= self.len, "{count} of {} entries", self.len);
        count
    }

    /// How many entries have a lesser id.
    fn count_before(&self, id: Id) -> u64 {
        let Some(location) = self.seek(id) else { return 0 };
        let before = match &location {
            Location::Sealed(path) => self.sealed.rank(path),
            Location::Tail => self.sealed.total().count,
        };
        before + self.leaf(&location).count_before(id)
    }

    /// Takes the entry `id` out. Returns whether it was there. A leaf of columns becomes one of rows for it.
    pub fn remove(&mut self, id: Id) -> bool {
        let Some(location) = self.seek(id) else { return false };
        if !self.leaf(&location).contains(id) {
            return false;
        }
        if self.leaf(&location).count() == 1 {
            self.remove_leaf(&location);
        } else {
            let block = self.block_with(&location, -1);
            open(block);
            rows::remove(block, id);
            shrink_if_sparse(block);
        }
        debug_assert!(self.len > 0);
        self.len -= 1;
        self.assert_shape();
        true
    }

    /// Removes the oldest entries. Returns how many went. Whole leaves are not looked into.
    pub fn trim(&mut self, trim: Trim, precision: Precision) -> u64 {
        let before = self.len;
        while let Some(location) = self.first_location() {
            if self.is_trimmed(trim) {
                break;
            }
            let leaf = self.leaf(&location);
            let count = leaf.count();
            if let Precision::Leaves { entries_max } = precision
                && before - self.len + count > entries_max
            {
                break;
            }
            let goes_whole = match trim {
                Trim::MaxLen(max) => self.len - count >= max,
                Trim::MinId(min) => leaf.last_id().is_none_or(|last| last < min),
            };
            if goes_whole {
                self.remove_leaf(&location);
                self.len -= count;
            } else {
                if precision == Precision::Exact {
                    self.trim_leaf(&location, trim);
                }
                break;
            }
        }
        self.assert_shape();
        before - self.len
    }

    /// Asserts what holds between calls.
    fn assert_shape(&self) {
        debug_assert_eq!(self.len == 0, self.tail.is_none(), "only an empty log has no tail");
        debug_assert!(self.tail.is_some() || self.sealed.is_empty());
        let in_tail = self.tail.as_ref().map_or(0, |tail| Leaf::open(tail).count());
        debug_assert_eq!(
            self.sealed.total().count + in_tail,
            self.len,
            "marks tell how many entries there are"
        );
    }

    /// Whether nothing is left to be trimmed. Looks only at the number of entries, or at the first.
    fn is_trimmed(&self, trim: Trim) -> bool {
        match trim {
            Trim::MaxLen(max) => self.len <= max,
            Trim::MinId(min) => self.first_id().is_none_or(|first| first >= min),
        }
    }

    /// Takes entries off the front of the first leaf, of which some stay.
    fn trim_leaf(&mut self, location: &Location, trim: Trim) {
        while !self.is_trimmed(trim) {
            let block = self.block_with(location, -1);
            match block[0] {
                KIND_ROWS => rows::remove_first(block),
                _ => columns::remove_first(block),
            }
            self.len -= 1;
        }
        debug_assert!(self.leaf(location).count() > 0, "no leaf is empty");
        shrink_if_sparse(self.block_mut(location));
    }

    /// Takes a leaf out. Where that was the last one, the one before it is the last from now on, as it is.
    fn remove_leaf(&mut self, location: &Location) {
        match location {
            Location::Sealed(path) => drop(self.sealed.remove(path)),
            Location::Tail => self.tail = self.sealed.last().map(|path| self.sealed.remove(&path)),
        }
    }

    /// The leaf in which `id` is, or would be: the last that begins at or before it, or the first; None
    /// without leaves.
    fn seek(&self, id: Id) -> Option<Location> {
        let tail = self.tail.as_ref()?;
        if self.sealed.is_empty() || Head::read(tail).base <= id {
            return Some(Location::Tail);
        }
        self.sealed.seek(id).map(Location::Sealed)
    }

    /// The leaf with the oldest entries.
    fn first_location(&self) -> Option<Location> {
        match self.sealed.first() {
            Some(path) => Some(Location::Sealed(path)),
            None => self.tail.as_ref().map(|_| Location::Tail),
        }
    }

    /// The leaf behind this one.
    fn after(&self, location: &Location) -> Option<Location> {
        let Location::Sealed(path) = location else { return None };
        let mut path = *path;
        Some(if self.sealed.next(&mut path) { Location::Sealed(path) } else { Location::Tail })
    }

    /// The leaf before this one.
    fn before(&self, location: &Location) -> Option<Location> {
        let path = match location {
            Location::Tail => self.sealed.last()?,
            Location::Sealed(path) => {
                let mut path = *path;
                self.sealed.prev(&mut path).then_some(path)?
            }
        };
        Some(Location::Sealed(path))
    }

    fn block(&self, location: &Location) -> &Block {
        match location {
            Location::Sealed(path) => self.sealed.leaf(path),
            Location::Tail => self.tail.as_ref().expect("a location comes from this log"),
        }
    }

    fn block_mut(&mut self, location: &Location) -> &mut Block {
        match location {
            Location::Sealed(path) => self.sealed.leaf_mut(path),
            Location::Tail => self.tail.as_mut().expect("a location comes from this log"),
        }
    }

    /// The leaf, to be edited, which gets so many entries more, or loses some.
    fn block_with(&mut self, location: &Location, more: i64) -> &mut Block {
        match location {
            Location::Sealed(path) => self.sealed.leaf_with(path, more),
            Location::Tail => self.block_mut(location),
        }
    }

    fn leaf(&self, location: &Location) -> Leaf<'_> {
        Leaf::open(self.block(location))
    }

    fn for_each_block(&self, visit: &mut dyn FnMut(&Block)) {
        self.sealed.for_each_leaf(visit);
        self.tail.iter().for_each(visit);
    }

    fn for_each_inner(&self, visit: &mut dyn FnMut(&Inner<ByEntry, Block>)) {
        self.sealed.for_each_node(&mut |node| {
            if let Node::Inner(inner) = node {
                visit(inner);
            }
        });
    }

    /// Visits the leaves, which are what nodes are in Redis, until told to stop.
    pub fn visit_leaves(&self, visit: &mut dyn FnMut(&Entries<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut visit_block = |block: &Block| visit(&Entries(Leaf::open(block)));
        self.sealed.visit_leaves(&mut visit_block)?;
        self.tail.iter().try_for_each(visit_block)
    }

    /// The id that each leaf began with. XINFO STREAM counts them as nodes of a radix tree.
    pub fn for_each_base(&self, visit: &mut dyn FnMut(Id)) {
        let _ = self.visit_bases(&mut |base| {
            visit(base);
            ControlFlow::Continue(())
        });
    }

    /// As [`Log::for_each_base`], until told to stop.
    pub fn visit_bases(&self, visit: &mut dyn FnMut(Id) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut visit_block = |block: &Block| visit(Head::read(block).base);
        self.sealed.visit_leaves(&mut visit_block)?;
        self.tail.iter().try_for_each(visit_block)
    }

    /// What MEMORY LAYOUT tells: nodes, entries and bytes by kind. Looks at each leaf.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { height: self.sealed.height() as u32 + 1, ..Stats::default() };
        self.for_each_block(&mut |block| {
            let leaf = Leaf::open(block);
            let kind = match leaf {
                Leaf::Rows(_) => &mut stats.rows,
                Leaf::Columns(_) => &mut stats.columns,
            };
            let used_bytes = block::HEADER_BYTES + block.len() - slack_bytes(block);
            kind.add(leaf.count(), used_bytes, block.allocated_bytes());
        });
        self.for_each_inner(&mut |inner| {
            stats.inner.add(inner.count() as u64, inner.used_bytes(), inner.allocated_bytes());
        });
        stats
    }

    /// About how many bytes its leaves and the nodes above them take. Looks at some of them.
    pub fn allocated_about(&self) -> u64 {
        let weigh = |block: &Block| (block.allocated_bytes() as i64, Leaf::open(block).count() as usize);
        let (tail_bytes, tail_len) = self.tail.as_ref().map_or((0, 0), weigh);
        let sealed = self.sealed.sample(&mut { weigh }).of_entries(self.len - tail_len as u64);
        (sealed + tail_bytes).unsigned_abs()
    }

    /// About how many bytes it takes. Looks at a few leaves.
    pub fn bytes_about(&self) -> u64 {
        let tail = self.tail.as_ref().map_or(0, Block::allocated_bytes);
        self.sealed.leaf_bytes_about() + tail as u64
    }

    /// Of how many of so many leaves, spread evenly, this log is the only owner at this moment. The last, to
    /// which entries are added, counts if it is the only one.
    pub fn count_sole(&self, samples: u64) -> u64 {
        match &self.tail {
            Some(tail) if self.sealed.is_empty() && !tail.is_sole() => 0,
            _ => self.sealed.count_sole(samples),
        }
    }

    /// Moves what lies in extents that are being emptied (`arena::is_evacuating`), from leaf `from` on, until
    /// `moves` says that `effort` was made. Returns the leaf to go on from, None at the end. It is no
    /// [`Tree::relocate_from`]: an id does not fit the number that says where to go on, so leaves are
    /// counted.
    pub fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64> {
        let (mut next, mut index) = (self.sealed.first(), 0);
        while let Some(mut path) = next {
            if index >= from {
                if moves.effort() >= effort {
                    return Some(index);
                }
                if let Some(block) = self.sealed.relocate(&path, moves) {
                    block.relocate(moves);
                }
            }
            next = self.sealed.next(&mut path).then_some(path);
            index += 1;
        }
        if let Some(tail) = &mut self.tail {
            tail.relocate(moves);
        }
        None
    }
}

/// Makes a leaf one of rows, so that an entry can come to it, or one inside it go.
#[inline]
fn open(block: &mut Block) {
    if block[0] != KIND_ROWS {
        *block = columns::open(block);
    }
    debug_assert_eq!(block[0], KIND_ROWS);
}

/// Bytes of a leaf that hold no entry.
fn slack_bytes(block: &Block) -> usize {
    match block[0] {
        KIND_ROWS => rows::slack_bytes(block),
        _ => columns::slack_bytes(block),
    }
}

/// Makes a leaf give back its slack if that is more than half of it.
fn shrink_if_sparse(block: &mut Block) {
    let slack_bytes = slack_bytes(block);
    debug_assert!(slack_bytes <= block.len(), "{slack_bytes} of {} bytes", block.len());
    if slack_bytes > block.len() / 2 && block.len() > 256 {
        open(block);
        rows::shrink(block);
    }
}

/// The entries of one leaf, to read.
pub struct Entries<'b>(Leaf<'b>);

impl Entries<'_> {
    /// Whether all have the same names, as far as that is known without a look at each.
    pub fn have_same_names(&self) -> bool {
        match &self.0 {
            Leaf::Rows(rows) => rows.has_one_list(),
            Leaf::Columns(_) => true,
        }
    }

    /// Visits all, until told to stop.
    pub fn visit(&self, visit: &mut Visit<'_>) -> ControlFlow<()> {
        self.0.visit_up(Id::MIN, visit)
    }
}

/// A leaf of either kind, to read.
enum Leaf<'b> {
    Rows(Rows<'b>),
    Columns(Columns<'b>),
}

impl<'b> Leaf<'b> {
    fn open(block: &'b Block) -> Leaf<'b> {
        match block[0] {
            KIND_ROWS => Leaf::Rows(Rows::open(block)),
            _ => Leaf::Columns(Columns::open(block)),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Leaf::Rows(rows) => rows.count(),
            Leaf::Columns(columns) => columns.count(),
        }
    }

    fn first_id(&self) -> Option<Id> {
        match self {
            Leaf::Rows(rows) => rows.first_id(),
            Leaf::Columns(columns) => columns.first_id(),
        }
    }

    fn last_id(&self) -> Option<Id> {
        match self {
            Leaf::Rows(rows) => rows.last_id(),
            Leaf::Columns(columns) => columns.last_id(),
        }
    }

    /// How many entries have a lesser id.
    fn count_before(&self, id: Id) -> u64 {
        match self {
            Leaf::Rows(rows) => rows.count_before(id),
            Leaf::Columns(columns) => columns.count_before(id),
        }
    }

    fn contains(&self, id: Id) -> bool {
        match self {
            Leaf::Rows(rows) => rows.contains(id),
            Leaf::Columns(columns) => columns.contains(id),
        }
    }

    fn visit_up(&self, from: Id, visit: &mut Visit<'_>) -> ControlFlow<()> {
        match self {
            Leaf::Rows(rows) => rows.visit_up(from, visit),
            Leaf::Columns(columns) => columns.visit_up(from, visit),
        }
    }

    fn visit_down(&self, from: Id, visit: &mut Visit<'_>) -> ControlFlow<()> {
        match self {
            Leaf::Rows(rows) => rows.visit_down(from, visit),
            Leaf::Columns(columns) => columns.visit_down(from, visit),
        }
    }
}

#[cfg(test)]
mod properties;
