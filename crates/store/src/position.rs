//! The position of a walk over a set or a hash outside its entry, in one number that stays good while the
//! collection changes: the cursor of SSCAN and HSCAN, and the position of the walk that moves data.
//!
//! ```text
//! 0 .. 2^32            texts: a place in hash order; 0 is the beginning
//! 14 * 2^46 .. 2^52    integers: a cell of them, in ascending order
//! ```
//!
//! A cursor should be a number that clients keep exactly, also those that keep numbers as doubles: below
//! 2^53. So integers are named as doubles name them, by their first 46 bits. A cell is one integer below
//! 2^46, two below 2^47, and 131,072 near 2^63; a step always ends with a cell, because the next begins with
//! one.

const EXACT_BITS: u32 = 46;
const ZERO: u64 = 1 << 51;
const EXCESS_MAX: u64 = 63 - EXACT_BITS as u64;

/// What a number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Text(u32),
    /// The least integer of a cell (see the opener).
    Int(i64),
}

impl Position {
    pub(crate) fn of(number: u64) -> Position {
        match u32::try_from(number) {
            Ok(place) => Position::Text(place),
            Err(_) => Position::Int(first_of(number)),
        }
    }
}

/// The cell of an integer.
pub(crate) fn cell(value: i64) -> u64 {
    if value >= 0 { ZERO + rank(value as u64) } else { ZERO - 1 - rank(!value as u64) }
}

/// Ascends with its argument, below 2^63.
fn rank(magnitude: u64) -> u64 {
    let excess = (u64::BITS - magnitude.leading_zeros()).saturating_sub(EXACT_BITS);
    u64::from(excess) << EXACT_BITS | magnitude >> excess
}

/// The least integer of a cell, or of any number that a client makes up.
fn first_of(cell: u64) -> i64 {
    let (rank, is_negative) = if cell >= ZERO { (cell - ZERO, false) } else { (ZERO - 1 - cell, true) };
    let (excess, top) = (rank >> EXACT_BITS, rank & ((1 << EXACT_BITS) - 1));
    match (is_negative, excess > EXCESS_MAX) {
        (false, true) => i64::MAX,
        (true, true) => i64::MIN,
        (false, false) => (top << excess) as i64,
        (true, false) => !((((top + 1) << excess) - 1) as i64),
    }
}

/// Goes on from `first` by steps, each of which says where the next begins, None at the end, and whether that
/// was enough. It is enough only where another cell begins; its number then.
pub(crate) fn walk_cells(first: i64, mut step: impl FnMut(i64) -> (Option<i64>, bool)) -> Option<u64> {
    let mut at = first;
    while let (Some(next), is_enough) = step(at) {
        at = next;
        if is_enough && cell(next) > cell(first) {
            return Some(cell(next));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn cells_ascend_begin_with_their_first_and_fit_a_double() {
        let mut random = Random::new(1);
        let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, 1 << 46, (1 << 46) - 1, -(1 << 46), i64::MAX];
        let drawn = (0..20_000).map(|_| random.next_u64() as i64 >> random.below(64));
        for value in ends.into_iter().chain(drawn) {
            let cell = cell(value);
            assert!((14 << 46..1 << 52).contains(&cell), "{value}: {cell}");
            let first = first_of(cell);
            assert!(first <= value && super::cell(first) == cell, "{value}: {first}");
            assert!(
                first == i64::MIN || super::cell(first - 1) == cell - 1 || first.unsigned_abs() > 1 << 45
            );
            assert!(first == i64::MIN || super::cell(first - 1) < cell, "{value}");
            assert_eq!(Position::of(cell), Position::Int(first));
            assert!(value.unsigned_abs() > 1 << 46 || first == value);
        }
        assert_eq!(Position::of(7), Position::Text(7));
    }

    #[test]
    fn numbers_that_nobody_gave_out_are_some_place() {
        let mut random = Random::new(2);
        for _ in 0..10_000 {
            Position::of(random.next_u64() >> random.below(64));
        }
        assert_eq!(Position::of(u64::MAX), Position::Int(i64::MAX));
        assert_eq!(Position::of(1 << 32), Position::Int(i64::MIN));
    }
}
