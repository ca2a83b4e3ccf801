//! Looking for an entry in a tagged leaf: 16 tags at once, four groups at once where the leaf is an ordinary
//! one.
//!
//! What a lookup waits for is memory, so the ordinary ways have no branch that depends on how many groups
//! there are: all lines are asked for together, and the processor goes on to the next lookup meanwhile. A
//! leaf of up to 16 entries may be too short to be read that far; one with long entries has lengths of
//! several bytes. On the path of every request.
use super::Slot;
use super::kind::{HEAD_BYTES, Kind, group_of};
use crate::code::simd::{self, Group, LANES};
use crate::map::form::{Form, Name};

/// Groups that are searched at once, and their entries and bytes.
const QUAD: usize = 4;
const QUAD_LANES: usize = QUAD * LANES;
const QUAD_BYTES: usize = QUAD * LANES * 2;

#[inline(always)]
pub(super) fn find<F: Form>(leaf: &[u8], tag: u8, name: Name<'_>) -> Option<Slot> {
    let kind = Kind::of(leaf);
    let front = &leaf[HEAD_BYTES..];
    if kind.width != 1 {
        return find_any::<F>(leaf, kind, tag, name);
    }
    if kind.count <= QUAD_LANES {
        if let Some(front) = front.first_chunk() {
            return find_quads::<F, 1, QUAD_BYTES>(leaf, front, kind, tag, name);
        }
        if kind.count <= LANES {
            return find_one::<F>(leaf, kind, tag, name);
        }
    } else if F::COUNT_MAX > QUAD_LANES
        && kind.count <= 2 * QUAD_LANES
        && let Some(front) = front.first_chunk()
    {
        return find_quads::<F, 2, { 2 * QUAD_BYTES }>(leaf, front, kind, tag, name);
    } else if F::COUNT_MAX > 2 * QUAD_LANES
        && kind.count <= 3 * QUAD_LANES
        && let Some(front) = front.first_chunk()
    {
        return find_quads::<F, 3, { 3 * QUAD_BYTES }>(leaf, front, kind, tag, name);
    }
    find_any::<F>(leaf, kind, tag, name)
}

/// The search of an ordinary leaf: all groups without a branch on how many there are, so that the processor
/// goes on to the next lookup while this one waits for memory. What lies behind the last group is room or
/// entries; it is read, and masked out.
#[inline(always)]
fn find_quads<F: Form, const QUADS: usize, const BYTES: usize>(
    leaf: &[u8],
    front: &[u8; BYTES],
    kind: Kind,
    tag: u8,
    name: Name<'_>,
) -> Option<Slot> {
    const { assert!(BYTES == QUADS * QUAD_BYTES) };
    let group = |at: usize| -> &Group { front[at..at + LANES].try_into().expect("16 bytes") };
    let mut hits = [0; QUADS];
    for (quad, hits) in hits.iter_mut().enumerate() {
        for quarter in 0..QUAD {
            let at = (quad * QUAD + quarter) * LANES * 2;
            *hits |= u64::from(simd::matches(group(at), tag)) << (quarter * LANES);
        }
        let unused = ((quad + 1) * QUAD_LANES).saturating_sub(kind.count).min(QUAD_LANES);
        *hits &= u64::MAX.checked_shr(unused as u32).unwrap_or(0);
    }
    for (quad, hits) in hits.iter_mut().enumerate() {
        while *hits != 0 {
            let index = quad * QUAD_LANES + hits.trailing_zeros() as usize;
            let mut back = 0;
            for quarter in 0..QUADS * QUAD {
                let lanes = (index + 1).saturating_sub(quarter * LANES).min(LANES);
                back += simd::sum_first(group(quarter * LANES * 2 + LANES), lanes) as usize;
            }
            debug_assert!(index < kind.count, "a tag behind the last entry");
            let start = leaf.len() - back;
            let len = front[index / LANES * LANES * 2 + LANES + index % LANES] as usize;
            if F::is(&leaf[start..start + len], name) {
                return Some(Slot { index, back, len });
            }
            *hits &= *hits - 1;
        }
    }
    None
}

/// The search of a leaf too small for `find_quads` to read beyond its entries.
#[inline]
fn find_one<F: Form>(leaf: &[u8], kind: Kind, tag: u8, name: Name<'_>) -> Option<Slot> {
    let (tags, lens) = leaf.get(HEAD_BYTES..HEAD_BYTES + 2 * LANES)?.split_first_chunk::<LANES>()?;
    let lens: &Group = lens.first_chunk()?;
    debug_assert!(kind.count <= LANES, "one group holds {} entries", kind.count);
    let mut hits = simd::matches(tags, tag) & ((1 << kind.count) - 1);
    while hits != 0 {
        let index = hits.trailing_zeros() as usize;
        let (back, len) = (simd::sum_first(lens, index + 1) as usize, lens[index] as usize);
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
