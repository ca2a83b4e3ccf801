//! The placed leaf: the places of members in hash order, and their scores. It is the leaf of a sorted set's
//! member index ([`crate::sorted::index`]). The member itself is not here: it is found in the tree by the
//! score, and compared there.
//!
//! ```text
//! +-------+--------+-------+--------+-----------+------------------+-----------------+
//! | count | widths | scale | origin | base of   | places, rising,  | scores, one     |
//! | u16   | u8     | u8    | u32    | scores    | less the origin  | code each       |
//! +-------+--------+-------+--------+-----------+------------------+-----------------+
//!
//! widths: bits 0..4 bytes of a score's code | bits 4..8 bytes of the base
//! scale:  bits 0..5 the scores' scale (`score.rs`) | bits 5..7 bytes of a place, less 1
//!         | bit 7 places are coarse
//! ```
//!
//! Coarse places are the top 16 bits of the 32: enough while members are few, and two bytes each. Fine ones
//! are whole, and are kept as distances from the first place that the leaf covers: 3 bytes for a million
//! members, 2 for a hundred million. Two fine members at 0x10 and 0x1200, origin 0, with scores of 7 and 9:
//! `0200 01 20 00000000 | | 1000 0012 | 07 09`.
//!
//! A leaf of one place cannot be split. Its count is 65,535 from there on, and what it is in truth follows
//! from its length.
//!
//! Cost: a place and a score's code for each member; a leaf takes 8 bytes, the base, and its block's header.
use crate::code::fixed_width::{count_below, fits, read_code, write_code};
use crate::code::score::Frame;
use crate::code::two_columns;
use crate::code::words::{bytes_of, u16_at, u32_at};
use crate::memory::block::Block;
use crate::tree::order::OrderRange;
use std::hint::cold_path;
use std::ops::Range;

/// A leaf with more entries than this is split.
pub(crate) const COUNT_MAX: usize = 200;

const HEAD_BYTES: usize = 8;
/// How many bits a coarse place leaves out.
const COARSE_SHIFT: u32 = 16;
const COARSE: u8 = 1 << 7;

/// How exactly places are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    Coarse,
    Fine,
}

impl Grain {
    pub(crate) fn shift(self) -> u32 {
        match self {
            Grain::Coarse => COARSE_SHIFT,
            Grain::Fine => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) place: u32,
    pub(crate) score: f64,
}

/// What a leaf knows about the members at a place, as exactly as places are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Candidate {
    None,
    One(f64),
    Several,
}

#[derive(Clone, Copy, Debug)]
struct Layout {
    count: usize,
    frame: Frame,
    grain: Grain,
    origin: u32,
    /// Bytes of a place.
    width: usize,
    places_at: usize,
    scores_at: usize,
}

impl Layout {
    #[inline(always)]
    fn read(bytes: &[u8]) -> Layout {
        let head: &[u8; HEAD_BYTES] = bytes.first_chunk().expect("a leaf is longer than its header");
        let (frame, base_width) = Frame::read(head[3] & 31, head[2], &bytes[HEAD_BYTES..]);
        let grain = if head[3] & COARSE == 0 { Grain::Fine } else { Grain::Coarse };
        let width = usize::from(head[3] >> 5 & 3) + 1;
        let mut count = usize::from(u16_at(head, 0));
        if count == two_columns::COUNT_SAID_MAX {
            cold_path();
            count = (bytes.len() - HEAD_BYTES - base_width) / (width + frame.width);
        }
        let origin = u32_at(head, 4);
        let places_at = HEAD_BYTES + base_width;
        Layout { count, frame, grain, origin, width, places_at, scores_at: places_at + count * width }
    }

    fn write(&self, target: &mut Vec<u8>) {
        let coarse = if self.grain == Grain::Coarse { COARSE } else { 0 };
        target.extend_from_slice(&two_columns::said(self.count));
        target.push(self.frame.widths());
        target.push(self.frame.scale() | (self.width as u8 - 1) << 5 | coarse);
        target.extend_from_slice(&self.origin.to_le_bytes());
        self.frame.write_base(target);
    }

    fn place_at(&self, index: usize) -> usize {
        debug_assert!(index <= self.count, "place {index} of {}", self.count);
        self.places_at + index * self.width
    }

    fn score_at(&self, index: usize) -> usize {
        self.scores_at + index * self.frame.width
    }

    fn end(&self) -> usize {
        self.score_at(self.count)
    }

    /// What is stored for a place; None where the leaf cannot say it.
    #[inline]
    fn code(&self, place: u32) -> Option<u64> {
        let code = u64::from(place.checked_sub(self.origin)? >> self.grain.shift());
        fits(code, self.width).then_some(code)
    }
}

/// A leaf, to read.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

