//! Edits of an image that lies in a block of its own, made where it lies. A draft
//! ([`Draft`](crate::image::Draft)) costs two copies of the whole, of which a pop needs a few bytes.
//!
//! ```text
//! an image of texts:   | kind, count | entry 0, entry 1, ... entry n | length n, ... length 1, length 0 |
//! at the back, one place changes:                          ^^^^^^^^^^^^^^^^^^^
//! elsewhere, two:                              ^^^^^^^                           ^^^^^^^^
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
use base::Item;
use std::ops::Range;

/// Elements of an image that are about to be removed.
pub struct Cut {
    data: Range<usize>,
    codes: Range<usize>,
    /// How many elements stay.
    left: usize,
}

impl Cut {
    /// `count` elements of `image` from `index` on; None where they cannot be removed where they lie, or
    /// nothing would be left.
    pub fn of(image: &[u8], index: u64, count: u64) -> Option<Cut> {
        let strings = texts(image)?;
        let range = index as usize..index.checked_add(count)? as usize;
        let left = strings.count().checked_sub(range.len())?;
        (left > 0 && range.end <= strings.count() && tight::is_short_count(image, strings.count())).then(
            || {
                let (data, codes) = strings.parts(range);
                Cut { data, codes, left }
            },
        )
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

/// An element that is about to be added to an image.
pub struct Addition<'a> {
    stored: Stored<'a>,
    data: usize,
    code: usize,
    width: usize,
    count: usize,
}

impl<'a> Addition<'a> {
    /// Of a text before element `index` of `image`, or behind all; None where it cannot be added where the
    /// image lies.
    pub fn of(image: &[u8], index: u64, value: &'a [u8]) -> Option<Addition<'a>> {
        let strings = texts(image)?;
        let stored = Stored::new(Item::classify(value));
        let count = strings.count() + 1;
        let (width, (data, code)) = (strings.code_bytes(stored.extent)?, strings.places(index as usize));
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

/// An element that is about to take the place of another.
pub struct Replacement<'a> {
    stored: Stored<'a>,
    data: Range<usize>,
    code: Range<usize>,
}

impl<'a> Replacement<'a> {
    /// Of element `index` of `image`, which exists, by a text; None where that cannot be done where the image
    /// lies.
    pub fn of(image: &[u8], index: u64, value: &'a [u8]) -> Option<Replacement<'a>> {
        let strings = texts(image)?;
        let stored = Stored::new(Item::classify(value));
        strings.code_bytes(stored.extent)?;
        let (data, code) = strings.parts(index as usize..index as usize + 1);
        Some(Replacement { stored, data, code })
    }

    /// How many bytes come, and how many go.
    pub fn bytes(&self) -> (usize, usize) {
        (self.stored.len(), self.data.len())
    }

    /// Makes the change in the image for which it was made.
    pub fn make(self, image: &mut Apart<'_>) {
        let Replacement { stored, data, code } = self;
        if !code.is_empty() {
            write_code(&mut image.bytes_mut()[code], stored.extent);
        }
        let place = match stored.len() == data.len() {
            true => &mut image.bytes_mut()[data],
            false => image.gap(data.start, data.len(), stored.len()),
        };
        place.copy_from_slice(stored.bytes());
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
#[path = "in_place_properties.rs"]
mod properties;
