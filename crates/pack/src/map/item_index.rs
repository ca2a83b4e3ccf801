//! Where each item of a set's image is (`set_image.rs`), for commands that look for many members in one
//! image: an intersection of two sets of ninety is ninety look-ups, each a walk over half an image.
//!
//! A table of 256 offsets, found by a byte made of an item's code and its ends; items of one byte lie in
//! slots behind each other. It is made in one walk and lives as long as a command. Whoever chooses members
//! that all have one byte makes it a walk again, no longer than that over the image.
use crate::map::set_image::items::{self, Head};
use base::Item;

/// More than there are items in any image, so that some slot is empty.
const SLOTS: usize = 256;

pub struct ItemIndex {
    /// The offset of an item; 0, where the image has its count, for none.
    slots: [u16; SLOTS],
}

impl ItemIndex {
    /// The index of this image's items. Images are no longer than an offset can say.
    pub fn of(image: &[u8]) -> ItemIndex {
        let mut index = ItemIndex { slots: [0; SLOTS] };
        items::iter(image).for_each(|(range, member)| index.add(member, range.start));
        index
    }

    /// Adds the item that was appended to the image at this offset.
    pub fn add(&mut self, member: Item<'_>, at: usize) {
        let head = Head::of(member).expect("a member of an image fits one");
        let mut slot = home(&head, &member);
        while self.slots[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        self.slots[slot] = u16::try_from(at).expect("images are shorter than 64 KB");
    }

    /// Whether the image, which is that of the index, has this member.
    #[inline]
    pub fn has(&self, image: &[u8], member: Item<'_>) -> bool {
        let Some(head) = Head::of(member) else { return false };
        let (mut slot, probe) = (home(&head, &member), head.probe(&member));
        loop {
            match usize::from(self.slots[slot]) {
                0 => return false,
                at if image[at] == head.code && probe.is_at(image, at + 1) => return true,
                _ => slot = (slot + 1) % SLOTS,
            }
        }
    }
}

/// The slot where the search for an item begins.
#[inline]
fn home(head: &Head, member: &Item<'_>) -> usize {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let body = head.body(member);
    let ends = match (body.first_chunk(), body.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first).rotate_left(29) ^ u64::from_le_bytes(*last),
        _ => body.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    (ends.wrapping_add(u64::from(head.code)).wrapping_mul(MIX) >> 56) as usize
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
}
