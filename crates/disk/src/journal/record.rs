//! Records of the journal as bytes in memory. They are never written anywhere as they are.
//!
//! ```text
//! buffer   record record ...
//! record   number: u64 | length of its frames: u64 | frame frame ...       all little-endian
//! frame    length of its words: u64 | database: u16 | audience: u8 | 0 | words
//! words    *3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n
//! ```
//!
//! A record is what one number stands for: the effects of one command, or of one transaction, in their order.
//! Each effect is a frame, because effects of one record may be of several databases, and not all of them
//! concern every reader. On the path of every write while somebody reads: appending a frame copies its words
//! once.
use base::text::I64Text;

/// Whom an effect concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Whoever keeps a copy of the data.
    Everybody,
    /// Replicas, and no file: a message to the listeners of a channel.
    Replicas,
}

const RECORD_HEADER_BYTES: usize = 16;
const FRAME_HEADER_BYTES: usize = 12;
/// A buffer that has grown beyond this is freed when it has been used.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Effects that get one number together, while they are collected.
#[derive(Debug, Default)]
pub struct Group {
    frames: Vec<u8>,
    /// Where the frame begins to which words are being added.
    open: usize,
}

impl Group {
    /// Whether it has no effects.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Where the next effect will stand, to be handed to [`Group::put_before`].
    #[inline]
    pub fn mark(&self) -> usize {
        self.frames.len()
    }

    /// Begins an effect of so many words; [`Group::word`] follows for each, then [`Group::end`].
    #[inline]
    pub fn begin(&mut self, db: u16, audience: Audience, words: usize) {
        self.open = self.frames.len();
        self.frames.extend_from_slice(&[0; 8]);
        self.frames.extend_from_slice(&db.to_le_bytes());
        self.frames.extend_from_slice(&[audience as u8, 0]);
        self.header(b'*', words);
    }

    /// The next word of the effect that was begun.
    #[inline]
    pub fn word(&mut self, word: &[u8]) {
        self.header(b'$', word.len());
        self.frames.extend_from_slice(word);
        self.frames.extend_from_slice(b"\r\n");
    }

    /// The effect that was begun has all its words.
    #[inline]
    pub fn end(&mut self) {
        let len = (self.frames.len() - self.open - FRAME_HEADER_BYTES) as u64;
        self.frames[self.open..self.open + 8].copy_from_slice(&len.to_le_bytes());
    }

    /// Writes a record of one effect at the end of `buffer`: `words` are the command as an array of bulk
    /// strings. The same as [`Group::begin`] to [`Group::finish`], with one copy.
    #[inline]
    pub fn write_one(number: u64, db: u16, words: &[u8], buffer: &mut Vec<u8>) {
        let mut header = [0; RECORD_HEADER_BYTES + FRAME_HEADER_BYTES];
        let len = words.len() as u64;
        header[0..8].copy_from_slice(&number.to_le_bytes());
        header[8..16].copy_from_slice(&(len + FRAME_HEADER_BYTES as u64).to_le_bytes());
        header[16..24].copy_from_slice(&len.to_le_bytes());
        header[24..26].copy_from_slice(&db.to_le_bytes());
        header[26] = Audience::Everybody as u8;
        buffer.reserve(header.len() + words.len());
        buffer.extend_from_slice(&header);
        buffer.extend_from_slice(words);
    }

    /// Appends an effect.
    pub fn add<'w>(&mut self, db: u16, audience: Audience, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        self.begin(db, audience, words.len());
        words.for_each(|word| self.word(word));
        self.end();
    }

    /// Moves the effects of `other` to where [`Group::mark`] was taken, before all that was added since.
    pub fn put_before(&mut self, mark: usize, other: &Group) {
        self.frames.splice(mark..mark, other.frames.iter().copied());
    }

    /// Appends all effects of `other`.
    pub fn append(&mut self, other: Group) {
        if self.is_empty() {
            self.frames = other.frames;
        } else {
            self.frames.extend_from_slice(&other.frames);
        }
    }

    /// Drops the effects that were added since [`Group::mark`] gave this.
    pub fn cut(&mut self, mark: usize) {
        self.frames.truncate(mark);
    }

    /// Writes the effects as the record of this number at the end of `buffer`, and begins anew.
    #[inline]
    pub fn finish(&mut self, number: u64, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&number.to_le_bytes());
        buffer.extend_from_slice(&(self.frames.len() as u64).to_le_bytes());
        buffer.extend_from_slice(&self.frames);
        self.frames.clear();
        if self.frames.capacity() > KEPT_BYTES_MAX {
            self.frames = Vec::new();
        }
    }

    #[inline]
    fn header(&mut self, sign: u8, count: usize) {
        self.frames.push(sign);
        self.frames.extend_from_slice(I64Text::new().format_u64(count as u64));
        self.frames.extend_from_slice(b"\r\n");
    }
}

