//! Where each item of a set's image is (`set_image.rs`), or each field of a hash's (`pairs.rs`), for commands
//! that look for many in one image: an intersection of two sets of ninety is ninety look-ups, each a walk
//! over half an image.
//!
//! A table of 256 offsets, found by a byte made of an item's code and its ends; items of one byte lie in
//! slots behind each other. It is made in one walk and lives as long as a command. Whoever chooses members
//! that all have one byte makes it a walk again, no longer than that over the image.
use crate::code::probe::Probe;
use crate::map::pairs::{self, Spot};
use crate::map::set_image::items::{self, Head};
use base::Item;

/// More than there are items in any image that is indexed, so that some slot is empty.
const SLOTS: usize = 256;
/// An image of more pairs is not indexed.
const PAIRS_MAX: u64 = 200;

pub struct ItemIndex {
    /// The offset of an item, and one more; 0 for none.
    slots: [u16; SLOTS],
}

impl ItemIndex {
    /// The index of the items of a set's image. Images are no longer than an offset can say.
    pub fn of(image: &[u8]) -> ItemIndex {
        let mut index = ItemIndex { slots: [0; SLOTS] };
        items::iter(image).for_each(|(range, member)| index.add(member, range.start));
        index
    }

    /// The index of the fields of a hash's image; None where these are too many.
    pub fn of_pairs(image: &[u8]) -> Option<ItemIndex> {
        let mut index = ItemIndex { slots: [0; SLOTS] };
        if pairs::len(image) > PAIRS_MAX {
            return None;
        }
        for spot in pairs::spots(image) {
            let field = pairs::field_bytes(image, spot);
            index.add_at(field[0], &field[1..], spot.start());
        }
        Some(index)
    }

    /// Adds the item that was appended to the set's image at this offset.
    pub fn add(&mut self, member: Item<'_>, at: usize) {
        let head = Head::of(member).expect("a member of an image fits one");
        self.add_at(head.code, head.body(&member), at);
    }

    fn add_at(&mut self, code: u8, body: &[u8], at: usize) {
        let mut slot = home(code, body);
        while self.slots[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        self.slots[slot] = u16::try_from(at + 1).expect("images are shorter than 64 KB");
    }

    /// Whether the set's image, which is that of the index, has this member.
    #[inline]
    pub fn has(&self, image: &[u8], member: Item<'_>) -> bool {
        let Some(head) = Head::of(member) else { return false };
        self.find_at(image, head.code, head.body(&member)).is_some()
    }

    /// The pair of a field in the hash's image, which is that of the index.
    #[inline]
    pub fn pair(&self, image: &[u8], field: Item<'_>) -> Option<Spot> {
        pairs::find_by(image, field, |header, body| self.find_at(image, header, body))
    }

    /// Where the bytes of an item are: its code, and what follows.
    #[inline]
    fn find_at(&self, image: &[u8], code: u8, body: &[u8]) -> Option<usize> {
        let (mut slot, probe) = (home(code, body), Probe::new(body));
        loop {
            let at = usize::from(self.slots[slot]).checked_sub(1)?;
            if image[at] == code && probe.is_at(image, at + 1) {
                return Some(at);
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

/// The slot where the search for an item begins.
#[inline]
fn home(code: u8, body: &[u8]) -> usize {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let ends = match (body.first_chunk(), body.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first).rotate_left(29) ^ u64::from_le_bytes(*last),
        _ => body.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    (ends.wrapping_add(u64::from(code)).wrapping_mul(MIX) >> 56) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn an_index_finds_what_a_walk_finds() {
        let mut random = Random::new(7);
        for turn in 0..300 {
            let (mut image, mut index) = (Vec::new(), ItemIndex::of(&[]));
            // Some images are of members whose ends are alike, which share a slot.
            let text = |n: u64| match turn % 3 {
                0 => n.to_string().into_bytes(),
                1 => format!("member:{n}").into_bytes(),
                _ => format!("beginning{n:03}the end").into_bytes(),
            };
            for _ in 0..random.below(255) {
                let text = text(random.below(600));
                let member = Item::classify(&text);
                assert_eq!(index.has(&image, member), items::find(&image, member).is_some());
                if !index.has(&image, member) {
                    let at = image.len().max(1);
                    items::append(&mut image, member);
                    index.add(member, at);
                }
            }
            let anew = ItemIndex::of(&image);
            for n in 0..600 {
                let text = text(n);
                let member = Item::classify(&text);
                let is_there = items::find(&image, member).is_some();
                assert_eq!((index.has(&image, member), anew.has(&image, member)), (is_there, is_there));
            }
            assert!(!anew.has(&image, Item::Bytes(&[b'x'; 300])));
        }
    }

    #[test]
    fn an_index_of_pairs_finds_what_a_walk_finds() {
        let mut random = Random::new(8);
        for _ in 0..200 {
            let mut image = Vec::new();
            let text = |n: u64| if n.is_multiple_of(3) { n.to_string() } else { format!("field:{n}") };
            for _ in 0..random.below(100) {
                let (field, mark) = (text(random.below(300)), [0; 5]);
                let field = Item::classify(field.as_bytes());
                if pairs::find(&image, field).is_none() {
                    let mark = (random.below(4) == 0).then_some(&mark[..]);
                    pairs::push(&mut image, field, Item::Int(random.below(100) as i64), mark);
                    pairs::len_of_kept(&mut image);
                }
            }
            if random.below(2) == 0 {
                pairs::flag(&mut image);
            }
            let index = ItemIndex::of_pairs(&image).expect("they are few");
            for n in 0..300 {
                let field = text(n);
                let field = Item::classify(field.as_bytes());
                assert_eq!(index.pair(&image, field), pairs::find(&image, field));
            }
            assert!(index.pair(&image, Item::Bytes(&[b'x'; 300])).is_none());
        }
        let mut image = Vec::new();
        (0..=PAIRS_MAX as i64).for_each(|n| pairs::push(&mut image, Item::Int(n), Item::Int(0), None));
        assert!(ItemIndex::of_pairs(&image).is_none());
    }
}
