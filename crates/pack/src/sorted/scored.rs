//! The scored leaf: entries of a score and a member, in the order of both, in one run of bytes. It is the
//! leaf of a sorted set's tree ([`crate::sorted`]) and, by itself, a small sorted set inside its keyspace
//! entry.
//!
//! ```text
//! +-------+--------+-------+--------+-----------+--------+---------------+----------------+---------------+
//! | count | widths | scale | prefix | base of   | prefix | scores, one   | lengths, one   | rests of      |
//! | u8    | u8     | u8    | length | scores    |        | code each     | code each      | members, back |
//! |       |        |       | u8     | 0 to 8    |        | (`score.rs`)  | (`lengths.rs`) | to back       |
//! +-------+--------+-------+--------+-----------+--------+---------------+----------------+---------------+
//!
//! widths: bits 0..4 bytes of a score's code | bits 4..8 bytes of the base
//! scale:  bits 0..5 the scores' scale | bits 5..7 width of a length: 0 = 1 byte, 1 = 2, 2 = 4
//! ```
//!
//! What all members of a leaf begin with stands once, in front; the rest of a member that is the text of an
//! integer is that integer in 1 to 8 bytes. `player:7` with a score of 100 and `player:300` with 101: `02 01
//! 00 07 | | 706C617965723A | 64 65 | F8 F9 | 07 2C01`: 1 + 1 + 1 bytes for the first, 1 + 1 + 2 for the
//! second.
//!
//! The prefix ends before a number that all members share the beginning of, so that the numbers stay whole,
//! but behind that number's leading zeros, which no integer could keep. A member with another beginning makes
//! the leaf be written anew with a shorter prefix; splits and joins look for a longer one, and so does a leaf
//! without any while it is young.
//!
//! A search compares codes of scores (integers) by halves, and members only where scores are equal. An edit
//! moves what lies behind it, at most 4 KB. Limits: 255 entries; a leaf of the tree is split beyond 128, or
//! beyond 4 KB. Cost beside the rests of members: a score's code and a byte of length for each; a leaf 4
//! bytes, base, prefix, and its block's header.
use crate::code::fixed_width::{count_below, read_code, write_code};
use crate::code::lengths::{Extent, Stored, Width};
use crate::code::probe::{Probe, strip_prefix};
use crate::code::score::{Frame, Span};
use crate::memory::block::Block;
use crate::memory::buffer::Buffer;
use crate::sorted::member::{Bound, Edge, Entry, Member, Needle};
use base::Item;
use base::text::I64Text;
use std::cmp::Ordering;
use std::ops::Range;

/// A leaf of the tree with more entries than this is split.
pub(crate) const COUNT_MAX: usize = 128;
/// A leaf of the tree with more bytes than this is split, unless it holds one entry.
pub(crate) const BYTES_MAX: usize = 4096;

const HEAD_BYTES: usize = 4;
/// So many members of one score are looked at one after the other; among more the search is by halves.
const NEAR: usize = 6;
const PREFIX_MAX: usize = u8::MAX as usize;

/// Where each part of a leaf begins. It is computed once, because a search needs all of it.
#[derive(Clone, Copy, Debug)]
struct Layout {
    count: usize,
    frame: Frame,
    lens: Width,
    prefix_len: usize,
    scores_at: usize,
    lens_at: usize,
    members_at: usize,
}

impl Layout {
    const EMPTY: Layout = Layout::new(0, Frame::EMPTY, Width::One, 0, 0);

    #[inline(always)]
    const fn new(count: usize, frame: Frame, lens: Width, base_width: usize, prefix_len: usize) -> Layout {
        let scores_at = HEAD_BYTES + base_width + prefix_len;
        let lens_at = scores_at + count * frame.width;
        Layout {
            count,
            frame,
            lens,
            prefix_len,
            scores_at,
            lens_at,
            members_at: lens_at + count * lens.bytes(),
        }
    }

