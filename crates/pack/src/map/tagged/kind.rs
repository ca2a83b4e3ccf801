//! The second word of a tagged leaf's header, and all that follows from it: where tags, lengths and uses are,
//! and how far an entry is from the end.
use crate::code::simd::{self, Group, LANES};
use std::ops::Range;

pub(super) const NOTE_BYTES: usize = 8;
pub(super) const HEAD_BYTES: usize = NOTE_BYTES + 4;
const COUNT_LIMIT: usize = 1 << 28;
const WIDTH_SHIFT: u32 = 28;
const HAS_OUTSIDE: u32 = 1 << 30;
const HAS_USES: u32 = 1 << 31;

/// The second word of the header.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) count: usize,
    /// Bytes of a length: 1, 2 or 4.
    pub(super) width: usize,
    pub(super) has_outside: bool,
    pub(super) has_uses: bool,
}

impl Kind {
    pub(super) fn of(leaf: &[u8]) -> Kind {
        let word = u32::from_le_bytes(leaf[NOTE_BYTES..HEAD_BYTES].try_into().expect("4 bytes"));
        Kind {
            count: word as usize & (COUNT_LIMIT - 1),
            width: 1 << (word >> WIDTH_SHIFT & 3),
            has_outside: word & HAS_OUTSIDE != 0,
            has_uses: word & HAS_USES != 0,
        }
    }

    pub(super) fn store(self, leaf: &mut [u8]) {
        assert!(self.count < COUNT_LIMIT && matches!(self.width, 1 | 2 | 4));
        let outside = if self.has_outside { HAS_OUTSIDE } else { 0 };
        let uses = if self.has_uses { HAS_USES } else { 0 };
        let word = self.count as u32 | self.width.ilog2() << WIDTH_SHIFT | outside | uses;
        leaf[NOTE_BYTES..HEAD_BYTES].copy_from_slice(&word.to_le_bytes());
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
        let start = HEAD_BYTES + self.groups() * self.group_bytes();
        start..start + if self.has_uses { self.count } else { 0 }
    }

    pub(super) fn group_at(self, group: usize) -> usize {
        HEAD_BYTES + group * self.group_bytes()
    }

    pub(super) fn tag_at(self, index: usize) -> usize {
        self.group_at(index / LANES) + index % LANES
    }

    pub(super) fn len_at(self, index: usize) -> usize {
        self.group_at(index / LANES) + LANES + index % LANES * self.width
    }

    pub(super) fn len(self, leaf: &[u8], index: usize) -> usize {
        debug_assert!(index < self.count);
        let at = self.len_at(index);
        read_len(&leaf[at..at + self.width])
    }

    pub(super) fn set_lane(self, leaf: &mut [u8], index: usize, tag: u8, len: usize) {
        assert!(len <= self.len_max(), "a length of {len} in {} bytes", self.width);
        leaf[self.tag_at(index)] = tag;
        let at = self.len_at(index);
        leaf[at..at + self.width].copy_from_slice(&(len as u32).to_le_bytes()[..self.width]);
    }

    /// Shows the tag and the length of every entry to `tell`, in order of insertion.
    #[inline(always)]
    pub(super) fn for_each_lane(self, leaf: &[u8], mut tell: impl FnMut(u8, usize)) {
        let mut left = self.count;
        for group in leaf[HEAD_BYTES..][..self.groups() * self.group_bytes()].chunks_exact(self.group_bytes())
        {
            let (tags, lens) = group.split_at(LANES);
            let tags = &tags[..left.min(LANES)];
            match self.width {
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

    pub(super) fn len_max(self) -> usize {
        (1 << (8 * self.width)) - 1
    }

    /// The sum of the lengths of `group`'s first `lanes` entries.
    #[inline(always)]
    pub(super) fn sum_first(self, leaf: &[u8], group: usize, lanes: usize) -> usize {
        debug_assert!(group < self.groups() && lanes <= LANES, "{lanes} of group {group}");
        let at = self.group_at(group) + LANES;
        if self.width == 1 {
            return simd::sum_first(group_of(leaf, at), lanes) as usize;
        }
        leaf[at..at + lanes * self.width].chunks_exact(self.width).map(read_len).sum()
    }

    /// The sum of the lengths of the first `count` entries.
    pub(super) fn sum_before(self, leaf: &[u8], count: usize) -> usize {
        let whole: usize = (0..count / LANES).map(|group| self.sum_first(leaf, group, LANES)).sum();
        if count.is_multiple_of(LANES) {
            return whole;
        }
        whole + self.sum_first(leaf, count / LANES, count % LANES)
    }

    /// The least width for entries of at most `len` bytes.
    pub(super) fn width_for(len: usize) -> usize {
        match len {
            0..=0xFF => 1,
            0x100..=0xFFFF => 2,
            _ => 4,
        }
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
