//! Packed strings: a leaf whose entries lie back to back, with their lengths in a column of their own.
//!
//! ```text
//!  0      kind = 1, bit 2 mirrored, bit 3 two-ended, bits 4-5 width of a length (1, 2 or 4 bytes, or none)
//!  1      without lengths: the code of all
//!  4..8   count                       all numbers little endian, 32 bits
//!  8..12  start     where the first entry begins
//! 12..16  end       where the last entry ends
//! 16..20  top       where the column of lengths ends
//!
//! | header | room A | entry 0, entry 1, ... | room B | ... length 1, length 0 | room C |
//!                    start                end                             top
//! ```
//!
//! Entries grow up and lengths grow down into the same room B, so a leaf that is pushed at its end fills to
//! the last byte and nothing is ever moved. A pop at the other end moves nothing either: it raises `start`
//! and lowers `top`. Offsets are sums of lengths (`lengths.rs`). A leaf that is pushed at its head is
//! *mirrored*: entry 0 is its last element, so pushes go into room B as well. Only a leaf that is pushed at
//! both ends keeps room at A and C too.
//!
//! An element that reads as an integer is stored as one, in 1 to 8 bytes, little endian; its length code says
//! so. `"ab"`, `"-2"`, `"cde"` in a leaf of 32 bytes:
//!
//! ```text
//! 01 00 00 00  03 00 00 00  14 00 00 00  1a 00 00 00  20 00 00 00   header: 3 entries, 0x14..0x1a, top 0x20
//! 61 62 fe 63 64 65   .. .. ..   03 f8 02     entries, room, lengths backwards (f8: an integer of 1 byte)
//! ```
//!
//! Where all entries are alike, as ids are, there is no column: their length stands in the header. The first
//! one that differs brings the column.
//!
//! The *tight* form, a short list inside its keyspace entry, has no room, and in its header nothing that
//! follows from the length of the whole:
//!
//! ```text
//! kind as above, and count (`tight.rs`) | without lengths: the code | entries | lengths backwards
//! ```
//!
//! Cost: an element's bytes (integers: 1 to 8), one byte for its length where not all are alike, and 20 bytes
//! a leaf; tight, 2 bytes a list. An element of 248 bytes or more makes all lengths of its leaf 2 bytes wide,
//! one of 64 KB or more 4 bytes. Limits: 4 GB a leaf and an element.

use crate::code::lengths::{Extent, Stored, Width};
use crate::code::probe::Probe;
use crate::code::short_int::int_len;
use crate::code::words::u32_at;
use crate::list::ints::Ints;
use crate::list::leaf::{Effort, Full, KIND_MASK, KIND_STRINGS, Start};
use crate::list::tight;
use crate::memory::buffer::Buffer;
use crate::tree::end::End;
use base::Item;
use std::ops::{ControlFlow, Range};

const HEADER: usize = 20;
const MIRRORED: u8 = 1 << 2;
const TWO_ENDED: u8 = 1 << 3;
const WIDTH_SHIFT: u8 = 4;

/// A side of the entries as they lie in memory; entry 0 is at the front. In a mirrored leaf the front is the
/// tail of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Front,
    Back,
}

/// Where the lengths of a leaf are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    /// Nowhere: all entries are like this one, whose code takes a byte.
    Alike(Extent),
    Each(Width),
}

/// The two bits of a header for [`Column::Alike`].
const ALIKE_BITS: u8 = 3;

impl Column {
    /// The column of a leaf of such entries. Texts without bytes have one: an element takes a byte at least,
    /// so that the bytes of a leaf bound its elements too.
    fn of(mut extents: impl Iterator<Item = Extent>) -> Column {
        let Some(first) = extents.next() else { return Column::Each(Width::One) };
        let column = match Width::byte_of(first) {
            Some(_) if first.len > 0 => Column::Alike(first),
            _ => Column::Each(Width::for_extent(first)),
        };
        extents.fold(column, Column::with)
    }

    #[inline]
    fn read_head(bits: u8, code: u8) -> Column {
        match bits & ALIKE_BITS {
            ALIKE_BITS => Column::Alike(Width::extent_of_byte(code)),
            bits => Column::Each(Width::from_bits(bits)),
        }
    }

    /// The bits and the code that [`Column::read_head`] reads.
    #[inline]
    fn head(self) -> (u8, Option<u8>) {
        match self {
            Column::Alike(extent) => (ALIKE_BITS, Width::byte_of(extent)),
            Column::Each(width) => (width.to_bits(), None),
        }
    }

