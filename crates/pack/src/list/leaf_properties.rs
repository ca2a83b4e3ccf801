//! Leaves with a limit against their naive twin.

use super::*;
use crate::model::{List, Taste, seeds};
use base::random::Random;

fn text(item: Item<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    item.append_to(&mut text);
    text
}

fn texts(leaf: Leaf<'_>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    leaf.for_each(|item| all.push(text(item)));
    all
}

fn check(buffer: &[u8], model: &List, len_max: usize) {
    let leaf = Leaf::open(buffer);
    assert_eq!(leaf.count(), model.len());
    assert!(leaf.used_bytes() <= buffer.len());
    assert!(leaf.used_bytes() <= len_max || model.len() <= 1, "{} of {len_max}", leaf.used_bytes());
    assert!(texts(leaf).iter().eq(model));
}

/// One edit on both; a leaf that refuses is left as it was, and the next is started.
fn edit(buffer: &mut Vec<u8>, model: &mut List, random: &mut Random, value: &[u8], len_max: usize) {
    let (item, at) = (Item::classify(value), random.below(model.len() as u64 + 1) as usize);
    let end = if random.below(2) == 0 { End::Head } else { End::Tail };
    let done = match random.below(12) {
        0..=7 => push(buffer, end, item, len_max).map(|()| match end {
            End::Head => model.push_front(value.to_vec()),
            End::Tail => model.push_back(value.to_vec()),
        }),
        8 => insert(buffer, at, item, len_max).map(|()| model.insert(at, value.to_vec())),
        9 if at < model.len() => set(buffer, at, item, len_max).map(|()| model[at] = value.to_vec()),
        10 if model.len() > 1 => {
            let popped = pop(buffer, end, text);
            let expected = if end == End::Head { model.pop_front() } else { model.pop_back() };
            assert_eq!(Some(popped), expected);
            Ok(())
        }
        11 if at + 2 < model.len() => {
            remove(buffer, at..at + 2, len_max).map(|()| drop(model.drain(at..at + 2)))
        }
        _ => return seal(buffer),
    };
    if done.is_err() && random.below(3) == 0 {
        start(buffer, end, item, len_max, Start::Small);
        *model = List::from([value.to_vec()]);
    }
}

fn check_parts(buffer: &[u8], model: &List, random: &mut Random) {
    let leaf = Leaf::open(buffer);
    let from = random.below(model.len() as u64) as usize;
    let to = from + 1 + random.below((model.len() - from) as u64) as usize;
    let mut part = Vec::new();
    copy_range(leaf, from..to, &mut part);
    assert_eq!(Leaf::open(&part).used_bytes(), part.len());
    assert!(texts(Leaf::open(&part)).iter().eq(model.range(from..to)));
    copy_tight(leaf, &mut part);
    assert!(part.len() <= tight_len_max(leaf));
    assert!(texts(Leaf::open_tight(&part)).iter().eq(model));
    for (index, value) in model.iter().enumerate() {
        assert_eq!(text(leaf.get(index)), *value);
        assert_eq!(text(Leaf::open_tight(&part).get(index)), *value);
    }
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let taste = Taste::any(&mut random);
    let len_max = [300, 1000, 4096, 8192, 65536][random.below(5) as usize];
    let first = taste.value(&mut random, 0);
    let (mut buffer, mut model) = (Vec::new(), List::from([first.clone()]));
    start(&mut buffer, End::Head, Item::classify(&first), len_max, Start::Small);
    for step in 0..600 {
        let value = taste.value(&mut random, seed * 300 + step);
        edit(&mut buffer, &mut model, &mut random, &value, len_max);
        if step % 8 == 0 {
            check(&buffer, &model, len_max);
        }
    }
    check(&buffer, &model, len_max);
    check_parts(&buffer, &model, &mut random);
}

#[test]
fn a_leaf_holds_what_a_deque_holds_and_keeps_its_limit() {
    for seed in seeds(300) {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Pushes `values` at `end` until the leaf is full; how many went in, and how long it is when sealed.
fn fill(end: End, len_max: usize, mut values: impl FnMut(u64) -> Vec<u8>) -> (usize, usize) {
    let mut buffer = Vec::new();
    start(&mut buffer, end, Item::classify(&values(0)), len_max, Start::Small);
    let mut n = 1;
    while push(&mut buffer, end, Item::classify(&values(n)), len_max).is_ok() {
        n += 1;
    }
    seal(&mut buffer);
    (n as usize, buffer.len())
}

#[test]
fn a_leaf_that_grows_at_one_end_fills_to_its_last_byte() {
    for end in [End::Head, End::Tail] {
        let (count, len) = fill(end, 8192, |_| vec![b'x'; 63]);
        assert_eq!((count, len), ((8192 - 20) / 63, 20 + 129 * 63));
        let (count, len) = fill(end, 8192, |n| vec![b'x'; if n == 3 { 62 } else { 63 }]);
        assert_eq!((count, len), ((8192 - 20) / 64, 20 + 127 * 64 - 1));
    }
}

#[test]
fn consecutive_integers_take_no_bits() {
    for end in [End::Head, End::Tail] {
        let (count, len) = fill(end, 8192, |n| (n + 1_000_000).to_string().into_bytes());
        assert_eq!((count, len), (4096, 32));
    }
}

#[test]
fn random_integers_take_the_bits_they_have() {
    for end in [End::Head, End::Tail] {
        let mut random = Random::new(1);
        let (count, len) = fill(end, 8192, |_| random.below(1 << 31).to_string().into_bytes());
        assert!(count * 39 / 10 + 40 >= len && len > 7500, "{count} in {len}");
    }
}

#[test]
fn rising_identifiers_take_the_bits_of_their_jitter() {
    let mut random = Random::new(2);
    let mut id = 1u64 << 60;
    let mut buffer = Vec::new();
    start(&mut buffer, End::Head, Item::Int(id as i64), 8192, Start::Small);
    for _ in 1..800 {
        id += random.below(1 << 30);
        push(&mut buffer, End::Head, Item::Int(id as i64), 8192).expect("room");
    }
    seal(&mut buffer);
    assert!(buffer.len() < 800 * 46 / 10, "{}", buffer.len());
}

#[test]
fn a_queue_moves_through_a_full_leaf_without_growing_it() {
    let mut buffer = Vec::new();
    start(&mut buffer, End::Head, Item::Bytes(b"v"), 1024, Start::Small);
    let mut refused = 0;
    for _ in 0..10_000 {
        refused += usize::from(push(&mut buffer, End::Head, Item::Bytes(&[b'v'; 64]), 1024).is_err());
        if Leaf::open(&buffer).count() > 8 {
            pop(&mut buffer, End::Tail, |_| ());
        }
    }
    assert!(refused == 0 && buffer.len() <= 1024, "{refused} {}", buffer.len());
}
