//! What one worker writes into the journal: the effects of the commands that it runs, each under the next
//! number, while the shards of the command's keys are locked.
//!
//! ```text
//! begin -- how many changes have been counted in the shards? -- draft: the request, as it was sent
//!       -- the command runs, says what it does
//!       -- end: the draft, if that is all, or: keys that had expired, then what the command said, or its
//!          request if it has changed anything
//!       -- number, unless a transaction is open ---> the worker's buffer --- end of the batch ---> published
//!                                               \--> the tail (`state/tail.rs`), where there is a file
//! ```
//!
//! On the path of every request: where nobody reads the journal, a test of one byte, and nothing else.
use crate::state::journal::Journal;
use crate::state::tail::Lane;
use command::Effects;
use disk::aof::tail::Kept;
use disk::journal::{Audience, Draft, Records};
use resp::{Args, Framing};
use std::cell::{Cell, RefCell, RefMut};
use std::hint::cold_path;
use store::{Told, View};

/// The thread that wrote a buffer's last records to the file had the memory then, and fetching it back takes
/// longer than one command; where a lane of the tail begins again it was written megabytes before. So lines
/// that the next records will go to are asked for, so many bytes ahead.
const ASKED_AHEAD: [usize; 2] = [128, 192];

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Recorder {
    is_on: Cell<bool>,
    /// A transaction is open: what its requests do gets one number when it ends.
    is_open: Cell<bool>,
    /// The record that this worker wrote last, plus one.
    end: Cell<u64>,
    /// Whom the commands of a script concern.
    concerns: Cell<Concerns>,
    /// Which tail `notes` know.
    tail_turn: Cell<u32>,
    notes: RefCell<Notes>,
}

/// Whom the effects of commands concern, where a script has said so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Concerns {
    #[default]
    Everybody,
    Only(Audience),
    Nobody,
}

/// Where this thread keeps what it records.
#[derive(Default)]
enum Keeps {
    /// Nobody wants that.
    #[default]
    Nowhere,
    Here(Lane),
    /// With others.
    InLast,
}

#[derive(Default)]
struct Notes {
    effects: Effects,
    /// Those that are not published yet.
    records: Records,
    /// The room that they had when they were taken.
    room_bytes: usize,
    /// The worker's lane in the journal.
    lane: usize,
    keeps: Keeps,
}

/// The recording of one command.
pub(crate) struct Recording<'r> {
    notes: RefMut<'r, Notes>,
    changes_before: u64,
    mark: usize,
    /// The request's words, written before it is known whether they are an effect.
    draft: Option<Draft>,
}

impl Recording<'_> {
    /// Where the command says what it does.
    #[inline]
    pub(crate) fn effects(&mut self) -> &mut Effects {
        &mut self.notes.effects
    }
}

impl Recorder {
    /// Of the worker with this lane.
    pub(crate) fn new(lane: usize) -> Recorder {
        let notes = Notes { lane, ..Notes::default() };
        Recorder { notes: RefCell::new(notes), ..Recorder::default() }
    }

    /// Looks whether anybody reads, when a batch begins.
    #[inline]
    pub(crate) fn look(&self, journal: &Journal) {
        self.is_on.set(journal.is_on());
        if self.tail_turn.get() != journal.tail.turn() {
            cold_path();
            self.look_at_tail(journal, true);
        }
    }

    /// Between batches: an idle worker keeps no memory of a tail that has gone.
    #[inline]
    pub(crate) fn leave_former_tail(&self, journal: &Journal) {
        if self.tail_turn.get() != journal.tail.turn() {
            cold_path();
            self.notes.borrow_mut().keeps = Keeps::Nowhere;
        }
    }

    /// The same for another thread in the worker's place, which does not go on.
    pub(crate) fn look_for_once(&self, journal: &Journal) {
        self.is_on.set(journal.is_on());
        self.look_at_tail(journal, false);
    }

    #[cold]
    fn look_at_tail(&self, journal: &Journal, is_owner: bool) {
        self.tail_turn.set(journal.tail.turn());
        let notes = &mut *self.notes.borrow_mut();
        let lane = if is_owner { journal.tail.take_lane(notes.lane) } else { None };
        notes.keeps = match lane {
            Some(lane) => Keeps::Here(lane),
            None if journal.tail.is_there() => Keeps::InLast,
            None => Keeps::Nowhere,
        };
    }

    /// Whether anybody reads.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// The record that this worker wrote last, plus one: what a client has changed so far is below that.
    #[inline]
    pub(crate) fn end_of_records(&self) -> u64 {
        self.end.get()
    }

