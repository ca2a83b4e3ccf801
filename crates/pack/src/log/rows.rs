//! Rows: the leaf of a stream to which entries come, one behind the other. When it is full it becomes columns
//! (`columns.rs`).
//!
//! ```text
//!  0      kind = 1
//!  1      lists       low half: how many lists of field names, at most 8
//!         closings    high half: how often the leaf was closed (`columns.rs`)
//!  2..4   last         how long the last row is; 0 where that is more than two bytes tell
//!  4..8   count       rows that are there            all numbers little endian
//!  8..12  end         where the room begins
//! 12..16  rows        where the first row begins: behind the lists and what was taken off the front
//! 16..20  size        what Redis's node would take   (see `mod.rs`: these two say when the leaf is full)
//! 20..24  added       rows that ever came
//! 24..40  base        the id that the leaf began with: ms, seq
//! 40..    lists       each: bytes behind this varint, names (varint), the names as cells
//! rows..  rows        each: bytes behind this varint, list, ms - base.ms, seq (varints), the values as cells
//! end..   room
//! ```
//! A row that has the names of one of the leaf's lists holds values only. Where there are eight other lists
//! already, it is of list 255 and brings its names: their number as a varint, then name and value by turns.
//! `1000-0 temp 21` and `1005-0 temp 22` behind the head:
//!
//! ```text
//! 06 01 04 74 65 6d 70 | 04 00 00 00 95 | 04 00 05 00 96
//! ```
//!
//! Cost: 40 bytes a leaf, and 4 to 6 bytes an entry beyond its values' cells. Appending writes behind the
//! last row. The last row, and that nothing is behind it, is found at once; looking for another id goes from
//! row to row, over a hundred of them at the usual limits. To take the first row out is to raise `rows`; to
//! take another out, what lies behind it is moved.
use crate::classic::listpack::{self, entry_bytes};
use crate::code::probe::equal;
use crate::code::varint::{read_varint, varint_len, write_varint};
use crate::code::words::{u32_at, u64_at};
use crate::log::NodeSize;
use crate::log::cell;
use crate::log::columns::{InColumns, Sheet};
use crate::memory::block::Block;
use crate::tree::order::Id;
use base::Item;
use std::ops::ControlFlow;

pub(crate) const KIND_ROWS: u8 = 1;
pub(crate) const KIND_COLUMNS: u8 = 2;
pub(crate) const HEAD_BYTES: usize = 40;
/// How many lists of names a leaf keeps. Entries with other names bring them.
const LISTS_MAX: u8 = 8;
const INLINE: u8 = 255;

/// The fields and values of an entry on its way into a stream.
pub trait Pairs {
    /// How many there are.
    fn count(&self) -> usize;
    /// The name of field `index`.
    fn name(&self, index: usize) -> &[u8];
    /// Its value.
    fn value(&self, index: usize) -> Item<'_>;
    /// How long all names and values are as text.
    fn text_bytes(&self) -> usize;
}

/// What a leaf begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) lists: u8,
    pub(crate) closings: u8,
    pub(crate) last: u16,
    pub(crate) count: u32,
    pub(crate) end: u32,
    pub(crate) rows: u32,
    pub(crate) size: u32,
    pub(crate) added: u32,
    pub(crate) base: Id,
}

impl Head {
    /// The head of a leaf of either kind.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Head {
        let bytes: &[u8; HEAD_BYTES] = bytes.first_chunk().expect("a leaf has its head");
        Head {
            lists: bytes[1] & 0xF,
            closings: bytes[1] >> 4,
            last: u16::from_le_bytes([bytes[2], bytes[3]]),
            count: u32_at(bytes, 4),
            end: u32_at(bytes, 8),
            rows: u32_at(bytes, 12),
            size: u32_at(bytes, 16),
            added: u32_at(bytes, 20),
            base: Id { ms: u64_at(bytes, 24), seq: u64_at(bytes, 32) },
        }
    }

    #[inline]
    fn write(&self, bytes: &mut [u8]) {
        self.write_as(KIND_ROWS, bytes);
    }

    /// Writes it over the head of a leaf that is of this kind from now on.
    #[inline]
    pub(crate) fn write_as(&self, kind: u8, bytes: &mut [u8]) {
        let bytes: &mut [u8; HEAD_BYTES] = bytes.first_chunk_mut().expect("a leaf has its head");
        debug_assert!(self.lists <= LISTS_MAX && self.closings < 16 && self.count <= self.added, "{self:?}");
        (bytes[0], bytes[1]) = (kind, self.lists | self.closings << 4);
        bytes[2..4].copy_from_slice(&self.last.to_le_bytes());
        for (at, word) in [(4, self.count), (8, self.end), (12, self.rows), (16, self.size), (20, self.added)]
        {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[24..32].copy_from_slice(&self.base.ms.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.base.seq.to_le_bytes());
    }
}

