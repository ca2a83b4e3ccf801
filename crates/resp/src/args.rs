//! The arguments of one request, lent from the buffer they were parsed in. Nothing is allocated per argument.
use crate::Framing;
use base::text::I64Text;

/// Where one argument lies in its buffer. Its fields are wider than 32 bits, because
/// `client-query-buffer-limit` may be set beyond 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub len: usize,
}

/// The arguments of one request, the command's name first. Never empty.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    buffer: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// The arguments that lie at `spans` in `buffer`, of which there is at least one.
    #[inline]
    pub fn new(buffer: &'a [u8], spans: &'a [Span]) -> Args<'a> {
        Args { buffer, spans }
    }

    /// How many arguments there are, the name included: at least one.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Argument `index`; the name is 0. Panics beyond the last.
    #[inline]
    pub fn at(&self, index: usize) -> &'a [u8] {
        let s = self.spans[index];
        &self.buffer[s.start..][..s.len]
    }

    /// Argument `index`; None beyond the last.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        (index < self.spans.len()).then(|| self.at(index))
    }

    /// Whether every line of a request that is an array of bulk strings ends with CR LF, as in a file; it
    /// begins at `begin` in the buffer. The parser takes other bytes for line ends too, which is how Redis
    /// takes what clients send.
    pub fn has_line_ends(&self, begin: usize) -> bool {
        let is_line_end = |at: usize| self.buffer.get(at..at + 2) == Some(b"\r\n");
        let count_end = self.buffer[begin..].iter().position(|byte| *byte == b'\r');
        let mut spans = self.spans.iter();
        count_end.is_some_and(|len| is_line_end(begin + len))
            && spans.all(|span| is_line_end(span.start - 2) && is_line_end(span.start + span.len))
    }

    /// How many bytes the request takes as an array of bulk strings.
    pub fn framed_bytes(&self) -> usize {
        if self.spans.len() > MANY && self.is_framed_at_its_ends() {
            return self.framed_bytes_from(0) + self.headers_bytes() + 2;
        }
        let bulks = self.spans.iter().map(|s| header_bytes(s.len) + s.len + 2);
        header_bytes(self.spans.len()) + bulks.sum::<usize>()
    }

    /// Whether the first and the last argument have the header of a bulk string before them. Then all have
    /// it: a request lies as it was sent, or its arguments lie one behind the other.
    fn is_framed_at_its_ends(&self) -> bool {
        let [first, .., last] = self.spans else { return false };
        [first, last].into_iter().all(|span| {
            let header = span.start.checked_sub(header_bytes(span.len));
            header.and_then(|at| self.header_end(at, b'$', span.len)) == Some(span.start)
        })
    }

    /// How many bytes stand before the first argument in an array of bulk strings.
    fn headers_bytes(&self) -> usize {
        header_bytes(self.spans.len()) + header_bytes(self.spans[0].len)
    }

    /// How many bytes the request has from the beginning of argument `index` to the end of the last one:
    /// their text, and the headers between them.
    #[inline]
    pub fn framed_bytes_from(&self, index: usize) -> usize {
        let end = self.spans[self.spans.len() - 1];
        end.start + end.len - self.spans[index].start
    }

    /// Appends a copy of the request to `buffer`, with what stands between its arguments, and where these lie
    /// in it to `spans`: one copy costs less than one for each argument.
    #[inline]
    pub fn append_to(&self, buffer: &mut Vec<u8>, spans: &mut Vec<Span>) {
        let (start, len) = (self.spans[0].start, self.framed_bytes_from(0));
        debug_assert!(self.spans.is_sorted_by_key(|s| s.start), "arguments lie in their order");
        let moved = buffer.len();
        buffer.extend_from_slice(&self.buffer[start..][..len]);
        spans.extend(self.spans.iter().map(|s| Span { start: s.start - start + moved, len: s.len }));
    }

    /// The request as it was sent, where that is just how an array of bulk strings is written: without an
    /// inline request's spaces, needless zeros in its lengths, or arguments that were decoded where they lie.
    /// `framing` is what the parser has found.
    #[inline(always)]
    pub fn framed(&self, framing: Framing) -> Option<&'a [u8]> {
        match (framing, self.spans) {
            (Framing::Canonical, [first, .., last]) => self.between(first, last),
            (Framing::Canonical, [only]) => self.between(only, only),
            _ => self.find_framed(),
        }
    }

    /// The request from the header of its number of arguments, which has one digit, to the end of its last
    /// line.
    #[inline(always)]
    fn between(&self, first: &Span, last: &Span) -> Option<&'a [u8]> {
        let start = first.start - header_bytes(first.len) - SHORT_HEADER_BYTES;
        Some(&self.buffer[start..last.start + last.len + 2])
    }

    /// The headers of the array and of its first string are compared byte by byte. What stands before another
    /// string is either spaces, or a line's end and a header whose number a parser has read. Where that has
    /// as few bytes as can be, and its ends are right, all of it is.
    #[inline(never)]
    fn find_framed(&self) -> Option<&'a [u8]> {
        let [first, others @ ..] = self.spans else { return None };
        let start = first.start.checked_sub(header_bytes(self.spans.len()) + header_bytes(first.len))?;
        let header = self.header_end(start, b'*', self.spans.len())?;
        let mut end = self.header_end(header, b'$', first.len).filter(|end| *end == first.start)? + first.len;
        for span in others {
            let between = self.buffer.get(end..span.start)?;
            let (_, [b'\r', b'\n']) = between.split_last_chunk()? else { return None };
            let [b'\r', b'\n', b'$', ..] = between else { return None };
            if between.len() != 2 + header_bytes(span.len) {
                return None;
            }
            end = span.start + span.len;
        }
        let [b'\r', b'\n'] = *self.buffer.get(end..)?.first_chunk()? else { return None };
        Some(&self.buffer[start..end + 2])
    }

    /// Where the header of this sign and number ends, if it stands at `at`.
    #[inline(always)]
    fn header_end(&self, at: usize, sign: u8, number: usize) -> Option<usize> {
        let digit = |number: usize| b'0' + number as u8;
        let rest = self.buffer.get(at..)?;
        let stands = match number {
            0..10 => *rest.first_chunk()? == [sign, digit(number), b'\r', b'\n'],
            10..100 => *rest.first_chunk()? == [sign, digit(number / 10), digit(number % 10), b'\r', b'\n'],
            _ => is_long_header(rest, sign, number),
        };
        stands.then(|| at + header_bytes(number))
    }

    /// The request that argument `index` and those behind it are, as COMMAND GETKEYS takes one. None where
    /// there is no such argument.
    pub fn tail(&self, index: usize) -> Option<Args<'a>> {
        let spans = self.spans.get(index..).filter(|rest| !rest.is_empty())?;
        Some(Args { buffer: self.buffer, spans })
    }

    /// How many bytes the arguments from `index` on have together.
    pub fn bytes_from(&self, index: usize) -> u64 {
        self.iter_from(index).map(|arg| arg.len() as u64).sum()
    }

    /// The arguments from `index` on.
    pub fn iter_from(&self, index: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let this = *self;
        this.spans[index..].iter().map(move |s| &this.buffer[s.start..][..s.len])
    }
}