    /// The layout of a leaf of so many entries with these scores.
    fn of(count: usize, frame: Frame, lens: Width, prefix_len: usize) -> Layout {
        Layout::new(count, frame, lens, frame.base_width(), prefix_len)
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Layout {
        let Some([count, widths, scale, prefix_len]) = bytes.first_chunk::<HEAD_BYTES>() else {
            return Layout::EMPTY;
        };
        let (frame, base_width) = Frame::read(scale & 31, *widths, &bytes[HEAD_BYTES..]);
        let lens = Width::from_bits(scale >> 5);
        Layout::new(usize::from(*count), frame, lens, base_width, usize::from(*prefix_len))
    }

    /// The header and the base.
    fn write(&self, target: &mut Vec<u8>) {
        let scale = self.frame.scale() | self.lens.to_bits() << 5;
        target.extend_from_slice(&[self.count as u8, self.frame.widths(), scale, self.prefix_len as u8]);
        self.frame.write_base(target);
    }

    #[inline]
    fn prefix(&self) -> Range<usize> {
        self.scores_at - self.prefix_len..self.scores_at
    }

    #[inline]
    fn score_at(&self, index: usize) -> usize {
        debug_assert!(index <= self.count, "score {index} of {}", self.count);
        self.scores_at + index * self.frame.width
    }

    #[inline]
    fn len_at(&self, index: usize) -> usize {
        debug_assert!(index <= self.count, "length {index} of {}", self.count);
        self.lens_at + index * self.lens.bytes()
    }

    /// Where the rest of member `index` begins.
    #[inline]
    fn rest_at(&self, bytes: &[u8], index: usize) -> usize {
        self.members_at + self.lens.sum(&bytes[self.lens_at..self.len_at(index)])
    }
}

/// A leaf, to read. No bytes at all are a leaf without entries.
#[derive(Clone, Copy)]
pub(crate) struct Scored<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

impl<'a> Scored<'a> {
    #[inline(always)]
    pub(crate) fn open(bytes: &'a [u8]) -> Scored<'a> {
        Scored { bytes, layout: Layout::read(bytes) }
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.layout.count
    }

    #[inline]
    fn code(&self, index: usize) -> u64 {
        read_code(self.bytes, self.layout.score_at(index), self.layout.frame.width)
    }

    #[inline(always)]
    pub(crate) fn score(&self, index: usize) -> f64 {
        assert!(index < self.count(), "score {index} of {}", self.count());
        self.layout.frame.score(self.code(index))
    }

    pub(crate) fn member(&self, index: usize) -> Member<'a> {
        assert!(index < self.count(), "member {index} of {}", self.count());
        self.member_at(index, self.layout.rest_at(self.bytes, index)).0
    }

    pub(crate) fn entry(&self, index: usize) -> Entry<'a> {
        Entry { score: self.score(index), member: self.member(index) }
    }

    /// Whether entry `index` comes before a bound. The member is looked at only where the scores are equal.
    #[inline]
    pub(crate) fn is_before(&self, index: usize, bound: &Bound<'_>) -> bool {
        let score = self.score(index);
        if score != bound.score { score < bound.score } else { bound.is_after(self.entry(index)) }
    }

    /// The member whose rest begins there, and where the next one's does.
    #[inline]
    fn member_at(&self, index: usize, at: usize) -> (Member<'a>, usize) {
        let (rest, next) = self.rest_from(index, at);
        (Member::new(self.prefix(), rest), next)
    }

    /// The rest of member `index`, which begins there, and where the next one begins.
    #[inline(always)]
    fn rest_from(&self, index: usize, at: usize) -> (Item<'a>, usize) {
        let extent = self.layout.lens.read(self.bytes, self.layout.len_at(index));
        (extent.item(&self.bytes[at..at + extent.len]), at + extent.len)
    }

