//! Looking for an entry in a tagged leaf: 16 tags at once, four groups at once where the leaf is an ordinary
//! one.
//!
//! What a lookup waits for is memory, so the ordinary ways have no branch that depends on how many groups
//! there are: all lines are asked for together, and the processor goes on to the next lookup meanwhile. A
//! leaf of up to 16 entries may be too short to be read that far; one with long entries has lengths of
//! several bytes. On the path of every request.
use super::Slot;
use super::kind::{ALIKE_HEAD_BYTES, HEAD_BYTES, Kind, group_of};
use crate::code::simd::{self, LANES};
use crate::map::form::{Form, Name};

/// Groups that are searched at once, and their entries.
const QUAD: usize = 4;
const QUAD_LANES: usize = QUAD * LANES;

/// From a group to the next where lengths have no column, and where each takes a byte.
const ALIKE: usize = LANES;
const BYTES: usize = 2 * LANES;

#[inline(always)]
pub(super) fn find<F: Form>(leaf: &[u8], tag: u8, name: Name<'_>) -> Option<Slot> {
    let kind = Kind::of(leaf);
    match kind.width {
        0 => find_ordinary::<F, ALIKE>(leaf, kind, tag, name),
        1 => find_ordinary::<F, BYTES>(leaf, kind, tag, name),
        _ => find_any::<F>(leaf, kind, tag, name),
    }
}

/// The search of a leaf by as many groups as its form lets it have.
#[inline(always)]
fn find_ordinary<F: Form, const STRIDE: usize>(
    leaf: &[u8],
    kind: Kind,
    tag: u8,
    name: Name<'_>,
) -> Option<Slot> {
    let front = &leaf[if STRIDE == ALIKE { ALIKE_HEAD_BYTES } else { HEAD_BYTES }..];
    let holds = |quads: usize| kind.count <= quads * QUAD_LANES && front.len() >= quads * QUAD * STRIDE;
    if kind.count <= QUAD_LANES {
        if holds(1) {
            return find_quads::<F, 1, STRIDE>(leaf, front, kind, tag, name);
        }
        if kind.count <= LANES {
            return find_one::<F, STRIDE>(leaf, front, kind, tag, name);
        }
    } else if F::COUNT_MAX > QUAD_LANES && holds(2) {
        return find_quads::<F, 2, STRIDE>(leaf, front, kind, tag, name);
    } else if F::COUNT_MAX > 2 * QUAD_LANES && kind.count > 2 * QUAD_LANES && holds(3) {
        return find_quads::<F, 3, STRIDE>(leaf, front, kind, tag, name);
    }
    find_any::<F>(leaf, kind, tag, name)
}

/// The search of an ordinary leaf: all groups without a branch on how many there are, so that the processor
/// goes on to the next lookup while this one waits for memory. What lies behind the last group is room or
/// entries; it is read, and masked out.
#[inline(always)]
fn find_quads<F: Form, const QUADS: usize, const STRIDE: usize>(
    leaf: &[u8],
    front: &[u8],
    kind: Kind,
    tag: u8,
    name: Name<'_>,
) -> Option<Slot> {
    let front = &front[..QUADS * QUAD * STRIDE];
    let group = |number: usize| group_of(front, number * STRIDE);
    let mut hits = [0; QUADS];
    for (quad, hits) in hits.iter_mut().enumerate() {
        for quarter in 0..QUAD {
            *hits |= u64::from(simd::matches(group(quad * QUAD + quarter), tag)) << (quarter * LANES);
        }
        let unused = ((quad + 1) * QUAD_LANES).saturating_sub(kind.count).min(QUAD_LANES);
        *hits &= u64::MAX.checked_shr(unused as u32).unwrap_or(0);
    }
    for (quad, hits) in hits.iter_mut().enumerate() {
        while *hits != 0 {
            let index = quad * QUAD_LANES + hits.trailing_zeros() as usize;
            debug_assert!(index < kind.count, "a tag behind the last entry");
            let (back, len) = place::<STRIDE>(front, QUADS * QUAD, kind, index);
            let start = leaf.len() - back;
            if F::is(&leaf[start..start + len], name) {
                return Some(Slot { index, back, len });
            }
            *hits &= *hits - 1;
        }
    }
    None
}

/// How far an entry is from the end, and its length, where there are no more than so many groups.
#[inline(always)]
fn place<const STRIDE: usize>(front: &[u8], groups: usize, kind: Kind, index: usize) -> (usize, usize) {
    if STRIDE == ALIKE {
        return ((index + 1) * kind.alike, kind.alike);
    }
    let sum = |number: usize| {
        let lanes = (index + 1).saturating_sub(number * LANES).min(LANES);
        simd::sum_first(group_of(front, number * STRIDE + LANES), lanes) as usize
    };
    let len = front[index / LANES * STRIDE + LANES + index % LANES];
    ((0..groups).map(sum).sum(), usize::from(len))
}

/// The search of a leaf too small for `find_quads` to read beyond its entries.
#[inline]
fn find_one<F: Form, const STRIDE: usize>(
    leaf: &[u8],
    front: &[u8],
    kind: Kind,
    tag: u8,
    name: Name<'_>,
) -> Option<Slot> {
    let group = front.get(..STRIDE)?;
    debug_assert!(kind.count <= LANES, "one group holds {} entries", kind.count);
    let mut hits = simd::matches(group_of(group, 0), tag) & ((1 << kind.count) - 1);
    while hits != 0 {
        let index = hits.trailing_zeros() as usize;
        let (back, len) = place::<STRIDE>(group, 1, kind, index);
        let start = leaf.len() - back;
        if F::is(&leaf[start..start + len], name) {
            return Some(Slot { index, back, len });
        }
        hits &= hits - 1;
    }
    None
}

/// The search of any leaf, group after group.
#[inline(never)]
fn find_any<F: Form>(leaf: &[u8], kind: Kind, tag: u8, name: Name<'_>) -> Option<Slot> {
    let mut before = 0;
    for group in 0..kind.groups() {
        let first = group * LANES;
        let mut hits = simd::matches(group_of(leaf, kind.group_at(group)), tag);
        if kind.count - first < LANES {
            hits &= (1 << (kind.count - first)) - 1;
        }
        while hits != 0 {
            let lane = hits.trailing_zeros() as usize;
            let back = before + kind.sum_first(leaf, group, lane + 1);
            let (start, len) = (leaf.len() - back, kind.len(leaf, first + lane));
            if F::is(&leaf[start..start + len], name) {
                return Some(Slot { index: first + lane, back, len });
            }
            hits &= hits - 1;
        }
        before += kind.sum_first(leaf, group, LANES);
    }
    None
}
