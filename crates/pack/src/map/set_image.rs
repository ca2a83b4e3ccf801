//! A small set as one byte string, to live inside its keyspace entry. Two forms; whoever keeps the image
//! knows which it is.
//!
//! *Integers*, in ascending order, all as wide as the widest, so that they are searched by halves:
//!
//! ```text
//! width (1..=8) | value 0 | value 1 | ...      two's complement, little endian, `width` bytes each
//! ```
//!
//! -2, 5, 300 are `02 feff 0500 2c01`.
//!
//! *Items*, in order of insertion, which is how Redis answers a small set of strings; searched by walking,
//! two or three instructions an item, because its first byte rules out nearly all others:
//!
//! ```text
//! count (1..=255) | item | item | ...
//!
//! item:  code 0..=247: so many bytes of text follow
//!        248..=255: an integer of 1 to 8 bytes follows, as above
//! ```
//!
//! "tag7", 300, "x" are `03 04 74616737 f9 2c01 01 78`. Text that reads as an integer is always stored as
//! one, so a member has one spelling and is found by comparing bytes.
//!
//! The empty set is the empty image in either form. Cost: integers a byte and the width of the widest each;
//! items a byte, and one each and their text, or 1 to 8 bytes. Images are made here alone, never read from
//! outside, so reading asserts what it relies on.
use base::Item;
use std::ops::Range;

/// The longest text that an item can have.
pub const TEXT_BYTES_MAX: usize = INT_CODES as usize - 1;

/// The code of an integer of one byte.
const INT_CODES: u8 = 248;

/// Images of integers.
pub mod ints {
    use crate::code::short_int::{int_len, read_int};

    fn width(image: &[u8]) -> usize {
        image.first().map_or(1, |width| usize::from(*width))
    }

    /// How many members there are. O(1).
    pub fn len(image: &[u8]) -> usize {
        debug_assert!(matches!(width(image), 1..=8), "integers of {} bytes", width(image));
        debug_assert!(image.is_empty() || (image.len() - 1).is_multiple_of(width(image)), "half an integer");
        image.len().saturating_sub(1) / width(image)
    }

    /// Member `index` in ascending order.
    pub fn get(image: &[u8], index: usize) -> i64 {
        let width = width(image);
        read_int(&image[1 + index * width..][..width])
    }

    /// Where `value` is, or (`Err`) would be.
    pub fn find(image: &[u8], value: i64) -> Result<usize, usize> {
        let (mut from, mut to) = (0, len(image));
        while from < to {
            let half = from.midpoint(to);
            match get(image, half).cmp(&value) {
                std::cmp::Ordering::Less => from = half + 1,
                std::cmp::Ordering::Equal => return Ok(half),
                std::cmp::Ordering::Greater => to = half,
            }
        }
        Err(from)
    }

    /// All members, in ascending order.
    pub fn iter(image: &[u8]) -> impl Iterator<Item = i64> + '_ {
        (0..len(image)).map(|index| get(image, index))
    }

    /// How long the image is with one more member.
    pub fn len_bytes_with(image: &[u8], value: i64) -> usize {
        1 + (len(image) + 1) * width(image).max(int_len(value))
    }

    /// Inserts a value that is not there, at `index`.
    pub fn insert(image: &mut Vec<u8>, index: usize, value: i64) {
        let (old, new) = (width(image), width(image).max(int_len(value)));
        if image.is_empty() || new > old {
            widen(image, new);
        }
        debug_assert!(index == 0 || get(image, index - 1) < value, "the one before it is less");
        debug_assert!(index == len(image) || get(image, index) > value, "the one behind it is greater");
        let at = 1 + index * new;
        image.splice(at..at, value.to_le_bytes()[..new].iter().copied());
    }

    /// Makes `image` that of these values, which ascend.
    pub fn build(image: &mut Vec<u8>, values: &[i64]) {
        debug_assert!(values.is_sorted_by(|a, b| a < b), "members ascend");
        image.clear();
        let (Some(first), Some(last)) = (values.first(), values.last()) else { return };
        let width = int_len(*first).max(int_len(*last));
        image.push(width as u8);
        image.resize(1 + values.len() * width, 0);
        for (slot, value) in image[1..].chunks_exact_mut(width).zip(values) {
            slot.copy_from_slice(&value.to_le_bytes()[..width]);
        }
    }

    /// How long the image of values from `first` to `last` is, of which there are so many.
    pub fn len_bytes_of(count: usize, first: i64, last: i64) -> usize {
        1 + count * int_len(first).max(int_len(last))
    }

    /// Removes member `index`; the width stays until the image is made anew.
    pub fn remove(image: &mut Vec<u8>, index: usize) {
        assert!(index < len(image), "member {index} of {}", len(image));
        let (width, at) = (width(image), 1 + index * width(image));
        image.drain(at..at + width);
        if image.len() == 1 {
            image.clear();
        }
    }

    fn widen(image: &mut Vec<u8>, width: usize) {
        debug_assert!(matches!(width, 1..=8), "integers of {width} bytes");
        let values: Vec<i64> = iter(image).collect();
        image.clear();
        image.push(width as u8);
        values.iter().for_each(|value| image.extend_from_slice(&value.to_le_bytes()[..width]));
    }
}

