//! Packed integers: a leaf of integers near a line, each kept as its distance from that line, all equally
//! wide in bits.
//!
//! ```text
//!  0      kind = 2
//!  1      width     bits an offset: 0..=57, or 64
//!  2..4   zero
//!  4..8   count                          all numbers little endian
//!  8..12  first     the slot of element 0
//! 12..16  fitted    count when the line was last drawn
//! 16..24  base      64 bits
//! 24..32  stride    64 bits
//! 32..    slots     slot s holds bits s * width .. (s + 1) * width, low bits first
//! ```
//!
//! Element `i` lies in slot `s = first + i` and is `base + stride * s + offset(s)`, computed modulo 2^64, so
//! no value and no line overflows. Reading one is a multiplication and one unaligned load, at any index. With
//! stride 0 this is a frame of reference; with the stride of the elements themselves, consecutive integers
//! have width 0 and rising identifiers need bits for their jitter alone. 5, 7, 9, 10 in a leaf without room
//! (stride 1; offsets 0, 1, 2, 2 in 2 bits each):
//!
//! ```text
//! 02 02 00 00  04 00 00 00  00 00 00 00  04 00 00 00  05 00 .. 00  01 00 .. 00  a4
//! ```
//!
//! For an element that is too far from the line a new line is drawn through the whole leaf (`fit`), which
//! takes time in proportion to the count; some elements show beforehand where it cannot do. If that happens
//! again before the leaf has grown by an eighth, the new width is at least one bit larger; so it happens at
//! most 64 times.
//!
//! The *tight* form, inside a keyspace entry, writes base and stride in as few bytes as they need:
//!
//! ```text
//! kind and count (`tight.rs`) | width | bytes of base and of stride, 4 bits each | base | stride | slots
//! ```
//!
//! Cost: width / 8 bytes an element and 32 bytes a leaf: nothing more for consecutive integers, 3.9 bytes for
//! random 31-bit integers, 4.3 for 800 64-bit ids whose steps are random below 2^30. A leaf of `n` bytes at
//! most holds `n / 2` elements at most, so that redrawing a line never takes long. Edits at the ends are
//! O(1); an edit between redraws the leaf.

use crate::code::short_int::{int_len, read_int};
use crate::code::words::{bits_of, u32_at, u64_at};
use crate::list::leaf::{Full, KIND_INTS, KIND_MASK, Start};
use crate::list::tight;
use crate::memory::buffer::Buffer;
use crate::tree::end::End;
use base::Item;
use std::ops::{ControlFlow, Range};

const HEADER: usize = 32;
/// A wider slot could lie across nine bytes, more than a load takes. So greater widths become 64, where slots
/// are words.
const ODD_WIDTH_MAX: u32 = 57;
/// Slots of width 0 take no bytes, so a leaf with that width always has so many before its elements.
const WEIGHTLESS_ROOM: usize = 1 << 20;

/// The line and how far from it an element may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    width: u32,
    base: u64,
    stride: u64,
}

impl Frame {
    #[inline]
    fn mask(&self) -> u64 {
        if self.width == 0 { 0 } else { u64::MAX >> (64 - self.width) }
    }

    #[inline]
    fn line(&self, slot: usize) -> u64 {
        self.base.wrapping_add(self.stride.wrapping_mul(slot as u64))
    }

    /// The offset that slot `slot` stores for `value`; None if that is too far from the line.
    #[inline]
    fn offset(&self, slot: usize, value: i64) -> Option<u64> {
        let offset = (value as u64).wrapping_sub(self.line(slot));
        (offset <= self.mask()).then_some(offset)
    }

    /// How many bytes so many slots take.
    fn slots_bytes(&self, slots: usize) -> usize {
        (slots * self.width as usize).div_ceil(8)
    }

    /// The narrowest frame for `values` in the slots from 0 on, at least `width_min` wide.
    fn fit(values: &[i64], width_min: u32) -> Frame {
        Frame::through(values.iter().copied().enumerate(), width_min)
    }

