//! What a data command sees: the shards of its keys, locked, one database of them, the time, the settings. A
//! [`Key`] can only come from the lock that made the view, so a command cannot name a shard that it does not
//! hold.
//!
//! This file is on the path of every request: with one key nothing here allocates. A key past its deadline is
//! absent for every method. A lookup cannot remove it, because what it returns is borrowed from the tree: it
//! puts the key on the list `overdue`, and the view removes the listed keys when its garbage is taken or the
//! view ends.
use crate::entry::{Meta, Shape};
use crate::event::{Classes, Event, Told};
use crate::eviction::uses::{Touch, Usage, Uses};
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::NO_DEADLINE;
use crate::expiry::timer::Timer;
use crate::field_names::Names;
use crate::hash::due::fields_due;
use crate::keyspace::garbage::Garbage;
use crate::keyspace::guards::Guards;
use crate::keyspace::seeds::Seeds;
use crate::keyspace::shard::{Buffers, Db, Shard, discard, kind};
use crate::keyspace::stats::ShardStats;
use crate::kind::Kind;
use crate::value::Value;
use crate::{BEFORE_ALL, Keyspace, Settings};
use base::Millis;
use base::hash::{Hash, Seed};
use base::permutation::Permutation;
use base::random::Random;
use pack::map::{Entry, Found, Map, Occupied, Shared};
use std::sync::atomic::Ordering::Relaxed;

/// A key in a database, whose shard is locked by the view it came with.
#[derive(Clone, Copy)]
pub struct Key<'k> {
    bytes: &'k [u8],
    pub(crate) hash: Hash,
    /// Which of the view's locks is that of its shard.
    pub(crate) guard: u32,
    pub(crate) db: u16,
}
const _: () = assert!(size_of::<Key<'_>>() == 32);

impl<'k> Key<'k> {
    pub(crate) fn new(bytes: &'k [u8], hash: Hash, guard: u32, db: u16) -> Key<'k> {
        Key { bytes, hash, guard, db }
    }

    /// The name of the key.
    pub fn bytes(&self) -> &'k [u8] {
        self.bytes
    }

    /// [`Keyspace::hash`] of its name.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The number of the database that it is in.
    pub fn db(&self) -> u16 {
        self.db
    }

    /// The same key in a view that holds one shard.
    pub(crate) fn alone(self) -> Key<'k> {
        Key { guard: 0, ..self }
    }

    /// The same key in another database, below [`View::databases`]: its shard is the same in all of them, so
    /// it is locked.
    pub fn in_db(self, db: u16) -> Key<'k> {
        Key { db, ..self }
    }
}

/// A key that a lookup found past its deadline.
struct Overdue {
    key: Vec<u8>,
    hash: Hash,
    guard: u32,
    db: u16,
}

impl Overdue {
    fn of(key: &Key<'_>) -> Overdue {
        Overdue { key: key.bytes.to_vec(), hash: key.hash, guard: key.guard, db: key.db }
    }
}

/// What holds for a view, a bit each. One word, because a view is moved as soon as it is made, and a word
/// that was written in parts can be read only when all of them have reached the cache.
#[derive(Clone, Copy)]
struct Modes(u64);

impl Modes {
    const COUNTS_LOOKUPS: u64 = 1;
    /// Reading a key counts as using it.
    const LEAVES_TRACE: u64 = 2;
    /// Keys are created in the order of their places.
    const IN_ORDER: u64 = 4;
    /// Long texts are not copied.
    const LEAVES_COPIES: u64 = 8;

    #[inline(always)]
    fn has(self, mode: u64) -> bool {
        self.0 & mode != 0
    }

    #[inline(always)]
    fn set(&mut self, mode: u64, is_set: bool) {
        self.0 = if is_set { self.0 | mode } else { self.0 & !mode };
    }
}

