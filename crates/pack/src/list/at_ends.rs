//! Pushes and pops at the ends of an image that lies in a block of its own, made where it lies. A draft
//! ([`Draft`](crate::image::Draft)) costs two copies of the whole, of which a pop needs a few bytes.
//!
//! ```text
//! an image of texts:   | kind, count | entry 0, entry 1, ... entry n | length n, ... length 1, length 0 |
//! at the back, one place changes:                          ^^^^^^^^^^^^^^^^^^^
//! at the front, two:                 ^^^^^^^                                                 ^^^^^^^^
//! ```
//!
//! The back is the end that was pushed to when the list was short, so it is the cheaper one for a queue that
//! is pushed. What an image cannot take as it is goes through a draft: texts too long for its column of
//! lengths, and all edits of images of integers.
use crate::code::lengths::Stored;
use crate::list::leaf::Leaf;
use crate::list::strings::{Strings, write_code};
use crate::list::tight;
use crate::memory::apart::{Apart, Pliable};
use crate::tree::end::End;
use base::Item;
use std::ops::Range;

/// Elements at an end of an image that are about to be removed.
pub struct Cut {
    data: Range<usize>,
    codes: Range<usize>,
    /// How many elements stay.
    left: usize,
}

impl Cut {
    /// The last `count` elements at an end of `image`; None where they cannot be removed where they lie, or
    /// nothing would be left.
    pub fn of(image: &[u8], end: End, count: u64) -> Option<Cut> {
        let strings = texts(image)?;
        let left = strings.count().checked_sub(count as usize).filter(|left| *left > 0)?;
        tight::is_short_count(image, strings.count()).then_some(())?;
        let (data, codes) = strings.parts_at(end, count as usize);
        Some(Cut { data, codes, left })
    }

    /// How many bytes the image loses.
    pub fn bytes(&self) -> usize {
        self.data.len() + self.codes.len()
    }

    /// Removes them from the image that they were found in.
    pub fn remove(self, image: &mut Apart<'_>) {
        let Cut { data, codes, left } = self;
        if data.end == codes.start {
            image.gap(data.start, codes.end - data.start, 0);
        } else {
            image.gap(data.start, data.len(), 0);
            if !codes.is_empty() {
                image.gap(codes.start - data.len(), codes.len(), 0);
            }
        }
        tight::rewrite_count(image.bytes_mut(), left);
    }
}

/// An element that is about to be added at an end of an image.
pub struct Addition<'a> {
    stored: Stored<'a>,
    data: usize,
    code: usize,
    width: usize,
    count: usize,
}

impl<'a> Addition<'a> {
    /// Of a text at an end of `image`; None where it cannot be added where the image lies.
    pub fn of(image: &[u8], end: End, value: &'a [u8]) -> Option<Addition<'a>> {
        let strings = texts(image)?;
        let stored = Stored::new(Item::classify(value));
        let count = strings.count() + 1;
        let (data, code, width) = strings.places_at(end, stored.extent)?;
        tight::is_short_count(image, count).then_some(Addition { stored, data, code, width, count })
    }

    /// How many bytes the image gains.
    pub fn bytes(&self) -> usize {
        self.stored.len() + self.width
    }

    /// Adds it to the image for which it was made.
    pub fn add(self, image: &mut Apart<'_>) {
        let Addition { stored, data, code, width, count } = self;
        let len = stored.len();
        if data == code {
            let room = image.gap(data, 0, len + width);
            room[..len].copy_from_slice(stored.bytes());
            if width > 0 {
                write_code(&mut room[len..], stored.extent);
            }
        } else {
            if width > 0 {
                write_code(image.gap_before(code, 0, width, len), stored.extent);
            }
            image.gap(data, 0, len).copy_from_slice(stored.bytes());
        }
        tight::rewrite_count(image.bytes_mut(), count);
    }
}

/// An image of texts; None where it is empty or of integers.
fn texts(image: &[u8]) -> Option<Strings<'_>> {
    if image.is_empty() {
        return None;
    }
    match Leaf::open_tight(image) {
        Leaf::Strings(strings) => Some(strings),
        Leaf::Ints(_) => None,
    }
}

#[cfg(test)]
#[path = "at_ends_properties.rs"]
mod properties;
