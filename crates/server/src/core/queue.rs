//! Requests that are kept to be run later, together: what a client sends between MULTI and EXEC.
//!
//! ```text
//! Queue   parts: [Part]   requests in the order in which they came, some in each part
//! Part    bytes           its requests as they came, from the first argument of each to its last
//!         spans           where each argument lies
//!         requests        each one's command, the hash of its first key, where its spans end
//! ```
//!
//! Requests that come together are copied together, with what stands between them.
//!
//! A part is full at [`PART_BYTES`], so that a long queue is never copied to grow, and a short one takes one
//! part that grows as it needs. A short one that has run leaves its room for the next one of any client of
//! its worker ([`Room`]): to allocate and grow it was a twentieth of a transaction of five commands.
use base::hash::Hash;
use command::Flags;
use resp::{Args, Span};

/// A request begins a new part if the last one would have more bytes of requests than this with it, or has
/// this many requests.
const PART_BYTES: usize = 32 << 10;
const PART_REQUESTS: usize = 512;
/// More room than this is not kept for another queue.
const ROOM_BYTES_MAX: usize = 4 << 10;

/// See the file's opener.
pub(crate) struct Queue {
    parts: Vec<Part>,
    len: usize,
    /// The bytes of all requests together.
    request_bytes: usize,
    /// What all parts but the last take of memory.
    full_bytes: usize,
    /// The flags of all commands together.
    flags: Flags,
    /// A request was refused: EXEC will run none, so nothing more is kept.
    pub(crate) is_broken: bool,
}

#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    requests: Vec<Packed>,
}

/// One request, as the queue stores it.
struct Packed {
    /// `Row::number`
    row: u32,
    spans_end: u32,
    hash: Option<Hash>,
}

/// A short queue that has run, kept for its memory.
#[derive(Default)]
pub(crate) struct Room(Option<Box<Queue>>);

impl Room {
    /// Keeps the memory of this queue, unless that has several parts or much room.
    pub(crate) fn keep(&mut self, mut queue: Box<Queue>) {
        if let [part] = &mut queue.parts[..]
            && part.whole_bytes() <= ROOM_BYTES_MAX
        {
            part.clear();
            *queue = Queue { parts: std::mem::take(&mut queue.parts), ..Queue::new() };
            self.0 = Some(queue);
        }
    }

    /// An empty queue, with that memory where some is kept.
    pub(crate) fn take(&mut self) -> Box<Queue> {
        self.0.take().unwrap_or_else(|| Box::new(Queue::new()))
    }

    /// How many bytes of memory are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| size_of::<Queue>() + queue.room_bytes())
    }
}

/// One request of a queue, as it is run.
#[derive(Clone, Copy)]
pub(crate) struct Queued<'q> {
    /// `Row::number`
    pub(crate) row: usize,
    /// The hash of its first key, where the command's row says which argument that is.
    pub(crate) hash: Option<Hash>,
    pub(crate) args: Args<'q>,
}

impl Queue {
    /// An empty one, which allocates nothing.
    pub(crate) fn new() -> Queue {
        Queue {
            parts: Vec::new(),
            len: 0,
            request_bytes: 0,
            full_bytes: 0,
            flags: Flags::NONE,
            is_broken: false,
        }
    }

    /// How many requests there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bytes of all of them together, each from its first argument to its last.
    pub(crate) fn request_bytes(&self) -> usize {
        self.request_bytes
    }

    /// What it takes of memory.
    pub(crate) fn room_bytes(&self) -> usize {
        self.full_bytes + self.parts.last().map_or(0, Part::whole_bytes)
    }

    /// Whether any of the commands has all of these flags.
    pub(crate) fn has(&self, flags: Flags) -> bool {
        self.flags.has(flags)
    }

    /// Appends a request to the command with this number and these flags.
    pub(crate) fn push(&mut self, (row, flags): (usize, Flags), hash: Option<Hash>, args: &Args<'_>) {
        let bytes = args.framed_bytes_from(0);
        let part = self.part_for(bytes, 1);
        part.push(row, hash, args);
        self.len += 1;
        self.request_bytes += bytes;
        self.flags = self.flags.or(flags);
    }