/// What a command sees of the keyspace: the locked shards of its keys. Dropping the view unlocks them.
pub struct View<'k> {
    pub(crate) guards: Guards<'k>,
    pub(crate) keyspace: &'k Keyspace,
    settings: &'k Settings,
    now: Millis,
    modes: Modes,
    /// The key whose use was recorded last, so that a command which looks a key up twice counts as one use.
    used: Option<Hash>,
    pub(crate) aside: Aside,
}

/// What a command leaves to be done before its shards are let go, or after.
#[derive(Default)]
pub(crate) struct Aside {
    /// To be freed.
    pub(crate) garbage: Vec<Garbage>,
    /// What is rare, so that a view stays small, which every request moves about.
    rest: Option<Box<Rest>>,
    /// A key has come to be that nobody was told of.
    pub(crate) has_created: bool,
}
const _: () = assert!(size_of::<View<'_>>() <= 120, "from 128 bytes on each move is a call of memcpy");

/// What a command leaves behind that most do not.
#[derive(Default)]
struct Rest {
    /// Keys that lookups found past their deadline: they are removed.
    overdue: Vec<Overdue>,
    /// What happened to keys that somebody listens to, in order.
    told: Vec<Told>,
    /// How many of these [`View::unrecorded`] has shown.
    recorded: usize,
    /// What a command beside tells of how its keys were used.
    usages: Vec<(Vec<u8>, Usage)>,
}

impl Aside {
    #[cold]
    pub(crate) fn tell(&mut self, told: Told) {
        self.rest.get_or_insert_default().told.push(told);
    }

    /// In a keyspace beside: this key was used so.
    #[cold]
    pub(crate) fn note_usage(&mut self, key: &[u8], usage: Usage) {
        self.rest.get_or_insert_default().usages.push((key.to_vec(), usage));
    }

    /// What was noted of the use of keys.
    pub(crate) fn take_usages(&mut self) -> Vec<(Vec<u8>, Usage)> {
        self.rest.as_mut().map_or_else(Vec::new, |rest| std::mem::take(&mut rest.usages))
    }

    /// A key was found past its deadline.
    #[cold]
    fn bury_overdue(&mut self, keyspace: &Keyspace, key: &Key<'_>) {
        self.bury_later(key);
        self.tell_expired(keyspace, keyspace.told(key, Event::EXPIRED));
    }

    /// A key was looked for that is not there.
    #[inline(never)]
    fn tell_miss(&mut self, keyspace: &Keyspace, key: &Key<'_>) {
        if keyspace.classes().has(Classes::KEYMISS) {
            self.tell(keyspace.told(key, Event::KEYMISS));
        }
    }

    /// A key that is past its deadline is told once.
    #[cold]
    fn tell_expired(&mut self, keyspace: &Keyspace, told: Told) {
        let is_wanted = keyspace.hears_anything() && !keyspace.expiry_rests();
        if is_wanted && !self.rest.as_ref().is_some_and(|rest| rest.told.contains(&told)) {
            self.tell(told);
        }
    }

    #[cold]
    fn bury_later(&mut self, key: &Key<'_>) {
        self.rest.get_or_insert_default().overdue.push(Overdue::of(key));
    }
}

/// A lookup whose entry has been searched for: what is needed to judge and count it.
struct Lookup<'l> {
    now: Millis,
    counts: bool,
    stats: &'l mut ShardStats,
    aside: &'l mut Aside,
    keyspace: &'l Keyspace,
}

impl Lookup<'_> {
    /// Returns the entry, or None where its key is past its deadline: such a key is listed to be removed.
    /// With `HASH` a hash of which fields are due is listed too. Counts a hit or a miss.
    #[inline(always)]
    fn judge<'f, const HASH: bool>(
        self,
        found: Option<Found<'f, Value>>,
        key: &Key<'_>,
    ) -> Option<Found<'f, Value>> {
        let mut found = found;
        if found.as_ref().is_some_and(|found| Db::is_overdue(found, self.now)) {
            self.aside.bury_overdue(self.keyspace, key);
            found = None;
        }
        if HASH && found.as_ref().is_some_and(|found| self.has_overdue_fields(found, key)) {
            self.aside.bury_later(key);
        }
        if self.counts {
            self.stats.hits += u64::from(found.is_some());
            self.stats.misses += u64::from(found.is_none());
            if found.is_none() {
                self.aside.tell_miss(self.keyspace, key);
            }
        }
        found
    }

    /// As [`Db::has_overdue_fields`], which walks a small hash: not where nothing in the shard is due yet.
    #[inline]
    fn has_overdue_fields(&self, found: &Found<'_, Value>, key: &Key<'_>) -> bool {
        let is_walked = Meta(found.meta).shape() == Shape::TimedHash;
        (!is_walked || self.keyspace.is_due(key.hash, self.now)) && Db::has_overdue_fields(found, self.now)
    }
}

