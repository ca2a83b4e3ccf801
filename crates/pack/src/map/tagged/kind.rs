//! What a tagged leaf's header says beside its note, and all that follows from it: where tags, lengths and
//! uses are, and how far an entry is from the end.
use crate::code::simd::{self, Group, LANES};
use crate::code::words::u32_at;
use std::ops::Range;

pub(super) const NOTE_BYTES: usize = 8;
pub(super) const HEAD_BYTES: usize = NOTE_BYTES + 4;
/// The header where all entries are as long.
pub(super) const ALIKE_HEAD_BYTES: usize = HEAD_BYTES + 4;
const COUNT_LIMIT: usize = 1 << 28;
const WIDTH_SHIFT: u32 = 28;
/// What stands for the width where there is none.
const ALIKE: u32 = 3;
const HAS_OUTSIDE: u32 = 1 << 30;
const HAS_USES: u32 = 1 << 31;

/// The header but for the note.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) count: usize,
    /// Bytes of a length in its column: 1, 2 or 4; 0 where there is none, because all are `alike`.
    pub(super) width: usize,
    /// The length of every entry where they have no column.
    pub(super) alike: usize,
    pub(super) has_outside: bool,
    pub(super) has_uses: bool,
}

impl Kind {
    pub(super) fn of(leaf: &[u8]) -> Kind {
        let word = u32_at(leaf, NOTE_BYTES);
        let code = word >> WIDTH_SHIFT & 3;
        let is_alike = code == ALIKE;
        Kind {
            count: word as usize & (COUNT_LIMIT - 1),
            width: if is_alike { 0 } else { 1 << code },
            alike: if is_alike { u32_at(leaf, HEAD_BYTES) as usize } else { 0 },
            has_outside: word & HAS_OUTSIDE != 0,
            has_uses: word & HAS_USES != 0,
        }
    }

    pub(super) fn store(self, leaf: &mut [u8]) {
        assert!(self.count < COUNT_LIMIT && matches!(self.width, 0 | 1 | 2 | 4));
        let code = self.width.checked_ilog2().unwrap_or(ALIKE);
        let outside = if self.has_outside { HAS_OUTSIDE } else { 0 };
        let uses = if self.has_uses { HAS_USES } else { 0 };
        let word = self.count as u32 | code << WIDTH_SHIFT | outside | uses;
        leaf[NOTE_BYTES..HEAD_BYTES].copy_from_slice(&word.to_le_bytes());
        if self.width == 0 {
            let alike = u32::try_from(self.alike).expect("an entry has less than 4 GB");
            leaf[HEAD_BYTES..ALIKE_HEAD_BYTES].copy_from_slice(&alike.to_le_bytes());
        }
    }

    /// The kind of a leaf without entries.
    pub(super) const EMPTY: Kind = Kind { count: 0, width: 0, alike: 0, has_outside: false, has_uses: false };

    /// The kind of a leaf of `count` entries, which is one or more, whose lengths are between these two.
    pub(super) fn between(count: usize, least: usize, most: usize) -> Kind {
        if least == most {
            return Kind { count, alike: most, ..Kind::EMPTY };
        }
        Kind { count, width: width_for(most), ..Kind::EMPTY }
    }

    /// The same kind, with lengths that can say `len` too: those of a leaf are alike until one comes that is
    /// not.
    pub(super) fn admitting(self, len: usize) -> Kind {
        match self.width {
            0 if self.count == 0 => Kind { alike: len, ..self },
            0 if self.alike == len => self,
            0 => Kind { width: width_for(len.max(self.alike)), alike: 0, ..self },
            width => Kind { width: width.max(width_for(len)), ..self },
        }
    }

    /// The same kind with one more entry, of `len` bytes.
    pub(super) fn with(self, len: usize) -> Kind {
        Kind { count: self.count + 1, ..self.admitting(len) }
    }

    /// The header's bytes.
    pub(super) fn head_bytes(self) -> usize {
        if self.width == 0 { ALIKE_HEAD_BYTES } else { HEAD_BYTES }
    }

    /// Bytes of a group: its tags and its lengths.
    pub(super) fn group_bytes(self) -> usize {
        LANES * (1 + self.width)
    }

    pub(super) fn groups(self) -> usize {
        self.count.div_ceil(LANES)
    }

    /// Header, groups and uses.
    pub(super) fn front_bytes(self) -> usize {
        self.uses().end
    }

    /// Where the uses are.
    pub(super) fn uses(self) -> Range<usize> {
        let start = self.group_at(self.groups());
        start..start + if self.has_uses { self.count } else { 0 }
    }

    pub(super) fn group_at(self, group: usize) -> usize {
        self.head_bytes() + group * self.group_bytes()
    }

    pub(super) fn tag_at(self, index: usize) -> usize {
        self.group_at(index / LANES) + index % LANES
    }

    fn len_at(self, index: usize) -> usize {
        self.group_at(index / LANES) + LANES + index % LANES * self.width
    }

    pub(super) fn len(self, leaf: &[u8], index: usize) -> usize {
        debug_assert!(index < self.count);
        if self.width == 0 {
            return self.alike;
        }
        let at = self.len_at(index);
        read_len(&leaf[at..at + self.width])
    }