    /// Appends so many requests that lie one behind the other: `args` are the arguments of all of them.
    /// `requests` has of each the command, the hash of its first key, and where its arguments end in these.
    /// False, and nothing has happened, where they do not fit into one part.
    pub(crate) fn push_run(
        &mut self,
        (args, count): (&Args<'_>, usize),
        requests: impl Iterator<Item = ((usize, Flags), Option<Hash>, usize)>,
    ) -> bool {
        let bytes = args.framed_bytes_from(0);
        if bytes > PART_BYTES || count > PART_REQUESTS {
            return false;
        }
        let part = self.part_for(bytes, count);
        let first_span = part.spans.len();
        args.append_to(&mut part.bytes, &mut part.spans);
        let mut all_flags = Flags::NONE;
        part.requests.extend(requests.map(|((row, flags), hash, args_end)| {
            all_flags = all_flags.or(flags);
            Packed { row: row as u32, spans_end: (first_span + args_end) as u32, hash }
        }));
        self.len += count;
        self.request_bytes += bytes;
        self.flags = self.flags.or(all_flags);
        true
    }

    /// The last part, or a new one where these bytes or so many requests do not fit into it.
    #[inline]
    fn part_for(&mut self, bytes: usize, count: usize) -> &mut Part {
        let is_full = |part: &Part| {
            part.bytes.len() + bytes > PART_BYTES || part.requests.len() + count > PART_REQUESTS
        };
        if self.parts.last().is_none_or(is_full) {
            self.full_bytes = self.room_bytes();
            self.parts.push(Part::default());
        }
        self.parts.last_mut().expect("there is one now")
    }

    /// The requests, in the order in which they came.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Queued<'_>> {
        self.parts.iter().flat_map(|part| {
            let mut start = 0;
            part.requests.iter().map(move |kept| {
                let end = kept.spans_end as usize;
                let args = Args::new(&part.bytes, &part.spans[start..end]);
                start = end;
                Queued { row: kept.row as usize, hash: kept.hash, args }
            })
        })
    }
}

impl Part {
    fn push(&mut self, row: usize, hash: Option<Hash>, args: &Args<'_>) {
        args.append_to(&mut self.bytes, &mut self.spans);
        self.requests.push(Packed { row: row as u32, spans_end: self.spans.len() as u32, hash });
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.requests.clear();
    }

