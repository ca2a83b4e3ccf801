//! Small sets in one byte string: integers against an ordered set, items against a list in order of
//! insertion. The pieces of the input between commas are members; one that is there is taken out.
use base::Item;
use pack::set_image::{TEXT_BYTES_MAX, ints, items};
use std::collections::BTreeSet;

const MEMBERS_MAX: usize = 128;

pub(super) fn run(data: &[u8]) {
    of_ints(data);
    of_items(data);
}

fn of_ints(data: &[u8]) {
    let (mut image, mut twin) = (Vec::new(), BTreeSet::new());
    for piece in data.chunks(9).take(MEMBERS_MAX) {
        let mut bytes = [0; 8];
        let width = 1 + usize::from(piece[0] % 8);
        piece[1..].iter().take(width).zip(&mut bytes).for_each(|(from, to)| *to = *from);
        let value = i64::from_le_bytes(bytes).wrapping_sub(i64::from(piece[0] >> 3));
        match ints::find(&image, value) {
            Ok(index) => {
                assert!(twin.remove(&value), "a member came from nowhere");
                ints::remove(&mut image, index);
            }
            Err(index) => {
                assert!(twin.insert(value), "a member was lost");
                let len_bytes = ints::len_bytes_with(&image, value);
                ints::insert(&mut image, index, value);
                assert_eq!(image.len(), len_bytes);
            }
        }
        assert_eq!(ints::len(&image), twin.len());
    }
    assert!(ints::iter(&image).eq(twin), "the image and its twin differ");
}

fn of_items(data: &[u8]) {
    let (mut image, mut twin): (Vec<u8>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    for piece in data.split(|byte| *byte == b',').filter(|p| p.len() <= TEXT_BYTES_MAX).take(MEMBERS_MAX) {
        let member = Item::classify(piece);
        match items::find(&image, member) {
            Some(range) => {
                items::remove(&mut image, range);
                let at = twin.iter().position(|other| *other == piece).expect("a member came from nowhere");
                twin.remove(at);
            }
            None => {
                let len_bytes = items::len_bytes_with(&image, member);
                items::append(&mut image, member);
                assert_eq!(image.len(), len_bytes);
                twin.push(piece);
            }
        }
    }
    assert_eq!(items::len(&image), twin.len());
    assert!(items::iter(&image).map(|(_, item)| item).eq(twin.iter().map(|piece| Item::classify(piece))));
}