    /// How many bytes it takes for an entry.
    #[inline]
    fn bytes(self) -> usize {
        match self {
            Column::Alike(_) => 0,
            Column::Each(width) => width.bytes(),
        }
    }

    /// Whether it can say this.
    #[inline]
    fn says(self, extent: Extent) -> bool {
        match self {
            Column::Alike(own) => own == extent,
            Column::Each(width) => Width::for_extent(extent) <= width,
        }
    }

    /// The column that can say this too.
    fn with(self, extent: Extent) -> Column {
        match self {
            column if column.says(extent) => column,
            Column::Alike(_) => Column::Each(Width::for_extent(extent)),
            Column::Each(width) => Column::Each(width.max(Width::for_extent(extent))),
        }
    }

    /// The extent of the entry whose code begins at `bytes[at]`, if it has one.
    #[inline(always)]
    fn read(self, bytes: &[u8], at: usize) -> Extent {
        match self {
            Column::Alike(extent) => extent,
            Column::Each(width) => width.read(bytes, at),
        }
    }

    #[inline]
    fn write(self, bytes: &mut [u8], at: usize, extent: Extent) {
        match self {
            Column::Alike(own) => debug_assert_eq!(own, extent),
            Column::Each(width) => width.write(bytes, at, extent),
        }
    }

    /// How many bytes `count` entries store whose codes these are.
    #[inline]
    fn sum(self, codes: &[u8], count: usize) -> usize {
        match self {
            Column::Alike(extent) => count * extent.len,
            Column::Each(width) => width.sum(codes),
        }
    }
}

/// The header, unpacked.
#[derive(Clone, Copy, Debug)]
struct Header {
    column: Column,
    is_mirrored: bool,
    is_two_ended: bool,
    count: usize,
    start: usize,
    end: usize,
    top: usize,
}

impl Header {
    #[inline]
    fn read(bytes: &[u8]) -> Header {
        let head = bytes.first_chunk::<HEADER>().expect("a leaf is longer than its header");
        let word = |at: usize| u32_at(head, at) as usize;
        Header {
            column: Column::read_head(head[0] >> WIDTH_SHIFT, head[1]),
            is_mirrored: head[0] & MIRRORED != 0,
            is_two_ended: head[0] & TWO_ENDED != 0,
            count: word(4),
            start: word(8),
            end: word(12),
            top: word(16),
        }
    }

    #[inline]
    fn write(&self, bytes: &mut [u8]) {
        debug_assert!(HEADER <= self.start && self.start <= self.end, "{self:?}");
        debug_assert!(self.end <= self.bottom() && self.top <= bytes.len(), "{self:?} in {}", bytes.len());
        let head = bytes.first_chunk_mut::<HEADER>().expect("a leaf is longer than its header");
        let (bits, code) = self.column.head();
        head[1] = code.unwrap_or(0);
        head[0] = KIND_STRINGS
            | bits << WIDTH_SHIFT
            | if self.is_mirrored { MIRRORED } else { 0 }
            | if self.is_two_ended { TWO_ENDED } else { 0 };
        for (at, number) in [(4, self.count), (8, self.start), (12, self.end), (16, self.top)] {
            debug_assert!(number <= u32::MAX as usize);
            head[at..at + 4].copy_from_slice(&(number as u32).to_le_bytes());
        }
    }

    /// Where the column of lengths begins, with the length of the last entry.
    #[inline]
    fn bottom(&self) -> usize {
        self.top - self.count * self.column.bytes()
    }

    /// Where the length of entry number `entry` is.
    #[inline]
    fn code_at(&self, entry: usize) -> usize {
        self.top - (entry + 1) * self.column.bytes()
    }

    #[inline]
    fn side(&self, end: End) -> Side {
        if (end == End::Tail) == self.is_mirrored { Side::Front } else { Side::Back }
    }

    fn data_len(&self) -> usize {
        self.end - self.start
    }

    fn used_bytes(&self) -> usize {
        HEADER + self.data_len() + self.count * self.column.bytes()
    }
}

/// A leaf of strings, to read.
#[derive(Clone, Copy)]
pub(crate) struct Strings<'a> {
    bytes: &'a [u8],
    header: Header,
}

