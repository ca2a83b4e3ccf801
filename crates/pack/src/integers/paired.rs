//! The paired leaf: integers that rise, each once, and an integer for each; the leaf of a map of integers
//! ([`crate::integers::int_map`]).
//!
//! ```text
//! +-------+----------+----------+---------+---------+----------------+------------------+
//! | count | width of | width of | base of | base of | keys, rising,  | values,          |
//! | u16   | a key u8 | a value  | keys    | values  | one code each  | one code each    |
//! |       |          | u8       | i64     | i64     |                |                  |
//! +-------+----------+----------+---------+---------+----------------+------------------+
//! ```
//!
//! A code is a number less the base of its column, in the 0 to 8 bytes that all codes of the column have.
//! Keys 7, 8 and 10 with the values 500, 501 and 500:
//!
//! ```text
//! 03 00 01 01  07 00 00 00 00 00 00 00  f4 01 00 00 00 00 00 00  00 01 03  00 01 00
//! ```
//!
//! For a number that its column cannot say the leaf is written anew. Codes of whole bytes can nearly always
//! say more numbers than there are; the base is chosen so that these lie where the next numbers are likely:
//! above the keys where keys rise, and on both sides of the values, so that counters go up and down in place.
//!
//! Cost: the two codes an element (consecutive keys: 1 byte), 32 bytes a leaf with its block's header. Tried
//! for keys and not taken: the Elias-Fano code (`code/elias_fano.rs`). It would save a byte or two of a
//! random key's four or five, and values cannot follow it.
use crate::code::fixed_width::{code_max, count_below, fits, read_code, write_code};
use crate::code::two_columns;
use crate::code::words::bytes_of;
use crate::memory::block::Block;

/// A leaf with more elements than this is split.
pub(crate) const COUNT_MAX: usize = 256;

const HEAD_BYTES: usize = 20;

/// On which side of its numbers a column has room for further ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Above,
    Below,
    Around,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    base: i64,
    /// Bytes of a code, 0..=8.
    width: usize,
}

impl Column {
    /// The narrowest column that can say these numbers, with the room that its width leaves where `room`
    /// says.
    fn fit(numbers: &[i64], room: Room) -> Column {
        let (Some(low), Some(high)) = (numbers.iter().min(), numbers.iter().max()) else {
            return Column { base: 0, width: 0 };
        };
        let span = high.wrapping_sub(*low) as u64;
        let width = bytes_of(span);
        let spare = code_max(width) - span;
        let below = match room {
            Room::Above => 0,
            Room::Below => spare,
            Room::Around => spare / 2,
        };
        Column { base: low.saturating_sub_unsigned(below), width }
    }

    /// What is stored for a number; None where the column cannot say it.
    #[inline]
    fn code(&self, number: i64) -> Option<u64> {
        let code = number.wrapping_sub(self.base) as u64;
        (number >= self.base && fits(code, self.width)).then_some(code)
    }

    /// The number that a code stands for.
    #[inline]
    fn number(&self, code: u64) -> i64 {
        debug_assert!(fits(code, self.width), "{code} in {self:?}");
        self.base.wrapping_add(code as i64)
    }
}

#[derive(Clone, Copy, Debug)]
struct Layout {
    count: usize,
    keys: Column,
    values: Column,
}

impl Layout {
    #[inline]
    fn read(bytes: &[u8]) -> Layout {
        let head: &[u8; HEAD_BYTES] = bytes.first_chunk().expect("a leaf is longer than its header");
        let ([count_low, count_high, key_width, value_width, bases @ ..], widths_max) = (*head, 8);
        assert!(key_width <= widths_max && value_width <= widths_max, "no column is so wide");
        let bases = bases.as_chunks::<8>().0;
        Layout {
            count: usize::from(u16::from_le_bytes([count_low, count_high])),
            keys: Column { base: i64::from_le_bytes(bases[0]), width: usize::from(key_width) },
            values: Column { base: i64::from_le_bytes(bases[1]), width: usize::from(value_width) },
        }
    }