    fn prefix(&self) -> &'a [u8] {
        self.bytes.get(self.layout.prefix()).unwrap_or_default()
    }

    /// Entries from `index` on, upwards.
    pub(crate) fn entries(&self, index: usize) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let leaf = *self;
        let mut at = if index < leaf.count() { leaf.layout.rest_at(leaf.bytes, index) } else { 0 };
        let prefix = leaf.prefix();
        (index..leaf.count()).map(move |index| {
            let (rest, next) = leaf.rest_from(index, at);
            at = next;
            Entry { score: leaf.score(index), member: Member::new(prefix, rest) }
        })
    }

    /// Entries from `index` on, downwards.
    pub(crate) fn entries_down(&self, index: usize) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let leaf = *self;
        let mut end = leaf.layout.rest_at(leaf.bytes, index + 1);
        let prefix = leaf.prefix();
        (0..=index).rev().map(move |index| {
            end -= leaf.layout.lens.read(leaf.bytes, leaf.layout.len_at(index)).len;
            Entry { score: leaf.score(index), member: Member::new(prefix, leaf.rest_from(index, end).0) }
        })
    }

    /// How many entries come before the bound that `score` and `edge` make.
    #[inline]
    pub(crate) fn position(&self, score: f64, edge: Edge<'_>) -> usize {
        let span = self.layout.frame.span(score);
        match edge {
            Edge::Least => self.count_below(0, span.start),
            Edge::Greatest => self.count_below(0, span.end),
            Edge::Before(member) => self.run_position(span, member, Ordering::is_lt),
            Edge::After(member) => self.run_position(span, member, Ordering::is_le),
        }
    }

    /// Which entry has this score, or one that is equal to it, and this member.
    #[inline]
    pub(crate) fn find(&self, score: f64, member: &[u8]) -> Option<usize> {
        let layout = &self.layout;
        let rest = strip_prefix(member, self.prefix())?;
        let span = layout.frame.span_of_own(score)?;
        let start = self.count_below(0, span.start);
        if start == layout.count || self.code(start) >= span.end {
            return None;
        }
        let item = Item::classify(rest);
        // Nearly always lengths take a byte, and few members have the same score.
        let (Width::One, Some(wanted)) = (layout.lens, Width::byte_of(Extent::of(&item))) else {
            return self.find_in_run(span, member);
        };
        let probe = Probe::of(&item);
        let lens = &self.bytes[layout.lens_at..layout.members_at];
        let mut at = layout.rest_at(self.bytes, start);
        for (index, len) in (start..layout.count.min(start + NEAR)).zip(lens[start..].iter().copied()) {
            if len == wanted && probe.is_at(self.bytes, at) {
                return Some(index);
            }
            if index + 1 == layout.count || self.code(index + 1) >= span.end {
                return None;
            }
            at += Width::len_of_byte(len);
        }
        self.find_in_run(span, member)
    }

    /// [`Scored::find`] by halves, for many members of one score or long members.
    #[inline(never)]
    fn find_in_run(&self, span: Span, member: &[u8]) -> Option<usize> {
        let at = self.run_position(span, member, Ordering::is_lt);
        (at < self.count() && self.code(at) < span.end && self.member(at).is(member)).then_some(at)
    }

    /// Which entry has this member, whatever its score: looks at all of them.
    pub(crate) fn find_member(&self, member: &[u8]) -> Option<usize> {
        if self.count() == 0 {
            return None;
        }
        let item = Item::classify(strip_prefix(member, self.prefix())?);
        let (layout, extent_wanted) = (&self.layout, Extent::of(&item));
        if Width::for_extent(extent_wanted) > layout.lens {
            return None;
        }
        let probe = Probe::of(&item);
        let mut at = layout.members_at;
        for index in 0..layout.count {
            let extent = layout.lens.read(self.bytes, layout.len_at(index));
            if extent == extent_wanted && probe.is_at(self.bytes, at) {
                return Some(index);
            }
            at += extent.len;
        }
        None
    }

    /// How many codes from entry `from` on are below `limit`, all those before `from` being so.
    #[inline]
    fn count_below(&self, from: usize, limit: u64) -> usize {
        let (at, width) = (self.layout.score_at(from), self.layout.frame.width);
        from + count_below(self.bytes, at, width, self.count() - from, limit)
    }

    /// How many entries are of a lesser score than the span's, or of an equal one and a member that compares
    /// so.
    #[inline]
    fn run_position(&self, span: Span, member: &[u8], is_before: fn(Ordering) -> bool) -> usize {
        let start = self.count_below(0, span.start);
        if start == self.count() || self.code(start) >= span.end {
            return start;
        }
        let (mut low, mut high) = (start, self.run_end(start, span));
        let Some(rest) = strip_prefix(member, self.prefix()) else {
            return if is_before(self.prefix().cmp(member)) { high } else { low };
        };
        let needle = Needle::new(rest);
        let mut low_at = self.layout.rest_at(self.bytes, low);
        while low < high {
            let middle = low.midpoint(high);
            let (rest, next_at) = self.rest_from(middle, low_at + self.rests_len(low..middle));
            if is_before(needle.compare(rest)) {
                (low, low_at) = (middle + 1, next_at);
            } else {
                high = middle;
            }
        }
        low
    }

    /// Where the run that begins at `start` ends: nearly always soon.
    #[inline]
    fn run_end(&self, start: usize, span: Span) -> usize {
        let near = self.count().min(start + NEAR);
        let end = (start + 1..near).find(|index| self.code(*index) >= span.end);
        end.unwrap_or_else(|| self.count_below(near, span.end))
    }

    /// The bytes that the rests of some entries take.
    #[inline]
    fn rests_len(&self, range: Range<usize>) -> usize {
        self.layout.lens.sum(self.lens(&range))
    }

    fn scores(&self, range: Range<usize>) -> Vec<f64> {
        range.map(|index| self.score(index)).collect()
    }

    fn part(self, range: Range<usize>) -> Part<'a> {
        Part { leaf: self, range }
    }

    fn whole(self) -> Part<'a> {
        self.part(0..self.count())
    }

    /// The codes of lengths of some entries.
    fn lens(&self, range: &Range<usize>) -> &'a [u8] {
        &self.bytes[self.layout.len_at(range.start)..self.layout.len_at(range.end)]
    }

    /// The rests of some entries.
    fn rests(&self, range: &Range<usize>) -> &'a [u8] {
        let start = self.layout.rest_at(self.bytes, range.start);
        &self.bytes[start..start + self.layout.lens.sum(self.lens(range))]
    }

    /// Where to cut the leaf, which has two entries and more, for two of about the same size.
    pub(crate) fn middle(&self) -> usize {
        assert!(self.count() > 1, "a leaf of one entry cannot be cut");
        let overhead = self.layout.frame.width + self.layout.lens.bytes();
        let size = |index: usize| overhead + self.layout.lens.read(self.bytes, self.layout.len_at(index)).len;
        let half = (0..self.count()).map(size).sum::<usize>() / 2;
        let (mut sum, mut cut) = (0, 0);
        while sum < half {
            sum += size(cut);
            cut += 1;
        }
        cut.clamp(1, self.count() - 1)
    }

    /// Whether all of these members have more in common than the leaf's prefix.
    fn shares_more(&self, range: &Range<usize>) -> bool {
        let first_byte = |entry: Entry<'_>| entry.member.rest().text(&mut I64Text::new()).first().copied();
        let mut bytes = self.entries(range.start).take(range.len()).map(first_byte);
        let first = bytes.next().flatten();
        first.is_some() && bytes.all(|byte| byte == first)
    }
}