/// Images of items.
pub mod items {
    use super::{INT_CODES, Item, Range, TEXT_BYTES_MAX};
    use crate::code::probe::Probe;
    use crate::code::short_int::{ShortInt, int_len, read_int};
    use crate::memory::apart::Pliable;
    use crate::memory::prefetch::prefetch_walk;

    /// An item as it is written: its code, and what follows of an integer.
    pub(crate) struct Head {
        pub(crate) code: u8,
        int: ShortInt,
    }

    impl Head {
        /// None for a text that is too long.
        #[inline]
        pub(crate) fn of(member: Item<'_>) -> Option<Head> {
            match member {
                Item::Bytes(text) if text.len() > TEXT_BYTES_MAX => None,
                Item::Bytes(text) => Some(Head { code: text.len() as u8, int: ShortInt::NONE }),
                Item::Int(n) => {
                    let int = ShortInt::new(n);
                    Some(Head { code: INT_CODES + (int.as_bytes().len() as u8 - 1), int })
                }
            }
        }

        /// What follows the code.
        #[inline]
        pub(crate) fn body<'b>(&'b self, member: &Item<'b>) -> &'b [u8] {
            match member {
                Item::Bytes(text) => text,
                Item::Int(_) => self.int.as_bytes(),
            }
        }
    }

    /// Where the first item is, behind the count.
    const FIRST: usize = 1;

    /// What follows a code.
    #[inline]
    fn body_len(code: u8) -> usize {
        if code < INT_CODES { usize::from(code) } else { usize::from(code - INT_CODES) + 1 }
    }

    /// The item at `at`, and where the next begins.
    #[inline]
    fn read(image: &[u8], at: usize) -> (Item<'_>, usize) {
        let code = image[at];
        let end = at + 1 + body_len(code);
        debug_assert!(end <= image.len(), "an item that is cut off, at {at}");
        let body = &image[at + 1..end];
        (if code < INT_CODES { Item::Bytes(body) } else { Item::Int(read_int(body)) }, end)
    }