/// A leaf without rows, with room for `room` bytes of lists and rows.
pub(crate) fn start(base: Id, size: u64, room: usize) -> Block {
    let end = HEAD_BYTES as u32;
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let head = Head { lists: 0, closings: 0, last: 0, count: 0, end, rows: end, size, added: 0, base };
    let mut bytes = [0; HEAD_BYTES];
    head.write(&mut bytes);
    Block::spread(&bytes, room, &[])
}

/// Adds an entry behind the last. Its id is greater than all in the leaf. Costs what writing it costs; where
/// the room is used up, the leaf grows by a quarter.
pub(crate) fn append(block: &mut Block, id: Id, pairs: &impl Pairs) {
    let mut head = Head::read(block);
    debug_assert!(id >= head.base, "ids rise");
    let found = find_list(&block[..], &head, pairs);
    let list = match found {
        Some(list) => list,
        None if head.lists < LISTS_MAX => add_list(block, &mut head, pairs),
        None => INLINE,
    };
    let names_bytes = if list == INLINE { names_len_max(pairs) } else { 0 };
    let values_max = pairs.text_bytes() + 6 * pairs.count() + names_bytes;
    let body_max = 1 + 10 + 10 + values_max;
    let head_len = varint_len(body_max);
    reserve(block, &head, head_len + body_max);
    let start = head.end as usize;
    let bytes = &mut block.make_mut()[start..];
    let mut at = head_len;
    bytes[at] = list;
    at += 1;
    at += write_varint(&mut bytes[at..], (id.ms - head.base.ms) as usize);
    at += write_varint(&mut bytes[at..], id.seq as usize);
    let (written, listpack_bytes) = write_pairs(&mut bytes[at..], list, pairs);
    at += written;
    debug_assert!(at <= head_len + body_max, "a row of {at} bytes, not {body_max}");
    write_padded_varint(&mut bytes[..head_len], at - head_len);
    head.end += at as u32;
    let is_master = list == 0;
    head.size = head.size.saturating_add(listpack_row_bytes(&head, id, pairs, is_master, listpack_bytes));
    head.last = short_len(at);
    head.count += 1;
    head.added += 1;
    head.write(block.make_mut());
}

/// A leaf of the entries of a sheet, which has some, without room for more.
pub(crate) fn leaf_of(names: &impl Pairs, sheet: &Sheet<'_>, size: NodeSize) -> Block {
    let (base, list) = (sheet.ids[0], list_of(names));
    let mut bytes = Vec::with_capacity(HEAD_BYTES + list.len() + size.bytes as usize);
    bytes.resize(HEAD_BYTES, 0);
    bytes.extend_from_slice(&list);
    let (rows, mut last) = (bytes.len() as u32, 0);
    for (id, values) in sheet.ids.iter().zip(sheet.values.chunks(names.count())) {
        let (start, ms, seq) = (bytes.len(), (id.ms - base.ms) as usize, id.seq as usize);
        let cells: usize = values.iter().map(|value| cell::len(*value)).sum();
        let body = 1 + varint_len(ms) + varint_len(seq) + cells;
        last = varint_len(body) + body;
        bytes.resize(start + last, 0);
        let mut at = start + write_varint(&mut bytes[start..], body);
        // The only list of names is number 0.
        at += 1;
        at += write_varint(&mut bytes[at..], ms);
        at += write_varint(&mut bytes[at..], seq);
        for value in values {
            at += cell::write(&mut bytes[at..], *value);
        }
        debug_assert_eq!(at, bytes.len(), "a row is as long as its parts");
    }
    let (count, end) = (sheet.ids.len() as u32, bytes.len() as u32);
    let (size, added) = (size.bytes, size.added.max(count));
    let last = short_len(last);
    Head { lists: 1, closings: 0, last, count, end, rows, size, added, base }.write(&mut bytes);
    Block::fitting(&bytes)
}