/// The lengths of more arguments are not added up one by one.
const MANY: usize = 1 << 10;

/// `*9\r\n`
const SHORT_HEADER_BYTES: usize = 4;

/// How many bytes a header has: its sign, the digits of its number, and the end of the line.
#[inline]
fn header_bytes(number: usize) -> usize {
    match number {
        0..10 => SHORT_HEADER_BYTES,
        10..100 => 5,
        _ => 1 + number.ilog10() as usize + 1 + 2,
    }
}

/// Whether these bytes begin with the header of this sign and number, which has three digits or more.
#[inline(never)]
fn is_long_header(bytes: &[u8], sign: u8, number: usize) -> bool {
    let mut text = I64Text::new();
    let digits = text.format_u64(number as u64);
    let rest = bytes.strip_prefix(&[sign]).and_then(|rest| rest.strip_prefix(digits));
    rest.is_some_and(|rest| rest.starts_with(b"\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_long_as_it_was_sent() {
        let buffer = b"*3\r\n$3\r\nset\r\n$0\r\n\r\n$12\r\nhello, world\r\n";
        let spans = [(8, 3), (17, 0), (24, 12)].map(|(start, len)| Span { start, len });
        let args = Args::new(buffer, &spans);
        assert_eq!((args.at(0), args.at(2)), (&b"set"[..], &b"hello, world"[..]));
        assert_eq!(args.framed_bytes(), buffer.len());
    }

    #[test]
    fn a_request_of_very_many_words_is_as_long_as_it_was_sent_however_they_lie() {
        let words: Vec<String> = (0..3 * MANY).map(|n| "x".repeat(n % 130)).collect();
        let (mut sent, mut framed) = (format!("*{}\r\n", words.len()).into_bytes(), Vec::new());
        let (mut bare, mut close) = (Vec::new(), Vec::new());
        for word in &words {
            sent.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            framed.push(Span { start: sent.len(), len: word.len() });
            sent.extend_from_slice(format!("{word}\r\n").as_bytes());
            close.push(Span { start: bare.len(), len: word.len() });
            bare.extend_from_slice(word.as_bytes());
        }
        assert_eq!(Args::new(&sent, &framed).framed_bytes(), sent.len());
        assert_eq!(Args::new(&bare, &close).framed_bytes(), sent.len());
    }

    #[test]
    fn copies_have_the_same_arguments_one_behind_the_other() {
        let (mut buffer, mut spans) = (Vec::new(), Vec::new());
        let whole = b"*2\r\n$3\r\nget\r\n$1\r\nk\r\n";
        let places = [(8, 3), (17, 1)].map(|(start, len)| Span { start, len });
        let args = Args::new(whole, &places);
        args.append_to(&mut buffer, &mut spans);
        args.append_to(&mut buffer, &mut spans);
        assert_eq!(buffer.len(), 2 * args.framed_bytes_from(0));
        for half in [&spans[..2], &spans[2..]] {
            let copy = Args::new(&buffer, half);
            assert!(copy.iter_from(0).eq([&b"get"[..], b"k"]));
        }
    }

    #[test]
    fn a_request_is_lent_as_it_was_sent_only_where_nothing_but_its_arguments_tells_how_it_reads() {
        let framed = |text: &str, args: &[&str]| {
            let mut from = 0;
            let span = |arg: &&str| {
                // Arguments are told apart by what no header holds.
                let start = from + text[from..].find(*arg).unwrap();
                from = start + arg.len();
                Span { start, len: arg.len() }
            };
            let spans: Vec<Span> = args.iter().map(span).collect();
            Args::new(text.as_bytes(), &spans)
                .framed(Framing::Unknown)
                .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
        };
        let (ten, hundred) = ("x".repeat(10), "y".repeat(100));
        let set = format!("*3\r\n$3\r\nset\r\n$10\r\n{ten}\r\n$100\r\n{hundred}\r\n");
        let args: &[&str] = &["set", &ten, &hundred];
        assert_eq!(framed(&set, args).as_ref(), Some(&set));
        assert_eq!(framed(&format!("*1\r\n$4\r\nPING\r\n{set}*1"), args).as_ref(), Some(&set));
        let many = format!("*12\r\n{}", "$2\r\nab\r\n".repeat(12));
        assert_eq!(framed(&many, &["ab"; 12]).as_ref(), Some(&many));
        for wrong in [
            set.replace("*3", "*4"),
            set.replace("$3", "$4"),
            set.replace("$100", "$1000"),
            set.replace("$100", "$0100"),
            set.replace("$10\r", "$010\r"),
            set.replace("*3", "*03"),
            set.replace("set\r\n", "set..."),
            format!("set {ten} {hundred}\r\n"),
        ] {
            assert_eq!(framed(&wrong, args), None, "{wrong:?}");
        }
        (0..set.len()).filter(|len| set[..*len].contains(&hundred)).for_each(|len| {
            assert_eq!(framed(&set[..len], args), None, "{len}");
        });
        assert_eq!(framed(&set[1..], args), None);
    }
}