    /// A frame no wider than that of all elements of a leaf with `value` at an end: through the first of
    /// them, one in the middle, and the last. It shows in O(1) where the leaf would become too long.
    fn at_least(leaf: Ints<'_>, end: End, value: i64, width_min: u32) -> Frame {
        let count = leaf.count();
        let old = |index: usize| (index + usize::from(end == End::Head), leaf.get(index));
        let (first, middle, last) = (old(0), old(count / 2), old(count - 1));
        let some = match end {
            End::Head => [(0, value), first, middle, last],
            End::Tail => [first, middle, last, (count, value)],
        };
        Frame::through(some.into_iter(), width_min)
    }

    /// The narrowest frame for these values in these slots, which ascend, at least `width_min` wide.
    fn through(elements: impl DoubleEndedIterator<Item = (usize, i64)> + Clone, width_min: u32) -> Frame {
        let level = Frame::with_stride(elements.clone(), 0, width_min);
        let (mut ends, none) = (elements.clone(), (0, 0));
        let first = ends.next().unwrap_or(none);
        let last = ends.next_back().unwrap_or(first);
        if level.width == 0 || first.0 == last.0 {
            return level;
        }
        let rise = i128::from(last.1) - i128::from(first.1);
        let stride = (rise / (last.0 - first.0) as i128) as u64;
        let sloping = Frame::with_stride(elements, stride, width_min);
        if sloping.width < level.width { sloping } else { level }
    }

    /// The narrowest frame of this stride. Distances from the line that exceed `i64` wrap; the frame holds
    /// them all the same, because it is computed modulo 2^64 too, and is only wider than it had to be.
    fn with_stride(elements: impl Iterator<Item = (usize, i64)>, stride: u64, width_min: u32) -> Frame {
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for (slot, value) in elements {
            let distance = (value as u64).wrapping_sub(stride.wrapping_mul(slot as u64)) as i64;
            (low, high) = (low.min(distance), high.max(distance));
        }
        let range = (high as u64).wrapping_sub(low as u64);
        let width = bits_of(range).max(width_min);
        if width > ODD_WIDTH_MAX {
            return Frame { width: 64, base: 0, stride: 0 };
        }
        let frame = Frame { width, base: low as u64, stride };
        Frame { base: frame.placed(low, high), ..frame }
    }

    /// A base below `low` that keeps `high` in reach: at a multiple of the frame's size if the frame is
    /// level, because numbers drawn below a power of two then fit for ever; else with the spare reach half on
    /// either side.
    fn placed(&self, low: i64, high: i64) -> u64 {
        let aligned = low as u64 & !self.mask();
        if self.stride == 0 && (high as u64).wrapping_sub(aligned) <= self.mask() {
            return aligned;
        }
        debug_assert!((high as u64).wrapping_sub(low as u64) <= self.mask(), "{low} to {high} in {self:?}");
        let spare = self.mask() - (high as u64).wrapping_sub(low as u64);
        (low as u64).wrapping_sub(spare / 2)
    }
}

/// The header, unpacked, but for `fitted`.
#[derive(Clone, Copy, Debug)]
struct Header {
    frame: Frame,
    count: usize,
    first: usize,
}

impl Header {
    #[inline]
    fn read(bytes: &[u8]) -> Header {
        let head = bytes.first_chunk::<HEADER>().expect("a leaf is longer than its header");
        let frame = Frame { width: u32::from(head[1]), base: u64_at(head, 16), stride: u64_at(head, 24) };
        Header { frame, count: u32_at(head, 4) as usize, first: u32_at(head, 8) as usize }
    }