    /// Every member in order of insertion, with the bytes it takes.
    pub fn iter(image: &[u8]) -> impl Iterator<Item = (Range<usize>, Item<'_>)> + '_ {
        let mut at = FIRST;
        std::iter::from_fn(move || {
            let start = at;
            (start < image.len()).then(|| {
                let (item, end) = read(image, start);
                at = end;
                (start..end, item)
            })
        })
    }

    /// How many members there are. O(1).
    pub fn len(image: &[u8]) -> usize {
        image.first().map_or(0, |count| usize::from(*count))
    }

    /// Where `member` is.
    #[inline]
    pub fn find(image: &[u8], member: Item<'_>) -> Option<Range<usize>> {
        let head = Head::of(member)?;
        let (code, body) = (head.code, head.body(&member));
        // Most members of a set are as long as the one that is looked for. Where the processor guesses that
        // right, it need not wait for one code to know where the next is.
        let (mut at, probe, bytes) = (FIRST, Probe::new(body), 1 + body.len());
        prefetch_walk(image);
        while let Some(here) = image.get(at) {
            if *here == code {
                if probe.is_at(image, at + 1) {
                    return Some(at..at + bytes);
                }
                at += bytes;
            } else {
                at += 1 + body_len(*here);
            }
        }
        None
    }

    /// How long the image of these members is.
    pub fn len_bytes_of(members: &[Item<'_>]) -> usize {
        usize::from(!members.is_empty()) + members.iter().map(|member| item_bytes(*member)).sum::<usize>()
    }

    /// How long the image is with one more member.
    pub fn len_bytes_with(image: &[u8], member: Item<'_>) -> usize {
        image.len().max(FIRST) + item_bytes(member)
    }

    fn item_bytes(member: Item<'_>) -> usize {
        1 + match member {
            Item::Bytes(text) => text.len(),
            Item::Int(n) => int_len(n),
        }
    }

    /// Removes a member that [`find`] has found.
    pub fn remove(image: &mut impl Pliable, member: Range<usize>) {
        image.gap(member.start, member.len(), 0);
        image.bytes_mut()[0] -= 1;
        if image.bytes().len() == FIRST {
            image.gap(0, FIRST, 0);
        }
    }

    /// Adds a member that is not there, of at most [`TEXT_BYTES_MAX`] bytes, behind all others, which are no
    /// more than 254.
    pub fn append(image: &mut impl Pliable, member: Item<'_>) {
        debug_assert!(find(image.bytes(), member).is_none(), "a member comes once");
        if image.bytes().is_empty() {
            image.gap(0, 0, FIRST);
        }
        let head = Head::of(member).expect("only what fits is written");
        let body = head.body(&member);
        let place = image.gap(image.bytes().len(), 0, 1 + body.len());
        place[0] = head.code;
        place[1..].copy_from_slice(body);
        count_one(image.bytes_mut());
    }

    /// The same in a buffer, where all members of the image were found to be different before.
    pub fn append_new(image: &mut Vec<u8>, member: Item<'_>) {
        if image.is_empty() {
            image.push(0);
        }
        count_one(image);
        let head = Head::of(member).expect("only what fits is written");
        image.push(head.code);
        image.extend_from_slice(head.body(&member));
    }

    fn count_one(image: &mut [u8]) {
        image[0] = image[0].checked_add(1).expect("an image of items has at most 255");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn the_examples_in_the_opener_are_true() {
        let mut image = Vec::new();
        for value in [5, 300, -2] {
            let at = ints::find(&image, value).unwrap_err();
            ints::insert(&mut image, at, value);
        }
        assert_eq!(image, [2, 0xfe, 0xff, 5, 0, 0x2c, 1]);
        let mut image = Vec::new();
        for member in [Item::Bytes(b"tag7"), Item::Int(300), Item::Bytes(b"x")] {
            items::append(&mut image, member);
        }
        assert_eq!(image, b"\x03\x04tag7\xf9\x2c\x01\x01x");
    }

    #[test]
    fn images_of_integers_agree_with_a_sorted_set() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            let (mut image, mut twin) = (Vec::new(), BTreeSet::new());
            let shift = random.below(64);
            for _ in 0..100 {
                let value = random.next_u64() as i64 >> shift;
                match ints::find(&image, value) {
                    Ok(index) => {
                        ints::remove(&mut image, index);
                        assert!(twin.remove(&value));
                    }
                    Err(index) => {
                        let len = ints::len_bytes_with(&image, value);
                        ints::insert(&mut image, index, value);
                        assert_eq!(image.len(), len);
                        assert!(twin.insert(value));
                    }
                }
                assert_eq!(ints::len(&image), twin.len());
                assert!(ints::iter(&image).eq(twin.iter().copied()));
            }
        }
    }

    #[test]
    fn images_of_items_agree_with_a_list() {
        let mut random = Random::new(6);
        let (mut image, mut twin): (Vec<u8>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        for _ in 0..5000 {
            let text = match random.below(4) {
                0 => (random.next_u64() as i64 >> random.below(64)).to_string().into_bytes(),
                1 => vec![b'x'; random.below(TEXT_BYTES_MAX as u64 + 1) as usize],
                _ => random.below(40).to_string().repeat(1 + random.below(3) as usize).into_bytes(),
            };
            let member = Item::classify(&text);
            match items::find(&image, member) {
                Some(range) => {
                    items::remove(&mut image, range);
                    let at = twin.iter().position(|other| *other == text);
                    drop(twin.remove(at.expect("the image had it")));
                }
                None => {
                    let len_bytes = items::len_bytes_with(&image, member);
                    items::append(&mut image, member);
                    assert_eq!(image.len(), len_bytes);
                    twin.push(text);
                }
            }
            assert_eq!(items::len(&image), twin.len());
            if twin.len() > 40 {
                image.clear();
                twin.clear();
            }
        }
        let texts = items::iter(&image).map(|(_, item)| {
            let mut text = Vec::new();
            item.append_to(&mut text);
            text
        });
        assert!(texts.eq(twin.iter().cloned()));
        assert_eq!(items::find(&image, Item::Bytes(&[b'x'; TEXT_BYTES_MAX + 1])), None);
    }
}
