//! Drafts against their naive twin.

use super::*;
use crate::model::{List, Taste, seeds};
use base::random::Random;

fn text(item: Item<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    item.append_to(&mut text);
    text
}

fn check_image(image: &[u8], model: &List, random: &mut Random) {
    assert_eq!(len(image), model.len() as u64);
    assert_eq!(get(image, model.len() as u64), None);
    let start = random.below(model.len() as u64 + 1);
    for towards in [End::Head, End::Tail] {
        let mut seen = Vec::new();
        visit(image, start, towards, &mut |index, item| {
            assert_eq!(get(image, index), Some(item));
            seen.push(text(item));
            ControlFlow::Continue(())
        });
        let start = start as usize;
        let expected: Vec<Vec<u8>> = match towards {
            _ if start == model.len() => Vec::new(),
            End::Tail => model.iter().skip(start).cloned().collect(),
            End::Head => model.iter().take(start + 1).rev().cloned().collect(),
        };
        assert_eq!(seen, expected);
    }
}

fn edit(draft: &mut Draft, model: &mut List, random: &mut Random, value: Vec<u8>) {
    let at = random.below(model.len() as u64 + 1);
    match random.below(10) {
        0..=2 => {
            draft.push(End::Tail, &value);
            model.push_back(value);
        }
        3..=5 => {
            draft.push(End::Head, &value);
            model.push_front(value);
        }
        6 => {
            draft.insert(at, &value);
            model.insert(at as usize, value);
        }
        7 => assert_eq!(draft.pop(End::Head, text), model.pop_front()),
        8 => assert_eq!(draft.pop(End::Tail, text), model.pop_back()),
        _ if at < model.len() as u64 => {
            draft.set(at, &value);
            model[at as usize] = value;
        }
        _ => {
            let count = random.below(model.len() as u64 / 2 + 1);
            draft.remove(0, count);
            model.drain(..count as usize);
        }
    }
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let taste = Taste::any(&mut random);
    let (mut draft, mut model, mut image) = (Draft::new(), List::new(), Vec::new());
    for step in 0..120 {
        draft.open(&image);
        for _ in 0..random.below(8) {
            let value = taste.value(&mut random, seed * 300 + step);
            edit(&mut draft, &mut model, &mut random, value);
            assert_eq!(draft.len(), model.len() as u64);
        }
        let len_max = draft.image_len();
        image = draft.close().to_vec();
        assert!(image.len() <= len_max, "seed {seed}");
        check_image(&image, &model, &mut random);
    }
}

#[test]
fn a_draft_and_its_images_hold_what_a_deque_holds() {
    for seed in seeds(400) {
        with_seed_on_panic(seed, run);
    }
}

fn with_seed_on_panic(seed: u64, run: fn(u64)) {
    if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
        eprintln!("seed {seed}");
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn an_image_of_small_integers_takes_as_few_bytes_as_it_says() {
    let mut draft = Draft::new();
    for n in 1..=5 {
        draft.push(End::Tail, n.to_string().as_bytes());
    }
    assert_eq!(draft.close(), [2, 5, 0, 0x11, 1, 1]);
}

#[test]
fn an_image_of_strings_takes_two_bytes_more_than_entries_and_lengths() {
    let mut draft = Draft::new();
    for value in ["ab", "-2", "cde"] {
        draft.push(End::Tail, value.as_bytes());
    }
    assert_eq!(draft.close(), [1, 3, b'a', b'b', 0xFE, b'c', b'd', b'e', 3, 0xF8, 2]);
}