/// How long a row is, as the head tells it; 0 where it is too long for that.
fn short_len(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(0)
}

/// Writes the values, each behind its name where the list does not tell the names. Returns how long that is
/// here, and how long the values alone are in a listpack.
#[inline]
fn write_pairs(to: &mut [u8], list: u8, pairs: &impl Pairs) -> (usize, u64) {
    let (mut at, mut listpack_bytes) = (0, 0);
    if list == INLINE {
        at += write_varint(to, pairs.count());
    }
    for index in 0..pairs.count() {
        if list == INLINE {
            at += cell::write_string(&mut to[at..], pairs.name(index));
        }
        let value = pairs.value(index);
        listpack_bytes += entry_bytes(value);
        at += cell::write(&mut to[at..], value);
    }
    (at, listpack_bytes)
}

/// How many bytes the row adds to Redis's node: flags, two distances from the node's id, the number of fields
/// and their names where they are not the node's, the values, and the number of its elements.
fn listpack_row_bytes(head: &Head, id: Id, pairs: &impl Pairs, is_master: bool, values: u64) -> u32 {
    let int = |n: i64| entry_bytes(Item::Int(n));
    let count = pairs.count() as i64;
    let mut sum =
        2 + int((id.ms - head.base.ms) as i64) + int(id.seq.wrapping_sub(head.base.seq) as i64) + values;
    if is_master {
        sum += int(count + 3);
    } else {
        sum += int(count) + int(2 * count + 4) + names_listpack_bytes(pairs);
    }
    // Redis's node has an element with the number of its rows, which gets longer at 128 and 4096 rows.
    let counted = i64::from(head.count);
    sum += int(counted + 1) - int(counted);
    u32::try_from(sum).unwrap_or(u32::MAX)
}

fn names_listpack_bytes(pairs: &impl Pairs) -> u64 {
    (0..pairs.count()).map(|index| entry_bytes(Item::classify(pairs.name(index)))).sum()
}

/// How many bytes Redis's node takes before its first row: there it says how many rows it has and had, and
/// the names of the first.
pub(crate) fn empty_node_bytes(pairs: &impl Pairs) -> u64 {
    let count = entry_bytes(Item::Int(pairs.count() as i64));
    listpack::EMPTY_BYTES + 2 + 2 + count + names_listpack_bytes(pairs) + 2
}

/// How long a list of these names is at most.
fn names_len_max(pairs: &impl Pairs) -> usize {
    let names: usize = (0..pairs.count()).map(|index| cell::len_max(pairs.name(index).len())).sum();
    names + 10
}

/// Writes `n` as a varint in exactly as many bytes as `to` has.
fn write_padded_varint(to: &mut [u8], n: usize) {
    let last = to.len() - 1;
    debug_assert!(varint_len(n) <= to.len());
    for (index, byte) in to.iter_mut().enumerate() {
        *byte = (n >> (7 * index)) as u8 & 0x7F | if index < last { 0x80 } else { 0 };
    }
}

/// Makes room for so many bytes behind the last row.
#[inline]
fn reserve(block: &mut Block, head: &Head, len: usize) {
    let end = head.end as usize;
    if end + len > block.len() {
        grow(block, end, len);
    }
}

/// Grows by a quarter at least, so that a leaf is copied only a few times while it fills.
#[cold]
fn grow(block: &mut Block, end: usize, len: usize) {
    *block = Block::spread(&block[..end], len.max(end / 4), &[]);
}

/// Which of the leaf's lists has the names of the entry: nearly always the first.
#[inline]
fn find_list(bytes: &[u8], head: &Head, pairs: &impl Pairs) -> Option<u8> {
    let mut at = HEAD_BYTES;
    for list in 0..head.lists {
        let (len, len_bytes) = read_varint(&bytes[at..]);
        at += len_bytes;
        if has_names(&bytes[at..at + len], pairs) {
            return Some(list);
        }
        at += len;
    }
    None
}