/// How many entries a leaf has.
#[inline]
pub(crate) fn count(leaf: &[u8]) -> usize {
    leaf.first().map_or(0, |count| usize::from(*count))
}

/// The part of a new entry that a leaf cannot say as it is.
enum Misfit {
    Score,
    Member,
}

/// In builds with checks: a leaf ends where its last member does, and its entries rise by score and member.
fn check(bytes: &[u8]) {
    if cfg!(debug_assertions) {
        let leaf = Scored::open(bytes);
        let end = if bytes.is_empty() { HEAD_BYTES } else { bytes.len() };
        assert_eq!(leaf.layout.rest_at(bytes, leaf.count()), end, "a leaf ends where its last member does");
        let entries = leaf.entries(0).map(|entry| (entry.score, entry.member.to_vec()));
        assert!(entries.is_sorted_by(|a, b| a.0 < b.0 || (a.0 == b.0 && a.1 < b.1)), "entries rise");
    }
}

/// Inserts before entry `index`, where the new entry must belong in the order.
pub(crate) fn insert<B: Buffer>(buffer: &mut B, index: usize, score: f64, member: &[u8]) {
    let Err(misfit) = try_insert(buffer, index, score, member) else { return check(buffer.bytes()) };
    let leaf = Scored::open(buffer.bytes());
    let fresh = match misfit {
        Misfit::Score => {
            let old = leaf.scores(0..leaf.count());
            let frame = Frame::fit(&[&old[..], &[score]].concat());
            assemble(&[leaf.whole()], &old, frame)
        }
        Misfit::Member => {
            let mut entries: Vec<Entry<'_>> = leaf.entries(0).collect();
            entries.insert(index, Entry { score, member: Member::of(member) });
            build(&entries)
        }
    };
    buffer.replace(&fresh);
    if matches!(misfit, Misfit::Score) {
        insert(buffer, index, score, member);
    }
}

