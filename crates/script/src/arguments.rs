//! The arguments of `redis.call`, copied one by one into a buffer that every call uses again.
//!
//! On the path of every command of a script: nothing is allocated once the buffer has grown.
use crate::error;
use base::double::F64Text;
use base::short;
use base::text::append_i64;
use lua::Argument;
use resp::{Args, Span};

/// The bytes of some arguments, and where each lies.
#[derive(Default)]
pub(crate) struct Arguments {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// One of them was neither a string nor a number.
    has_other: bool,
}

/// A buffer of arguments, or of a reply, beyond this is given back before the next call, or when the script
/// has ended.
pub(crate) const KEPT_BYTES: usize = 1 << 20;

impl Arguments {
    /// Takes these in place of what was there.
    pub(crate) fn fill<'a>(&mut self, arguments: impl Iterator<Item = Argument<'a>>) {
        self.bytes.clear();
        self.spans.clear();
        self.has_other = false;
        for argument in arguments {
            self.push(argument);
        }
    }

    /// Gives its memory back if that is much.
    pub(crate) fn let_go(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES {
            *self = Arguments::default();
        }
    }

    /// The arguments as a command takes them, or the text of what is wrong with them.
    pub(crate) fn args(&self) -> Result<Args<'_>, &'static str> {
        if self.has_other {
            Err(error::BAD_TYPES)
        } else if self.spans.is_empty() {
            Err(error::NO_ARGUMENTS)
        } else {
            Ok(Args::new(&self.bytes, &self.spans))
        }
    }

    #[inline(always)]
    fn push(&mut self, argument: Argument<'_>) {
        let start = self.bytes.len();
        match argument {
            Argument::Bytes(bytes) => short::append(&mut self.bytes, bytes),
            Argument::Number(n) => self.push_number(n),
            Argument::Other => self.has_other = true,
        }
        self.spans.push(Span { start, len: self.bytes.len() - start });
    }

    #[inline]
    fn push_number(&mut self, n: f64) {
        // Beyond this Redis writes whole numbers with the digits that a double needs, and zeros.
        const WHOLE_MAX: f64 = (1_u64 << 62) as f64;
        if n.abs() <= WHOLE_MAX && n as i64 as f64 == n {
            append_i64(&mut self.bytes, n as i64);
        } else if n.is_nan() {
            self.bytes.extend_from_slice(if n.is_sign_negative() { b"-nan" } else { b"nan" });
        } else {
            self.bytes.extend_from_slice(F64Text::new().format(n));
        }
    }
}