impl<'a> Placed<'a> {
    #[inline(always)]
    pub(crate) fn open(bytes: &'a [u8]) -> Placed<'a> {
        Placed { bytes, layout: Layout::read(bytes) }
    }

    pub(crate) fn count(&self) -> usize {
        self.layout.count
    }

    /// The entries at this place, as exactly as places are kept.
    #[inline(always)]
    pub(crate) fn at(&self, place: u32) -> Range<usize> {
        let Some(code) = self.layout.code(place) else { return 0..0 };
        let start = self.count_below(code);
        let mut end = start;
        while end < self.count() && self.place_code(end) == code {
            end += 1;
        }
        start..end
    }

    /// The score at this place, if it is that of one entry.
    #[inline]
    pub(crate) fn candidate(&self, place: u32) -> Candidate {
        let here = self.at(place);
        match here.len() {
            0 => Candidate::None,
            1 => Candidate::One(self.score(here.start)),
            _ => Candidate::Several,
        }
    }

    #[inline]
    pub(crate) fn score(&self, index: usize) -> f64 {
        let (at, width) = (self.layout.score_at(index), self.layout.frame.width);
        self.layout.frame.score(read_code(self.bytes, at, width))
    }

    /// The least place that the entry may have.
    pub(crate) fn place(&self, index: usize) -> u32 {
        self.layout.origin + ((self.place_code(index) as u32) << self.layout.grain.shift())
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + use<'a> {
        let leaf = *self;
        (0..leaf.count()).map(move |index| Entry { place: leaf.place(index), score: leaf.score(index) })
    }

    #[inline]
    fn place_code(&self, index: usize) -> u64 {
        read_code(self.bytes, self.layout.place_at(index), self.layout.width)
    }

    #[inline]
    fn count_below(&self, code: u64) -> usize {
        count_below(self.bytes, self.layout.place_at(0), self.layout.width, self.count(), code)
    }
}

/// A leaf that covers `range`. The entries' places rise.
pub(crate) fn build(entries: &[Entry], range: OrderRange, grain: Grain) -> Block {
    let scores: Vec<f64> = entries.iter().map(|entry| entry.score).collect();
    let frame = Frame::fit(&scores);
    let span = u64::from(range.last - range.first) >> grain.shift();
    let (width, places_at) = (bytes_of(span).max(1), HEAD_BYTES + frame.base_width());
    let scores_at = places_at + entries.len() * width;
    let layout =
        Layout { count: entries.len(), frame, grain, origin: range.first, width, places_at, scores_at };
    assert!(matches!(width, 1..=4), "places of {width} bytes");
    debug_assert!(entries.is_sorted_by_key(|entry| entry.place), "places rise");
    debug_assert!(entries.iter().all(|entry| (range.first..=range.last).contains(&entry.place)));
    let mut leaf = Vec::with_capacity(layout.end());
    layout.write(&mut leaf);
    leaf.resize(layout.end(), 0);
    for (index, entry) in entries.iter().enumerate() {
        let place = layout.code(entry.place).expect("the leaf covers its entries");
        let score = frame.code(entry.score).expect("the frame was fitted to these scores");
        write_code(&mut leaf, layout.place_at(index), layout.width, place);
        write_code(&mut leaf, layout.score_at(index), frame.width, score);
    }
    Block::from_slice(&leaf)
}

/// Adds an entry to the leaf that covers `range`.
pub(crate) fn insert(block: &mut Block, range: OrderRange, entry: Entry) {
    let leaf = Placed::open(block);
    let layout = leaf.layout;
    let (Some(place), Some(score)) = (layout.code(entry.place), layout.frame.code(entry.score)) else {
        let mut entries: Vec<Entry> = leaf.entries().collect();
        let at = entries.partition_point(|other| other.place <= coarsened(entry.place, layout.grain));
        entries.insert(at, entry);
        *block = build(&entries, range, layout.grain);
        return;
    };
    let index = leaf.count_below(place + 1);
    // It begins behind its range where it was given that of a leaf in front of it, which has become empty.
    debug_assert!(layout.origin >= range.first, "a leaf begins in its range");
    let codes = [(layout.width, place), (layout.frame.width, score)];
    two_columns::insert(block, layout.place_at(0), layout.count, index, codes);
}

/// Takes an entry out.
pub(crate) fn remove(block: &mut Block, index: usize) {
    let layout = Placed::open(block).layout;
    assert!(index < layout.count, "entry {index} of {}", layout.count);
    let widths = [layout.width, layout.frame.width];
    two_columns::remove(block, layout.place_at(0), layout.count, index, widths);
}

/// Gives an entry another score.
pub(crate) fn set_score(block: &mut Block, range: OrderRange, index: usize, score: f64) {
    let leaf = Placed::open(block);
    let layout = leaf.layout;
    assert!(index < layout.count, "score {index} of {}", layout.count);
    if let Some(code) = layout.frame.code(score) {
        return write_code(block.make_mut(), layout.score_at(index), layout.frame.width, code);
    }
    let mut entries: Vec<Entry> = leaf.entries().collect();
    entries[index].score = score;
    *block = build(&entries, range, layout.grain);
}

/// Cuts the leaf that covers `range` in two about equal parts; where the right one begins. None where all
/// entries stand at one place.
pub(crate) fn split(block: &mut Block, range: OrderRange) -> Option<(u32, Block)> {
    let leaf = Placed::open(block);
    // A leaf that cannot be split gets here for each new entry, so this is tested first.
    if leaf.place_code(0) == leaf.place_code(leaf.count() - 1) {
        return None;
    }
    let entries: Vec<Entry> = leaf.entries().collect();
    let middle = entries[entries.len() / 2].place;
    let mut at = entries.partition_point(|entry| entry.place < middle);
    if at == 0 {
        at = entries.partition_point(|entry| entry.place <= middle);
    }
    let cut = entries.get(at)?.place;
    assert!(at > 0 && range.first < cut && cut <= range.last, "a cut at {cut} of {range:?}");
    let grain = leaf.layout.grain;
    let right = build(&entries[at..], OrderRange { first: cut, last: range.last }, grain);
    *block = build(&entries[..at], OrderRange { first: range.first, last: cut - 1 }, grain);
    Some((cut, right))
}

/// Both leaves as one that covers `range`.
pub(crate) fn joined(left: &Block, right: &Block, range: OrderRange) -> Block {
    let (left, right) = (Placed::open(left), Placed::open(right));
    debug_assert_eq!(left.layout.grain, right.layout.grain, "one index keeps places in one way");
    let entries: Vec<Entry> = left.entries().chain(right.entries()).collect();
    build(&entries, range, left.layout.grain)
}

fn coarsened(place: u32, grain: Grain) -> u32 {
    place >> grain.shift() << grain.shift()
}