/// Inserts where the leaf can say the new entry as it is.
#[inline]
fn try_insert<B: Buffer>(buffer: &mut B, index: usize, score: f64, member: &[u8]) -> Result<(), Misfit> {
    let bytes = buffer.bytes();
    let layout = Layout::read(bytes);
    assert!(index <= layout.count && layout.count < 255, "insert {index} of {}", layout.count);
    if layout.count == 0 {
        return Err(Misfit::Member);
    }
    let rest = strip_prefix(member, &bytes[layout.prefix()]).ok_or(Misfit::Member)?;
    let stored = Stored::new(Item::classify(rest));
    let n = stored.extent.len;
    if Width::for_extent(stored.extent) > layout.lens || wants_prefix(bytes, &layout, member) {
        return Err(Misfit::Member);
    }
    let code = layout.frame.code(score).ok_or(Misfit::Score)?;
    let (w, lw, old_len) = (layout.frame.width, layout.lens.bytes(), bytes.len());
    let (score_at, len_at, rest_at) =
        (layout.score_at(index), layout.len_at(index), layout.rest_at(bytes, index));
    debug_assert!(
        score_at <= len_at && len_at <= rest_at && rest_at <= old_len,
        "the columns in their order"
    );
    buffer.set_len(old_len + w + lw + n);
    let bytes = buffer.bytes_mut();
    bytes.copy_within(rest_at..old_len, rest_at + w + lw + n);
    bytes.copy_within(len_at..rest_at, len_at + w + lw);
    bytes.copy_within(score_at..len_at, score_at + w);
    write_code(bytes, score_at, w, code);
    layout.lens.write(bytes, len_at + w, stored.extent);
    bytes[rest_at + w + lw..rest_at + w + lw + n].copy_from_slice(stored.bytes());
    bytes[0] += 1;
    Ok(())
}

/// A leaf without a prefix looks for one whenever it has doubled, if the new member could share one with the
/// first.
fn wants_prefix(bytes: &[u8], layout: &Layout, member: &[u8]) -> bool {
    layout.prefix_len == 0
        && layout.count.is_power_of_two()
        && matches!(Scored { bytes, layout: *layout }.member(0).rest(),
            Item::Bytes(first) if common(first, member) >= 2)
}

