//! To whom it matters what happens to keys, told so cheaply that a write to a key that nobody listens to pays
//! one load and a test, in a cache line that it has anyway.
//!
//! ```text
//! bits of a shard: 64; bit h is set while somebody listens to a key of the shard whose hash ends with h, and
//! all are while events are published whatever their keys, or every change of every key is heard
//! ```
//!
//! Several keys share a bit, so a listener may be told of a key that nobody listens to, and looks it up in
//! vain. The bits change under the shard's lock alone, so no change that follows is missed.
use crate::event::{Classes, Event, Listener, Told};
use crate::field_names::Names;
use crate::keyspace::shard::{Db, Shard};
use crate::{Key, Keyspace, Replaced, View};
use base::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// What the keyspace knows of its listener.
#[derive(Default)]
pub(crate) struct Listening {
    pub(crate) classes: AtomicU32,
    /// Every change of every key is told.
    hears_changes: AtomicBool,
    /// Every key and field that goes by itself is told: somebody records changes.
    records: AtomicBool,
    /// How many ears are open.
    open: AtomicU64,
    listener: Option<Box<dyn Listener>>,
}

/// Of one shard: which of its keys somebody listens to.
#[derive(Default)]
pub(crate) struct Ears {
    bits: u64,
    /// All keys are listened to, because events are published or because every change is heard.
    hears_classes: bool,
    hears_changes: bool,
    /// How many listen to keys whose hashes end with h. Made when somebody first does.
    counts: Option<Box<[u32; u64::BITS as usize]>>,
}

impl Ears {
    /// Whether an event of this key has to be told.
    #[inline]
    pub(crate) fn hears(&self, hash: Hash) -> bool {
        self.bits >> end(hash) & 1 != 0
    }

    /// Whether an event of any key has to be.
    fn hears_any(&self) -> bool {
        self.bits != 0
    }

    /// Whether somebody listens to this key in particular.
    fn hears_it(&self, hash: Hash) -> bool {
        self.counts.as_ref().is_some_and(|counts| counts[end(hash)] != 0)
    }

    fn open(&mut self, hash: Hash) {
        self.counts.get_or_insert_with(|| Box::new([0; _]))[end(hash)] += 1;
        self.bits |= 1 << end(hash);
    }

    fn close(&mut self, hash: Hash) {
        let count = &mut self.counts.as_mut().expect("it was opened before")[end(hash)];
        *count -= 1;
        if *count == 0 && !self.hears_classes && !self.hears_changes {
            self.bits &= !(1 << end(hash));
        }
    }

    fn renew(&mut self) {
        let heard = |counts: &[u32; _]| (0..64).filter(|h| counts[*h] != 0).fold(0, |bits, h| bits | 1 << h);
        let of_keys = self.counts.as_deref().map_or(0, heard);
        self.bits = if self.hears_classes || self.hears_changes { u64::MAX } else { of_keys };
    }
}

#[inline]
fn end(hash: Hash) -> usize {
    (hash.0 & 63) as usize
}

impl Keyspace {
    /// Names the listener.
    pub fn listen(&mut self, listener: Box<dyn Listener>) {
        self.listening.listener = Some(listener);
    }

    /// From here on events of these classes are told, whatever their keys. Locks one shard after the other:
    /// a command that runs meanwhile may go by what was before.
    pub fn hear_classes(&self, classes: Classes) {
        self.listening.classes.store(classes.0, Relaxed);
        for index in 0..self.shards() {
            let mut shard = self.shard(index);
            shard.ears.hears_classes = classes != Classes::NONE;
            shard.ears.renew();
        }
    }

    /// From here on every change of every key is told, or no longer. Locks one shard after the other; one
    /// thread at a time may call it.
    pub fn hear_every_change(&self, is_on: bool) {
        self.listening.hears_changes.store(is_on, Relaxed);
        for index in 0..self.shards() {
            let mut shard = self.shard(index);
            shard.ears.hears_changes = is_on;
            shard.ears.renew();
        }
    }

    /// From here on it is told whatever goes by itself, because it has expired or is evicted, or no longer.
    /// What commands change is not told because of this. The caller makes sure that nobody else works on the
    /// keyspace.
    pub fn record(&self, is_on: bool) {
        self.listening.records.store(is_on, Relaxed);
    }