#[inline]
fn has_names(list: &[u8], pairs: &impl Pairs) -> bool {
    let (count, mut at) = read_varint(list);
    if count != pairs.count() {
        return false;
    }
    for index in 0..count {
        let (name, len) = cell::read_string(&list[at..]);
        let other = pairs.name(index);
        if name.len() != other.len() || !equal(name, other) {
            return false;
        }
        at += len;
    }
    true
}

/// Puts one list more behind those that are there; the rows move.
#[cold]
fn add_list(block: &mut Block, head: &mut Head, pairs: &impl Pairs) -> u8 {
    let list = list_of(pairs);
    reserve(block, head, list.len());
    // The room of rows that were taken off the front can be used for the names.
    let (at, end, rows) = (lists_end(&block[..], head), head.end as usize, head.rows as usize);
    let bytes = block.make_mut();
    let to = at + list.len();
    if rows < to {
        bytes.copy_within(rows..end, to);
        head.end = (end + to - rows) as u32;
        head.rows = to as u32;
    }
    bytes[at..to].copy_from_slice(&list);
    head.lists += 1;
    head.write(bytes);
    head.lists - 1
}

/// A list of these names, with its length in front.
pub(crate) fn list_of(pairs: &impl Pairs) -> Vec<u8> {
    let mut names = vec![0; names_len_max(pairs)];
    let mut len = write_varint(&mut names, pairs.count());
    for index in 0..pairs.count() {
        len += cell::write_string(&mut names[len..], pairs.name(index));
    }
    let mut list = vec![0; varint_len(len)];
    write_varint(&mut list, len);
    list.extend_from_slice(&names[..len]);
    list
}

/// Where the lists of names end.
fn lists_end(bytes: &[u8], head: &Head) -> usize {
    let mut at = HEAD_BYTES;
    for _ in 0..head.lists {
        let (len, len_bytes) = read_varint(&bytes[at..]);
        at += len_bytes + len;
    }
    at
}

/// A row as it lies in the leaf: where it begins and ends, its id, its list, and the cells behind them.
#[derive(Clone, Copy)]
struct Raw<'b> {
    start: usize,
    end: usize,
    id: Id,
    list: u8,
    cells: &'b [u8],
}

/// A leaf of rows, to read.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'b> {
    bytes: &'b [u8],
    head: Head,
}

impl<'b> Rows<'b> {
    /// Reads the head.
    pub(crate) fn open(bytes: &'b [u8]) -> Rows<'b> {
        let head = Head::read(bytes);
        debug_assert!(bytes[0] == KIND_ROWS && HEAD_BYTES <= head.rows as usize && head.rows <= head.end);
        debug_assert!(head.end as usize <= bytes.len(), "{head:?} in {} bytes", bytes.len());
        Rows { bytes, head }
    }

    /// How many rows there are.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.head.count)
    }