/// What an edit needs of a shard besides the tree of the database.
pub(crate) struct EditContext<'s> {
    pub(crate) timer: Timer<'s>,
    pub(crate) stats: &'s mut ShardStats,
    pub(crate) buffers: &'s mut Buffers,
    pub(crate) touch: Touch,
    pub(crate) aside: &'s mut Aside,
    keyspace: &'s Keyspace,
    shard: u32,
    db: u16,
}

/// What an entry was before an edit.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    pub(crate) meta: Meta,
    pub(crate) deadline: Deadline,
    pub(crate) is_past: bool,
}

impl Before {
    /// The key's deadline; None where it has passed.
    #[inline]
    pub(crate) fn live(&self) -> Option<Deadline> {
        (!self.is_past).then_some(self.deadline)
    }
}

impl EditContext<'_> {
    pub(crate) fn discard(&mut self, value: Option<Shared<Value>>) {
        discard(value, &mut self.aside.garbage);
    }

    /// Reads an entry before it is edited, and counts it as used. If its deadline has passed, the key counts
    /// as expired.
    #[inline(always)]
    pub(crate) fn read(&mut self, entry: &mut Occupied<'_, Value>) -> Before {
        if self.touch != Touch::None {
            let (touch, random) = (self.touch, &mut self.buffers.random);
            entry.touch(|old| touch.next(old, random));
        }
        let meta = Meta(entry.meta());
        let deadline = if meta.is_volatile() { meta.deadline(entry.inline()) } else { Deadline::Never };
        let is_past = deadline.is_past(self.timer.now);
        if is_past {
            self.note_expired(entry.found().key);
        }
        Before { meta, deadline, is_past }
    }

    /// A key past its deadline is gone from here on.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_expired(&mut self, key: &[u8]) {
        self.stats.expired += 1;
        // Whatever the command writes in its place is a new key.
        self.aside.has_created = true;
        let told = self.told(key, Event::EXPIRED);
        self.aside.tell_expired(self.keyspace, told);
    }

    fn told(&self, key: &[u8], event: Event) -> Told {
        Told { db: self.db, shard: self.shard, key: key.into(), event, fields: Vec::new() }
    }

    /// A key has come to be. It is told with the next event of the command.
    #[inline]
    pub(crate) fn note_created(&mut self) {
        self.aside.has_created = true;
    }

    /// A key has come to be, which is told at once.
    pub(crate) fn tell_created(&mut self, key: &[u8]) {
        self.aside.has_created = false;
        if self.keyspace.classes().has(Classes::NEW) {
            self.tell(key, Event::NEW);
        }
    }

    /// Tells an event of a key that is edited, for what does not end in [`View::touched`].
    #[cold]
    pub(crate) fn tell(&mut self, key: &[u8], event: Event) {
        if self.keyspace.hears_anything() {
            let told = self.told(key, event);
            self.aside.tell(told);
        }
    }

    /// Room for the names of fields that expire, if somebody wants them.
    #[inline]
    pub(crate) fn wanted_names(&self) -> Names {
        self.keyspace.records().then(Vec::new)
    }

    /// Tells that fields of a hash have expired.
    #[cold]
    pub(crate) fn tell_fields(&mut self, key: &[u8], names: Names) {
        if self.keyspace.hears_anything() {
            let told = self.told(key, Event::FIELDS_EXPIRED);
            self.aside.tell(Told { fields: names.unwrap_or_default(), ..told });
        }
    }

    /// To be called before an entry is written over: takes the deadlines of a hash's fields out of the sums.
    #[inline]
    pub(crate) fn forget_fields(&mut self, entry: &Occupied<'_, Value>) {
        let meta = Meta(entry.meta());
        if matches!(meta.shape(), Shape::TimedHash | Shape::HashTree) {
            let is_timed = fields_due(meta, entry.inline(), entry.outside()) != NO_DEADLINE;
            self.timer.volatile.count_hash(is_timed, false);
        }
    }

    /// Removes an entry, whatever its deadline.
    pub(crate) fn remove(&mut self, entry: Occupied<'_, Value>) {
        self.timer.volatile.forget(Meta(entry.meta()), entry.inline(), entry.outside());
        let outside = entry.discard();
        self.discard(outside);
    }
}

