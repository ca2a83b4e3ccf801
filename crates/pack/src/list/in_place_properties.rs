//! Edits of images where they lie against a deque, and against the same edits by a draft.
use super::*;
use crate::image::{self, Draft};
use crate::memory::block::Block;
use crate::model::{List, Taste, seeds};
use crate::tree::end::End;
use base::random::Random;
use std::ops::ControlFlow;

/// Bytes before the image, as a deadline lies there.
const BEFORE: &[u8] = b"stamp";

fn texts_of(image: &[u8]) -> List {
    let mut list = List::new();
    image::visit(image, 0, End::Tail, &mut |_, item| {
        let mut text = Vec::new();
        item.append_to(&mut text);
        list.push_back(text);
        ControlFlow::Continue(())
    });
    list
}

/// The image of the same elements after the same edit by a draft.
fn by_draft(image: &[u8], edit: impl FnOnce(&mut Draft)) -> Vec<u8> {
    let mut draft = Draft::new();
    draft.open(image);
    edit(&mut draft);
    draft.close().to_vec()
}

/// Adds, replaces or removes, at an end more often than elsewhere, where the image allows it; whether it did.
fn edit(block: &mut Block, random: &mut Random, taste: &Taste, step: u64) -> bool {
    let image = block[BEFORE.len()..].to_vec();
    let mut model = texts_of(&image);
    let len = model.len() as u64;
    let at = [0, len, random.below(len + 1)][random.below(3) as usize];
    let (mut apart, value) = (Apart::new(block, BEFORE.len()), taste.value(random, step));
    let (bytes, expected) = match random.below(5) {
        0 | 1 => {
            let Some(addition) = Addition::of(&image, at, &value) else { return false };
            let bytes = image.len() + addition.bytes();
            addition.add(&mut apart);
            model.insert(at as usize, value.clone());
            (bytes, by_draft(&image, |draft| draft.insert(at, &value)))
        }
        2 if at < len => {
            let Some(replacement) = Replacement::of(&image, at, &value) else { return false };
            let (more, fewer) = replacement.bytes();
            replacement.make(&mut apart);
            model[at as usize].clone_from(&value);
            (image.len() + more - fewer, by_draft(&image, |draft| draft.set(at, &value)))
        }
        _ => {
            let count = random.below(3).min(len - at);
            let Some(cut) = Cut::of(&image, at, count) else { return false };
            let bytes = image.len() - cut.bytes();
            cut.remove(&mut apart);
            model.drain(at as usize..(at + count) as usize);
            (bytes, by_draft(&image, |draft| draft.remove(at, count)))
        }
    };
    assert_eq!(apart.bytes().len(), bytes);
    assert_eq!(texts_of(apart.bytes()), model, "of {image:?}");
    assert_eq!(apart.bytes(), expected, "of {image:?}");
    assert!(block.starts_with(BEFORE));
    true
}

fn run(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let taste = Taste::any(&mut random);
    let (mut edits, mut copies) = (0, Vec::new());
    let mut draft = Draft::new();
    for step in 0..1 + random.below(40) {
        let end = if random.below(2) == 0 { End::Head } else { End::Tail };
        draft.push(end, &taste.value(&mut random, seed * 300 + step));
    }
    let mut block = Block::from_slice(&[BEFORE, draft.close()].concat());
    for step in 0..60 {
        // A snapshot that holds the block sees nothing of the edits.
        if random.below(4) == 0 {
            copies.push((block.clone(), block.to_vec()));
        }
        edits += u64::from(edit(&mut block, &mut random, &taste, seed * 1000 + step));
    }
    for (copy, bytes) in copies {
        assert_eq!(*copy, bytes);
    }
    edits
}

#[test]
fn edits_where_an_image_lies_make_what_a_draft_makes() {
    let mut edits = 0;
    for seed in seeds(300) {
        edits += run(seed);
    }
    assert!(edits > 1_000, "images of texts are edited where they lie: {edits} edits");
}

#[test]
fn what_an_image_cannot_take_is_left_to_a_draft() {
    let short =
        by_draft(&[], |draft| ["a", "b"].iter().for_each(|text| draft.push(End::Tail, text.as_bytes())));
    assert!(Addition::of(&short, 2, b"c").is_some() && Replacement::of(&short, 1, b"c").is_some());
    assert!(Addition::of(&short, 2, b"cc").is_none(), "all lengths are alike");
    assert!(Replacement::of(&short, 1, b"cc").is_none(), "all lengths are alike");
    assert!(Addition::of(&[], 0, b"c").is_none() && Cut::of(&[], 0, 1).is_none());
    assert!(Cut::of(&short, 0, 1).is_some());
    assert!(Cut::of(&short, 0, 2).is_none(), "nothing would be left");
    assert!(
        Cut::of(&short, 1, 2).is_none() && Cut::of(&short, 1, u64::MAX).is_none(),
        "there are not so many"
    );
    let long = by_draft(&[], |draft| (0..255).for_each(|_| draft.push(End::Tail, b"ab")));
    assert!(Addition::of(&long, 255, b"ab").is_none(), "the count has one byte");
    let integers =
        by_draft(&[], |draft| (1..9).for_each(|n| draft.push(End::Tail, n.to_string().as_bytes())));
    assert!(Addition::of(&integers, 8, b"9").is_none() && Cut::of(&integers, 7, 1).is_none());
    assert!(Replacement::of(&integers, 7, b"9").is_none());
}
