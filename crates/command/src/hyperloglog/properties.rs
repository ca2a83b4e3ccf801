//! Sketches against a naive twin, an array of registers in a byte each; and any bytes at all, which must
//! never do more than fail.
use super::estimate::{Histogram, REGISTERS};
use super::sketch::{self, Corrupt, Encoding, Merged, Sketch, Union};
use base::random::Random;
use store::sixes::Greatest;

const SEEDS: u64 = 8;

fn begun() -> Vec<u8> {
    let mut text = Vec::new();
    sketch::begin(&mut text);
    text
}

fn registers(text: &[u8]) -> Box<[u8; REGISTERS]> {
    let mut registers = sketch::no_registers();
    Sketch::parse(text).unwrap().merge_into(&mut registers).unwrap();
    in_bytes(&registers)
}

fn in_bytes(registers: &Greatest) -> Box<[u8; REGISTERS]> {
    Box::new(std::array::from_fn(|index| registers.get(index)))
}

/// A sketch of so many elements, most of which others have too.
fn sketch_of(random: &mut Random, elements: u64, sparse_bytes_max: usize) -> Vec<u8> {
    let mut text = begun();
    for _ in 0..elements {
        let element = random.below(elements * 2 + 1).to_string();
        sketch::add(&mut text, element.as_bytes(), sparse_bytes_max).unwrap();
    }
    text
}

#[test]
fn both_encodings_hold_the_same_registers_whatever_was_added() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let (mut runs, mut array) = (begun(), begun());
        sketch::make_dense(&mut array).unwrap();
        let domain = [10, 300, 3_000, 1 << 40][(seed % 4) as usize];
        for _ in 0..700 {
            let element = random.below(domain).to_le_bytes();
            let changed = sketch::add(&mut runs, &element, usize::MAX).unwrap();
            assert_eq!(changed, sketch::add(&mut array, &element, 0).unwrap(), "seed {seed}");
        }
        assert_eq!(registers(&runs), registers(&array), "seed {seed}");
        let twin = Histogram::of_bytes(&registers(&runs)).cardinality();
        for text in [&runs, &array] {
            assert_eq!(Sketch::parse(text).unwrap().estimate(), Ok(twin), "seed {seed}");
        }
    }
}

#[test]
fn an_addition_changes_what_it_says_and_nothing_else() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let mut text = begun();
        for _ in 0..60 {
            let before = (text.clone(), registers(&text));
            let changed = sketch::add(&mut text, &random.next_u64().to_le_bytes(), 400).unwrap();
            let after = registers(&text);
            let differing = before.1.iter().zip(after.iter()).filter(|(old, new)| old != new);
            assert_eq!(differing.clone().count(), usize::from(changed), "seed {seed}");
            assert!(differing.clone().all(|(old, new)| old < new), "seed {seed}");
            assert!(changed || text == before.0, "seed {seed}");
        }
    }
}

#[test]
fn runs_stay_within_their_limit_and_then_become_an_array_for_good() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let limit = [0, 18, 40, 3_000][(seed % 4) as usize];
        let mut text = begun();
        let mut was_array = false;
        for _ in 0..1_500 {
            sketch::add(&mut text, &random.next_u64().to_le_bytes(), limit).unwrap();
            let is_array = Sketch::parse(&text).unwrap().encoding == Encoding::Dense;
            assert!(is_array || text.len() <= limit.max(18), "seed {seed}: {} bytes", text.len());
            assert!(is_array || !was_array, "seed {seed}");
            was_array = is_array;
        }
    }
}

#[test]
fn merged_sketches_hold_what_was_added_to_either() {
    for seed in 0..4 * SEEDS {
        let mut random = Random::new(seed);
        let sizes = [1, 50, 400, 4_000];
        let mut size = || sizes[random.below(4) as usize];
        let sizes = [size(), size()];
        let texts = sizes.map(|elements| sketch_of(&mut random, elements, 3_000));
        let mut union = sketch::no_registers();
        for text in &texts {
            Sketch::parse(text).unwrap().merge_into(&mut union).unwrap();
        }
        let mut counted = Union::default();
        assert_eq!(counted.cardinality(), 0);
        texts.iter().for_each(|text| counted.add(Sketch::parse(text).unwrap()).unwrap());
        let twin = Histogram::of_bytes(&in_bytes(&union)).cardinality();
        assert_eq!(counted.cardinality(), twin, "seed {seed}: of {sizes:?}");
        let mut merged = Merged::default();
        texts.iter().for_each(|text| merged.add(Sketch::parse(text).unwrap()).unwrap());
        for bytes_max in [3_000, texts[0].len() + 40] {
            let mut text = texts[0].clone();
            sketch::merge(&mut text, &merged, bytes_max).unwrap();
            assert_eq!(registers(&text), in_bytes(&union), "seed {seed}");
            assert_eq!(text[5..16], texts[0][5..16], "seed {seed}: the header");
        }
    }
}

#[test]
fn estimates_lie_within_six_standard_errors() {
    let mut text = begun();
    for n in 1..=40_000_u64 {
        sketch::add(&mut text, n.to_string().as_bytes(), 3_000).unwrap();
        if n.is_power_of_two() {
            let estimate = Sketch::parse(&text).unwrap().estimate().unwrap();
            assert!(estimate.abs_diff(n) as f64 <= (n as f64 * 0.05).max(1.0), "{estimate} of {n}");
        }
    }
}

/// Every operation on what may be a sketch only by its head.
fn try_all(text: &[u8]) -> Result<(), Corrupt> {
    let Some(sketch) = Sketch::parse(text) else { return Ok(()) };
    let _ = sketch.runs().count();
    let estimate = sketch.estimate();
    let mut registers = sketch::no_registers();
    let merged = sketch.merge_into(&mut registers);
    assert_eq!(estimate.is_err(), merged.is_err(), "what can be counted can be merged");
    assert_eq!(Union::default().add(sketch), merged);
    let mut dense = text.to_vec();
    assert_eq!(sketch::make_dense(&mut dense).is_err(), merged.is_err());
    let mut added = text.to_vec();
    for n in 0..40_u8 {
        sketch::add(&mut added, &[n], text.len() + usize::from(n))?;
    }
    merged
}

#[test]
fn corrupt_runs_fail_and_nothing_worse() {
    for seed in 0..SEEDS * 40 {
        let mut random = Random::new(seed);
        let elements = random.below(60);
        let mut text = sketch_of(&mut random, elements, usize::MAX);
        for _ in 0..1 + random.below(4) {
            let at = 16 + random.below(text.len() as u64 - 16) as usize;
            match random.below(3) {
                0 => text[at] = random.next_u64() as u8,
                1 => drop(text.remove(at)),
                _ => text.insert(at, random.next_u64() as u8),
            }
            if text.len() == 16 {
                break;
            }
        }
        let _ = try_all(&text);
    }
}