    /// Count and first alone: all that an edit at an end changes.
    #[inline]
    fn write_extent(&self, bytes: &mut [u8]) {
        debug_assert!(self.count <= u32::MAX as usize && self.first <= u32::MAX as usize, "{self:?}");
        bytes[4..8].copy_from_slice(&(self.count as u32).to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.first as u32).to_le_bytes());
    }

    fn write(&self, bytes: &mut [u8], fitted: usize) {
        debug_assert!(self.frame.width <= ODD_WIDTH_MAX || self.frame.width == 64, "{self:?}");
        debug_assert!(
            self.first + self.count <= self.slots(bytes.len()),
            "{self:?} in {} bytes",
            bytes.len()
        );
        bytes[..4].copy_from_slice(&[KIND_INTS, self.frame.width as u8, 0, 0]);
        self.write_extent(bytes);
        bytes[12..16].copy_from_slice(&(fitted as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.frame.base.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.frame.stride.to_le_bytes());
    }

    /// How many slots a leaf of `len` bytes has.
    #[inline]
    fn slots(&self, len: usize) -> usize {
        match self.frame.width as usize {
            0 => u32::MAX as usize,
            width => (len - HEADER) * 8 / width,
        }
    }
}

/// Eight bytes from `at` on; those beyond the end are zero.
#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(whole) => u64_at(whole, 0),
        None => load_at_end(bytes, at),
    }
}

#[cold]
fn load_at_end(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or(&[]);
    let mut whole = [0; 8];
    whole[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(whole)
}

/// Eight bytes at `at`; those beyond the end are dropped.
#[inline]
fn store(bytes: &mut [u8], at: usize, word: u64) {
    let len = bytes.len().saturating_sub(at).min(8);
    bytes[at..at + len].copy_from_slice(&word.to_le_bytes()[..len]);
}

/// The element in a slot: a multiplication and one load.
#[inline]
fn read_slot(slots: &[u8], frame: &Frame, slot: usize) -> i64 {
    if frame.width == 0 {
        return frame.line(slot) as i64;
    }
    let bit = slot * frame.width as usize;
    let offset = load(slots, bit / 8) >> (bit % 8) & frame.mask();
    frame.line(slot).wrapping_add(offset) as i64
}

/// Writes a slot and leaves its neighbours as they are.
#[inline]
fn write_slot(slots: &mut [u8], frame: &Frame, slot: usize, offset: u64) {
    debug_assert!(offset <= frame.mask() && frame.slots_bytes(slot + 1) <= slots.len(), "{offset} in {slot}");
    if frame.width == 0 {
        return;
    }
    let bit = slot * frame.width as usize;
    let (at, shift) = (bit / 8, bit % 8);
    let old = load(slots, at) & !(frame.mask() << shift);
    store(slots, at, old | offset << shift);
}

/// A leaf of integers, to read.
#[derive(Clone, Copy)]
pub(crate) struct Ints<'a> {
    slots: &'a [u8],
    header: Header,
    fitted: usize,
}

impl<'a> Ints<'a> {
    /// Reads the header.
    #[inline]
    pub(crate) fn open(bytes: &'a [u8]) -> Ints<'a> {
        debug_assert_eq!(bytes[0] & KIND_MASK, KIND_INTS);
        Ints { slots: &bytes[HEADER..], header: Header::read(bytes), fitted: u32_at(bytes, 12) as usize }
    }

    /// Reads the header of the tight form.
    #[inline]
    pub(crate) fn open_tight(bytes: &'a [u8]) -> Ints<'a> {
        let (count, at) = tight::read_count(bytes);
        let (width, lens) = (u32::from(bytes[at]), bytes[at + 1]);
        let base_at = at + 2;
        let stride_at = base_at + usize::from(lens & 15);
        let slots_at = stride_at + usize::from(lens >> 4);
        let base = read_int(&bytes[base_at..stride_at]) as u64;
        let stride = read_int(&bytes[stride_at..slots_at]) as u64;
        debug_assert!(
            slots_at + (count * width as usize).div_ceil(8) <= bytes.len(),
            "{count} of {width} bits"
        );
        Ints {
            slots: &bytes[slots_at..],
            header: Header { frame: Frame { width, base, stride }, count, first: 0 },
            fitted: count,
        }
    }

    /// How many elements there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.header.count
    }

    /// Bytes of the header and of the slots that hold elements.
    pub(crate) fn used_bytes(&self) -> usize {
        HEADER + self.header.frame.slots_bytes(self.header.count)
    }

    /// Element `index`, which exists.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> i64 {
        debug_assert!(index < self.header.count);
        read_slot(self.slots, &self.header.frame, self.header.first + index)
    }

