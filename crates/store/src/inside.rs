//! How large a collection may be that lies inside its entry.
//!
//! Outside it has a header of 80 bytes and an allocation of its own, rounded up: of a few hundred bytes that
//! is a third. Inside, whoever looks for an element walks over the others, and an edit copies all of them. So
//! where there are many bytes there must be few elements. What is longer than some hundred bytes lies in a
//! block of its own, to which nothing is added but the pointer and some twenty bytes
//! (`pack::map`, "Payloads outside their leaf").

/// What a few elements may take together, whatever the type.
pub(crate) const FEW_BYTES_MAX: usize = 2048;

/// The limits for collections of one type.
pub(crate) struct Inside {
    pub(crate) bytes_max: usize,
    pub(crate) len_max: u64,
    /// So many elements may take [`FEW_BYTES_MAX`].
    pub(crate) few: u64,
}

impl Inside {
    /// Whether a collection outside, of which an image would take so many bytes, returns into its entry: far
    /// enough below the limits that one which swings around them stays outside.
    #[inline]
    pub(crate) const fn takes_back(&self, bytes: usize, len: u64) -> bool {
        match bytes <= self.bytes_max / 2 {
            true => self.len_max == u64::MAX || len <= self.len_max / 2,
            false => bytes <= FEW_BYTES_MAX / 2 && len <= self.few / 2,
        }
    }

    /// Whether an image of so many bytes may stay in its entry. `len` is called only where it matters.
    #[inline]
    pub(crate) fn holds(&self, bytes: usize, len: impl FnOnce() -> u64) -> bool {
        match bytes <= self.bytes_max {
            true => self.len_max == u64::MAX || len() <= self.len_max,
            false => bytes <= FEW_BYTES_MAX && len() <= self.few,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_long_elements_may_take_more_bytes_than_many_short_ones() {
        let limits = Inside { bytes_max: 192, len_max: 128, few: 32 };
        let holds = |bytes, len| limits.holds(bytes, || len);
        assert!(holds(192, 128) && holds(2048, 32));
        assert!(!holds(192, 129) && !holds(193, 33) && !holds(2049, 1));
        assert!(limits.takes_back(96, 64) && limits.takes_back(1024, 16));
        assert!(!limits.takes_back(96, 65) && !limits.takes_back(97, 17) && !limits.takes_back(1025, 1));
    }
}