    /// What [`Keyspace::record`] was last told.
    #[inline]
    pub(crate) fn records(&self) -> bool {
        self.listening.records.load(Relaxed)
    }

    /// Everything that happens here is told that would be told there, whoever listens to whichever key.
    pub(crate) fn hear_as(&self, other: &Keyspace) {
        self.hear_classes(other.classes());
        self.hear_every_change(true);
        self.record(other.records());
    }

    /// The name of any key with this hash, in any database. Locks its shard.
    pub fn name_of(&self, hash: Hash) -> Option<Box<[u8]>> {
        let shard = self.shard_of(hash);
        let in_db = |db: &Db| {
            let crowd = db.map.crowd(hash.order())?;
            let mut likely = (0..crowd.len()).filter(|at| crowd.tag(*at) == hash.tag());
            likely.find_map(|at| Some(crowd.at(at).key).filter(|key| self.hash(key) == hash).map(Box::from))
        };
        shard.dbs().find_map(|(_, db)| in_db(db))
    }

    /// What [`Keyspace::hear_classes`] was last told.
    #[inline]
    pub fn classes(&self) -> Classes {
        Classes(self.listening.classes.load(Relaxed))
    }

    /// Somebody begins to listen to this key. Locks its shard; a command that holds it calls
    /// [`View::open_ear`].
    pub fn open_ear(&self, key: &[u8]) {
        let hash = self.hash(key);
        self.listening.open.fetch_add(1, Relaxed);
        self.shard_of(hash).ears.open(hash);
    }

    /// Ends one listening to this key. Locks its shard.
    pub fn close_ear(&self, key: &[u8]) {
        self.close_ear_of(self.hash(key));
    }

    /// The same for a key with this hash.
    pub fn close_ear_of(&self, hash: Hash) {
        self.shard_of(hash).ears.close(hash);
        self.listening.open.fetch_sub(1, Relaxed);
    }

    /// Whether this event of this key interests anybody.
    fn wants(&self, ears: &Ears, hash: Hash, event: Event) -> bool {
        let classes = self.classes();
        let is_published = event.class != Classes::NONE && classes.has(event.class);
        let is_heard = ears.hears_changes || ears.hears_it(hash);
        is_published || is_heard && event.is_change()
    }

    /// Whether anybody listens to anything.
    pub(crate) fn hears_anything(&self) -> bool {
        let is_on = self.listening.hears_changes.load(Relaxed) || self.records();
        is_on || self.classes() != Classes::NONE || self.listening.open.load(Relaxed) > 0
    }

    /// Tells the listener. The caller holds the shards of the keys.
    pub(crate) fn tell(&self, told: &[Told]) {
        if let Some(listener) = self.listener().filter(|_| !told.is_empty()) {
            listener.hear(told);
        }
    }

    pub(crate) fn listener(&self) -> Option<&dyn Listener> {
        self.listening.listener.as_deref()
    }
}

