//! Replies: every RESP3 type, with the RESP2 form that Redis falls back to.
//!
//! | | RESP3 | RESP2 |
//! |---|---|---|
//! | null, null array | `_` | `$-1`, `*-1` |
//! | boolean | `#t` | `:1` |
//! | double | `,3.14` | bulk string of its text |
//! | big number, verbatim | `(123`, `=7\r\ntxt:abc` | bulk string |
//! | map, set, push | `%2`, `~2`, `>2` | `*4`, `*2`, `*2` |
//! | attribute | an attribute, `\|1` | nothing |
//!
//! On the path of every request: bytes are appended to one buffer, integers are written without `core::fmt`.
use crate::ProtocolError;
use crate::remainder::{Enough, Remainder};
use base::Item;
use base::double::{F64Text, whole_number};
use base::short::{self, SHORT_MAX};
use base::text::I64Text;
use std::ops::ControlFlow;

/// The version of the protocol that a client has chosen with HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// Appends replies to a buffer that the owner sends and reuses.
///
/// The buffer has a bound. What does not fit is left out, and the reply is *full* from then on: the client
/// will be closed and sees nothing of it, so only the owner of the buffer has to ask ([`Reply::is_due`]), and
/// commands are right without knowing. A loop that could go on for long asks [`Reply::is_full`] and ends. The
/// bound is on the buffer's room, and looked at only where the buffer must grow, so a reply that fits pays
/// nothing.
///
/// A command whose reply is long may leave a [`Remainder`] instead of writing all of it. The reply is due
/// then.
pub struct Reply {
    /// The replies so far.
    pub out: Vec<u8>,
    pub protocol: Protocol,
    /// The greatest capacity that `out` may get.
    bytes_max: usize,
    /// The length of `out` from which on the reply [is due](Reply::is_due); 0 when it is full.
    due_bytes: usize,
    remainder: Option<Box<dyn Remainder>>,
    /// Whether a long string may be left where it lies, to be sent from there. Not where a setting bounds
    /// what the client is owed: all of the reply counts then.
    pub may_leave_texts: bool,
    /// Whether a script gets it, which some commands answer in an order of their own.
    is_for_script: bool,
}

/// A reply of so many bytes is due: its owner may send it before the batch has ended.
const DUE_BYTES: usize = 64 << 10;
/// The longest header: a mark, 20 digits, a line's end.
const HEADER_BYTES_MAX: usize = 23;

impl Reply {
    /// An empty buffer without a bound. Allocates nothing.
    pub fn new(protocol: Protocol) -> Reply {
        Reply {
            out: Vec::new(),
            protocol,
            bytes_max: usize::MAX,
            due_bytes: DUE_BYTES,
            remainder: None,
            may_leave_texts: false,
            is_for_script: false,
        }
    }

    /// The same for what commands answer to a script.
    pub fn for_script() -> Reply {
        Reply { is_for_script: true, ..Reply::new(Protocol::Resp2) }
    }

    /// Whether a script gets it.
    pub fn is_for_script(&self) -> bool {
        self.is_for_script
    }

    /// Whether the client has chosen RESP3.
    pub fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// Bounds the buffer: from here on it gets a capacity of at most so many bytes.
    #[inline]
    pub fn bound(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// How many bytes fit below the bound.
    pub fn spare_bytes(&self) -> usize {
        self.bytes_max.saturating_sub(self.out.len())
    }

    /// Whether something did not fit. Then nothing of what is written here will be sent.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.due_bytes == 0
    }

    /// [`Reply::is_full`] for a walk that writes what it visits: `Break` if the reply is full.
    #[inline]
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Makes the reply full, so that its client is closed.
    pub fn give_up(&mut self) {
        self.due_bytes = 0;
    }

    /// Leaves the rest of the last command's reply to be written later. The command must have written its
    /// beginning, a header at least.
    pub fn leave(&mut self, remainder: Box<dyn Remainder>) {
        if !self.is_full() {
            debug_assert!(!self.out.is_empty() && self.remainder.is_none(), "a header stands before it");
            self.remainder = Some(remainder);
            self.due_bytes = 1;
        }
    }