    fn write(&self, target: &mut Vec<u8>) {
        target.extend_from_slice(&(self.count as u16).to_le_bytes());
        target.extend_from_slice(&[self.keys.width as u8, self.values.width as u8]);
        target.extend_from_slice(&self.keys.base.to_le_bytes());
        target.extend_from_slice(&self.values.base.to_le_bytes());
    }

    fn key_at(&self, index: usize) -> usize {
        HEAD_BYTES + index * self.keys.width
    }

    fn value_at(&self, index: usize) -> usize {
        self.key_at(self.count) + index * self.values.width
    }
}

/// A leaf, to read.
#[derive(Clone, Copy)]
pub(crate) struct Paired<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

impl<'a> Paired<'a> {
    /// Reads the header.
    #[inline]
    pub(crate) fn open(bytes: &'a [u8]) -> Paired<'a> {
        let layout = Layout::read(bytes);
        debug_assert_eq!(layout.value_at(layout.count), bytes.len(), "{layout:?}");
        Paired { bytes, layout }
    }

    /// How many elements there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.layout.count
    }

    /// How many keys are less than this one.
    #[inline]
    pub(crate) fn position(&self, key: i64) -> usize {
        let keys = &self.layout.keys;
        match keys.code(key) {
            Some(code) if self.are_consecutive_to(code) => code as usize,
            Some(code) => count_below(self.bytes, self.layout.key_at(0), keys.width, self.count(), code),
            None if key < keys.base => 0,
            None => self.count(),
        }
    }

    /// Whether all codes of keys from 0 to this one are there. As no code comes twice, one look tells: code
    /// `n` has the index `n` only if none below it is missing.
    #[inline]
    fn are_consecutive_to(&self, code: u64) -> bool {
        let (keys, first) = (&self.layout.keys, self.layout.key_at(0));
        code < self.count() as u64
            && read_code(self.bytes, first + code as usize * keys.width, keys.width) == code
    }

    /// The index of the element with this key; None where there is none.
    #[inline]
    pub(crate) fn find(&self, key: i64) -> Option<usize> {
        let index = self.position(key);
        (index < self.count() && self.key(index) == key).then_some(index)
    }

    /// The key of element `index`.
    #[inline]
    pub(crate) fn key(&self, index: usize) -> i64 {
        assert!(index < self.count(), "key {index} of {}", self.count());
        let keys = &self.layout.keys;
        keys.number(read_code(self.bytes, self.layout.key_at(index), keys.width))
    }

    /// The value of element `index`.
    #[inline]
    pub(crate) fn value(&self, index: usize) -> i64 {
        assert!(index < self.count(), "value {index} of {}", self.count());
        let values = &self.layout.values;
        values.number(read_code(self.bytes, self.layout.value_at(index), values.width))
    }

    /// The elements from `index` on.
    pub(crate) fn elements(&self, index: usize) -> impl Iterator<Item = (i64, i64)> + use<'a> {
        let leaf = *self;
        (index..leaf.count()).map(move |index| (leaf.key(index), leaf.value(index)))
    }

    /// All keys, and all values.
    pub(crate) fn unzip(&self) -> (Vec<i64>, Vec<i64>) {
        self.elements(0).unzip()
    }
}

/// A leaf of these elements, the keys rising.
pub(crate) fn build(keys: &[i64], values: &[i64], room: Room) -> Block {
    assert!(keys.len() == values.len() && keys.len() < 1 << 16, "a value for each key");
    debug_assert!(keys.is_sorted_by(|a, b| a < b), "keys rise");
    let layout = Layout {
        count: keys.len(),
        keys: Column::fit(keys, room),
        values: Column::fit(values, Room::Around),
    };
    let mut leaf = Vec::with_capacity(layout.value_at(layout.count));
    layout.write(&mut leaf);
    leaf.resize(layout.value_at(layout.count), 0);
    for (index, (key, value)) in keys.iter().zip(values).enumerate() {
        let code = |column: &Column, number| column.code(number).expect("the columns were fitted to these");
        write_code(&mut leaf, layout.key_at(index), layout.keys.width, code(&layout.keys, *key));
        write_code(&mut leaf, layout.value_at(index), layout.values.width, code(&layout.values, *value));
    }
    Block::from_slice(&leaf)
}