/// What a view does for keys of any type: existence, types, deadlines, removal, moving. The value APIs of the
/// types have files of their own.
impl<'k> View<'k> {
    #[inline]
    pub(crate) fn new(
        keyspace: &'k Keyspace,
        guards: Guards<'k>,
        now: Millis,
        settings: &'k Settings,
    ) -> View<'k> {
        View {
            guards,
            keyspace,
            settings,
            now,
            modes: Modes(Modes::LEAVES_TRACE),
            used: None,
            aside: Aside::default(),
        }
    }

    /// The same view for a shorter time. Where its shards are lent, the compiler cannot see by itself that
    /// this is sound.
    pub fn shortened<'s>(mut self) -> View<'s>
    where
        'k: 's,
    {
        let guards = std::mem::replace(&mut self.guards, Guards::none());
        let aside = std::mem::take(&mut self.aside);
        let View { keyspace, settings, now, modes, used, .. } = self;
        let guards = guards.shortened();
        View { guards, keyspace, settings, now, modes, used, aside }
    }

    /// The time of the command. A deadline at this time has passed.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// What the clock shows: lifetimes begin there, and streams note it. It is [`View::now`], except where
    /// the commands of a file are run.
    pub fn clock(&self) -> Millis {
        if self.is_replay() { Millis(self.keyspace.replay_clock.load(Relaxed)) } else { self.now }
    }

    /// Whether the command is one of a file. It was checked when it was first run, by the settings of then.
    pub fn is_replay(&self) -> bool {
        self.now == BEFORE_ALL
    }

    /// No command makes a string longer than this.
    pub fn string_bytes_max(&self) -> u64 {
        if self.is_replay() { u64::MAX } else { self.settings.proto_max_bulk_len_bytes }
    }

    /// The settings that the command obeys, the same from its beginning to its end.
    pub fn settings(&self) -> &'k Settings {
        self.settings
    }

    /// Keys are created in hash order, here and under the next locks: leaves of the keyspace take room for
    /// all that comes. [`Keyspace::end_order`] gives back what is left of it.
    pub fn expect_order(&mut self) {
        self.modes.set(Modes::IN_ORDER, true);
    }

    /// Moves the clock of this view. Only the restless tests do so, to let keys expire and come back.
    pub(crate) fn set_now(&mut self, now: Millis) {
        self.now = now;
    }

    /// The shard of `key`.
    pub(crate) fn shard_mut(&mut self, key: &Key<'_>) -> &mut Shard {
        self.guards.shard(key)
    }

    pub(crate) fn seeds(&self) -> &'k Seeds {
        &self.keyspace.seeds
    }

    /// How clients see the cursors of walks over one value.
    pub fn element_cursors(&self) -> &'k Permutation {
        &self.keyspace.seeds.cursors.elements
    }

    /// A random generator for a command that only reads `key`, seeded by that of the key's shard.
    pub fn random(&mut self, key: &Key<'_>) -> Random {
        Random::new(self.guards.shard(key).buffers.random.next_u64())
    }

    /// How many databases there are.
    pub fn databases(&self) -> u16 {
        self.keyspace.databases()
    }

    /// Ends a view whose shards are lent, as dropping it does. Where it leaves nothing to be done nothing is
    /// dropped either, which a command of a script would pay for.
    #[inline]
    pub fn end(self) {
        if matches!(self.guards, Guards::Lent(_)) && !self.has_garbage() && self.aside.garbage.capacity() == 0
        {
            std::mem::forget(self);
        }
    }

    /// Another command begins, on shards that were locked for it too. What the one before has left was taken
    /// by [`View::take_garbage`].
    pub fn begin_anew(&mut self) {
        self.modes.set(Modes::COUNTS_LOOKUPS, false);
        self.modes.set(Modes::LEAVES_TRACE, true);
        self.used = None;
        self.aside.has_created = false;
    }

    /// From here on a command that would copy a long text before it edits it fails with
    /// [`crate::EditError::WouldCopy`]: it is to run where nobody waits for that.
    #[inline(always)]
    pub fn leave_copies(&mut self) {
        self.modes.set(Modes::LEAVES_COPIES, true);
    }

    pub(crate) fn leaves_copies(&self) -> bool {
        self.modes.has(Modes::LEAVES_COPIES)
    }

    /// From here on each lookup counts as a keyspace hit or miss. Dispatch calls this for commands that only
    /// read.
    pub fn count_lookups(&mut self) {
        self.modes.set(Modes::COUNTS_LOOKUPS, true);
    }

    /// From here on lookups do not count as hits and misses: for a command that looks at a key without
    /// reading its value.
    pub fn ignore_lookups(&mut self) {
        self.modes.set(Modes::COUNTS_LOOKUPS, false);
    }

    /// Counts one lookup as a hit or a miss: for commands that write, for which [`View::count_lookups`] is
    /// not called.
    pub fn note_lookup(&mut self, key: &Key<'_>, is_found: bool) {
        let stats = &mut self.guards.shard(key).stats;
        stats.hits += u64::from(is_found);
        stats.misses += u64::from(!is_found);
        if !is_found {
            self.aside.tell_miss(self.keyspace, key);
        }
    }

    /// How much is to be told when the view ends: of this command, and of those before it.
    pub fn told_count(&self) -> usize {
        self.aside.rest.as_ref().map_or(0, |rest| rest.told.len())
    }

    /// Nobody is told what was looked for in vain since so much was to be told: for commands that look at a
    /// key without using it.
    pub fn conceal_misses_since(&mut self, count: usize) {
        if let Some(rest) = &mut self.aside.rest {
            let mut at = 0;
            rest.told.retain(|told| {
                at += 1;
                at <= count || told.event != Event::KEYMISS
            });
        }
    }

    /// Nobody is told that a key has come to be: it is gone again.
    pub fn conceal_creation(&mut self) {
        self.aside.has_created = false;
    }

    /// The counters of the shard of `key`.
    pub(crate) fn stats(&mut self, key: &Key<'_>) -> &mut ShardStats {
        &mut self.guards.shard(key).stats
    }

    /// The tree that `key` is to be written in, the seed that its edits need, and what else an edit needs of
    /// the shard.
    #[inline(always)]
    pub(crate) fn open(&mut self, key: &Key<'_>) -> (&mut Map<Value>, &'k Seed, EditContext<'_>) {
        let shard = self.guards.shard(key);
        let index = shard.index;
        let due = &self.keyspace.dues[shard.index as usize];
        debug_assert!(key.db < self.keyspace.databases(), "commands refuse databases that are not there");
        let (db, stats, buffers) = shard.open(key.db);
        let touch = self.keyspace.uses.touch(&self.settings.eviction);
        let timer = Timer {
            now: self.now,
            birth: touch.birth(),
            is_in_order: self.modes.has(Modes::IN_ORDER),
            wheel: &mut db.wheel,
            volatile: &mut db.volatile,
            due,
            soonest: &self.keyspace.soonest,
            supply: &self.keyspace.supply,
        };
        let is_use = touch != Touch::None
            && self.modes.has(Modes::LEAVES_TRACE)
            && self.used.replace(key.hash) != Some(key.hash);
        let touch = if is_use { touch } else { Touch::None };
        let context = EditContext {
            timer,
            stats,
            buffers,
            touch,
            aside: &mut self.aside,
            keyspace: self.keyspace,
            shard: index,
            db: key.db,
        };
        (&mut db.map, &self.keyspace.seeds.keys, context)
    }

    /// The entry of `key`, to be read; None where there is none or its deadline has passed. One descent.
    #[inline]
    pub(crate) fn look(&mut self, key: &Key<'_>) -> Option<Found<'_, Value>> {
        self.look_as::<false>(key)
    }

    #[inline(always)]
    fn look_as<const HASH: bool>(&mut self, key: &Key<'_>) -> Option<Found<'_, Value>> {
        let (db, stats) = self.guards.shard(key).db_and_stats(key.db);
        let found = db.and_then(|db| db.map.find(key.hash, key.bytes));
        let lookup = Lookup {
            now: self.now,
            counts: self.modes.has(Modes::COUNTS_LOOKUPS),
            stats,
            aside: &mut self.aside,
            keyspace: self.keyspace,
        };
        lookup.judge::<HASH>(found, key)
    }

    /// [`View::look`] for a command that uses the value, which eviction takes into account. A command that
    /// only asks about the key, as EXISTS and TYPE do, calls [`View::look`].
    #[inline(always)]
    pub(crate) fn look_used(&mut self, key: &Key<'_>) -> Option<Found<'_, Value>> {
        self.look_used_as::<false>(key)
    }

    /// [`View::look_used`] for a command that reads a hash: fields that are due will be removed when the view
    /// ends.
    #[inline(always)]
    pub(crate) fn look_hash(&mut self, key: &Key<'_>) -> Option<Found<'_, Value>> {
        self.look_used_as::<true>(key)
    }

    #[inline(always)]
    fn look_used_as<const HASH: bool>(&mut self, key: &Key<'_>) -> Option<Found<'_, Value>> {
        match self.keyspace.uses.is_kept() {
            false => self.look_as::<HASH>(key),
            true => self.look_tracked::<HASH>(key),
        }
    }

    /// The part of a lookup that records the use. Out of line, so that a lookup costs nothing more under a
    /// policy that does not record uses.
    #[inline(never)]
    fn look_tracked<const HASH: bool>(&mut self, key: &Key<'_>) -> Option<Found<'_, Value>> {
        let touch = self.keyspace.uses.touch(&self.settings.eviction);
        if touch == Touch::None || !self.leaves_trace() || self.used.replace(key.hash) == Some(key.hash) {
            return self.look_as::<HASH>(key);
        }
        let (db, stats, random) = self.guards.shard(key).db_to_use(key.db);
        let next = |old| touch.next(old, random);
        let found = db.and_then(|db| db.map.find_used(key.hash, key.bytes, next));
        let lookup = Lookup {
            now: self.now,
            counts: self.modes.has(Modes::COUNTS_LOOKUPS),
            stats,
            aside: &mut self.aside,
            keyspace: self.keyspace,
        };
        lookup.judge::<HASH>(found, key)
    }

    /// Whether a lookup counts as a use.
    pub(crate) fn leaves_trace(&self) -> bool {
        self.modes.has(Modes::LEAVES_TRACE)
    }

    /// Sets whether a lookup counts as a use from here on (CLIENT NO-TOUCH), and returns what was set before.
    pub(crate) fn set_trace(&mut self, leaves_trace: bool) -> bool {
        let before = self.leaves_trace();
        self.modes.set(Modes::LEAVES_TRACE, leaves_trace);
        before
    }

    pub(crate) fn uses(&self) -> &'k Uses {
        &self.keyspace.uses
    }

    /// The entry of `key`, whatever its deadline: for a key that [`View::look`] has looked up already.
    pub(crate) fn peek(&self, key: &Key<'_>) -> Option<Found<'_, Value>> {
        self.guards.shard_ref(key).db(key.db).and_then(|db| db.map.find(key.hash, key.bytes))
    }

    /// The map that holds `key`, to be asked about its leaves; None where nothing was ever written to this
    /// database of the shard.
    pub(crate) fn map(&mut self, key: &Key<'_>) -> Option<&Map<Value>> {
        self.guards.shard(key).db(key.db).map(|db| &db.map)
    }

    /// Whether the key exists. As for every method here, a key past its deadline does not.
    pub fn exists(&mut self, key: &Key<'_>) -> bool {
        self.look(key).is_some()
    }

    /// [`View::exists`] for a command that does something, or nothing, because the key is there (SET NX,
    /// RENAME, RESTORE): for eviction it has used the key either way.
    pub fn exists_used(&mut self, key: &Key<'_>) -> bool {
        self.look_used(key).is_some()
    }

    /// Whether the key is there, past its deadline. It counts as no lookup and removes nothing.
    pub fn is_overdue(&self, key: &Key<'_>) -> bool {
        // Where no key has a deadline none is looked for.
        let has_volatile = self.guards.shard_ref(key).db(key.db).is_some_and(|db| db.volatile.keys > 0);
        has_volatile && self.is_there_overdue(key)
    }

    #[inline(never)]
    fn is_there_overdue(&self, key: &Key<'_>) -> bool {
        self.peek(key).is_some_and(|found| Db::is_overdue(&found, self.now))
    }

    /// [`View::is_overdue`] of a key whose shard the view holds.
    pub fn has_overdue(&self, db: u16, name: &[u8], hash: Hash) -> bool {
        self.is_overdue(&Key::new(name, hash, self.guards.position(self.keyspace.shard_number(hash)), db))
    }

    /// The type of the value; None where there is no such key.
    pub fn kind(&mut self, key: &Key<'_>) -> Option<Kind> {
        self.look(key).as_ref().map(kind)
    }

    /// The same without a trace, for an estimate of what a command will take.
    pub fn peek_kind(&self, key: &Key<'_>) -> Option<Kind> {
        self.peek(key).as_ref().map(kind)
    }

    /// The deadline of the key; None where there is no such key.
    pub fn deadline(&mut self, key: &Key<'_>) -> Option<Deadline> {
        self.look(key).map(|found| Meta(found.meta).deadline(found.inline))
    }

    /// The same for a command that goes by it (EXPIRE, PERSIST), which uses the key.
    pub fn deadline_used(&mut self, key: &Key<'_>) -> Option<Deadline> {
        self.look_used(key).map(|found| Meta(found.meta).deadline(found.inline))
    }

    /// Gives a key another deadline, and returns whether the key existed. A deadline that has passed removes
    /// the key.
    pub fn set_deadline(&mut self, key: &Key<'_>, deadline: Deadline) -> bool {
        let (map, seed, mut context) = self.open(key);
        let Entry::Occupied(mut entry) = map.entry(seed, key.hash, key.bytes) else { return false };
        let Some(old) = context.read(&mut entry).live() else {
            context.remove(entry);
            return false;
        };
        if deadline.is_past(context.timer.now) {
            context.remove(entry);
            return true;
        }
        context.timer.change(&mut entry, old, deadline);
        context.restamp(entry, deadline);
        true
    }

    /// Removes a key, and returns whether it existed. A large value goes to the garbage, for the background
    /// to free. One descent: the entry is taken out first, and whether its deadline had passed is seen
    /// afterwards.
    pub fn remove(&mut self, key: &Key<'_>) -> bool {
        let (map, seed, mut context) = self.open(key);
        let Entry::Occupied(entry) = map.entry(seed, key.hash, key.bytes) else { return false };
        let is_past = Meta(entry.meta()).deadline(entry.inline()).is_past(context.timer.now);
        if is_past {
            context.note_expired(key.bytes);
        }
        context.remove(entry);
        !is_past
    }

    /// What the shards have counted that the view holds, each with its number.
    pub fn counts(&self) -> impl Iterator<Item = (usize, ShardStats)> {
        self.guards.counts()
    }

    /// Counts changes of a write (`rdb_changes_since_last_save`). Commands call it with the number that Redis
    /// would count; the value APIs count nothing by themselves.
    pub fn dirty(&mut self, changes: u64) {
        match &mut self.guards {
            Guards::One(shard) => shard.stats.dirty += changes,
            Guards::Many(shards) if shards.is_empty() => {}
            Guards::Many(shards) => shards[0].stats.dirty += changes,
            Guards::Lent(shards) if shards.count() == 0 => {}
            Guards::Lent(shards) => shards.at_mut(0).stats.dirty += changes,
        }
    }

    /// [`View::has_garbage`] is true from here on, whatever the command does: for a caller that has something
    /// to do behind it, while the shards are locked.
    pub fn ask_for_end(&mut self) {
        self.aside.rest.get_or_insert_default();
    }

    /// Whether [`View::take_garbage`] may have anything to do or return. Two tests, made at the end of every
    /// command.
    #[inline]
    pub fn has_garbage(&self) -> bool {
        !(self.aside.garbage.is_empty() && self.aside.rest.is_none())
    }

    /// Removes the keys that lookups found past their deadline, tells what happened to keys, and returns all
    /// that is too large to be freed under the lock. The caller drops it, or has a background thread do so,
    /// once the view is gone.
    #[inline]
    pub fn take_garbage(&mut self) -> Vec<Garbage> {
        self.settle();
        std::mem::take(&mut self.aside.garbage)
    }

    /// What has happened to keys since this was called last, for whoever records changes.
    #[cold]
    pub fn unrecorded(&mut self) -> &[Told] {
        let Some(rest) = &mut self.aside.rest else { return &[] };
        &rest.told[std::mem::replace(&mut rest.recorded, rest.told.len())..]
    }

    /// Removes the keys and the fields of hashes that lookups found past their deadlines.
    #[cold]
    pub fn remove_overdue(&mut self) {
        if let Some(rest) = &mut self.aside.rest {
            let overdue = std::mem::take(&mut rest.overdue);
            self.bury(overdue);
        }
    }

    /// How many changes have been counted in the shards that the view holds: what grows while a command runs
    /// is what it has changed.
    #[inline]
    pub fn changes(&self) -> u64 {
        match &self.guards {
            Guards::One(shard) => shard.stats.dirty,
            guards => guards.counts().map(|(_, stats)| stats.dirty).sum(),
        }
    }

    /// Removes the keys that lookups found past their deadline, and returns what has happened to keys that
    /// somebody listens to: the caller tells the listener before it lets the view go.
    #[cold]
    pub fn take_told(&mut self) -> Vec<Told> {
        self.remove_overdue();
        self.aside.rest.take().map_or_else(Vec::new, |rest| rest.told)
    }

    /// These events are told when the view ends.
    pub(crate) fn tell_all(&mut self, told: Vec<Told>) {
        if !told.is_empty() {
            self.aside.rest.get_or_insert_default().told.extend(told);
        }
    }

    /// Does what is left to be done before the shards are let go.
    #[cold]
    fn settle(&mut self) {
        let told = self.take_told();
        self.keyspace.tell(&told);
    }

    /// Removes the keys and the fields of hashes that lookups found past their deadlines, unless these were
    /// written again since.
    fn bury(&mut self, overdue: Vec<Overdue>) {
        if self.keyspace.expiry_rests() {
            return;
        }
        for Overdue { key, hash, guard, db } in overdue {
            let (map, seed, mut context) = self.open(&Key::new(&key, hash, guard, db));
            let Entry::Occupied(mut entry) = map.entry(seed, hash, &key) else { continue };
            if context.read(&mut entry).is_past {
                context.remove(entry);
            } else if Db::has_overdue_fields(&entry.found(), context.timer.now) {
                context.expire_fields(entry);
            }
        }
    }
}

impl Drop for View<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.aside.rest.is_some() {
            self.settle();
        }
    }
}