    /// Takes the remainder that a command has left, for the server to go on with.
    pub fn take_remainder(&mut self) -> Option<Box<dyn Remainder>> {
        if !self.is_full() {
            self.due_bytes = DUE_BYTES;
        }
        self.remainder.take()
    }

    /// Whether a command has left a remainder.
    pub fn has_remainder(&self) -> bool {
        self.remainder.is_some()
    }

    /// Writes all that a command has left to be written.
    pub fn finish(&mut self) {
        if let Some(mut remainder) = self.take_remainder() {
            while remainder.write(self, Enough::MOST).is_continue() && !self.is_full() {}
        }
    }

    /// Whether the owner should look at the reply before the batch has ended: it is long enough to be sent,
    /// or has a remainder, or is full.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.out.len() >= self.due_bytes
    }

    /// Takes back all but the first `len` bytes, drops the remainder, and the reply is not full any more.
    pub fn cut(&mut self, len: usize) {
        self.out.truncate(len);
        self.due_bytes = DUE_BYTES;
        self.remainder = None;
    }

    /// Makes room for `bytes` more; false where the bound forbids it. Looks at the bound only where the
    /// buffer must grow.
    #[inline]
    fn room(&mut self, bytes: usize) -> bool {
        self.out.capacity() - self.out.len() >= bytes || self.grow(bytes)
    }

    /// Doubles the capacity as a vector does, within the bound. False, and the reply is full, where `bytes`
    /// do not fit.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, bytes: usize) -> bool {
        let wanted = self.out.len().saturating_add(bytes);
        if self.is_full() || wanted > self.bytes_max {
            self.due_bytes = 0;
            return false;
        }
        let doubled = self.out.capacity().saturating_mul(2).max(64);
        self.out.reserve_exact(doubled.clamp(wanted, self.bytes_max) - self.out.len());
        true
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.out.capacity() - self.out.len() >= bytes.len() {
            self.out.extend_from_slice(bytes);
        } else {
            self.put_growing(bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_growing(&mut self, bytes: &[u8]) {
        if self.grow(bytes.len()) {
            self.out.extend_from_slice(bytes);
        }
    }

    /// Appends replies that were written elsewhere.
    #[inline]
    pub fn append(&mut self, replies: &[u8]) {
        self.put(replies);
    }

    /// `+OK`
    pub fn ok(&mut self) {
        self.put(b"+OK\r\n");
    }

    /// `+PONG`
    pub fn pong(&mut self) {
        self.put(b"+PONG\r\n");
    }

    /// `+text`; no CR or LF in it.
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.contains(['\r', '\n']), "a simple string is one line: {text:?}");
        self.line(b'+', text.as_bytes());
    }

    /// `-text`, the code included ("ERR ..."). The text may quote what a client sent: line ends behind it are
    /// cut off, all others become spaces.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        if self.room(text.len() + 3) {
            self.out.push(b'-');
            self.sanitized(text);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// The error that a client is told before its connection is closed.
    pub fn protocol_error(&mut self, error: ProtocolError) {
        if !self.room(64) {
            return;
        }
        self.out.extend_from_slice(b"-ERR ");
        self.out.extend_from_slice(error.text().as_bytes());
        if let ProtocolError::ExpectedDollar(byte) = error {
            self.sanitized(&[b'\'', byte, b'\'']);
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// `:n`
    #[inline]
    pub fn int(&mut self, n: i64) {
        match n {
            // The four bytes are put together as one number, in a register.
            0..10 => self.put(&(u32::from_le_bytes(*b":0\r\n") + ((n as u32) << 8)).to_le_bytes()),
            _ => self.line(b':', I64Text::new().format(n)),
        }
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        match bytes.len() {
            1..=SHORT_MAX => self.short_bulk(bytes, &[]),
            _ => self.long_bulk(bytes),
        }
    }

    /// A bulk string of a few bytes, in two parts of which the second may be empty. It is written into a
    /// block of a fixed size that is appended first, in a few stores: nothing is called, and nothing is
    /// written elsewhere and read back at another width, for which a processor would wait. Replies of many
    /// short strings take most of their time here.
    #[inline]
    fn short_bulk(&mut self, front: &[u8], back: &[u8]) {
        if !self.room(SHORT_CELL) {
            return;
        }
        let (at, len) = (self.out.len(), front.len() + back.len());
        self.out.extend_from_slice(&[0; SHORT_CELL]);
        let Some(cell) = self.out[at..].first_chunk_mut::<SHORT_CELL>() else { return };
        let (header, start) = HEADERS[len];
        cell[..8].copy_from_slice(&header);
        short::copy(&mut cell[start..start + front.len()], front);
        if !back.is_empty() {
            short::copy(&mut cell[start + front.len()..start + len], back);
        }
        cell[start + len..start + len + 2].copy_from_slice(b"\r\n");
        self.out.truncate(at + start + len + 2);
    }

    /// A bulk string that is empty or not short.
    fn long_bulk(&mut self, bytes: &[u8]) {
        if self.room(bytes.len() + 32) {
            self.header(b'$', bytes.len());
            self.put(bytes);
            self.put(b"\r\n");
        }
    }

    /// The header of a bulk string whose text, of so many bytes, is left for later with the line's end.
    pub fn bulk_header(&mut self, len: usize) {
        self.header(b'$', len);
    }

    /// A bulk string of a stored value.
    #[inline]
    pub fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Bytes(bytes) => self.bulk(bytes),
            Item::Int(n) => self.bulk_int(n),
        }
    }

    /// A bulk string whose text is `front` and behind it that of `back`.
    pub fn bulk_joined(&mut self, front: &[u8], back: Item<'_>) {
        let mut text = I64Text::new();
        let back = back.text(&mut text);
        if !front.is_empty() && front.len() + back.len() <= SHORT_MAX {
            self.short_bulk(front, back);
        } else if front.is_empty() {
            self.bulk(back);
        } else if self.room(front.len() + back.len() + 32) {
            self.header(b'$', front.len() + back.len());
            self.out.extend_from_slice(front);
            self.out.extend_from_slice(back);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// A bulk string made of the number's decimal text.
    pub fn bulk_int(&mut self, n: i64) {
        self.bulk(I64Text::new().format(n));
    }

    /// `_` or `$-1`
    pub fn null(&mut self) {
        self.put(if self.is_resp3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// `_` or `*-1`
    pub fn null_array(&mut self) {
        self.put(if self.is_resp3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// The header of an array of `len` replies.
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len);
    }

    /// The header of a map of `pairs` pairs of a key and its value. RESP2: an array of twice as many.
    pub fn map(&mut self, pairs: usize) {
        let (mark, len) = self.map_header(pairs);
        self.header(mark, len);
    }

    /// The header of a set of `len` replies; RESP2: an array.
    pub fn set(&mut self, len: usize) {
        self.header(self.set_mark(), len);
    }

    /// The header of out-of-band data of `len` replies. RESP2: an array.
    pub fn push(&mut self, len: usize) {
        self.header(if self.is_resp3() { b'>' } else { b'*' }, len);
    }

    /// The header of an attribute of `pairs` pairs. Returns whether it was written: RESP2 has no attributes,
    /// so then the caller writes no pairs either.
    pub fn attribute(&mut self, pairs: usize) -> bool {
        if self.is_resp3() {
            self.header(b'|', pairs);
        }
        self.is_resp3()
    }

    /// A double, as the text of [`base::double`]. RESP2: a bulk string of that text.
    pub fn double(&mut self, n: f64) {
        let (mut whole, mut any) = (I64Text::new(), F64Text::new());
        let text = match whole_number(n) {
            Some(n) => whole.format(n),
            None => any.format(n),
        };
        match self.protocol {
            Protocol::Resp3 => self.line(b',', text),
            Protocol::Resp2 => self.bulk(text),
        }
    }

    /// A boolean. RESP2: the integer 1 or 0.
    pub fn boolean(&mut self, b: bool) {
        self.put(match (self.protocol, b) {
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
        });
    }

    /// A number of any length, whose digits are given. RESP2: a bulk string.
    pub fn big_number(&mut self, digits: &str) {
        match self.protocol {
            Protocol::Resp3 => self.line(b'(', digits.as_bytes()),
            Protocol::Resp2 => self.bulk(digits.as_bytes()),
        }
    }

    /// A verbatim string; `ext` has three letters ("txt", "mkd"). RESP2: a bulk string of the text.
    pub fn verbatim(&mut self, ext: &str, text: &[u8]) {
        assert_eq!(ext.len(), 3, "the protocol has room for three letters");
        if !self.is_resp3() {
            return self.bulk(text);
        }
        if !self.room(text.len() + 4 + HEADER_BYTES_MAX) {
            return;
        }
        self.header(b'=', text.len() + 4);
        self.out.extend_from_slice(ext.as_bytes());
        self.out.push(b':');
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Marks where a header is to be inserted whose number is not known yet. What is written meanwhile moves
    /// when the header is inserted, so of two such marks the later one is filled first.
    pub fn deferred(&mut self) -> Deferred {
        Deferred(self.out.len())
    }

    /// Inserts the header of an array of `len` elements at a mark of [`Reply::deferred`]. What was written
    /// since moves by the header's length: O(bytes since).
    pub fn fill_array(&mut self, at: Deferred, len: usize) {
        self.fill(at, b'*', len);
    }

    /// As [`Reply::fill_array`], of a set of `len` elements.
    pub fn fill_set(&mut self, at: Deferred, len: usize) {
        self.fill(at, self.set_mark(), len);
    }

    /// As [`Reply::fill_array`], of a map of `pairs` pairs.
    pub fn fill_map(&mut self, at: Deferred, pairs: usize) {
        let (mark, len) = self.map_header(pairs);
        self.fill(at, mark, len);
    }

    /// Takes back everything written since a mark of [`Reply::deferred`]: a command that fails half-way
    /// answers with its error alone.
    pub fn abandon(&mut self, at: Deferred) {
        self.out.truncate(at.0);
    }

    fn fill(&mut self, at: Deferred, mark: u8, len: usize) {
        let mut text = I64Text::new();
        self.insert(at, [&[mark], text.format_u64(len as u64), b"\r\n"]);
    }

    /// Inserts short replies at a mark of [`Reply::deferred`]. They are written to a buffer of their own
    /// first.
    pub fn fill_with(&mut self, at: Deferred, write: impl FnOnce(&mut Reply)) {
        let mut front = Reply::new(self.protocol);
        write(&mut front);
        self.insert(at, [&front.out]);
    }

    /// Inserts some bytes at a mark, before what was written since.
    fn insert<const N: usize>(&mut self, at: Deferred, parts: [&[u8]; N]) {
        assert!(at.0 <= self.out.len(), "headers are filled in the reverse order of their making");
        if self.room(parts.iter().map(|part| part.len()).sum()) {
            self.out.splice(at.0..at.0, parts.into_iter().flatten().copied());
        }
    }

    /// The first byte of a set's header.
    fn set_mark(&self) -> u8 {
        if self.is_resp3() { b'~' } else { b'*' }
    }

    /// The first byte of a map's header, and the number in the header.
    fn map_header(&self, pairs: usize) -> (u8, usize) {
        if self.is_resp3() { (b'%', pairs) } else { (b'*', 2 * pairs) }
    }

    /// A header: its first byte, a number and the line's end.
    fn header(&mut self, mark: u8, len: usize) {
        let digit = |n: usize| b'0' + (n % 10) as u8;
        match len {
            0..10 => self.put(&[mark, digit(len), b'\r', b'\n']),
            10..100 => self.put(&[mark, digit(len / 10), digit(len), b'\r', b'\n']),
            100..1000 => {
                self.put(&[mark, digit(len / 100), digit(len / 10), digit(len), b'\r', b'\n']);
            }
            _ => self.line(mark, I64Text::new().format_u64(len as u64)),
        }
    }

    /// A reply of one line.
    #[inline]
    fn line(&mut self, mark: u8, text: &[u8]) {
        if self.room(text.len() + 3) {
            self.out.push(mark);
            self.out.extend_from_slice(text);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends the text of an error: line ends behind it are cut off, all others become spaces.
    fn sanitized(&mut self, text: &[u8]) {
        let is_inner = |b: &u8| !matches!(b, b'\r' | b'\n');
        let end = text.iter().rposition(is_inner).map_or(0, |last| last + 1);
        self.out.extend(text[..end].iter().map(|b| if is_inner(b) { *b } else { b' ' }));
    }
}

/// The size of the block in which a short string is written with its header and its line's end.
const SHORT_CELL: usize = 32;
const _: () = assert!(5 + SHORT_MAX + 2 <= SHORT_CELL);

/// The header of a short string of each length, and how long it is.
static HEADERS: [([u8; 8], usize); SHORT_MAX + 1] = {
    let mut headers = [([0; 8], 0); SHORT_MAX + 1];
    let mut len = 0;
    while len <= SHORT_MAX {
        let (tens, ones) = (b'0' + (len / 10) as u8, b'0' + (len % 10) as u8);
        headers[len] = match len {
            0..10 => ([b'$', ones, b'\r', b'\n', 0, 0, 0, 0], 4),
            _ => ([b'$', tens, ones, b'\r', b'\n', 0, 0, 0], 5),
        };
        len += 1;
    }
    headers
};

/// Where a header is to be inserted: an offset in the buffer.
#[derive(Debug)]
#[must_use]
pub struct Deferred(usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl Fn(&mut Reply), resp2: &str, resp3: &str) {
        for (protocol, expect) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let mut reply = Reply::new(protocol);
            write(&mut reply);
            assert_eq!(reply.out.escape_ascii().to_string(), expect.as_bytes().escape_ascii().to_string());
        }
    }

    /// The replies of DEBUG PROTOCOL as Redis 7.0.15 and 8.0.2 write them after HELLO 2 and HELLO 3.
    #[test]
    #[allow(clippy::approx_constant, reason = "the peer's example is nearly pi")]
    fn every_type_has_the_bytes_of_debug_protocol() {
        check(|r| r.bulk(b"Hello World"), "$11\r\nHello World\r\n", "$11\r\nHello World\r\n");
        check(|r| r.int(12345), ":12345\r\n", ":12345\r\n");
        check(|r| r.double(3.141), "$5\r\n3.141\r\n", ",3.141\r\n");
        check(|r| r.null(), "$-1\r\n", "_\r\n");
        let numbers = |r: &mut Reply| (0..3).for_each(|n| r.int(n));
        check(|r| (r.array(3), numbers(r)).0, "*3\r\n:0\r\n:1\r\n:2\r\n", "*3\r\n:0\r\n:1\r\n:2\r\n");
        check(|r| (r.set(3), numbers(r)).0, "*3\r\n:0\r\n:1\r\n:2\r\n", "~3\r\n:0\r\n:1\r\n:2\r\n");
        let pairs = |r: &mut Reply| {
            r.map(3);
            for n in 0..3 {
                r.int(n);
                r.boolean(n == 1);
            }
        };
        check(
            pairs,
            "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
            "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
        );
        let verbatim = |r: &mut Reply| r.verbatim("txt", b"This is a verbatim\nstring");
        check(verbatim, "$25\r\nThis is a verbatim\nstring\r\n", "=29\r\ntxt:This is a verbatim\nstring\r\n");
        check(|r| r.boolean(true), ":1\r\n", "#t\r\n");
        check(|r| r.boolean(false), ":0\r\n", "#f\r\n");
    }

    #[test]
    fn bulk_strings_of_every_length_are_whole() {
        let bytes: Vec<u8> = (0..300_u32).map(|n| b'a' + (n % 23) as u8).collect();
        let mut reply = Reply::new(Protocol::Resp2);
        let mut expected = Vec::new();
        for len in 0..bytes.len() {
            reply.bulk(&bytes[len / 3..len]);
            let len_bytes = len - len / 3;
            expected.extend_from_slice(format!("${len_bytes}\r\n").as_bytes());
            expected.extend_from_slice(&bytes[len / 3..len]);
            expected.extend_from_slice(b"\r\n");
            assert_eq!(reply.out.escape_ascii().to_string(), expected.escape_ascii().to_string());
        }
    }

    #[test]
    fn out_of_band_data_is_pushed_or_an_array_and_attributes_vanish() {
        let attribute = |r: &mut Reply| {
            if r.attribute(1) {
                r.bulk(b"key-popularity");
                r.int(90);
            }
            r.ok();
        };
        check(attribute, "+OK\r\n", "|1\r\n$14\r\nkey-popularity\r\n:90\r\n+OK\r\n");
        check(|r| r.push(2), "*2\r\n", ">2\r\n");
        check(|r| r.null_array(), "*-1\r\n", "_\r\n");
        check(
            |r| r.big_number("1234567999999999999999999999999999999"),
            "$37\r\n1234567999999999999999999999999999999\r\n",
            "(1234567999999999999999999999999999999\r\n",
        );
    }

    #[test]
    fn doubles_have_the_text_of_redis_8() {
        check(|r| r.double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n");
        check(|r| r.double(-f64::INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
        check(|r| r.double(f64::NAN), "$3\r\nnan\r\n", ",nan\r\n");
        check(|r| r.double(3.0), "$1\r\n3\r\n", ",3\r\n");
        check(|r| r.double(-0.0), "$2\r\n-0\r\n", ",-0\r\n");
        check(|r| r.double(1e-7), "$4\r\n1e-7\r\n", ",1e-7\r\n");
    }

    #[test]
    fn errors_are_one_line_whatever_they_quote() {
        check(|r| r.error("ERR no\r\nsuch\nkey\r\n"), "-ERR no  such key\r\n", "-ERR no  such key\r\n");
        check(|r| r.error("\nNO such\r\n"), "- NO such\r\n", "- NO such\r\n");
        check(|r| r.error("\r\n"), "-\r\n", "-\r\n");
        let error = |r: &mut Reply| r.protocol_error(ProtocolError::ExpectedDollar(b'\r'));
        check(
            error,
            "-ERR Protocol error: expected '$', got ' '\r\n",
            "-ERR Protocol error: expected '$', got ' '\r\n",
        );
        let mut reply = Reply::new(Protocol::Resp2);
        reply.protocol_error(ProtocolError::ExpectedDollar(0xff));
        reply.protocol_error(ProtocolError::TooBigInline);
        let expected: [&[u8]; 2] = [
            b"-ERR Protocol error: expected '$', got '\xff'\r\n",
            b"-ERR Protocol error: too big inline request\r\n",
        ];
        assert_eq!(reply.out, expected.concat());
        assert_eq!(
            ProtocolError::ExpectedDollar(0xff).to_string(),
            "Protocol error: expected '$', got '\\xff'"
        );
    }

    #[test]
    fn items_are_bulk_strings_of_their_text() {
        check(|r| r.item(Item::Int(-120)), "$4\r\n-120\r\n", "$4\r\n-120\r\n");
        check(|r| r.item(Item::Bytes(b"0123456789")), "$10\r\n0123456789\r\n", "$10\r\n0123456789\r\n");
        check(|r| r.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n");
        check(|r| r.int(i64::MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n");
    }

    #[test]
    fn texts_of_every_length_in_one_piece_or_two_are_whole() {
        let text: Vec<u8> = (0..1100_u32).map(|n| b'a' + (n % 23) as u8).collect();
        for len in (0..130).chain([998, 999, 1000, 1001]) {
            let text = &text[..len];
            let expect = [format!("${len}\r\n").as_bytes(), text, b"\r\n"].concat();
            let mut reply = Reply::new(Protocol::Resp2);
            reply.bulk(text);
            assert_eq!(reply.out, expect);
            for cut in 0..=len.min(40) {
                let mut reply = Reply::new(Protocol::Resp2);
                reply.bulk_joined(&text[..cut], Item::Bytes(&text[cut..]));
                assert_eq!(reply.out, expect, "in two, cut at {cut}");
            }
        }
        for len in (0..1001).chain([123_456]) {
            let (array, set) = (format!("*{len}\r\n"), format!("~{len}\r\n"));
            check(|r| r.set(len), &array, &set);
        }
    }

    #[test]
    fn headers_filled_in_later_stand_where_they_were_left_open() {
        let nested = |r: &mut Reply| {
            r.simple("first");
            let outer = r.deferred();
            let inner = r.deferred();
            (0..11).for_each(|n| r.int(n % 2));
            r.fill_set(inner, 11);
            let pairs = r.deferred();
            r.fill_map(pairs, 0);
            r.fill_array(outer, 2);
        };
        let numbers = ":0\r\n:1\r\n".repeat(5) + ":0\r\n";
        let resp2 = format!("+first\r\n*2\r\n*11\r\n{numbers}*0\r\n");
        let resp3 = format!("+first\r\n*2\r\n~11\r\n{numbers}%0\r\n");
        check(nested, &resp2, &resp3);
        let abandoned = |r: &mut Reply| {
            let at = r.deferred();
            r.int(1);
            r.abandon(at);
            r.error("ERR late");
        };
        check(abandoned, "-ERR late\r\n", "-ERR late\r\n");
    }

    /// Writes until the reply is full. Returns the capacity that it got, and how many writes that took.
    fn fill(bytes_max: usize, mut write: impl FnMut(&mut Reply)) -> (usize, usize) {
        let (mut reply, mut count) = (Reply::new(Protocol::Resp3), 0);
        reply.bound(bytes_max);
        while !reply.is_full() {
            write(&mut reply);
            count += 1;
        }
        assert!(reply.is_due(), "its owner looks at it before the batch ends");
        (reply.out.capacity(), count)
    }

    #[test]
    fn no_reply_takes_more_room_than_its_bound() {
        let text = [b'x'; 1000];
        for bytes_max in [0, 1, 100, 4000, 100_000] {
            let rooms = [
                fill(bytes_max, |r| r.bulk(&text)),
                fill(bytes_max, |r| r.int(7)),
                fill(bytes_max, |r| r.array(1)),
                fill(bytes_max, |r| r.array(11)),
                fill(bytes_max, |r| r.null()),
                fill(bytes_max, |r| r.boolean(true)),
                fill(bytes_max, |r| r.ok()),
                fill(bytes_max, |r| r.double(0.1)),
                fill(bytes_max, |r| r.error("ERR no")),
                fill(bytes_max, |r| r.verbatim("txt", &text)),
                fill(bytes_max, |r| r.bulk_joined(&text, Item::Int(1))),
                fill(bytes_max, |r| r.append(&text)),
            ];
            for (room, count) in rooms {
                assert!(room <= bytes_max && count <= bytes_max / 3 + 1, "{room} of {bytes_max}, {count}");
            }
        }
    }

    #[test]
    fn a_reply_that_fits_its_bound_is_whole_and_one_that_was_cut_begins_anew() {
        let mut reply = Reply::new(Protocol::Resp2);
        reply.bound(100);
        reply.ok();
        reply.bulk(&[b'x'; 200]);
        assert!(reply.is_full() && reply.flow().is_break());
        let at = reply.deferred();
        reply.fill_array(at, 1000);
        reply.cut(5);
        assert!(!reply.is_full() && !reply.is_due());
        reply.bulk(b"fits");
        assert_eq!(reply.out, b"+OK\r\n$4\r\nfits\r\n");
        assert_eq!(reply.spare_bytes(), 85);
    }

    /// Writes a number that counts down, until it is 0.
    struct Countdown(i64);

    impl Remainder for Countdown {
        fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()> {
            for _ in 0..enough.elements.min(self.0 as u64) {
                self.0 -= 1;
                reply.int(self.0);
            }
            if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }

        fn bytes(&self) -> usize {
            size_of::<Countdown>()
        }

        fn burden_bytes(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_reply_of_which_something_is_left_is_due_until_somebody_goes_on_with_it() {
        let mut reply = Reply::new(Protocol::Resp2);
        reply.array(3);
        reply.leave(Box::new(Countdown(3)));
        assert!(reply.is_due() && reply.has_remainder() && !reply.is_full());
        let mut remainder = reply.take_remainder().unwrap();
        assert!(!reply.is_due() && !reply.has_remainder());
        assert!(remainder.write(&mut reply, Enough { bytes: 0, elements: 2 }).is_continue());
        assert!(remainder.write(&mut reply, Enough::MOST).is_break());
        assert_eq!(reply.out, b"*3\r\n:2\r\n:1\r\n:0\r\n");
        reply.cut(0);
        reply.array(2);
        reply.leave(Box::new(Countdown(2)));
        reply.finish();
        assert_eq!(reply.out, b"*2\r\n:1\r\n:0\r\n");
        reply.leave(Box::new(Countdown(2)));
        reply.cut(0);
        assert!(!reply.has_remainder(), "what is taken back is not gone on with");
        reply.bound(0);
        reply.bulk(&[b'x'; 1000]);
        reply.leave(Box::new(Countdown(2)));
        assert!(reply.is_full() && !reply.has_remainder(), "of a full reply nothing is sent");
    }
}