/// How commands tell what they did.
impl View<'_> {
    /// The command may have made the key and has not changed it, as Redis sees it: that it is new is told,
    /// but not to those who watch or remember it.
    pub fn tell_if_created(&mut self, key: &Key<'_>) {
        let is_new = std::mem::take(&mut self.aside.has_created);
        if is_new && self.keyspace.wants(&self.shard_mut(key).ears, key.hash, Event::NEW) {
            self.aside.tell(self.keyspace.told(key, Event::NEW));
        }
    }

    /// The command has put its result in the place of what was there when it began: then the key is not new,
    /// though it was removed meanwhile.
    pub fn note_stored(&mut self, key: &Key<'_>, replaced: &Replaced) {
        self.aside.has_created &= !replaced.existed;
        self.take_over_uses(key, replaced);
    }

    /// A command has made so many changes to this key, as Redis counts them, perhaps none. `event` is what is
    /// published of them. Commands that publish several events of one key go on with [`View::touched`], in
    /// the order in which Redis publishes them.
    #[inline]
    pub fn changed(&mut self, key: &Key<'_>, changes: u64, event: Event) {
        if self.count_changes(key, changes) {
            self.tell(key, event);
        }
    }

    /// The same for a command that takes something away: a value that has become empty took its key with
    /// it, which is told next.
    #[inline]
    pub fn reduced(&mut self, key: &Key<'_>, changes: u64, event: Event) {
        if self.count_changes(key, changes) {
            self.tell(key, event);
            self.tell_if_gone(key);
        }
    }

    /// Whether these changes have to be told.
    #[inline]
    fn count_changes(&mut self, key: &Key<'_>, changes: u64) -> bool {
        let shard = self.shard_mut(key);
        shard.stats.dirty += changes;
        changes > 0 && shard.ears.hears(key.hash)
    }

    /// A key was changed, which is not counted as a change, or has been.
    #[inline]
    pub fn touched(&mut self, key: &Key<'_>, event: Event) {
        if self.shard_mut(key).ears.hears(key.hash) {
            self.tell(key, event);
        }
    }

    /// The same where the value may have become empty.
    #[inline]
    pub fn touched_and_reduced(&mut self, key: &Key<'_>, event: Event) {
        if self.shard_mut(key).ears.hears(key.hash) {
            self.tell(key, event);
            self.tell_if_gone(key);
        }
    }

    /// Which shard this key lies in.
    pub fn shard_number(&self, key: &Key<'_>) -> usize {
        self.keyspace.shard_number(key.hash)
    }

    /// Somebody begins to listen to this key; [`Keyspace::close_ear`] ends it.
    pub fn open_ear(&mut self, key: &Key<'_>) {
        self.keyspace.listening.open.fetch_add(1, Relaxed);
        self.shard_mut(key).ears.open(key.hash);
    }

    /// Ends one listening to this key.
    pub fn close_ear(&mut self, key: &Key<'_>) {
        self.shard_mut(key).ears.close(key.hash);
        self.keyspace.listening.open.fetch_sub(1, Relaxed);
    }

    #[cold]
    fn tell_if_gone(&mut self, key: &Key<'_>) {
        if self.peek(key).is_none() {
            self.tell(key, Event::DEL);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell(&mut self, key: &Key<'_>, event: Event) {
        let keyspace = self.keyspace;
        let is_new = std::mem::take(&mut self.aside.has_created);
        for event in [Event::NEW, event].into_iter().skip(usize::from(!is_new)) {
            if keyspace.wants(&self.shard_mut(key).ears, key.hash, event) {
                self.aside.tell(keyspace.told(key, event));
            }
        }
    }
}

impl Keyspace {
    /// An event of a key of a view.
    pub(crate) fn told(&self, key: &Key<'_>, event: Event) -> Told {
        let shard = self.shard_number(key.hash) as u32;
        Told { db: key.db(), shard, key: key.bytes().into(), event, fields: Vec::new() }
    }
}

/// Collects what happens in one shard while it is locked, apart from commands: expiry and eviction.
pub(crate) struct Teller<'k> {
    /// None where nobody listens to any key of the shard.
    keyspace: Option<&'k Keyspace>,
    shard: u32,
    /// The database that is worked on.
    pub(crate) db: u16,
    told: Vec<Told>,
}

impl<'k> Teller<'k> {
    /// For a shard that is locked.
    pub(crate) fn new(keyspace: &'k Keyspace, shard: &Shard) -> Teller<'k> {
        let keyspace = Some(keyspace).filter(|_| shard.ears.hears_any() || keyspace.records());
        Teller { keyspace, shard: shard.index, db: 0, told: Vec::new() }
    }

    /// One that tells nobody.
    pub(crate) fn mute() -> Teller<'k> {
        Teller { keyspace: None, shard: 0, db: 0, told: Vec::new() }
    }

    /// Something happened to a key of the shard.
    #[inline]
    pub(crate) fn note(&mut self, key: &[u8], event: Event) {
        if self.keyspace.is_some() {
            let (db, shard) = (self.db, self.shard);
            self.told.push(Told { db, shard, key: key.into(), event, fields: Vec::new() });
        }
    }

    /// Room for the names of fields that expire, if somebody wants them.
    pub(crate) fn wanted_names(&self) -> Names {
        self.keyspace.is_some_and(Keyspace::records).then(Vec::new)
    }

    /// Fields of a hash have expired.
    pub(crate) fn note_fields(&mut self, key: &[u8], names: Names) {
        self.note(key, Event::FIELDS_EXPIRED);
        if let (Some(told), Some(names)) = (self.told.last_mut(), names) {
            told.fields = names;
        }
    }

    /// Tells what was noted. The shard is still locked.
    pub(crate) fn tell(&mut self) {
        if let Some(keyspace) = self.keyspace {
            keyspace.tell(&self.told);
            self.told.clear();
        }
    }
}