/// A record in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'b> {
    pub number: u64,
    frames: &'b [u8],
}

/// One effect of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    pub db: u16,
    pub audience: Audience,
    /// The command, as an array of bulk strings.
    pub words: &'b [u8],
}

impl<'b> Record<'b> {
    /// The record at the beginning of a buffer that [`Group::finish`] has written, and how many bytes it
    /// takes there; None at the buffer's end.
    #[inline]
    pub fn first(buffer: &'b [u8]) -> Option<(Record<'b>, usize)> {
        let (header, rest) = buffer.split_first_chunk::<RECORD_HEADER_BYTES>()?;
        let len = word_at(header, 8) as usize;
        let record = Record { number: word_at(header, 0), frames: &rest[..len] };
        Some((record, RECORD_HEADER_BYTES + len))
    }

    /// How many bytes it takes in a buffer.
    pub fn bytes(&self) -> usize {
        RECORD_HEADER_BYTES + self.frames.len()
    }

    /// Its effect, where there is just one.
    #[inline]
    pub fn only_frame(&self) -> Option<Frame<'b>> {
        Frame::first(self.frames).and_then(|(frame, rest)| rest.is_empty().then_some(frame))
    }

    /// Its effects, in their order.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'b>> + use<'b> {
        let mut rest = self.frames;
        std::iter::from_fn(move || {
            let (frame, behind) = Frame::first(rest)?;
            rest = behind;
            Some(frame)
        })
    }
}

impl<'b> Frame<'b> {
    /// The first of these frames, and what follows it.
    #[inline]
    fn first(frames: &'b [u8]) -> Option<(Frame<'b>, &'b [u8])> {
        let (header, behind) = frames.split_first_chunk::<FRAME_HEADER_BYTES>()?;
        let (words, rest) = behind.split_at(word_at(header, 0) as usize);
        let audience = match header[10] {
            0 => Audience::Everybody,
            _ => Audience::Replicas,
        };
        Some((Frame { db: u16::from_le_bytes([header[8], header[9]]), audience, words }, rest))
    }
}

fn word_at(header: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| header[at + index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> impl ExactSizeIterator<Item = &[u8]> {
        text.split(' ').map(str::as_bytes).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn a_record_holds_its_effects_in_their_order() {
        let (mut group, mut buffer) = (Group::default(), Vec::new());
        group.add(3, Audience::Everybody, words("SET a 1"));
        group.finish(7, &mut buffer);
        let mark = group.mark();
        group.add(0, Audience::Replicas, words("PUBLISH c m"));
        let mut before = Group::default();
        before.add(1, Audience::Everybody, words("DEL x"));
        group.put_before(mark, &before);
        group.finish(8, &mut buffer);
        assert!(group.is_empty());
        let (first, len) = Record::first(&buffer).unwrap();
        assert_eq!(first.number, 7);
        let frames: Vec<Frame<'_>> = first.frames().collect();
        assert_eq!(
            frames,
            [Frame {
                db: 3,
                audience: Audience::Everybody,
                words: b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
            }]
        );
        let (second, rest) = Record::first(&buffer[len..]).unwrap();
        let dbs: Vec<_> = second.frames().map(|frame| (frame.db, frame.audience)).collect();
        assert_eq!(dbs, [(1, Audience::Everybody), (0, Audience::Replicas)]);
        assert_eq!(Record::first(&buffer[len + rest..]), None);
    }

    #[test]
    fn a_record_of_one_effect_is_the_same_however_it_is_written() {
        let (mut group, mut buffer, mut at_once) = (Group::default(), Vec::new(), Vec::new());
        group.add(3, Audience::Everybody, words("SET a 1"));
        group.finish(7, &mut buffer);
        Group::write_one(7, 3, b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n", &mut at_once);
        assert_eq!(at_once, buffer);
        assert_eq!(
            Record::first(&buffer).unwrap().0.only_frame(),
            Record::first(&buffer).unwrap().0.frames().next()
        );
        group.add(3, Audience::Everybody, words("SET a 1"));
        group.add(3, Audience::Everybody, words("SET b 1"));
        buffer.clear();
        group.finish(8, &mut buffer);
        assert_eq!(Record::first(&buffer).unwrap().0.only_frame(), None);
    }

    #[test]
    fn what_has_grown_large_is_given_back() {
        let (mut group, mut buffer) = (Group::default(), Vec::new());
        group.add(0, Audience::Everybody, [&b"SET"[..], b"k", &vec![b'x'; 1 << 20]].into_iter());
        group.finish(0, &mut buffer);
        assert_eq!(group.frames.capacity(), 0);
    }
}