    /// Visits from element `index`, which exists, towards an end until told to stop.
    pub(crate) fn visit(
        &self,
        index: usize,
        towards: End,
        visit: &mut impl FnMut(usize, Item<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match towards {
            End::Tail => (index..self.count()).try_for_each(|i| visit(i, Item::Int(self.get(i)))),
            End::Head => (0..=index).rev().try_for_each(|i| visit(i, Item::Int(self.get(i)))),
        }
    }

    /// Every element, head first.
    pub(crate) fn for_each(&self, visit: impl FnMut(i64)) {
        (0..self.count()).map(|index| self.get(index)).for_each(visit);
    }

    /// The frame for slots that count from element 0.
    fn frame_from_first(&self) -> Frame {
        Frame { base: self.header.frame.line(self.header.first), ..self.header.frame }
    }

    /// All elements, head first. Allocates.
    pub(crate) fn values(&self) -> Vec<i64> {
        (0..self.count()).map(|index| self.get(index)).collect()
    }
}

/// How a leaf is to be written anew.
struct Plan {
    /// The frame, for slots from 0 on.
    frame: Frame,
    /// Empty slots before the elements.
    before: usize,
    fitted: usize,
}

impl Plan {
    /// A plan without room.
    fn tight(frame: Frame, count: usize) -> Plan {
        Plan { frame, before: 0, fitted: count }
    }
}

/// Makes `buffer` a leaf of the one element `value`.
pub(crate) fn start<B: Buffer>(buffer: &mut B, value: i64, len_max: usize, start: Start) {
    let frame = Frame { width: 0, base: value as u64, stride: 0 };
    buffer.resize(match start {
        Start::Small => B::round_up(64).min(len_max.max(HEADER)),
        Start::Whole => len_max.max(HEADER),
    });
    Header { frame, count: 1, first: 0 }.write(buffer.bytes_mut(), 1);
}

/// Makes `buffer` a leaf of these elements, all of them integers, without room.
pub(crate) fn fill<B: Buffer>(buffer: &mut B, items: &[Item<'_>]) {
    let int = |item: &Item<'_>| match item {
        Item::Int(n) => *n,
        Item::Bytes(_) => unreachable!("a leaf of integers is filled with nothing else"),
    };
    let values: Vec<i64> = items.iter().map(int).collect();
    let frame = Frame::fit(&values, 0);
    let len = HEADER + frame.slots_bytes(values.len());
    write_anew(buffer, &values, &Plan::tight(frame, values.len()), len);
}

/// Adds at an end: one slot is written where the line reaches the value and there is a slot. Else the leaf
/// grows, or its line is drawn anew; [`Full`], and nothing changed, where it would exceed `len_max`.
#[inline]
pub(crate) fn push<B: Buffer>(buffer: &mut B, end: End, value: i64, len_max: usize) -> Result<(), Full> {
    let bytes = buffer.bytes();
    let mut header = Header::read(bytes);
    let slot = if end == End::Tail { header.first + header.count } else { header.first.wrapping_sub(1) };
    let has_room =
        slot < header.slots(bytes.len()) && bytes.len() <= len_max && header.count < count_max(len_max);
    let (true, Some(offset)) = (has_room, header.frame.offset(slot, value)) else {
        return push_slow(buffer, end, value, len_max);
    };
    header.first -= usize::from(end == End::Head);
    header.count += 1;
    write_slot(&mut buffer.bytes_mut()[HEADER..], &header.frame, slot, offset);
    header.write_extent(buffer.bytes_mut());
    Ok(())
}

/// Removes at an end; the leaf is not empty. Writes the header alone.
#[inline]
pub(crate) fn pop<B: Buffer>(buffer: &mut B, end: End) -> i64 {
    let leaf = Ints::open(buffer.bytes());
    let mut header = leaf.header;
    assert!(header.count > 0, "pop of an empty leaf");
    let value = leaf.get(if end == End::Tail { header.count - 1 } else { 0 });
    header.count -= 1;
    header.first += usize::from(end == End::Head);
    header.write_extent(buffer.bytes_mut());
    value
}

/// Inserts before element `index`.
pub(crate) fn insert<B: Buffer>(
    buffer: &mut B,
    index: usize,
    value: i64,
    len_max: usize,
) -> Result<(), Full> {
    let count = Header::read(buffer.bytes()).count;
    if index == count {
        return push(buffer, End::Tail, value, len_max);
    }
    if index == 0 {
        return push(buffer, End::Head, value, len_max);
    }
    assert!(index < count, "insert at {index} of {count}");
    let mut values = Ints::open(buffer.bytes()).values();
    values.insert(index, value);
    rewrite(buffer, &values, len_max)
}

/// Replaces element `index`.
pub(crate) fn set<B: Buffer>(buffer: &mut B, index: usize, value: i64, len_max: usize) -> Result<(), Full> {
    let leaf = Ints::open(buffer.bytes());
    assert!(index < leaf.count(), "set of {index} of {}", leaf.count());
    let (frame, slot) = (leaf.header.frame, leaf.header.first + index);
    if let Some(offset) = frame.offset(slot, value) {
        write_slot(&mut buffer.bytes_mut()[HEADER..], &frame, slot, offset);
        return Ok(());
    }
    let mut values = leaf.values();
    values[index] = value;
    rewrite(buffer, &values, len_max)
}

/// Removes a range of elements. What stays may be off every narrow line, and then take more bytes than
/// before.
pub(crate) fn remove<B: Buffer>(buffer: &mut B, range: Range<usize>, len_max: usize) -> Result<(), Full> {
    let leaf = Ints::open(buffer.bytes());
    let mut header = leaf.header;
    assert!(range.start <= range.end && range.end <= header.count, "remove {range:?} of {}", header.count);
    if range.start == 0 || range.end == header.count {
        header.first += if range.start == 0 { range.len() } else { 0 };
        header.count -= range.len();
        header.write_extent(buffer.bytes_mut());
        return Ok(());
    }
    let mut values = leaf.values();
    values.drain(range);
    rewrite(buffer, &values, len_max)
}

/// Draws the narrowest line and gives back all room. Costs time in the count.
pub(crate) fn seal<B: Buffer>(buffer: &mut B) {
    let leaf = Ints::open(buffer.bytes());
    let values = leaf.values();
    let frame = if values.is_empty() { leaf.header.frame } else { Frame::fit(&values, 0) };
    let len = HEADER + frame.slots_bytes(values.len());
    if len < buffer.bytes().len() {
        write_anew(buffer, &values, &Plan::tight(frame, values.len()), len);
    }
}

/// Makes `target` a sealed leaf of a range of `source`.
pub(crate) fn copy_range<B: Buffer>(source: Ints<'_>, range: Range<usize>, target: &mut B) {
    let values: Vec<i64> = range.map(|index| source.get(index)).collect();
    let frame = Frame::fit(&values, 0);
    let len = HEADER + frame.slots_bytes(values.len());
    write_anew(target, &values, &Plan::tight(frame, values.len()), len);
}

/// Makes `target` the tight form of `source`.
pub(crate) fn copy_tight(source: Ints<'_>, target: &mut Vec<u8>) {
    let old = source.frame_from_first();
    target.clear();
    let is_fresh = source.fitted == source.count();
    if source.count() <= SHORT && !is_fresh {
        let values = source.values();
        let new = Frame::fit(&values, 0);
        if tight_len(&new, values.len()) < tight_len(&old, values.len()) {
            let slots_at = write_tight_head(&new, values.len(), target);
            return write_slots(&mut target[slots_at..], &new, 0, &values);
        }
    }
    let slots_at = write_tight_head(&old, source.count(), target);
    let bit = source.header.first * old.width as usize;
    if bit.is_multiple_of(8) {
        let len = target.len() - slots_at;
        return target[slots_at..].copy_from_slice(&source.slots[bit / 8..][..len]);
    }
    write_slots(&mut target[slots_at..], &old, 0, &source.values());
}

/// At most how long the tight form is: shorter where a new line is narrower.
pub(crate) fn tight_len_max(source: Ints<'_>) -> usize {
    tight_len(&source.frame_from_first(), source.count())
}

/// A list of no more elements has a new line drawn whenever it is made tight, unless the last push drew one.
const SHORT: usize = 32;

/// How long the tight form is with this frame.
fn tight_len(frame: &Frame, count: usize) -> usize {
    2 + tight::head_len(count)
        + int_len(frame.base as i64)
        + int_len(frame.stride as i64)
        + frame.slots_bytes(count)
}

/// Writes all but the slots, and makes room for those; returns where they begin.
fn write_tight_head(frame: &Frame, count: usize, target: &mut Vec<u8>) -> usize {
    let (base_len, stride_len) = (int_len(frame.base as i64), int_len(frame.stride as i64));
    tight::write_count(KIND_INTS, count, target);
    target.extend_from_slice(&[frame.width as u8, (base_len | stride_len << 4) as u8]);
    target.extend_from_slice(&frame.base.to_le_bytes()[..base_len]);
    target.extend_from_slice(&frame.stride.to_le_bytes()[..stride_len]);
    let slots_at = target.len();
    debug_assert_eq!(slots_at + frame.slots_bytes(count), tight_len(frame, count));
    target.resize(slots_at + frame.slots_bytes(count), 0);
    slots_at
}

/// Makes `target` a leaf of the tight leaf `image`, with room at both ends.
pub(crate) fn open_draft(image: &[u8], target: &mut Vec<u8>) {
    let Ints { slots, header, .. } = Ints::open_tight(image);
    let width = header.frame.width as usize;
    // Eight slots are whole bytes, so that the slots of the image can be copied as they are.
    let before = if width == 0 { WEIGHTLESS_ROOM } else { 8 };
    let front = HEADER + before * width / 8;
    target.clear();
    target.resize(front + slots.len() + 64, 0);
    target[front..front + slots.len()].copy_from_slice(slots);
    let base = header.frame.line(before.wrapping_neg());
    let frame = Frame { base, ..header.frame };
    Header { frame, count: header.count, first: before }.write(target, header.count);
}

/// How many elements a leaf of so many bytes may have at most, however narrow they are.
pub(crate) fn count_max(len_max: usize) -> usize {
    (len_max / 2).min(u32::MAX as usize)
}

/// A push that finds no slot, or of a value that the line does not reach.
#[cold]
fn push_slow<B: Buffer>(buffer: &mut B, end: End, value: i64, len_max: usize) -> Result<(), Full> {
    let leaf = Ints::open(buffer.bytes());
    let (old, len) = (leaf.header, buffer.bytes().len());
    if old.count >= count_max(len_max) {
        return Err(Full);
    }
    let Some(frame) = frame_at_push(&old, end, value) else {
        return redraw_and_push(buffer, end, value, len_max);
    };
    let next = next_len::<B>(len, HEADER + frame.slots_bytes(old.count + 1), len_max).ok_or(Full)?;
    if end == End::Tail && next > len {
        buffer.resize(next);
        return push(buffer, end, value, len_max);
    }
    let before = room_before(&old, end, &frame, next, len);
    let fitted = leaf.fitted;
    let values = pushed(leaf, end, value);
    write_anew(buffer, &values, &Plan { frame, before, fitted }, next);
    Ok(())
}

/// Draws a new line for the elements and `value`.
fn redraw_and_push<B: Buffer>(buffer: &mut B, end: End, value: i64, len_max: usize) -> Result<(), Full> {
    let leaf = Ints::open(buffer.bytes());
    let (old, len) = (leaf.header, buffer.bytes().len());
    let is_soon = old.count.saturating_sub(leaf.fitted) < old.count / 8;
    let width_min = if is_soon { old.frame.width + 1 } else { 0 };
    // An outlier that would make a long leaf much longer is left to the next leaf.
    let used_max = len_max.min(leaf.used_bytes() + 256.max(len_max / 8));
    let used_by = |frame: &Frame| HEADER + frame.slots_bytes(old.count + 1);
    let least = Frame::at_least(leaf, end, value, width_min);
    if used_by(&least) > used_max {
        return Err(Full);
    }
    let values = pushed(leaf, end, value);
    let frame = Frame::fit(&values, width_min);
    debug_assert!(least.width <= frame.width, "{least:?} {frame:?}");
    let used = used_by(&frame);
    if used > used_max {
        return Err(Full);
    }
    let next = next_len::<B>(len, used, len_max).unwrap_or(len.min(len_max));
    let before = room_before(&old, end, &frame, next, len);
    write_anew(buffer, &values, &Plan { frame, before, fitted: values.len() }, next);
    Ok(())
}

/// All elements, with `value` added at an end.
fn pushed(leaf: Ints<'_>, end: End, value: i64) -> Vec<i64> {
    let mut values = Vec::with_capacity(leaf.count() + 1);
    if end == End::Head {
        values.push(value);
    }
    leaf.for_each(|n| values.push(n));
    if end == End::Tail {
        values.push(value);
    }
    values
}

/// The old frame for slots from 0 on, if it reaches `value`.
fn frame_at_push(old: &Header, end: End, value: i64) -> Option<Frame> {
    let slot = if end == End::Tail { old.first + old.count } else { old.first.wrapping_sub(1) };
    old.frame.offset(slot, value)?;
    let first = if end == End::Tail { old.first } else { slot };
    Some(Frame { base: old.frame.line(first), ..old.frame })
}

/// How long a leaf of `len` bytes that needs `used` becomes; None where neither growing nor moving wins room.
fn next_len<B: Buffer>(len: usize, used: usize, len_max: usize) -> Option<usize> {
    debug_assert!(used >= HEADER);
    let (enough, len) = (used + used / 8, len.min(len_max));
    if enough <= len {
        return Some(len);
    }
    let next = B::round_up(enough.max(64)).min(len_max);
    (next > len && next >= used).then_some(next)
}

/// Empty slots before the elements: for a push at the head all there are, but half where the tail has been
/// using its own.
fn room_before(old: &Header, end: End, frame: &Frame, len: usize, old_len: usize) -> usize {
    if frame.width == 0 {
        return WEIGHTLESS_ROOM;
    }
    let spare = (len - HEADER) * 8 / frame.width as usize - (old.count + 1);
    let other = match end {
        End::Tail => old.first,
        End::Head => old.slots(old_len) - old.first - old.count,
    };
    let is_two_ended = old.frame.width > 0 && other > 8 + old.count / 4;
    match (is_two_ended, end) {
        (true, _) => spare / 2,
        (false, End::Head) => spare,
        (false, End::Tail) => 0,
    }
}

/// Writes `values` in place of what the leaf has.
fn rewrite<B: Buffer>(buffer: &mut B, values: &[i64], len_max: usize) -> Result<(), Full> {
    let frame = Frame::fit(values, 0);
    let used = HEADER + frame.slots_bytes(values.len());
    if used > len_max || values.len() > count_max(len_max) {
        return Err(Full);
    }
    let len = used.max(buffer.bytes().len().min(len_max));
    write_anew(buffer, values, &Plan::tight(frame, values.len()), len);
    Ok(())
}

/// Makes `buffer` a leaf of `len` bytes.
fn write_anew<B: Buffer>(buffer: &mut B, values: &[i64], plan: &Plan, len: usize) {
    buffer.resize(len);
    let shift = plan.frame.stride.wrapping_mul(plan.before as u64);
    let frame = Frame { base: plan.frame.base.wrapping_sub(shift), ..plan.frame };
    let header = Header { frame, count: values.len(), first: plan.before };
    let bytes = buffer.bytes_mut();
    header.write(bytes, plan.fitted);
    write_slots(&mut bytes[HEADER..], &frame, plan.before, values);
}

/// Writes `values` into the slots from `first` on.
fn write_slots(slots: &mut [u8], frame: &Frame, first: usize, values: &[i64]) {
    for (slot, value) in (first..).zip(values) {
        let offset = frame.offset(slot, *value).expect("the frame was made for these values");
        write_slot(slots, frame, slot, offset);
    }
}
