//! How large a collection may be that lies inside its entry.
//!
//! Outside it has a header of 80 bytes and an allocation of its own, rounded up: of a few hundred bytes that
//! is a third. Inside, whoever looks for an element walks over the others, and an edit copies all of them. So
//! where there are many bytes there must be few elements. What is longer than some hundred bytes lies in a
//! block of its own, to which nothing is added but the pointer and some twenty bytes
//! (`pack::map`, "Payloads outside their leaf").

/// What a few elements may take together, whatever the type.
pub(crate) const FEW_BYTES_MAX: usize = 2048;

/// So many bytes an image may have that is of so many elements at most.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) bytes: usize,
    pub(crate) len: u64,
}

/// The limits for collections of one type: steps of more and more bytes and fewer and fewer elements.
pub(crate) struct Inside<const STEPS: usize>(pub(crate) [Step; STEPS]);

impl<const STEPS: usize> Inside<STEPS> {
    /// The most elements that any image has.
    pub(crate) const fn len_max(&self) -> u64 {
        self.0[0].len
    }

    /// So many bytes are no more than an image of any length may have.
    pub(crate) const fn bytes_of_any(&self) -> usize {
        self.0[0].bytes
    }

    /// Whether a collection outside, of which an image would take so many bytes, returns into its entry: far
    /// enough below the limits that one which swings around them stays outside.
    #[inline]
    pub(crate) fn takes_back(&self, bytes: usize, len: u64) -> bool {
        let step = self.0.iter().find(|step| bytes <= step.bytes / 2);
        step.is_some_and(|step| len <= step.len / 2)
    }

    /// Whether an image of so many bytes may stay in its entry. `len` is called only where it matters.
    #[inline]
    pub(crate) fn holds(&self, bytes: usize, len: impl FnOnce() -> u64) -> bool {
        let step = self.0.iter().find(|step| bytes <= step.bytes);
        step.is_some_and(|step| step.len == u64::MAX || len() <= step.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_elements_may_take_more_bytes() {
        let step = |bytes, len| Step { bytes, len };
        let limits = Inside([step(192, 128), step(512, 64), step(2048, 32)]);
        let holds = |bytes, len| limits.holds(bytes, || len);
        assert!(holds(192, 128) && holds(512, 64) && holds(2048, 32));
        assert!(!holds(192, 129) && !holds(193, 65) && !holds(513, 33) && !holds(2049, 1));
        assert!(limits.takes_back(96, 64) && limits.takes_back(256, 32) && limits.takes_back(1024, 16));
        assert!(!limits.takes_back(96, 65) && !limits.takes_back(97, 33) && !limits.takes_back(257, 17));
        assert!(!limits.takes_back(1025, 1));
    }
}