    /// What it takes of memory, with itself.
    fn whole_bytes(&self) -> usize {
        size_of::<Part>()
            + self.bytes.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.requests.capacity() * size_of::<Packed>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `work` with these words as arguments.
    fn with_args<R>(words: &[&[u8]], work: impl FnOnce(Args<'_>) -> R) -> R {
        let buffer = words.concat();
        let mut start = 0;
        let spans: Vec<Span> = words
            .iter()
            .map(|word| {
                start += word.len();
                Span { start: start - word.len(), len: word.len() }
            })
            .collect();
        work(Args::new(&buffer, &spans))
    }

    #[test]
    fn requests_come_back_as_they_were_whatever_part_they_lie_in() {
        let (set, get) = ((7, Flags::WRITE), (8, Flags::READONLY));
        let mut queue = Queue::new();
        let lens = |n: usize| if n.is_multiple_of(7) { 20_000 } else { n % 100 };
        for n in 0..2000 {
            let value = vec![b'a' + (n % 23) as u8; lens(n)];
            let key = format!("k{n}");
            let words: &[&[u8]] =
                if n % 2 == 0 { &[b"SET", key.as_bytes(), &value] } else { &[b"GET", key.as_bytes()] };
            let row = if n % 2 == 0 { set } else { get };
            with_args(words, |args| queue.push(row, Some(Hash(n as u64)), &args));
        }
        let mut count = 0;
        for (n, queued) in queue.iter().enumerate() {
            assert_eq!(queued.hash, Some(Hash(n as u64)));
            assert_eq!(queued.args.at(1), format!("k{n}").as_bytes());
            assert_eq!(queued.row, if n % 2 == 0 { 7 } else { 8 });
            if n % 2 == 0 {
                assert_eq!(queued.args.at(2), vec![b'a' + (n % 23) as u8; lens(n)]);
            }
            count += 1;
        }
        assert_eq!((count, queue.len()), (2000, 2000));
        assert!(queue.has(Flags::WRITE) && queue.has(Flags::READONLY) && !queue.has(Flags::ADMIN));
    }

    #[test]
    fn requests_that_come_together_are_kept_as_if_each_had_come_by_itself() {
        let (set, get) = ((7, Flags::WRITE), (8, Flags::READONLY));
        let words: &[&[u8]] = &[b"SET", b"k", b"v", b"GET", b"k", b"GET", b"other"];
        let run = [(set, Some(Hash(1)), 3), (get, Some(Hash(1)), 5), (get, None, 7)];
        let mut queue = Queue::new();
        for _ in 0..2 {
            with_args(&[b"GET", b"before"], |args| queue.push(get, None, &args));
            with_args(words, |args| assert!(queue.push_run((&args, 3), run.into_iter())));
        }
        assert_eq!((queue.len(), queue.request_bytes(), queue.parts.len()), (8, 2 * (9 + 17), 1));
        assert!(queue.has(Flags::WRITE) && queue.has(Flags::READONLY));
        let kept: Vec<_> =
            queue.iter().map(|one| (one.row, one.hash, one.args.at(one.args.len() - 1))).collect();
        let half: [(_, _, &[u8]); 4] =
            [(8, None, b"before"), (7, Some(Hash(1)), b"v"), (8, Some(Hash(1)), b"k"), (8, None, b"other")];
        assert!(kept[..4] == half && kept[4..] == half);
        let long = vec![b'v'; PART_BYTES];
        let is_kept = with_args(&[b"SET", b"k", &long], |args| {
            queue.push_run((&args, 1), [(set, None, 3)].into_iter())
        });
        assert!(!is_kept && queue.len() == 8, "it takes a part of its own");
    }

    #[test]
    fn a_queue_takes_the_room_of_a_short_one_that_has_run_and_nothing_else_of_it() {
        let (mut room, set) = (Room::default(), (7, Flags::WRITE));
        for round in 0..3 {
            let mut queue = room.take();
            assert!((queue.room_bytes() > 0) == (round > 0) && room.bytes() == 0);
            assert!(queue.iter().count() == 0 && queue.len() == 0 && queue.request_bytes() == 0);
            assert!(!queue.has(Flags::WRITE) && !queue.is_broken);
            let key = format!("k{round}");
            with_args(&[b"SET", key.as_bytes(), b"v"], |args| queue.push(set, None, &args));
            queue.is_broken = true;
            assert!(queue.iter().map(|queued| queued.args.at(1)).eq([key.as_bytes()]));
            let counted: usize = queue.parts.iter().map(Part::whole_bytes).sum();
            assert_eq!(queue.room_bytes(), counted);
            room.keep(queue);
            assert_eq!(room.bytes(), counted + size_of::<Queue>());
        }
        let mut long = Box::new(Queue::new());
        with_args(&[b"SET", b"k", &[b'v'; ROOM_BYTES_MAX]], |args| long.push(set, None, &args));
        let before = room.bytes();
        room.keep(long);
        assert_eq!(room.bytes(), before, "much is not kept");
    }

    #[test]
    fn its_memory_is_counted_and_little_more_than_what_it_keeps() {
        let set = (7, Flags::WRITE);
        let mut queue = Queue::new();
        let value = [b'x'; 1000];
        for _ in 0..10_000 {
            with_args(&[b"SET", b"k", &value], |args| queue.push(set, None, &args));
        }
        let counted: usize = queue.parts.iter().map(Part::whole_bytes).sum();
        assert_eq!(queue.room_bytes(), counted);
        assert_eq!(queue.request_bytes(), 10_000 * 1004);
        assert!(counted < 2 * queue.request_bytes() + (1 << 20), "{counted}");
    }
}