    /// A command on this database is about to run; None where nobody reads.
    #[inline]
    pub(crate) fn begin(&self, journal: &Journal, db: u16, view: &View<'_>) -> Option<Recording<'_>> {
        if !self.is_on() {
            return None;
        }
        cold_path();
        Some(self.begin_counted(journal, db, view.changes()))
    }

    /// The same for a command that is not given a view; `changes` is what has been counted so far.
    #[inline]
    pub(crate) fn begin_counted(&self, journal: &Journal, db: u16, changes: u64) -> Recording<'_> {
        let mut notes = self.notes.borrow_mut();
        notes.effects.begin(db, journal.words());
        let mark = notes.effects.group.mark();
        Recording { notes, changes_before: changes, mark, draft: None }
    }

    /// [`Recorder::begin_counted`] for a request that reads like this and may write. If it is an effect it is
    /// most probably the whole of it, so it is written at once: the processor fetches the memory that it is
    /// written to while the command runs, where otherwise it would have to before the shard is let go.
    #[inline(always)]
    pub(crate) fn begin_drafted(
        &self,
        journal: &Journal,
        db: u16,
        changes: u64,
        words: Option<&[u8]>,
    ) -> Recording<'_> {
        let mut recording = self.begin_counted(journal, db, changes);
        if let Some(words) = words {
            take_room(journal, &mut recording.notes);
            recording.draft = Some(recording.notes.records.draft(words));
            for ahead in ASKED_AHEAD {
                pack::prefetch_to_write(recording.notes.records.address_behind(ahead));
                if let Keeps::Here(lane) = &recording.notes.keeps {
                    pack::prefetch_to_write(lane.address_behind(ahead));
                }
            }
        }
        recording
    }

    /// The command has run, and the view holds its shards still.
    #[inline]
    pub(crate) fn end(
        &self,
        mut recording: Recording<'_>,
        journal: &Journal,
        view: &mut View<'_>,
        args: &Args<'_>,
    ) {
        let Some(draft) = recording.draft else { return self.end_undrafted(recording, journal, view, args) };
        if !view.has_garbage()
            && !self.is_open.get()
            && view.changes() != recording.changes_before
            && let Some(db) = recording.notes.effects.alone_in()
        {
            let number = self.take_number(journal);
            let Notes { records, keeps, .. } = &mut *recording.notes;
            keep(keeps, journal, number, || Kept::Words(db, records.drafted(draft)));
            records.add_draft(number, db, draft);
        } else {
            recording.notes.records.drop_draft(draft);
            self.end_undrafted(recording, journal, view, args);
        }
    }

    #[inline(never)]
    fn end_undrafted(
        &self,
        mut recording: Recording<'_>,
        journal: &Journal,
        view: &mut View<'_>,
        args: &Args<'_>,
    ) {
        let notes = &mut *recording.notes;
        if !view.has_garbage()
            && !self.is_open.get()
            && let Some(db) = notes.effects.alone_in()
        {
            if view.changes() == recording.changes_before {
                return;
            }
            if let Some(request) = args.framed(Framing::Unknown) {
                take_room(journal, notes);
                let number = self.take_number(journal);
                keep(&mut notes.keeps, journal, number, || Kept::Words(db, request));
                return notes.records.add_words(number, db, request);
            }
        }
        self.end_any(recording, journal, view, args);
    }

    #[cold]
    #[inline(never)]
    fn end_any(&self, mut recording: Recording<'_>, journal: &Journal, view: &mut View<'_>, args: &Args<'_>) {
        let Notes { effects, .. } = &mut *recording.notes;
        if view.changes() != recording.changes_before {
            effects.end(args.iter_from(0));
        }
        self.limit(effects, recording.mark);
        if view.has_garbage() {
            tell_what_went(effects, recording.mark, journal, view);
        }
        self.finish(recording.notes, journal);
    }

    /// Has the effects since the mark, which are those of a command, reach only those whom it concerns.
    fn limit(&self, effects: &mut Effects, mark: usize) {
        match self.concerns.get() {
            Concerns::Everybody => {}
            Concerns::Only(audience) => effects.group.limit(mark, audience),
            Concerns::Nobody => effects.group.cut(mark),
        }
    }

    /// The commands to come concern these alone.
    pub(crate) fn concern(&self, concerns: Concerns) {
        self.concerns.set(concerns);
    }

    /// The same for a command that has run elsewhere: what it has made is in the view. No script has such
    /// commands, so everybody is concerned.
    pub(crate) fn end_made(
        &self,
        mut recording: Recording<'_>,
        journal: &Journal,
        view: &mut View<'_>,
        made: Effects,
    ) {
        let effects = recording.effects();
        effects.say_made(made);
        if view.has_garbage() {
            tell_what_went(&mut recording.notes.effects, recording.mark, journal, view);
        }
        self.finish(recording.notes, journal);
    }

    /// The same for a command on the whole keyspace, which runs alone.
    pub(crate) fn end_said(
        &self,
        mut recording: Recording<'_>,
        journal: &Journal,
        is_said: bool,
        args: &Args<'_>,
    ) {
        if is_said {
            recording.notes.effects.end(args.iter_from(0));
        }
        self.limit(&mut recording.notes.effects, recording.mark);
        self.finish(recording.notes, journal);
    }

    /// A request changes no data, and is to reach replicas all the same.
    pub(crate) fn tell_replicas(&self, journal: &Journal, db: u16, args: &Args<'_>) {
        if matches!(self.concerns.get(), Concerns::Only(Audience::Files) | Concerns::Nobody) {
            return;
        }
        let (mut recording, end) = (self.begin_counted(journal, db, 0), self.end.get());
        recording.notes.effects.tell_replicas(args.iter_from(0));
        self.finish(recording.notes, journal);
        // No file has it, and no reply waits for that.
        self.end.set(end);
    }

    /// Keys were found past their deadlines while the view looked for something to do.
    #[cold]
    pub(crate) fn note_gone(&self, journal: &Journal, view: &mut View<'_>) {
        let mut notes = self.notes.borrow_mut();
        let mark = notes.effects.group.mark();
        tell_what_went(&mut notes.effects, mark, journal, view);
        self.finish(notes, journal);
    }

    /// A transaction begins: all that is recorded until [`Recorder::close`] gets one number.
    pub(crate) fn open(&self) {
        self.is_open.set(true);
    }

    /// Whether one is open.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.get()
    }

    /// Where the effects stand, to be handed to [`Recorder::forget_since`].
    pub(crate) fn mark(&self) -> usize {
        self.notes.borrow().effects.group.mark()
    }

    /// What was recorded since then is told to nobody.
    pub(crate) fn forget_since(&self, mark: usize) {
        self.notes.borrow_mut().effects.group.cut(mark);
    }

    /// Keys have gone by themselves, whatever became of what they were found by.
    pub(crate) fn note_expired(&self, journal: &Journal, told: &[Told]) {
        if self.is_on() {
            let effects = &mut self.notes.borrow_mut().effects;
            told.iter().for_each(|told| journal.tell_gone(effects, told));
        }
    }

    /// The transaction has ended, and its shards are locked still.
    pub(crate) fn close(&self, journal: &Journal) {
        self.is_open.set(false);
        if self.is_on() {
            self.finish(self.notes.borrow_mut(), journal);
        }
    }

    /// Numbers what was recorded, unless a transaction goes on.
    fn finish(&self, mut notes: RefMut<'_, Notes>, journal: &Journal) {
        if !self.is_open.get() && !notes.effects.group.is_empty() {
            take_room(journal, &mut notes);
            let Notes { effects, records, keeps, .. } = &mut *notes;
            let number = self.take_number(journal);
            keep(keeps, journal, number, || Kept::Frames(effects.group.frames()));
            effects.group.finish(number, records);
        }
    }

    /// The number of a record that is about to be added.
    #[inline]
    fn take_number(&self, journal: &Journal) -> u64 {
        let number = journal.take_number();
        self.end.set(number + 1);
        number
    }

    /// The batch has ended: its records are published in this worker's lane.
    #[inline]
    pub(crate) fn publish(&self, journal: &Journal) {
        if self.is_on() {
            cold_path();
            let mut notes = self.notes.borrow_mut();
            // Where commands have changed nothing, the room that was taken for them serves the next batch.
            if !notes.records.is_empty() {
                let records = std::mem::take(&mut notes.records);
                journal.publish(notes.lane, records, notes.room_bytes);
            }
        }
    }
}

