//! Intsets: sorted integers of one width.
//!
//! ```text
//! | bytes of an integer, 2, 4 or 8: u32 | number of integers: u32 | the integers, the lowest byte first |
//! ```
use super::{Broken, Bytes};

const HEADER_BYTES: usize = 8;

/// The integers of an intset, ascending.
pub struct IntSet<'b> {
    bytes: Bytes<'b>,
    width: usize,
    left: usize,
    before: Option<i64>,
}

impl<'b> IntSet<'b> {
    /// Checks the header, and that the integers are there.
    pub fn new(bytes: &'b [u8]) -> Result<IntSet<'b>, Broken> {
        let mut left = Bytes::new(bytes);
        let width = left.u32()? as usize;
        let count = left.u32()? as usize;
        if !matches!(width, 2 | 4 | 8) {
            return Err(Broken { what: "an intset's integers are of no width", at: 0 });
        }
        if count.checked_mul(width) != Some(bytes.len() - HEADER_BYTES) {
            return Err(Broken { what: "an intset's length is not that of its bytes", at: 4 });
        }
        Ok(IntSet { bytes: left, width, left: count, before: None })
    }

    /// How many integers are left.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// All that are left.
    pub fn values(mut self) -> Result<Vec<i64>, Broken> {
        let mut values = Vec::with_capacity(self.left);
        while let Some(value) = self.next_int()? {
            values.push(value);
        }
        Ok(values)
    }

    /// The next integer; None behind the last one.
    pub fn next_int(&mut self) -> Result<Option<i64>, Broken> {
        if self.left == 0 {
            return Ok(None);
        }
        let at = self.bytes.at;
        let value = self.bytes.int(self.width)?;
        if self.before.is_some_and(|before| before >= value) {
            return Err(Broken { what: "an intset's integers do not ascend", at });
        }
        (self.left, self.before) = (self.left - 1, Some(value));
        Ok(Some(value))
    }
}

/// The bytes of an intset of these integers, which ascend.
pub fn written(values: &[i64]) -> Vec<u8> {
    debug_assert!(values.is_sorted_by(|a, b| a < b), "an intset's integers ascend");
    let fits = |bits: u32| values.iter().all(|value| *value >> (bits - 1) == *value >> 63);
    let width = if fits(16) {
        2
    } else if fits(32) {
        4
    } else {
        8
    };
    let mut bytes = Vec::with_capacity(HEADER_BYTES + width * values.len());
    bytes.extend_from_slice(&(width as u32).to_le_bytes());
    bytes.extend_from_slice(&(values.len() as u32).to_le_bytes());
    values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()[..width]));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use std::collections::BTreeSet;

    fn read(bytes: &[u8]) -> Result<Vec<i64>, Broken> {
        let (mut set, mut values) = (IntSet::new(bytes)?, Vec::new());
        while let Some(value) = set.next_int()? {
            values.push(value);
        }
        Ok(values)
    }

    #[test]
    fn what_is_written_is_read_and_no_wider_than_it_must_be() {
        let mut random = Random::new(1);
        for bits in 1..=64 {
            for count in [0, 1, 40] {
                let values: BTreeSet<i64> =
                    (0..count).map(|_| random.next_u64() as i64 >> (64 - bits)).collect();
                let values: Vec<i64> = values.into_iter().collect();
                let bytes = written(&values);
                let width = if bits <= 16 {
                    2
                } else if bits <= 32 {
                    4
                } else {
                    8
                };
                assert!(bytes.len() <= HEADER_BYTES + width * values.len());
                assert_eq!(read(&bytes), Ok(values));
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = Random::new(2);
        for round in 0..20_000 {
            let mut bytes = vec![0; random.below(40) as usize];
            random.fill(&mut bytes);
            if let [width, _, _, _, count, high @ .., _, _] = &mut bytes[..]
                && round % 2 == 0
            {
                (*width, *count) = (1 << random.below(4), random.below(12) as u8);
                high.fill(0);
            }
            let _ = read(&bytes);
        }
    }

    #[test]
    fn integers_that_do_not_ascend_and_other_widths_are_refused() {
        let two = written(&[1, 2]);
        let swapped = [&two[..8], &two[10..], &two[8..10]].concat();
        assert_eq!(read(&swapped).unwrap_err().what, "an intset's integers do not ascend");
        assert!(read(&[&[3][..], &two[1..]].concat()).is_err());
        assert!(read(&two[..two.len() - 1]).is_err());
        assert!(read(&[0; 7]).is_err());
    }
}
