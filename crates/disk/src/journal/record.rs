//! Records of the journal as bytes in memory. They are never written anywhere as they are.
//!
//! ```text
//! Records  runs:  [ first: u64, end: u64, start, shape ] ...
//!          bytes: all that the runs are made of, one behind the other
//! run      of one database: the words of its records, whose numbers are first, first + 1, ... end - 1
//!          of any shape: the frames of one record
//! frame    length of its words: u64 | database: u16 | audience: u8 | 0 | words      all little-endian
//! words    *3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n
//! ```
//!
//! A record is what one number stands for: the effects of one command, or of one transaction, in their order.
//! Nearly all have one effect that concerns everybody. Of those that a worker writes in a row, while no other
//! worker takes a number in between, only the words are kept: they are what a file holds, so whoever puts
//! records in order and writes them looks at a run, not at each record.
//!
//! Each effect of any other record is a frame, because effects of one record may be of several databases, and
//! not all of them concern every reader. On the path of every write while somebody reads: appending a record
//! copies its words once.
use base::text::I64Text;

/// Whom an effect concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Whoever keeps a copy of the data.
    Everybody,
    /// Replicas, and no file: a message to the listeners of a channel.
    Replicas,
    /// Files, and no replica: a script may say so.
    Files,
}

const FRAME_HEADER_BYTES: usize = 12;
/// Where the audience stands in a frame's header.
const AUDIENCE_AT: usize = 10;
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

    /// All effects, as the frames of a record.
    #[inline]
    pub fn frames(&self) -> &[u8] {
        &self.frames
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

    /// The effects that were added since [`Group::mark`] gave this concern so many only.
    pub fn limit(&mut self, mark: usize, audience: Audience) {
        let mut at = mark;
        while let Some(header) = self.frames.get_mut(at..at + FRAME_HEADER_BYTES) {
            header[AUDIENCE_AT] = audience as u8;
            at += FRAME_HEADER_BYTES + word_at(header, 0) as usize;
        }
    }

    /// Adds the effects to `records`, as the record of this number, and begins anew.
    #[inline]
    pub fn finish(&mut self, number: u64, records: &mut Records) {
        records.add_frames(number, &self.frames);
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

/// Records of one worker, in ascending order of their numbers.
#[derive(Debug, Default)]
pub struct Records {
    runs: Vec<Head>,
    bytes: Vec<u8>,
    count: usize,
}

/// Words among [`Records`] that are not a record yet: where they begin.
#[derive(Clone, Copy, Debug)]
pub struct Draft(usize);

/// What [`Records`] know of a run. It ends where the next begins.
#[derive(Clone, Copy, Debug)]
struct Head {
    first: u64,
    /// Behind the number of its last record.
    end: u64,
    /// Where it begins among the bytes.
    start: usize,
    shape: Shape,
}

/// What the bytes of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The words of records of one effect each, which is for everybody, in this database.
    Words(u16),
    /// The frames of one record.
    Frames,
}

/// What a run takes in memory beside its bytes.
const HEAD_BYTES: usize = size_of::<Head>();

impl Records {
    /// Adds a record of one effect for everybody; `words` are the command as an array of bulk strings. The
    /// same as [`Group::begin`] to [`Group::finish`], with one copy.
    #[inline]
    pub fn add_words(&mut self, number: u64, db: u16, words: &[u8]) {
        let draft = self.draft(words);
        self.add_draft(number, db, draft);
    }

    /// Writes the words of a record that will perhaps be added: then [`Records::add_draft`] follows, else
    /// [`Records::drop_draft`], before anything else is added.
    #[inline]
    pub fn draft(&mut self, words: &[u8]) -> Draft {
        let draft = Draft(self.bytes.len());
        self.bytes.extend_from_slice(words);
        draft
    }

    /// Where in memory what comes behind `bytes` more bytes will be written, unless the room ends before.
    #[inline]
    pub fn address_behind(&self, bytes: usize) -> *const u8 {
        self.bytes.as_ptr().wrapping_add(self.bytes.len() + bytes)
    }

    /// The words that were written.
    #[inline]
    pub fn drafted(&self, draft: Draft) -> &[u8] {
        &self.bytes[draft.0..]
    }

    /// The words that were written are a record of one effect for everybody.
    #[inline]
    pub fn add_draft(&mut self, number: u64, db: u16, draft: Draft) {
        self.count += 1;
        match self.runs.last_mut() {
            Some(last) if last.end == number && last.shape == Shape::Words(db) => last.end += 1,
            _ => self.begin(number, Shape::Words(db), draft.0),
        }
    }

    /// The words that were written are none.
    #[inline]
    pub fn drop_draft(&mut self, draft: Draft) {
        self.bytes.truncate(draft.0);
    }

    /// Adds a record of these frames, which are whole.
    pub(crate) fn add_frames(&mut self, number: u64, frames: &[u8]) {
        match Frame::first(frames) {
            Some((Frame { db, audience: Audience::Everybody, words }, [])) => {
                self.add_words(number, db, words)
            }
            _ => {
                self.count += 1;
                self.begin(number, Shape::Frames, self.bytes.len());
                self.bytes.extend_from_slice(frames);
            }
        }
    }

    #[cold]
    fn begin(&mut self, number: u64, shape: Shape, start: usize) {
        self.runs.push(Head { first: number, end: number + 1, start, shape });
    }

    /// How many they are.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many bytes they take; the sum of [`Run::used_bytes`] of all.
    #[inline]
    pub fn used_bytes(&self) -> usize {
        self.bytes.len() + self.runs.len() * HEAD_BYTES
    }

    /// How many bytes there is room for without an allocation.
    #[inline]
    pub fn room_bytes(&self) -> usize {
        self.bytes.capacity() + self.runs.capacity() * HEAD_BYTES
    }

    /// Forgets them, and keeps the room.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.bytes.clear();
        self.count = 0;
    }

    /// Run `index`; None behind the last.
    pub fn run(&self, index: usize) -> Option<Run<'_>> {
        let head = self.runs.get(index)?;
        let end = self.runs.get(index + 1).map_or(self.bytes.len(), |next| next.start);
        let bytes = &self.bytes[head.start..end];
        Some(Run { first: head.first, end: head.end, shape: head.shape, bytes })
    }
}