/// Keeps a record where it outlives the process, before its shards are let go.
#[inline]
fn keep<'k>(keeps: &mut Keeps, journal: &Journal, number: u64, kept: impl FnOnce() -> Kept<'k>) {
    let is_kept = match keeps {
        Keeps::Nowhere => return,
        Keeps::Here(lane) => lane.keep(number, kept()),
        Keeps::InLast => journal.tail.keep_in_last(number, kept()),
    };
    if !is_kept {
        journal.expose(number);
    }
}

/// Room for the records of a batch, before the first of them is written.
#[inline]
fn take_room(journal: &Journal, notes: &mut Notes) {
    if notes.records.room_bytes() == 0 {
        cold_path();
        notes.records = journal.room(notes.lane);
        notes.room_bytes = notes.records.room_bytes();
    }
}

/// Adds what has gone by itself while a command ran: before what the command did, if it was found then; after
/// it, if it is only removed now.
fn tell_what_went(effects: &mut Effects, mark: usize, journal: &Journal, view: &mut View<'_>) {
    let mut before = Effects::default();
    view.unrecorded().iter().for_each(|told| journal.tell_gone(&mut before, told));
    effects.group.put_before(mark, &before.group);
    view.remove_overdue();
    view.unrecorded().iter().for_each(|told| journal.tell_gone(effects, told));
}
