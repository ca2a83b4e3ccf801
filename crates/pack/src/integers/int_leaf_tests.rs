//! Leaves of sorted integers against a sorted vector.
use super::*;
use crate::model::seeds;
use base::random::Random;

fn check(leaf: &IntLeaf, twin: &[i64]) {
    let read = leaf.read();
    assert_eq!(read.values(), twin);
    assert_eq!(read.count(), twin.len());
    assert!(leaf.used_bytes() <= leaf.allocated_bytes());
    let (Some(first), Some(last)) = (twin.first(), twin.last()) else { return };
    assert_eq!((read.first(), read.last()), (*first, *last));
}

fn check_lookups(leaf: &IntLeaf, twin: &[i64], value: i64) {
    let read = leaf.read();
    let spot = read.seek(value);
    match twin.binary_search(&value) {
        Ok(index) => assert_eq!((spot.index, spot.is_found), (index, true), "{value} in {twin:?}"),
        Err(index) => assert_eq!((spot.index, spot.is_found), (index, false), "{value} in {twin:?}"),
    }
    let found = read.find_from(value);
    assert_eq!(found.map(|(_, value)| value), twin.get(spot.index).copied());
    if let Some((spot, at)) = found {
        assert_eq!(read.get(spot.index), at);
        let mut ahead = [0; 5];
        let (len, behind) = read.decode(spot, &mut ahead);
        assert_eq!(ahead[..len], twin[spot.index..][..len]);
        assert_eq!(len, (twin.len() - spot.index).min(5));
        let (more, _) = read.decode(behind, &mut ahead);
        assert_eq!(ahead[..more], twin[spot.index + len..][..more]);
    }
}

/// Values as sets meet them: dense, wide, in clumps, rising, falling, and the ends of the range.
fn value(taste: u64, random: &mut Random, step: i64) -> i64 {
    match taste {
        0 => random.below(400) as i64 - 200,
        1 => random.below(1 << 40) as i64,
        2 => random.next_u64() as i64,
        3 => step * 3 + random.below(7) as i64,
        4 => -step,
        5 => (random.below(5) as i64) << 50 | random.below(90) as i64,
        _ => [i64::MIN, i64::MAX, 0, -1, i64::MIN + 1, i64::MAX - 1][random.below(6) as usize],
    }
}

fn edit(leaf: &mut IntLeaf, twin: &mut Vec<i64>, value: i64) {
    match twin.binary_search(&value) {
        Ok(index) if twin.len() > 1 => {
            let spot = leaf.read().seek(value);
            leaf.remove(spot);
            twin.remove(index);
        }
        Err(index) if twin.len() < COUNT_MAX => {
            let spot = leaf.read().seek(value);
            leaf.insert(spot, value);
            twin.insert(index, value);
        }
        _ => {}
    }
}

#[test]
fn random_edits_agree_with_a_sorted_vector_and_leave_clones_alone() {
    for seed in seeds(400) {
        let mut random = Random::new(seed);
        let (tastes, start) = (1 + random.below(7), random.next_u64() as i64 >> random.below(64));
        let (mut leaf, mut twin) = (IntLeaf::of(&[start]), vec![start]);
        let mut held = (leaf.clone(), twin.clone());
        for step in 0..600 {
            let value = match random.below(4) {
                0 if twin.len() > 1 => twin[random.below(twin.len() as u64) as usize],
                _ => value((seed + random.below(tastes)) % 7, &mut random, step),
            };
            edit(&mut leaf, &mut twin, value);
            check(&leaf, &twin);
            check_lookups(&leaf, &twin, value);
            check_lookups(&leaf, &twin, value.wrapping_add(random.below(3) as i64 - 1));
            if random.below(50) == 0 {
                check(&held.0, &held.1);
                held = (leaf.clone(), twin.clone());
            }
        }
        check(&held.0, &held.1);
    }
}

#[test]
fn an_element_takes_the_logarithm_of_the_mean_gap_and_about_two_bits() {
    let mut random = Random::new(1);
    for (bits, most) in [(8, 3.1), (20, 14.6), (40, 34.6)] {
        let mut values: Vec<i64> = (0..COUNT_MAX).map(|_| random.below(1 << bits) as i64).collect();
        values.sort_unstable();
        values.dedup();
        let leaf = IntLeaf::of(&values);
        let each = (leaf.read().used_bytes() - HEADER) as f64 * 8.0 / values.len() as f64;
        assert!(each < most, "{each} bits for values of {bits}");
    }
    let consecutive: Vec<i64> = (1000..1000 + COUNT_MAX as i64).collect();
    assert!(IntLeaf::of(&consecutive).used_bytes() <= 24 + COUNT_MAX / 4);
}