/// Adds an element before element `index`, where its key belongs in the order.
pub(crate) fn insert(block: &mut Block, index: usize, key: i64, value: i64) {
    let leaf = Paired::open(block);
    let layout = leaf.layout;
    debug_assert!(leaf.position(key) == index && leaf.find(key).is_none(), "{key} before {index}");
    let (Some(key_code), Some(value_code)) = (layout.keys.code(key), layout.values.code(value)) else {
        let (mut keys, mut values) = leaf.unzip();
        let room = match index {
            _ if index == layout.count => Room::Above,
            0 => Room::Below,
            _ => Room::Around,
        };
        keys.insert(index, key);
        values.insert(index, value);
        *block = build(&keys, &values, room);
        return;
    };
    let codes = [(layout.keys.width, key_code), (layout.values.width, value_code)];
    two_columns::insert(block, HEAD_BYTES, layout.count, index, codes);
}

/// Gives an element another value.
pub(crate) fn set_value(block: &mut Block, index: usize, value: i64) {
    let leaf = Paired::open(block);
    let layout = leaf.layout;
    assert!(index < layout.count, "value {index} of {}", layout.count);
    if let Some(code) = layout.values.code(value) {
        return write_code(block.make_mut(), layout.value_at(index), layout.values.width, code);
    }
    let (keys, mut values) = leaf.unzip();
    values[index] = value;
    *block = build(&keys, &values, Room::Around);
}

/// Takes an element out.
pub(crate) fn remove(block: &mut Block, index: usize) {
    let layout = Layout::read(block);
    two_columns::remove(block, HEAD_BYTES, layout.count, index, [layout.keys.width, layout.values.width]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_in_the_opener_is_true() {
        let leaf = build(&[7, 8, 10], &[500, 501, 500], Room::Above);
        // The example leaves out the room around the values, so it is taken off here.
        let spare = (255 - 1) / 2;
        let mut expected = vec![3, 0, 1, 1, 7, 0, 0, 0, 0, 0, 0, 0];
        expected.extend_from_slice(&(500_i64 - spare).to_le_bytes());
        expected.extend_from_slice(&[0, 1, 3, spare as u8, spare as u8 + 1, spare as u8]);
        assert_eq!(&leaf[..], expected);
    }

    #[test]
    fn every_key_is_found_whether_or_not_some_below_it_are_missing() {
        for count in 1..=COUNT_MAX as i64 {
            for (missing, room) in [(count, Room::Above), (count / 2, Room::Below), (0, Room::Around)] {
                let keys: Vec<i64> = (0..=count).filter(|key| *key != missing).map(|key| key - 7).collect();
                let leaf = build(&keys, &vec![0; keys.len()], room);
                let leaf = Paired::open(&leaf);
                for key in -9..=count - 4 {
                    assert_eq!(leaf.position(key), keys.partition_point(|known| *known < key));
                    assert_eq!(leaf.find(key), keys.iter().position(|known| *known == key));
                }
            }
        }
    }

    #[test]
    fn columns_say_the_ends_of_all_integers() {
        for room in [Room::Above, Room::Below, Room::Around] {
            for numbers in [&[i64::MIN, i64::MAX][..], &[i64::MAX], &[i64::MIN], &[i64::MIN, i64::MIN + 1]] {
                let column = Column::fit(numbers, room);
                for number in numbers {
                    let code = column.code(*number).unwrap_or_else(|| panic!("{number} in {column:?}"));
                    assert_eq!(column.number(code), *number);
                }
            }
        }
        let column = Column::fit(&[5, 5], Room::Around);
        assert_eq!((column.width, column.code(6), column.code(4)), (0, None, None));
    }
}
