//! Columns: a full leaf of a stream, to which no entry comes. All values of one field lie together
//! (`column.rs`), and so do the ids.
//!
//! ```text
//!  0      kind = 2
//!  1..40  the head of the rows that it was made from (`rows.rs`); `rows` counts entries taken off the front
//! 40..    the list of names: bytes behind this varint, their number (varint), the names as cells
//! ..      columns, each: bytes behind this varint, the column: ms - base.ms, seq, then one for each name
//! ..      eight zeros
//! ```
//!
//! Ten entries of `temp` 21, a second apart, take this behind the head, beside the zeros (the ids' line has
//! stride 1000 and no width):
//!
//! ```text
//! 06 01 04 74 65 6d 70 | 06 00 00 00 00 d0 0f | 05 00 00 00 00 00 | 05 00 00 00 2a 00
//! ```
//! Only a leaf with one list of names becomes columns, and only if that is shorter. Ids are searched by
//! halves. Removing the first entry only raises a count. To remove another one, or to add one, the leaf
//! becomes one of rows again, and stays so until another begins behind it, which makes it columns three times
//! at most. A value is put together when it is read: its text is not stored as such.
use crate::code::quarters::first_not_before;
use crate::code::varint::read_varint;
use crate::log::NodeSize;
use crate::log::cell;
use crate::log::column::{self, Column, Scratch};
use crate::log::rows::{self, HEAD_BYTES, Head, KIND_COLUMNS, Pairs, Row, Rows, Visit};
use crate::memory::block::Block;
use crate::tree::order::Id;
use base::Item;
use std::ops::ControlFlow;

/// A leaf of fewer rows stays as it is, because too little would be saved.
const ROWS_MIN: usize = 8;

/// How often a leaf is made columns at most. It is opened where an entry comes to it again, or goes: a stream
/// whose newest entries come and go can be in that state for long, and must not be encoded each time.
const CLOSINGS_MAX: u8 = 3;

/// What a leaf becomes when one behind it begins: columns where that is shorter, or rows without much slack.
/// Costs about what writing the rows cost; nothing where the leaf is of columns already, or was closed so
/// often that it stays as it is.
pub(crate) fn close(mut leaf: Block) -> Block {
    let head = Head::read(&leaf);
    if leaf[0] == KIND_COLUMNS {
        return leaf;
    }
    if head.closings < CLOSINGS_MAX {
        let head = Head { closings: head.closings + 1, ..head };
        if let Some(columns) = encode(&leaf, head).filter(|columns| columns.len() < leaf.len()) {
            return Block::fitting(&columns);
        }
        head.write_as(rows::KIND_ROWS, leaf.make_mut());
    }
    if rows::slack_bytes(&leaf) > leaf.len() / 64 {
        rows::shrink(&mut leaf);
    }
    leaf
}

/// The leaf as columns, with this head; None where its entries have different names, are few, or have ids
/// that are too far apart.
fn encode(open: &[u8], head: Head) -> Option<Vec<u8>> {
    let rows = Rows::open(open);
    if (head.count as usize) < ROWS_MIN {
        return None;
    }
    let sheet = rows.sheet()?;
    let bytes = sheet.encode(rows.list_bytes(0), rows.names(0).0, head.base)?;
    Some(with_head(bytes, head))
}

fn with_head(mut bytes: Vec<u8>, head: Head) -> Vec<u8> {
    let end = bytes.len() as u32;
    Head { rows: 0, end, ..head }.write_as(KIND_COLUMNS, &mut bytes);
    bytes
}

/// Entries that all have the same names: their ids, which rise, and their values, row by row.
#[derive(Default)]
pub struct Sheet<'b> {
    pub ids: Vec<Id>,
    pub values: Vec<Item<'b>>,
}

impl Sheet<'_> {
    /// A leaf of columns of these entries. None where they are few, their ids are too far apart, or rows
    /// would be shorter.
    pub(crate) fn leaf(&self, names: &impl Pairs, size: NodeSize) -> Option<Block> {
        let (rows, base) = (self.ids.len(), *self.ids.first()?);
        if rows < ROWS_MIN {
            return None;
        }
        let list = rows::list_of(names);
        let bytes = self.encode(&list, names.count(), base)?;
        // A row takes four bytes beside its values at least.
        let as_rows = HEAD_BYTES
            + list.len()
            + 4 * rows
            + self.values.iter().map(|value| cell::len(*value)).sum::<usize>();
        if bytes.len() >= as_rows {
            return None;
        }
        let count = u32::try_from(rows).ok()?;
        let (size, added) = (size.bytes, size.added.max(count));
        let head = Head { lists: 1, closings: 0, last: 0, count, end: 0, rows: 0, size, added, base };
        Some(Block::fitting(&with_head(bytes, head)))
    }

    /// The columns, behind room for a head. `list` are the names, with their length in front.
    fn encode(&self, list: &[u8], fields: usize, base: Id) -> Option<Vec<u8>> {
        debug_assert_eq!(self.ids.len() * fields, self.values.len(), "a value for each field of each entry");
        debug_assert!(self.ids.is_sorted() && self.ids.first() >= Some(&base), "ids rise");
        let mut bytes = Vec::with_capacity(HEAD_BYTES + list.len() + 16 * self.values.len());
        bytes.resize(HEAD_BYTES, 0);
        bytes.extend_from_slice(list);
        let ms: Vec<i64> = self.ids.iter().map(|id| (id.ms - base.ms) as i64).collect();
        let seqs: Vec<i64> = self.ids.iter().map(|id| id.seq as i64).collect();
        for numbers in [ms, seqs] {
            column::push(&mut bytes, &column::encode_numbers(&numbers)?);
        }
        let mut values = Vec::with_capacity(self.ids.len());
        for field in 0..fields {
            values.clear();
            values.extend(self.values[field..].iter().step_by(fields));
            column::push(&mut bytes, &column::encode(&values));
        }
        bytes.extend_from_slice(&[0; column::PADDING]);
        Some(bytes)
    }
}