    pub(super) fn set_lane(self, leaf: &mut [u8], index: usize, tag: u8, len: usize) {
        leaf[self.tag_at(index)] = tag;
        if self.width == 0 {
            assert!(len == self.alike, "a length of {len} where all are {}", self.alike);
            return;
        }
        assert!(len < 1 << (8 * self.width), "a length of {len} in {} bytes", self.width);
        let (at, len) = (self.len_at(index), len as u32);
        match self.width {
            1 => leaf[at] = len as u8,
            2 => leaf[at..at + 2].copy_from_slice(&(len as u16).to_le_bytes()),
            _ => leaf[at..at + 4].copy_from_slice(&len.to_le_bytes()),
        }
    }

    /// Shows the tag and the length of every entry to `tell`, in order of insertion.
    #[inline(always)]
    pub(super) fn for_each_lane(self, leaf: &[u8], mut tell: impl FnMut(u8, usize)) {
        let mut left = self.count;
        let groups = &leaf[self.group_at(0)..self.group_at(self.groups())];
        for group in groups.chunks_exact(self.group_bytes()) {
            let (tags, lens) = group.split_at(LANES);
            let tags = &tags[..left.min(LANES)];
            match self.width {
                0 => tags.iter().for_each(|tag| tell(*tag, self.alike)),
                1 => tags.iter().zip(lens).for_each(|(tag, len)| tell(*tag, usize::from(*len))),
                width => {
                    tags.iter()
                        .zip(lens.chunks_exact(width))
                        .for_each(|(tag, len)| tell(*tag, read_len(len)));
                }
            }
            left -= tags.len();
        }
    }

    /// Takes out one lane: those behind it move up by one, and the last is cleared.
    pub(super) fn close_lane(self, leaf: &mut [u8], index: usize) {
        debug_assert!(index < self.count, "lane {index} of {}", self.count);
        let (first, last) = (index / LANES, (self.count - 1) / LANES);
        let mut lane = index % LANES;
        for group in first..=last {
            let at = self.group_at(group);
            // The last lane takes the first of the next group.
            let next = (group < last).then(|| self.group_at(group + 1));
            close_byte(leaf, at, lane, next);
            match self.width {
                0 => {}
                1 => close_byte(leaf, at + LANES, lane, next.map(|next| next + LANES)),
                width => {
                    let (lens, end) = (at + LANES, at + self.group_bytes());
                    leaf.copy_within(lens + (lane + 1) * width..end, lens + lane * width);
                    match next {
                        Some(next) => leaf.copy_within(next + LANES..next + LANES + width, end - width),
                        None => leaf[end - width..end].fill(0),
                    }
                }
            }
            lane = 0;
        }
    }

    /// Whether a lane holds neither tag nor length.
    pub(super) fn is_empty_lane(self, leaf: &[u8], index: usize) -> bool {
        let at = self.len_at(index);
        leaf[self.tag_at(index)] == 0 && leaf[at..at + self.width].iter().all(|byte| *byte == 0)
    }

    /// The sum of the lengths of `group`'s first `lanes` entries.
    #[inline(always)]
    pub(super) fn sum_first(self, leaf: &[u8], group: usize, lanes: usize) -> usize {
        debug_assert!(group < self.groups() && lanes <= LANES, "{lanes} of group {group}");
        if self.width == 0 {
            return lanes * self.alike;
        }
        let at = self.group_at(group) + LANES;
        let lens = &leaf[at..at + LANES * self.width];
        match self.width {
            1 => simd::sum_first(group_of(leaf, at), lanes) as usize,
            // A width that is known is summed several at a time.
            2 => {
                lens.as_chunks().0[..lanes].iter().map(|len| u32::from(u16::from_le_bytes(*len))).sum::<u32>()
                    as usize
            }
            _ => {
                lens.as_chunks().0[..lanes].iter().map(|len| u64::from(u32::from_le_bytes(*len))).sum::<u64>()
                    as usize
            }
        }
    }

    /// The sum of the lengths of the first `count` entries.
    pub(super) fn sum_before(self, leaf: &[u8], count: usize) -> usize {
        if self.width == 0 {
            return count * self.alike;
        }
        let whole: usize = (0..count / LANES).map(|group| self.sum_first(leaf, group, LANES)).sum();
        if count.is_multiple_of(LANES) {
            return whole;
        }
        whole + self.sum_first(leaf, count / LANES, count % LANES)
    }
}

/// The least width for entries of at most `len` bytes.
fn width_for(len: usize) -> usize {
    match len {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        _ => 4,
    }
}

/// Takes byte `lane` out of the sixteen at `at`; the byte at `next`, or 0, comes in behind them.
fn close_byte(leaf: &mut [u8], at: usize, lane: usize, next: Option<usize>) {
    debug_assert!(lane < LANES, "lane {lane} of a group");
    let last = next.map_or(0, |next| u128::from(leaf[next]));
    let group: &mut Group = (&mut leaf[at..at + LANES]).try_into().expect("16 bytes");
    let bytes = u128::from_le_bytes(*group);
    let before = (1 << (8 * lane)) - 1;
    *group = (bytes & before | bytes >> 8 & !before | last << 120).to_le_bytes();
}

fn read_len(bytes: &[u8]) -> usize {
    match *bytes {
        [a] => a as usize,
        [a, b] => u16::from_le_bytes([a, b]) as usize,
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
        _ => unreachable!("a length takes 1, 2 or 4 bytes"),
    }
}

#[inline(always)]
pub(super) fn group_of(leaf: &[u8], at: usize) -> &Group {
    leaf[at..at + LANES].try_into().expect("16 bytes")
}