/// Removes a range of entries.
pub(crate) fn remove<B: Buffer>(buffer: &mut B, range: Range<usize>) {
    let bytes = buffer.bytes();
    let layout = Layout::read(bytes);
    let (a, b, len) = (range.start, range.end, bytes.len());
    assert!(a <= b && b <= layout.count, "remove {a}..{b} of {}", layout.count);
    if a == b {
        return;
    }
    let rest_a = layout.rest_at(bytes, a);
    let rest_b = rest_a + layout.lens.sum(&bytes[layout.len_at(a)..layout.len_at(b)]);
    let scores = (b - a) * layout.frame.width;
    let heads = scores + (b - a) * layout.lens.bytes();
    let bytes = buffer.bytes_mut();
    bytes.copy_within(layout.score_at(b)..layout.len_at(a), layout.score_at(a));
    bytes.copy_within(layout.len_at(b)..rest_a, layout.len_at(a) - scores);
    bytes.copy_within(rest_b..len, rest_a - heads);
    bytes[0] -= (b - a) as u8;
    buffer.set_len(len - heads - (rest_b - rest_a));
    check(buffer.bytes());
}

/// Gives entry `index` another score, under which its neighbours stay its neighbours.
pub(crate) fn set_score<B: Buffer>(buffer: &mut B, index: usize, score: f64) {
    let layout = Layout::read(buffer.bytes());
    debug_assert!(index < layout.count, "score {index} of {}", layout.count);
    if let Some(code) = layout.frame.code(score) {
        return write_code(buffer.bytes_mut(), layout.score_at(index), layout.frame.width, code);
    }
    let leaf = Scored::open(buffer.bytes());
    let mut scores = leaf.scores(0..leaf.count());
    scores[index] = score;
    let fresh = assemble(&[leaf.whole()], &scores, Frame::fit(&scores));
    buffer.replace(&fresh);
}

/// Entries of a leaf, to become entries of another.
struct Part<'a> {
    leaf: Scored<'a>,
    range: Range<usize>,
}