/// The entries of a leaf of columns as a leaf of rows. Its size and count for the limits are kept, and how
/// often it was closed.
pub(crate) fn open(closed: &[u8]) -> Block {
    let old = Head::read(closed);
    let mut block = rows::start(old.base, 0, closed.len() * 2);
    let _ = Columns::open(closed).visit_up(Id::MIN, &mut |row| {
        rows::append(&mut block, row.id, &Owned::of(row));
        ControlFlow::Continue(())
    });
    let new = Head::read(&block);
    assert_eq!(new.count, old.count, "a leaf is opened to what it was");
    let (size, added, closings) = (old.size, old.added, old.closings);
    Head { size, added, closings, ..new }.write_as(rows::KIND_ROWS, block.make_mut());
    block
}

/// A copy of an entry, on its way from one leaf to another.
struct Owned {
    names: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

impl Owned {
    fn of(row: &Row<'_>) -> Owned {
        let mut owned = Owned { names: Vec::new(), values: Vec::new() };
        row.for_each(&mut |name, value| {
            let mut text = Vec::new();
            value.append_to(&mut text);
            owned.names.push(name.to_vec());
            owned.values.push(text);
        });
        owned
    }
}

impl Pairs for Owned {
    fn count(&self) -> usize {
        self.names.len()
    }
    fn name(&self, index: usize) -> &[u8] {
        &self.names[index]
    }
    fn value(&self, index: usize) -> Item<'_> {
        Item::classify(&self.values[index])
    }
    fn text_bytes(&self) -> usize {
        self.names.iter().chain(&self.values).map(Vec::len).sum()
    }
}

/// Removes the first entry, by counting it as taken off.
pub(crate) fn remove_first(block: &mut Block) {
    let head = Head::read(block);
    assert!(head.count > 0, "an entry of an empty leaf");
    Head { rows: head.rows + 1, count: head.count - 1, ..head }.write_as(KIND_COLUMNS, block.make_mut());
}

/// How many bytes hold no entry, about: the share of those that were taken off the front.
pub(crate) fn slack_bytes(block: &[u8]) -> usize {
    let head = Head::read(block);
    let (gone, all) = (head.rows as usize, (head.rows + head.count) as usize);
    block.len() * gone / all.max(1)
}

/// The column of one field, at the row that is visited.
pub(crate) struct Field<'b> {
    column: Column<'b>,
    /// Where the text of the present row begins.
    start: usize,
}

/// A leaf of columns, to read.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'b> {
    bytes: &'b [u8],
    head: Head,
    ms: Column<'b>,
    seqs: Column<'b>,
    names_at: usize,
    fields_at: usize,
}

impl<'b> Columns<'b> {
    /// Reads the header and the columns of ids.
    pub(crate) fn open(bytes: &'b [u8]) -> Columns<'b> {
        let head = Head::read(bytes);
        debug_assert!(bytes[0] == KIND_COLUMNS && head.lists == 1 && head.end as usize == bytes.len());
        let rows = (head.rows + head.count) as usize;
        let (names_len, len_bytes) = read_varint(&bytes[HEAD_BYTES..]);
        let names_at = HEAD_BYTES + len_bytes;
        let mut at = names_at + names_len;
        let mut ids = [0, 0].map(|_| {
            let (len, len_bytes) = read_varint(&bytes[at..]);
            let column = Column::open(&bytes[at + len_bytes..], rows);
            at += len_bytes + len;
            column
        });
        let [ms, seqs] = &mut ids;
        Columns { bytes, head, ms: *ms, seqs: *seqs, names_at, fields_at: at }
    }

    /// How many entries there are.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.head.count)
    }

    /// How many entries have a lesser id.
    pub(crate) fn count_before(&self, id: Id) -> u64 {
        (self.seek(id) - self.head.rows as usize) as u64
    }

    /// How many rows the columns have, those included that were taken off the front.
    fn rows(&self) -> usize {
        (self.head.rows + self.head.count) as usize
    }