impl<'a> Strings<'a> {
    /// Reads the header.
    #[inline]
    pub(crate) fn open(bytes: &'a [u8]) -> Strings<'a> {
        debug_assert_eq!(bytes[0] & KIND_MASK, KIND_STRINGS);
        let header = Header::read(bytes);
        debug_assert!(HEADER <= header.start && header.end <= header.bottom() && header.top <= bytes.len());
        Strings { bytes, header }
    }

    /// Reads the header of the tight form. All else follows from the length of `bytes`.
    #[inline]
    pub(crate) fn open_tight(bytes: &'a [u8]) -> Strings<'a> {
        let (count, behind) = tight::read_count(bytes);
        let column = Column::read_head(bytes[0] >> WIDTH_SHIFT, bytes[behind]);
        let start = behind + usize::from(matches!(column, Column::Alike(_)));
        let (is_mirrored, top) = (bytes[0] & MIRRORED != 0, bytes.len());
        let end = top - count * column.bytes();
        debug_assert!(start <= end, "{count} entries in {top} bytes");
        let header = Header { column, is_mirrored, is_two_ended: false, count, start, end, top };
        Strings { bytes, header }
    }

    /// How many elements there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.header.count
    }

    /// Bytes of header, entries and lengths: all but the room.
    pub(crate) fn used_bytes(&self) -> usize {
        self.header.used_bytes()
    }

    /// Element `index`, which exists.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Item<'a> {
        let entry = self.entry(index);
        self.at(entry, self.offset(entry))
    }