/// A leaf of the members of these parts, which are of leaves with the same prefix and the same width of
/// lengths: lengths and rests are copied as they are.
fn assemble(parts: &[Part<'_>], scores: &[f64], frame: Frame) -> Vec<u8> {
    let like = &parts[0].leaf;
    debug_assert!(scores.len() <= 255, "{} entries of a leaf", scores.len());
    debug_assert_eq!(parts.iter().map(|part| part.range.len()).sum::<usize>(), scores.len());
    debug_assert!(parts.iter().all(|part| part.leaf.prefix() == like.prefix()), "one prefix for all");
    let layout = Layout::of(scores.len(), frame, like.layout.lens, like.layout.prefix_len);
    let rests = parts.iter().map(|part| part.leaf.rests(&part.range).len()).sum::<usize>();
    let mut leaf = Vec::with_capacity(layout.members_at + rests);
    layout.write(&mut leaf);
    leaf.extend_from_slice(like.prefix());
    write_scores(&mut leaf, &frame, scores);
    parts.iter().for_each(|part| leaf.extend_from_slice(part.leaf.lens(&part.range)));
    parts.iter().for_each(|part| leaf.extend_from_slice(part.leaf.rests(&part.range)));
    leaf
}

/// Appends the codes of scores that the frame was fitted to.
fn write_scores(leaf: &mut Vec<u8>, frame: &Frame, scores: &[f64]) {
    let start = leaf.len();
    leaf.resize(start + scores.len() * frame.width, 0);
    for (index, score) in scores.iter().enumerate() {
        let code = frame.code(*score).expect("the frame was fitted to these scores");
        write_code(leaf, start + index * frame.width, frame.width, code);
    }
}

/// Some entries of a leaf as a leaf of a tree.
pub(crate) fn part_of(leaf: Scored<'_>, range: Range<usize>) -> Block {
    if leaf.layout.lens != Width::One || leaf.shares_more(&range) {
        let entries: Vec<Entry<'_>> = leaf.entries(range.start).take(range.len()).collect();
        return block(&entries);
    }
    let scores = leaf.scores(range.clone());
    Block::fitting(&assemble(&[leaf.part(range)], &scores, Frame::fit(&scores)))
}

/// The entries of both leaves, in this order, as a leaf of a tree.
pub(crate) fn joined(left: Scored<'_>, right: Scored<'_>) -> Block {
    if left.layout.lens != right.layout.lens || left.prefix() != right.prefix() {
        let entries: Vec<Entry<'_>> = left.entries(0).chain(right.entries(0)).collect();
        return block(&entries);
    }
    let scores = [left.scores(0..left.count()), right.scores(0..right.count())].concat();
    Block::fitting(&assemble(&[left.whole(), right.whole()], &scores, Frame::fit(&scores)))
}

/// A leaf of these entries, without room.
pub(crate) fn build(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut leaf = Vec::new();
    build_into(entries, &mut leaf);
    leaf
}

/// Makes `leaf` a leaf of these entries, without room, in the place of what it held. Nothing else is
/// allocated where entries are few and their members lie together.
pub(crate) fn build_into(entries: &[Entry<'_>], leaf: &mut Vec<u8>) {
    const FEW: usize = 16;
    assert!(entries.len() <= 255, "{} entries of a leaf", entries.len());
    let (mut few, many);
    let scores = if entries.len() <= FEW {
        few = [0.0; FEW];
        few.iter_mut().zip(entries).for_each(|(slot, entry)| *slot = entry.score);
        &few[..entries.len()]
    } else {
        many = entries.iter().map(|entry| entry.score).collect::<Vec<f64>>();
        &many
    };
    let frame = Frame::fit(scores);
    let whole;
    let first = match entries.first().map(|first| first.member) {
        None => &[],
        Some(member) => match member.parts() {
            ([], Item::Bytes(text)) => text,
            _ => {
                whole = member.to_vec();
                &whole[..]
            }
        },
    };
    let prefix = &first[..prefix_len(first, entries)];
    // An integer takes fewer bytes than its text, so the longest text decides, whatever the rests read as.
    let texts = || entries.iter().map(|entry| entry.member.len() - prefix.len());
    let longest = Extent { len: texts().max().unwrap_or(0), is_int: false };
    let layout = Layout::of(entries.len(), frame, Width::for_extent(longest), prefix.len());
    leaf.clear();
    leaf.reserve(layout.members_at + texts().sum::<usize>());
    layout.write(leaf);
    leaf.extend_from_slice(prefix);
    write_scores(leaf, &frame, scores);
    leaf.resize(layout.members_at, 0);
    let mut scratch = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let stored = Stored::new(entry.member.rest_behind(prefix.len(), &mut scratch));
        layout.lens.write(leaf, layout.len_at(index), stored.extent);
        leaf.extend_from_slice(stored.bytes());
    }
    check(leaf);
}

/// The same as a leaf of a tree.
pub(crate) fn block(entries: &[Entry<'_>]) -> Block {
    Block::fitting(&build(entries))
}

/// How many bytes all members begin with in common, as far as it pays to say them once. `text` is the first
/// member's.
fn prefix_len(text: &[u8], entries: &[Entry<'_>]) -> usize {
    let Some((_, others)) = entries.split_first() else { return 0 };
    let mut len = text.len().min(PREFIX_MAX);
    for other in others {
        len = other.member.common(&text[..len]);
        if len == 0 {
            break;
        }
    }
    // One member alone shows a prefix only where a number follows it.
    let cut = before_number(&text[..len]);
    let is_alone = others.is_empty();
    if is_alone && (cut == len || len < text.len()) { 0 } else { cut }
}

/// Where the number begins that `text` ends within, its leading zeros left out; the end where it does not end
/// in one.
fn before_number(text: &[u8]) -> usize {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let start = text.len() - digits;
    start + text[start..].iter().take_while(|byte| **byte == b'0').count()
}

/// How many bytes two texts have in common at the beginning.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
#[path = "scored_properties.rs"]
pub(crate) mod properties;