/// Records with neighbouring numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run<'b> {
    /// The number of its first record.
    pub first: u64,
    /// Behind the number of its last.
    pub end: u64,
    shape: Shape,
    bytes: &'b [u8],
}

/// One effect of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    pub db: u16,
    pub audience: Audience,
    /// The command, as an array of bulk strings.
    pub words: &'b [u8],
}

impl<'b> Run<'b> {
    /// How many bytes it takes among [`Records`].
    pub fn used_bytes(&self) -> usize {
        HEAD_BYTES + self.bytes.len()
    }

    /// Its commands, one behind the other, and their database, where each has a number of its own and
    /// concerns everybody.
    #[inline]
    pub fn words(&self) -> Option<(u16, &'b [u8])> {
        match self.shape {
            Shape::Words(db) => Some((db, self.bytes)),
            Shape::Frames => None,
        }
    }

    /// The effects of its record, in their order, where it is but one.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'b>> + use<'b> {
        let mut rest = match self.shape {
            Shape::Words(_) => &[],
            Shape::Frames => self.bytes,
        };
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
        (!frames.is_empty()).then(|| Frame::try_first(frames).expect("frames are whole"))
    }

    /// The same for bytes that may be anything; None if they do not begin with a whole frame.
    #[inline]
    pub(crate) fn try_first(frames: &'b [u8]) -> Option<(Frame<'b>, &'b [u8])> {
        let (header, behind) = frames.split_first_chunk::<FRAME_HEADER_BYTES>()?;
        let (words, rest) = behind.split_at_checked(usize::try_from(word_at(header, 0)).ok()?)?;
        let audience = match header[AUDIENCE_AT] {
            0 => Audience::Everybody,
            1 => Audience::Replicas,
            _ => Audience::Files,
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

    const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";

    /// What a run holds: its numbers, and its effects.
    type Held<'b> = (u64, u64, Option<(u16, &'b [u8])>, Vec<Frame<'b>>);

    fn runs(records: &Records) -> Vec<Held<'_>> {
        let runs = (0..).map_while(|index| records.run(index));
        runs.map(|run| (run.first, run.end, run.words(), run.frames().collect())).collect()
    }

    #[test]
    fn a_record_holds_its_effects_in_their_order() {
        let (mut group, mut records) = (Group::default(), Records::default());
        group.add(3, Audience::Everybody, words("SET a 1"));
        group.finish(7, &mut records);
        let mark = group.mark();
        group.add(0, Audience::Replicas, words("PUBLISH c m"));
        let mut before = Group::default();
        before.add(1, Audience::Everybody, words("DEL x"));
        group.put_before(mark, &before);
        group.finish(8, &mut records);
        assert!(group.is_empty());
        let [first, second] = &runs(&records)[..] else { panic!("{records:?}") };
        assert_eq!(first, &(7, 8, Some((3, SET)), vec![]));
        let frames: Vec<_> = second.3.iter().map(|frame| (frame.db, frame.audience)).collect();
        assert_eq!((second.0, second.1, second.2), (8, 9, None));
        assert_eq!(frames, [(1, Audience::Everybody), (0, Audience::Replicas)]);
        assert_eq!(records.count(), 2);
    }

    #[test]
    fn records_of_neighbouring_numbers_and_one_database_are_one_run() {
        let mut records = Records::default();
        for (number, db) in [(5, 0), (6, 0), (8, 0), (9, 2), (10, 2)] {
            records.add_words(number, db, SET);
        }
        let mut group = Group::default();
        group.add(2, Audience::Everybody, words("SET a 1"));
        group.finish(11, &mut records);
        group.add(2, Audience::Everybody, words("SET a 1"));
        group.add(2, Audience::Everybody, words("SET b 1"));
        group.finish(12, &mut records);
        records.add_words(13, 2, SET);
        let found: Vec<_> = runs(&records)
            .iter()
            .map(|(first, end, words, frames)| (*first, *end, words.map(|w| (w.0, w.1.len())), frames.len()))
            .collect();
        let len = SET.len();
        assert_eq!(
            found,
            [
                (5, 7, Some((0, 2 * len)), 0),
                (8, 9, Some((0, len)), 0),
                (9, 12, Some((2, 3 * len)), 0),
                (12, 13, None, 2),
                (13, 14, Some((2, len)), 0),
            ]
        );
        let used = (0..).map_while(|index| records.run(index)).map(|run| run.used_bytes()).sum::<usize>();
        assert_eq!((used, records.count()), (records.used_bytes(), 8));
        records.clear();
        assert!(records.is_empty() && records.run(0).is_none() && records.room_bytes() >= used);
    }

    #[test]
    fn what_is_for_replicas_alone_is_in_no_run_of_what_is_for_everybody() {
        let (mut group, mut records) = (Group::default(), Records::default());
        records.add_words(0, 0, SET);
        group.add(0, Audience::Replicas, words("PUBLISH c m"));
        group.finish(1, &mut records);
        let found = runs(&records);
        assert_eq!((found.len(), found[1].2, found[1].3.len()), (2, None, 1));
    }

    #[test]
    fn what_has_grown_large_is_given_back() {
        let (mut group, mut records) = (Group::default(), Records::default());
        group.add(0, Audience::Everybody, [&b"SET"[..], b"k", &vec![b'x'; 1 << 20]].into_iter());
        group.finish(0, &mut records);
        assert_eq!(group.frames.capacity(), 0);
    }
}