    /// The row that begins at `start`; None behind the last.
    #[inline]
    fn raw(&self, start: usize) -> Option<Raw<'b>> {
        if start >= self.head.end as usize {
            return None;
        }
        let (len, len_bytes) = read_varint(&self.bytes[start..]);
        let body = start + len_bytes;
        let list = self.bytes[body];
        let (ms, ms_bytes) = read_varint(&self.bytes[body + 1..]);
        let at = body + 1 + ms_bytes;
        let (seq, seq_bytes) = read_varint(&self.bytes[at..]);
        let id = Id { ms: self.head.base.ms + ms as u64, seq: seq as u64 };
        let end = body + len;
        debug_assert!(end <= self.head.end as usize && at + seq_bytes <= end, "row {start}..{end}");
        Some(Raw { start, end, id, list, cells: &self.bytes[at + seq_bytes..end] })
    }

    /// The last row. One look, but where it is very long, which rows before it are few.
    #[inline]
    fn last(&self) -> Option<Raw<'b>> {
        if self.head.last > 0 && self.head.count > 0 {
            return self.raw(self.head.end as usize - usize::from(self.head.last));
        }
        let (mut at, mut last) = (self.head.rows as usize, None);
        while let Some(raw) = self.raw(at) {
            (at, last) = (raw.end, Some(raw));
        }
        last
    }

    /// The first row at or behind `id`. The last is tried first, because what comes anew is asked for most.
    fn seek(&self, id: Id) -> Option<Raw<'b>> {
        let last = self.last()?;
        if last.id <= id {
            return (last.id == id).then_some(last);
        }
        let mut at = self.head.rows as usize;
        while let Some(raw) = self.raw(at) {
            if raw.id >= id {
                return Some(raw);
            }
            at = raw.end;
        }
        None
    }

    /// How many rows have a lesser id. Walks over them, unless all have.
    pub(crate) fn count_before(&self, id: Id) -> u64 {
        if self.last().is_none_or(|last| last.id < id) {
            return self.count();
        }
        let (mut at, mut count) = (self.head.rows as usize, 0);
        while let Some(raw) = self.raw(at).filter(|raw| raw.id < id) {
            (at, count) = (raw.end, count + 1);
        }
        count
    }

    fn row(&self, raw: Raw<'b>) -> Row<'b> {
        let cells = if raw.list == INLINE {
            let (fields, at) = read_varint(raw.cells);
            Cells { fields, names: None, values: &raw.cells[at..] }
        } else {
            let (fields, names) = self.names(raw.list);
            Cells { fields, names: Some(names), values: raw.cells }
        };
        Row { id: raw.id, source: Source::Cells(cells) }
    }

    /// Whether all rows have the names of the first that came.
    pub(crate) fn has_one_list(&self) -> bool {
        self.head.lists == 1
    }

    /// All entries, if they have the same names.
    pub(crate) fn sheet(&self) -> Option<Sheet<'b>> {
        if !self.has_one_list() {
            return None;
        }
        let (fields, count) = (self.names(0).0, self.head.count as usize);
        let mut sheet = Sheet { ids: Vec::with_capacity(count), values: Vec::with_capacity(count * fields) };
        let mut at = self.head.rows as usize;
        while let Some(raw) = self.raw(at) {
            debug_assert_eq!(raw.list, 0, "the only list");
            sheet.ids.push(raw.id);
            let mut cells = raw.cells;
            for _ in 0..fields {
                let (value, len) = cell::read(cells);
                sheet.values.push(value);
                cells = &cells[len..];
            }
            at = raw.end;
        }
        Some(sheet)
    }

    /// A list of names with the varint in front of it.
    pub(crate) fn list_bytes(&self, list: u8) -> &'b [u8] {
        debug_assert!(list < self.head.lists, "list {list} of {}", self.head.lists);
        let mut at = HEAD_BYTES;
        for _ in 0..list {
            let (len, len_bytes) = read_varint(&self.bytes[at..]);
            at += len_bytes + len;
        }
        let (len, len_bytes) = read_varint(&self.bytes[at..]);
        &self.bytes[at..at + len_bytes + len]
    }

    /// How many names a list has, and the cells with them.
    pub(crate) fn names(&self, list: u8) -> (usize, &'b [u8]) {
        let list = self.list_bytes(list);
        let len_bytes = read_varint(list).1;
        let (fields, names_at) = read_varint(&list[len_bytes..]);
        (fields, &list[len_bytes + names_at..])
    }

    /// Visits rows from the first at or behind `from` on, upwards, until told to stop.
    pub(crate) fn visit_up(&self, from: Id, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let mut next = self.seek(from);
        while let Some(raw) = next {
            visit(&self.row(raw))?;
            next = self.raw(raw.end);
        }
        ControlFlow::Continue(())
    }

    /// Visits rows from the last at or before `from` on, downwards. Rows can only be read upwards, so their
    /// offsets are collected first.
    pub(crate) fn visit_down(&self, from: Id, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let mut starts = Vec::with_capacity(self.head.count as usize);
        let mut at = self.head.rows as usize;
        while let Some(raw) = self.raw(at).filter(|raw| raw.id <= from) {
            starts.push(raw.start);
            at = raw.end;
        }
        for start in starts.into_iter().rev() {
            let raw = self.raw(start).expect("a row was read here");
            visit(&self.row(raw))?;
        }
        ControlFlow::Continue(())
    }

    /// Whether the row `id` is here.
    pub(crate) fn contains(&self, id: Id) -> bool {
        self.seek(id).is_some_and(|raw| raw.id == id)
    }

    /// The least id.
    pub(crate) fn first_id(&self) -> Option<Id> {
        self.raw(self.head.rows as usize).map(|raw| raw.id)
    }

    /// The greatest id.
    pub(crate) fn last_id(&self) -> Option<Id> {
        self.last().map(|raw| raw.id)
    }
}