    #[inline]
    fn id(&self, row: usize) -> Id {
        debug_assert!(row < self.rows(), "row {row} of {}", self.rows());
        let ms = self.head.base.ms.wrapping_add(self.ms.number(row) as u64);
        Id { ms, seq: self.seqs.number(row) as u64 }
    }

    /// The first row whose id is not less than `id`, or the number of rows.
    fn seek(&self, id: Id) -> usize {
        first_not_before(self.head.rows as usize..self.rows(), |row| self.id(row) < id)
    }

    /// How many names there are, and the cells with them.
    fn names(&self) -> (usize, &'b [u8]) {
        let (count, at) = read_varint(&self.bytes[self.names_at..]);
        (count, &self.bytes[self.names_at + at..])
    }

    /// All fields, at a row. Adds up the lengths of the texts before it.
    fn fields_at(&self, row: usize) -> Vec<Field<'b>> {
        let (mut at, all) = (self.fields_at, self.rows());
        debug_assert!(row <= all, "row {row} of {all}");
        let open = |_| {
            let (len, len_bytes) = read_varint(&self.bytes[at..]);
            let column = Column::open(&self.bytes[at + len_bytes..], all);
            at += len_bytes + len;
            Field { column, start: (0..row).map(|row| column.text_len(row)).sum() }
        };
        (0..self.names().0).map(open).collect()
    }

    /// Visits entries from the first at or behind `from` on, upwards, until told to stop.
    pub(crate) fn visit_up(&self, from: Id, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let first = self.seek(from);
        if first == self.rows() {
            return ControlFlow::Continue(());
        }
        let mut fields = self.fields_at(first);
        for row in first..self.rows() {
            visit(&self.row(row, &fields))?;
            fields.iter_mut().for_each(|field| field.start += field.column.text_len(row));
        }
        ControlFlow::Continue(())
    }

    /// Visits entries from the last at or before `from` on, downwards, until told to stop.
    pub(crate) fn visit_down(&self, from: Id, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let first = self.head.rows as usize;
        let end = from.next().map_or(self.rows(), |behind| self.seek(behind));
        if first == end {
            return ControlFlow::Continue(());
        }
        let mut fields = self.fields_at(end);
        for row in (first..end).rev() {
            fields.iter_mut().for_each(|field| field.start -= field.column.text_len(row));
            visit(&self.row(row, &fields))?;
        }
        ControlFlow::Continue(())
    }

    fn row<'r>(&'r self, row: usize, fields: &'r [Field<'b>]) -> Row<'r> {
        Row::of_columns(self.id(row), InColumns { fields, names: self.names().1, row })
    }

    /// Whether the entry `id` is here.
    pub(crate) fn contains(&self, id: Id) -> bool {
        let row = self.seek(id);
        row < self.rows() && self.id(row) == id
    }

    /// The least id.
    pub(crate) fn first_id(&self) -> Option<Id> {
        Some(self.id(self.head.rows as usize))
    }

    /// The greatest id.
    pub(crate) fn last_id(&self) -> Option<Id> {
        Some(self.id(self.rows() - 1))
    }
}

/// An entry of a leaf of columns, to be put together.
#[derive(Clone, Copy)]
pub(crate) struct InColumns<'r> {
    fields: &'r [Field<'r>],
    names: &'r [u8],
    row: usize,
}

impl InColumns<'_> {
    /// How many fields it has.
    pub(crate) fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Visits names and values in their order.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&[u8], Item<'_>)) {
        let (mut at, mut scratch) = (0, Scratch::default());
        for field in self.fields {
            let (name, len) = cell::read_string(&self.names[at..]);
            at += len;
            visit(name, field.column.value(self.row, field.start, &mut scratch));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(names: &[&str], values: &[&str]) -> Owned {
        let owned = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        Owned { names: owned(names), values: owned(values) }
    }

    #[test]
    fn the_example_in_the_opener_is_true() {
        let mut leaf = rows::start(Id { ms: 5000, seq: 0 }, 0, 200);
        for row in 0..10 {
            rows::append(&mut leaf, Id { ms: 5000 + 1000 * row, seq: 0 }, &pairs(&["temp"], &["21"]));
        }
        let closed = close(leaf);
        let expected = b"\x06\x01\x04temp\x06\0\0\0\0\xd0\x0f\x05\0\0\0\0\0\x05\0\0\0\x2a\0\0\0\0\0\0\0\0\0";
        assert_eq!(closed[HEAD_BYTES..].escape_ascii().to_string(), expected.escape_ascii().to_string());
        assert_eq!(Columns::open(&closed).last_id(), Some(Id { ms: 14_000, seq: 0 }));
    }

    #[test]
    fn a_leaf_of_several_lists_stays_one_of_rows() {
        let mut leaf = rows::start(Id::MIN, 0, 200);
        for row in 0..40 {
            let name = ["a", "b"][row as usize % 2];
            rows::append(&mut leaf, Id { ms: row, seq: 1 }, &pairs(&[name], &["constant"]));
        }
        assert_eq!(close(leaf)[0], rows::KIND_ROWS);
    }
}