    /// Visits from element `index`, which exists, towards an end until told to stop.
    pub(crate) fn visit(
        &self,
        index: usize,
        towards: End,
        visit: &mut impl FnMut(usize, Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match (self.header.is_mirrored, towards) {
            (false, End::Tail) => self.visit_up(index, visit),
            (false, End::Head) => self.visit_down(index, visit),
            (true, towards) => {
                let last = self.header.count - 1;
                let visit = &mut |entry, item: Item<'_>| visit(last - entry, item);
                match towards {
                    End::Tail => self.visit_down(last - index, visit),
                    End::Head => self.visit_up(last - index, visit),
                }
            }
        }
    }

    /// The first element of a range, or the last where it is searched towards the head, that is `needle`.
    pub(crate) fn find(&self, range: Range<usize>, towards: End, needle: Item<'_>) -> Option<usize> {
        let stored = Stored::new(needle);
        if !self.header.column.says(stored.extent) {
            return None;
        }
        let probe = Probe::new(stored.bytes());
        let (entries, mirrored) = (self.entries(range), self.header.is_mirrored);
        let entry = match (towards == End::Tail) != mirrored {
            true => self.find_up(entries, stored.extent, &probe)?,
            false => self.find_down(entries, stored.extent, &probe)?,
        };
        Some(self.entry(entry))
    }

    fn find_up(&self, entries: Range<usize>, wanted: Extent, probe: &Probe<'_>) -> Option<usize> {
        let mut offset = self.offset(entries.start);
        for entry in entries {
            let extent = self.header.column.read(self.bytes, self.header.code_at(entry));
            if extent == wanted && probe.is_at(self.bytes, offset) {
                return Some(entry);
            }
            offset += extent.len;
        }
        None
    }

    fn find_down(&self, entries: Range<usize>, wanted: Extent, probe: &Probe<'_>) -> Option<usize> {
        let mut offset = self.offset(entries.end);
        for entry in entries.rev() {
            let extent = self.header.column.read(self.bytes, self.header.code_at(entry));
            offset -= extent.len;
            if extent == wanted && probe.is_at(self.bytes, offset) {
                return Some(entry);
            }
        }
        None
    }

    /// From `entry` to the back. Which column it is, is looked at once and not for each entry.
    fn visit_up(
        &self,
        entry: usize,
        visit: &mut impl FnMut(usize, Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.header.column {
            Column::Alike(extent) => self.go_up(entry, |_| extent, visit),
            Column::Each(width) => {
                let code_at = |entry| self.header.top - (entry + 1) * width.bytes();
                self.go_up(entry, |entry| width.read(self.bytes, code_at(entry)), visit)
            }
        }
    }

    #[inline(always)]
    fn go_up(
        &self,
        entry: usize,
        extent_of: impl Fn(usize) -> Extent,
        visit: &mut impl FnMut(usize, Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut offset = self.offset(entry);
        for entry in entry..self.header.count {
            let extent = extent_of(entry);
            visit(entry, extent.item(&self.bytes[offset..offset + extent.len]))?;
            offset += extent.len;
        }
        ControlFlow::Continue(())
    }

    /// From `entry` to the front.
    fn visit_down(
        &self,
        entry: usize,
        visit: &mut impl FnMut(usize, Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut offset = self.offset(entry + 1);
        for entry in (0..=entry).rev() {
            offset -= self.header.column.read(self.bytes, self.header.code_at(entry)).len;
            visit(entry, self.at(entry, offset))?;
        }
        ControlFlow::Continue(())
    }

    /// The entry number `entry`, which begins at `offset`.
    #[inline(always)]
    fn at(&self, entry: usize, offset: usize) -> Item<'a> {
        let extent = self.header.column.read(self.bytes, self.header.code_at(entry));
        extent.item(&self.bytes[offset..offset + extent.len])
    }

    #[inline]
    fn entry(&self, index: usize) -> usize {
        debug_assert!(index < self.header.count);
        if self.header.is_mirrored { self.header.count - 1 - index } else { index }
    }

    /// Where entry number `entry` begins (`count`: where the last ends), counted from the nearer side.
    #[inline]
    fn offset(&self, entry: usize) -> usize {
        let header = &self.header;
        debug_assert!(entry <= header.count, "entry {entry} of {}", header.count);
        let cut = header.top - entry * header.column.bytes();
        if entry * 2 <= header.count {
            header.start + header.column.sum(&self.bytes[cut..header.top], entry)
        } else {
            header.end - header.column.sum(&self.bytes[header.bottom()..cut], header.count - entry)
        }
    }

    /// The entries of a range of elements.
    fn entries(&self, range: Range<usize>) -> Range<usize> {
        debug_assert!(range.start <= range.end && range.end <= self.header.count);
        if self.header.is_mirrored {
            self.header.count - range.end..self.header.count - range.start
        } else {
            range
        }
    }
}

/// Of a tight leaf, for edits where it lies (`in_place.rs`).
impl Strings<'_> {
    /// Where the bytes and the codes of a range of elements lie.
    pub(super) fn parts(&self, range: Range<usize>) -> (Range<usize>, Range<usize>) {
        let entries = self.entries(range);
        (self.offset(entries.start)..self.offset(entries.end), codes_of(&self.header, &entries))
    }

    /// Where the bytes and the code of one more element would begin, before element `index` or behind all.
    pub(super) fn places(&self, index: usize) -> (usize, usize) {
        let header = &self.header;
        let entry = if header.is_mirrored { header.count - index } else { index };
        (self.offset(entry), header.top - entry * header.column.bytes())
    }

    /// How many bytes a code takes; None where the column cannot say this length.
    pub(super) fn code_bytes(&self, extent: Extent) -> Option<usize> {
        self.header.column.says(extent).then(|| self.header.column.bytes())
    }
}

/// Writes the code of a length, of as many bytes as there are.
pub(super) fn write_code(bytes: &mut [u8], extent: Extent) {
    let width = match bytes.len() {
        1 => Width::One,
        2 => Width::Two,
        _ => Width::Four,
    };
    width.write(bytes, 0, extent);
}

/// How many bytes `item` takes in a leaf with a column, at least.
pub(crate) fn entry_bytes(item: Item<'_>) -> usize {
    let stored = Stored::new(item);
    stored.len() + Width::for_extent(stored.extent).bytes()
}

/// What a leaf of integers would take as a leaf of strings with a column.
pub(crate) fn used_bytes_of(ints: Ints<'_>) -> usize {
    let mut bytes = HEADER;
    ints.for_each(|n| bytes += 1 + int_len(n));
    bytes
}

/// Makes `buffer` a leaf of the one element `item`, to grow towards `end`.
pub(crate) fn start<B: Buffer>(buffer: &mut B, end: End, item: Item<'_>, len_max: usize, start: Start) {
    let stored = Stored::new(item);
    let column = Column::of(std::iter::once(stored.extent));
    let len = HEADER + stored.len() + column.bytes();
    let len_max = len_max.max(len);
    buffer.resize(match start {
        Start::Small => grown((len, 1), len_max, B::round_up),
        Start::Whole => len_max,
    });
    let mut header = empty_header(column, end, buffer.bytes().len());
    put_back(buffer.bytes_mut(), &mut header, &stored);
    header.write(buffer.bytes_mut());
}

/// Makes `buffer` a leaf of these elements, without room, to grow towards the tail.
pub(crate) fn fill<B: Buffer>(buffer: &mut B, items: &[Item<'_>]) {
    let extents = items.iter().map(Extent::of);
    let column = Column::of(extents.clone());
    let len = HEADER + extents.map(|extent| extent.len).sum::<usize>() + items.len() * column.bytes();
    buffer.resize(len);
    let mut header = empty_header(column, End::Tail, len);
    items.iter().for_each(|item| put_back(buffer.bytes_mut(), &mut header, &Stored::new(*item)));
    debug_assert_eq!((header.count, header.end), (items.len(), header.bottom()));
    header.write(buffer.bytes_mut());
}

/// How many of these elements, from the first on, [`fill`] makes a leaf of that has at most `len_max` bytes,
/// but one at least.
pub(crate) fn count_that_fits(items: &[Item<'_>], len_max: usize) -> usize {
    let mut column: Option<Column> = None;
    let mut data = 0;
    let mut count = 0;
    for extent in items.iter().map(Extent::of) {
        let wider = column.map_or_else(|| Column::of(std::iter::once(extent)), |column| column.with(extent));
        if count > 0 && HEADER + data + extent.len + (count + 1) * wider.bytes() > len_max {
            break;
        }
        (column, data, count) = (Some(wider), data + extent.len, count + 1);
    }
    count
}

/// Makes `buffer` a leaf of `values`, without room, to grow towards `end`. It has a column, because a text
/// comes next.
pub(crate) fn start_of_ints<B: Buffer>(buffer: &mut B, end: End, values: &[i64]) {
    let len = HEADER + values.iter().map(|n| 1 + int_len(*n)).sum::<usize>();
    buffer.resize(len);
    let mut header = empty_header(Column::Each(Width::One), end, len);
    let mut put = |n: &i64| put_back(buffer.bytes_mut(), &mut header, &Stored::new(Item::Int(*n)));
    match end {
        End::Tail => values.iter().for_each(&mut put),
        End::Head => values.iter().rev().for_each(&mut put),
    }
    debug_assert_eq!((header.count, header.end), (values.len(), header.bottom()));
    header.write(buffer.bytes_mut());
}

/// A leaf of `len` bytes without entries, to grow towards `end`.
fn empty_header(column: Column, end: End, len: usize) -> Header {
    let is_mirrored = end == End::Head;
    Header { column, is_mirrored, is_two_ended: false, count: 0, start: HEADER, end: HEADER, top: len }
}

/// Adds at an end; [`Full`], and nothing changed, where the leaf would have to grow beyond `len_max`.
#[inline]
pub(crate) fn push<B: Buffer>(buffer: &mut B, end: End, item: Item<'_>, len_max: usize) -> Result<(), Full> {
    let stored = Stored::new(item);
    let mut header = Header::read(buffer.bytes());
    let side = header.side(end);
    if !has_room(&header, side, &stored, buffer.bytes().len(), len_max) {
        header = make_room(buffer, side, &stored, len_max, Effort::Amortized)?;
    }
    let bytes = buffer.bytes_mut();
    match side {
        Side::Back => put_back(bytes, &mut header, &stored),
        Side::Front => put_front(bytes, &mut header, &stored),
    }
    header.write(bytes);
    Ok(())
}

/// Removes at an end and lends what was there; the leaf is not empty. Moves nothing.
#[inline]
pub(crate) fn pop<B: Buffer, R>(buffer: &mut B, end: End, take: impl FnOnce(Item<'_>) -> R) -> R {
    let bytes = buffer.bytes();
    let mut header = Header::read(bytes);
    assert!(header.count > 0, "pop of an empty leaf");
    let side = header.side(end);
    let entry = if side == Side::Front { 0 } else { header.count - 1 };
    let extent = header.column.read(bytes, header.code_at(entry));
    let offset = if side == Side::Front { header.start } else { header.end - extent.len };
    let taken = take(extent.item(&bytes[offset..offset + extent.len]));
    drop_at(&mut header, side, extent.len, 1);
    header.write(buffer.bytes_mut());
    taken
}

/// Inserts before element `index`.
pub(crate) fn insert<B: Buffer>(
    buffer: &mut B,
    index: usize,
    item: Item<'_>,
    len_max: usize,
) -> Result<(), Full> {
    let header = Header::read(buffer.bytes());
    let stored = Stored::new(item);
    let entry = if header.is_mirrored { header.count - index } else { index };
    insert_at(buffer, entry, &stored, len_max)
}

/// Replaces element `index`; the leaf is as it was where the new element does not fit.
pub(crate) fn set<B: Buffer>(
    buffer: &mut B,
    index: usize,
    item: Item<'_>,
    len_max: usize,
) -> Result<(), Full> {
    let stored = Stored::new(item);
    let leaf = Strings::open(buffer.bytes());
    let (header, entry) = (leaf.header, leaf.entry(index));
    let offset = leaf.offset(entry);
    let old = header.column.read(buffer.bytes(), header.code_at(entry));
    let column = header.column.with(stored.extent);
    if old.len == stored.len() && column == header.column {
        let bytes = buffer.bytes_mut();
        bytes[offset..offset + old.len].copy_from_slice(stored.bytes());
        column.write(bytes, header.code_at(entry), stored.extent);
        return Ok(());
    }
    let len = HEADER + header.data_len() - old.len + stored.len() + header.count * column.bytes();
    if len > len_max {
        return Err(Full);
    }
    remove_entries(buffer, entry..entry + 1);
    insert_at(buffer, entry, &stored, len_max)
}

/// Removes a range of elements.
pub(crate) fn remove<B: Buffer>(buffer: &mut B, range: Range<usize>) {
    let entries = Strings::open(buffer.bytes()).entries(range);
    remove_entries(buffer, entries);
}

/// Gives back all room.
pub(crate) fn seal<B: Buffer>(buffer: &mut B) {
    let old = Header::read(buffer.bytes());
    let len = old.used_bytes();
    debug_assert!(len <= buffer.bytes().len());
    if len < buffer.bytes().len() {
        relayout(buffer, old, placed(Header { is_two_ended: false, ..old }, HEADER, len));
        buffer.resize(len);
    }
}

/// Makes `target` a sealed leaf of a range of `source`, in the same direction and with the same column.
pub(crate) fn copy_range<B: Buffer>(source: Strings<'_>, range: Range<usize>, target: &mut B) {
    let (header, entries) = (source.header, source.entries(range));
    let data = source.offset(entries.start)..source.offset(entries.end);
    let codes = codes_of(&header, &entries);
    let len = HEADER + data.len() + codes.len();
    debug_assert_eq!(codes.len(), entries.len() * header.column.bytes());
    target.resize(len);
    let bytes = target.bytes_mut();
    bytes[HEADER..HEADER + data.len()].copy_from_slice(&source.bytes[data.clone()]);
    bytes[len - codes.len()..len].copy_from_slice(&source.bytes[codes]);
    let end = HEADER + data.len();
    Header { count: entries.len(), start: HEADER, end, top: len, is_two_ended: false, ..header }.write(bytes);
}

/// Makes `target` the tight form of `source`.
pub(crate) fn copy_tight(source: Strings<'_>, target: &mut Vec<u8>) {
    let header = source.header;
    let (bits, code) = header.column.head();
    let kind = KIND_STRINGS | bits << WIDTH_SHIFT | if header.is_mirrored { MIRRORED } else { 0 };
    target.clear();
    tight::write_count(kind, header.count, target);
    target.extend(code);
    target.extend_from_slice(&source.bytes[header.start..header.end]);
    target.extend_from_slice(&source.bytes[header.bottom()..header.top]);
    debug_assert_eq!(target.len(), tight_len(source));
}

/// How long the tight form is.
pub(crate) fn tight_len(source: Strings<'_>) -> usize {
    let code = usize::from(source.header.column.head().1.is_some());
    tight::head_len(source.count()) + code + source.used_bytes() - HEADER
}

/// Makes `target` a leaf of the tight leaf `image`, with room at both ends.
pub(crate) fn open_draft(image: &[u8], target: &mut Vec<u8>) {
    let source = Strings::open_tight(image);
    let (header, data_len) = (source.header, source.header.data_len());
    let room = 64 + image.len() / 4;
    let front = 3 * room / 8;
    let len = HEADER + image.len() + room;
    target.clear();
    target.resize(len, 0);
    let start = HEADER + front;
    let top = len - room / 8;
    let draft = Header { start, end: start + data_len, top, is_two_ended: true, ..header };
    target[start..draft.end].copy_from_slice(&image[header.start..header.end]);
    target[draft.bottom()..top].copy_from_slice(&image[header.bottom()..header.top]);
    draft.write(target);
}

/// Where the lengths of `entries` are.
fn codes_of(header: &Header, entries: &Range<usize>) -> Range<usize> {
    let width = header.column.bytes();
    header.top - entries.end * width..header.top - entries.start * width
}

/// Whether an entry fits beside those that are there, and its length into their column.
#[inline]
fn has_room(header: &Header, side: Side, stored: &Stored<'_>, len: usize, len_max: usize) -> bool {
    let width = header.column.bytes();
    let fits = match side {
        Side::Back => header.bottom() - header.end >= stored.len() + width,
        Side::Front => header.start - HEADER >= stored.len() && len - header.top >= width,
    };
    fits && len <= len_max && header.column.says(stored.extent)
}

/// Writes an entry behind the last, where there is room.
#[inline]
fn put_back(bytes: &mut [u8], header: &mut Header, stored: &Stored<'_>) {
    debug_assert!(has_room(header, Side::Back, stored, bytes.len(), usize::MAX));
    bytes[header.end..header.end + stored.len()].copy_from_slice(stored.bytes());
    header.end += stored.len();
    header.column.write(bytes, header.code_at(header.count), stored.extent);
    header.count += 1;
}

/// Writes an entry before the first, where there is room: its length goes behind all others.
#[inline]
fn put_front(bytes: &mut [u8], header: &mut Header, stored: &Stored<'_>) {
    debug_assert!(has_room(header, Side::Front, stored, bytes.len(), usize::MAX));
    header.start -= stored.len();
    bytes[header.start..header.start + stored.len()].copy_from_slice(stored.bytes());
    header.column.write(bytes, header.top, stored.extent);
    header.top += header.column.bytes();
    header.count += 1;
}

/// Drops `count` entries, of `len` bytes together, at a side.
#[inline]
fn drop_at(header: &mut Header, side: Side, len: usize, count: usize) {
    debug_assert!(
        count <= header.count && len <= header.data_len(),
        "{count} entries of {len} bytes of {header:?}"
    );
    match side {
        Side::Back => header.end -= len,
        Side::Front => {
            header.start += len;
            header.top -= count * header.column.bytes();
        }
    }
    header.count -= count;
}

/// Inserts as entry number `entry`: what lies behind it moves back.
fn insert_at<B: Buffer>(
    buffer: &mut B,
    entry: usize,
    stored: &Stored<'_>,
    len_max: usize,
) -> Result<(), Full> {
    let mut header = Header::read(buffer.bytes());
    if !has_room(&header, Side::Back, stored, buffer.bytes().len(), len_max) {
        header = make_room(buffer, Side::Back, stored, len_max, Effort::Utmost)?;
    }
    assert!(entry <= header.count, "insert at {entry} of {}", header.count);
    let offset = Strings { bytes: buffer.bytes(), header }.offset(entry);
    let (bytes, width) = (buffer.bytes_mut(), header.column.bytes());
    bytes.copy_within(offset..header.end, offset + stored.len());
    bytes.copy_within(header.bottom()..header.top - entry * width, header.bottom() - width);
    bytes[offset..offset + stored.len()].copy_from_slice(stored.bytes());
    header.column.write(bytes, header.code_at(entry), stored.extent);
    header.end += stored.len();
    header.count += 1;
    header.write(bytes);
    Ok(())
}

/// Removes a range of entries; at a side nothing moves, in the middle what lies behind moves forward.
fn remove_entries<B: Buffer>(buffer: &mut B, entries: Range<usize>) {
    let leaf = Strings::open(buffer.bytes());
    let mut header = leaf.header;
    assert!(
        entries.start <= entries.end && entries.end <= header.count,
        "remove {entries:?} of {}",
        header.count
    );
    let data = leaf.offset(entries.start)..leaf.offset(entries.end);
    let bytes = buffer.bytes_mut();
    if entries.start == 0 {
        drop_at(&mut header, Side::Front, data.len(), entries.len());
    } else {
        let gap = entries.len() * header.column.bytes();
        let behind = header.bottom()..header.top - entries.end * header.column.bytes();
        bytes.copy_within(data.end..header.end, data.start);
        bytes.copy_within(behind.clone(), behind.start + gap);
        drop_at(&mut header, Side::Back, data.len(), entries.len());
    }
    header.write(bytes);
}

/// Moves or grows the leaf so that `stored` fits at `side`.
#[cold]
fn make_room<B: Buffer>(
    buffer: &mut B,
    side: Side,
    stored: &Stored<'_>,
    len_max: usize,
    effort: Effort,
) -> Result<Header, Full> {
    let old = Header::read(buffer.bytes());
    let column = old.column.with(stored.extent);
    let used = HEADER + old.data_len() + stored.len() + (old.count + 1) * column.bytes();
    let len = next_len::<B>(buffer.bytes().len(), (used, old.count + 1), len_max, effort).ok_or(Full)?;
    if len > buffer.bytes().len() {
        buffer.resize(len);
    }
    let is_two_ended = old.is_two_ended || (side == Side::Front && old.count > 0);
    let header = with_room(Header { column, is_two_ended, ..old }, side, stored, len);
    relayout(buffer, old, header);
    if len < buffer.bytes().len() {
        buffer.resize(len);
    }
    Ok(header)
}

/// How long a leaf of `len` bytes becomes that needs `used` for its `count` entries; None where it must not
/// grow as far as that.
fn next_len<B: Buffer>(
    len: usize,
    (used, count): (usize, usize),
    len_max: usize,
    effort: Effort,
) -> Option<usize> {
    if used > len_max {
        return None;
    }
    let len = len.min(len_max);
    let enough = if effort == Effort::Utmost { used } else { used + room_for_pushes(used, count) };
    if enough <= len {
        return Some(len);
    }
    let next = grown((used, count), len_max, B::round_up);
    (next > len).then_some(next)
}

/// A length for `used` bytes of `count` entries, and some pushes to come.
fn grown((used, count): (usize, usize), len_max: usize, round_up: fn(usize) -> usize) -> usize {
    let len = round_up((used + room_for_pushes(used, count)).max(64));
    // The next push would move the leaf all the same.
    let holds_no_more = len - used < used / count;
    if holds_no_more { used.max(64).min(len_max) } else { len.min(len_max) }
}

/// Room for pushes to come beside so many bytes: the less the likelier it is that the leaf is all of a list,
/// and none where not one more of these `count` entries would fit.
fn room_for_pushes(used: usize, count: usize) -> usize {
    const ALL_BYTES_MAX: usize = 2 << 10;
    let part = if used < ALL_BYTES_MAX { 32 } else { 16 };
    if count < part { 0 } else { used / part }
}

/// `header` with its room given to the sides: all to the back, or half to each where both are pushed at.
fn with_room(header: Header, side: Side, stored: &Stored<'_>, len: usize) -> Header {
    if !header.is_two_ended {
        return placed(header, HEADER, len);
    }
    let entry = stored.len() + header.column.bytes();
    let spare = len - header.used_bytes() - entry;
    let wanted = if side == Side::Front { entry } else { 0 } + spare / 2;
    let average = header.data_len() / header.count.max(1) + header.column.bytes();
    let codes = if side == Side::Front { header.column.bytes() } else { 0 };
    let codes = codes + spare / 2 / average.max(1) * header.column.bytes();
    let codes = codes.min(wanted);
    placed(header, HEADER + wanted - codes, len - codes)
}

/// The header of the same entries and lengths in another layout: entries from `start` on, lengths up to
/// `top`.
fn placed(header: Header, start: usize, top: usize) -> Header {
    let moved = Header { start, end: start + header.data_len(), top, ..header };
    debug_assert!(HEADER <= moved.start && moved.end <= moved.bottom(), "{moved:?}");
    moved
}

/// Moves entries and lengths from where `old` has them to where `new` wants them; the buffer holds both.
fn relayout<B: Buffer>(buffer: &mut B, old: Header, new: Header) {
    let bytes = buffer.bytes_mut();
    debug_assert!(old.count == new.count && new.top <= bytes.len());
    if old.column != new.column {
        let extents: Vec<Extent> =
            (0..old.count).map(|entry| old.column.read(bytes, old.code_at(entry))).collect();
        bytes.copy_within(old.start..old.end, new.start);
        for (entry, extent) in extents.into_iter().enumerate() {
            new.column.write(bytes, new.code_at(entry), extent);
        }
    } else if new.top > old.top {
        // Lengths that move up do not overwrite the old entries, so they are moved first; those that move
        // down are moved last.
        bytes.copy_within(old.bottom()..old.top, new.bottom());
        bytes.copy_within(old.start..old.end, new.start);
    } else {
        bytes.copy_within(old.start..old.end, new.start);
        bytes.copy_within(old.bottom()..old.top, new.bottom());
    }
    new.write(bytes);
}