/// Takes the row of `id` out; whether it was there. Walks over the rows before it.
pub(crate) fn remove(block: &mut Block, id: Id) -> bool {
    let rows = Rows::open(&block[..]);
    let (mut at, mut before) = (rows.head.rows as usize, 0);
    while let Some(raw) = rows.raw(at).filter(|raw| raw.id < id) {
        (at, before) = (raw.end, raw.end - raw.start);
    }
    let Some(raw) = rows.raw(at).filter(|raw| raw.id == id) else { return false };
    let (mut head, start, end) = (rows.head, raw.start, raw.end);
    if end == head.end as usize {
        head.last = short_len(before);
    }
    let bytes = block.make_mut();
    if start == head.rows as usize {
        head.rows = end as u32;
    } else {
        bytes.copy_within(end..head.end as usize, start);
        head.end -= (end - start) as u32;
    }
    debug_assert!(head.count > 0 && head.rows <= head.end);
    head.count -= 1;
    head.write(bytes);
    true
}

/// Takes the first row out.
pub(crate) fn remove_first(block: &mut Block) {
    let rows = Rows::open(&block[..]);
    let first = rows.raw(rows.head.rows as usize).expect("a leaf has rows");
    let (mut head, end) = (rows.head, first.end);
    (head.rows, head.count) = (end as u32, head.count - 1);
    head.write(block.make_mut());
}

/// Of a leaf of either kind: it is as full as this says.
pub(crate) fn set_size(block: &mut Block, size: NodeSize) {
    let (head, kind) = (Head::read(block), block[0]);
    let added = size.added.max(head.count);
    Head { size: size.bytes, added, ..head }.write_as(kind, block.make_mut());
}

/// Bytes that hold no row: the room, and what was taken off the front.
pub(crate) fn slack_bytes(block: &Block) -> usize {
    let head = Head::read(block);
    block.len() - head.end as usize + (head.rows as usize - lists_end(block, &head))
}

/// Gives all slack back.
pub(crate) fn shrink(block: &mut Block) {
    let mut head = Head::read(block);
    let lists_end = lists_end(block, &head);
    let mut bytes = block[..lists_end].to_vec();
    bytes.extend_from_slice(&block[head.rows as usize..head.end as usize]);
    (head.rows, head.end) = (lists_end as u32, bytes.len() as u32);
    head.write(&mut bytes);
    *block = Block::fitting(&bytes);
}

/// What is called for each entry that is visited.
pub type Visit<'v> = dyn FnMut(&Row<'_>) -> ControlFlow<()> + 'v;

/// One entry of a stream, lent from its leaf.
#[derive(Clone, Copy)]
pub struct Row<'b> {
    pub id: Id,
    source: Source<'b>,
}

#[derive(Clone, Copy)]
enum Source<'b> {
    Cells(Cells<'b>),
    Columns(InColumns<'b>),
}

#[derive(Clone, Copy)]
struct Cells<'b> {
    fields: usize,
    /// The list of names; None if each name stands before its value.
    names: Option<&'b [u8]>,
    values: &'b [u8],
}

impl<'b> Row<'b> {
    /// An entry of a leaf of columns.
    pub(crate) fn of_columns(id: Id, entry: InColumns<'b>) -> Row<'b> {
        Row { id, source: Source::Columns(entry) }
    }

    /// How many fields it has.
    pub fn fields(&self) -> usize {
        match &self.source {
            Source::Cells(cells) => cells.fields,
            Source::Columns(entry) => entry.fields(),
        }
    }

    /// Visits names and values in their order.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[u8], Item<'_>)) {
        match &self.source {
            Source::Cells(cells) => cells.for_each(visit),
            Source::Columns(entry) => entry.for_each(visit),
        }
    }
}

impl Cells<'_> {
    fn for_each(&self, visit: &mut dyn FnMut(&[u8], Item<'_>)) {
        let (mut name_at, mut at) = (0, 0);
        for _ in 0..self.fields {
            let name = match self.names {
                Some(names) => {
                    let (name, len) = cell::read_string(&names[name_at..]);
                    name_at += len;
                    name
                }
                None => {
                    let (name, len) = cell::read_string(&self.values[at..]);
                    at += len;
                    name
                }
            };
            let (value, len) = cell::read(&self.values[at..]);
            at += len;
            visit(name, value);
        }
    }
}
