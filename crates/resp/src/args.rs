//! The arguments of one request, lent from the buffer they were parsed in. Nothing is allocated per argument.

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

    /// How many bytes the request takes as an array of bulk strings.
    pub fn framed_bytes(&self) -> usize {
        let header = |n: usize| 1 + n.max(1).ilog10() as usize + 1 + 2;
        let bulks = self.spans.iter().map(|s| header(s.len) + s.len + 2);
        header(self.spans.len()) + bulks.sum::<usize>()
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

    /// The request that argument `index` and those behind it are, as COMMAND GETKEYS takes one. None where
    /// there is no such argument.
    pub fn tail(&self, index: usize) -> Option<Args<'a>> {
        let spans = self.spans.get(index..).filter(|rest| !rest.is_empty())?;
        Some(Args { buffer: self.buffer, spans })
    }

    /// The arguments from `index` on.
    pub fn iter_from(&self, index: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let this = *self;
        this.spans[index..].iter().map(move |s| &this.buffer[s.start..][..s.len])
    }
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
}
