//! An integer of 1 to 64 bits at any bit of a string, most significant bit first.
//!
//! ```text
//! i5 at 6      bits  ......SV VVV.....     S the sign, V the rest; here over the end of the first byte
//! ```
//!
//! At most 9 bytes hold one, so it is read and written as a part of a 128-bit number. Arithmetic is done in
//! 128 bits too, where no overflow of 64 can hide, and cut to the width by one of three rules.

/// What kind of integer, and how wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    sign: Sign,
    width: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Signed,
    Unsigned,
}

/// What becomes of a value that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overflow {
    /// Its lowest bits are written.
    Wrap,
    /// The nearest value that fits is written.
    Saturate,
    /// Nothing is written.
    Fail,
}

impl Format {
    /// `i1` to `i64`, `u1` to `u63`: the reply is a signed 64-bit number, so `u64` would not fit.
    pub(super) fn parse(text: &[u8]) -> Option<Format> {
        let (letter, digits) = text.split_first()?;
        let (sign, width_max) = match letter {
            b'i' => (Sign::Signed, 64),
            b'u' => (Sign::Unsigned, 63),
            _ => return None,
        };
        let width = base::text::parse_u64(digits).filter(|width| (1..=width_max).contains(width))?;
        Some(Format { sign, width: width as u32 })
    }

    pub(super) fn width(self) -> u64 {
        u64::from(self.width)
    }

    fn bounds(self) -> (i128, i128) {
        match self.sign {
            Sign::Signed => (-(1 << (self.width - 1)), (1 << (self.width - 1)) - 1),
            Sign::Unsigned => (0, (1 << self.width) - 1),
        }
    }

    /// The value of the lowest `width` bits.
    fn cut(self, bits: i128) -> i64 {
        let unused_bits = 128 - self.width;
        match self.sign {
            Sign::Signed => (bits << unused_bits >> unused_bits) as i64,
            Sign::Unsigned => ((bits as u128) << unused_bits >> unused_bits) as i64,
        }
    }

    /// `value` as it is stored under this rule of overflow; None where it does not fit under
    /// [`Overflow::Fail`].
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = self.bounds();
        match overflow {
            _ if (min..=max).contains(&value) => Some(value as i64),
            Overflow::Wrap => Some(self.cut(value)),
            Overflow::Saturate => Some(value.clamp(min, max) as i64),
            Overflow::Fail => None,
        }
    }

    /// What SET stores. A negative number for an unsigned field is the large number of the same 64 bits.
    pub(super) fn convert(self, value: i64, overflow: Overflow) -> Option<i64> {
        let value = match self.sign {
            Sign::Signed => i128::from(value),
            Sign::Unsigned => i128::from(value as u64),
        };
        self.fit(value, overflow)
    }

    pub(super) fn add(self, old: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        self.fit(i128::from(old) + i128::from(increment), overflow)
    }

    /// The integer that begins at bit `offset`; what lies behind the end of `bytes` is zero.
    pub(super) fn read(self, bytes: &[u8], offset: u64) -> i64 {
        let start = usize::try_from(offset / 8).unwrap_or(usize::MAX).min(bytes.len());
        let window = Window::read(&bytes[start..]);
        self.cut((window.0 >> self.shift(offset)) as i128)
    }

    /// Writes an integer that fits, into bytes that reach so far.
    pub(super) fn write(self, bytes: &mut [u8], offset: u64, value: i64) {
        let bytes = &mut bytes[(offset / 8) as usize..];
        let (shift, mask) = (self.shift(offset), u128::MAX >> (128 - self.width));
        let old = Window::read(bytes).0;
        Window(old & !(mask << shift) | (value as u128 & mask) << shift).write(bytes);
    }

    /// How far the integer is from the lowest bit of the window that begins in its first byte.
    fn shift(self, offset: u64) -> u32 {
        128 - self.width - (offset % 8) as u32
    }
}

/// The first 16 bytes, or as many as there are, as the highest of a number.
struct Window(u128);

impl Window {
    fn read(bytes: &[u8]) -> Window {
        let mut window = [0; 16];
        let len = bytes.len().min(16);
        window[..len].copy_from_slice(&bytes[..len]);
        Window(u128::from_be_bytes(window))
    }

    fn write(self, bytes: &mut [u8]) {
        let len = bytes.len().min(16);
        bytes[..len].copy_from_slice(&self.0.to_be_bytes()[..len]);
    }
}
