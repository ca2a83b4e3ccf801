//! What happens to keys, told to whoever listens: clients that watch a key or wait for it, keyspace
//! notifications, clients that keep copies of values.
//!
//! The store knows nothing of clients. It tells a [`Listener`] which keys were touched and by what, while the
//! keys' shards are still locked, so that nobody sees a change before it was told, and changes of one key are
//! told in their order. Nothing is noted for a key that nobody listens to: a write then pays two loads and a
//! test (`keyspace/ears.rs`).
//!
//! ```text
//! a command ------ View::changed ---> noted in the view --- before its shards are let go ---> hear
//! expiry, eviction ---- Teller -----> noted there --------- before the shard is let go ------> hear
//! FLUSHALL, SWAPDB ---------------------------------------- before they are done -----> flush, swap
//! ```
use std::ops::BitOr;

/// Kinds of events, as `notify-keyspace-events` names them, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(pub u32);

impl Classes {
    pub const NONE: Classes = Classes(0);
    /// `K`: published by the key.
    pub const KEYSPACE: Classes = Classes(1);
    /// `E`: published by the event.
    pub const KEYEVENT: Classes = Classes(1 << 1);
    /// `g`: commands that are not of one type.
    pub const GENERIC: Classes = Classes(1 << 2);
    /// `$`
    pub const STRING: Classes = Classes(1 << 3);
    /// `l`
    pub const LIST: Classes = Classes(1 << 4);
    /// `s`
    pub const SET: Classes = Classes(1 << 5);
    /// `h`
    pub const HASH: Classes = Classes(1 << 6);
    /// `z`
    pub const ZSET: Classes = Classes(1 << 7);
    /// `x`
    pub const EXPIRED: Classes = Classes(1 << 8);
    /// `e`
    pub const EVICTED: Classes = Classes(1 << 9);
    /// `t`
    pub const STREAM: Classes = Classes(1 << 10);
    /// `m`: a command that reads has found no such key.
    pub const KEYMISS: Classes = Classes(1 << 11);
    /// `d`: of modules.
    pub const MODULE: Classes = Classes(1 << 12);
    /// `n`: a key has come to be.
    pub const NEW: Classes = Classes(1 << 13);

    /// Whether it has all of these.
    pub const fn has(self, classes: Classes) -> bool {
        self.0 & classes.0 == classes.0
    }
}

impl BitOr for Classes {
    type Output = Classes;

    fn bitor(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }
}

/// What happened to a key: its class and the name under which it is published. One without a name is not
/// published, but the key has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub class: Classes,
    pub name: &'static str,
    pub offer: Offer,
    /// Of a stream it changes what its groups know, or its last id, and no entry. As in Redis, those who
    /// watch the key or keep a copy of it are not told.
    is_of_groups: bool,
}

/// What there may be after an event for those who wait for the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// No more than before.
    Nothing,
    /// A value that holds something.
    Value,
    /// That it is gone.
    Absence,
}

impl Event {
    /// The key has changed, and nothing is published of it.
    pub const CHANGE: Event =
        Event { class: Classes::NONE, name: "", offer: Offer::Nothing, is_of_groups: false };
    /// The key is gone, by a command or because its value became empty.
    pub const DEL: Event = Event::generic("del").of_end();
    pub const EXPIRE: Event = Event::generic("expire").idle();
    pub const PERSIST: Event = Event::generic("persist").idle();
    pub const EXPIRED: Event = Event::new(Classes::EXPIRED, "expired").of_end();
    pub const EVICTED: Event = Event::new(Classes::EVICTED, "evicted").of_end();
    /// Fields of a hash are past their deadlines.
    pub const FIELDS_EXPIRED: Event = Event::hash("hexpired");
    pub const KEYMISS: Event = Event::new(Classes::KEYMISS, "keymiss").idle();
    pub const NEW: Event = Event::new(Classes::NEW, "new").idle();

    const fn new(class: Classes, name: &'static str) -> Event {
        Event { class, name, offer: Offer::Value, is_of_groups: false }
    }

    /// One after which there is nothing more for those who wait for the key than before it.
    pub const fn idle(self) -> Event {
        Event { offer: Offer::Nothing, ..self }
    }

    /// One by which the key is gone.
    pub const fn of_end(self) -> Event {
        Event { offer: Offer::Absence, ..self }
    }

    pub const fn generic(name: &'static str) -> Event {
        Event::new(Classes::GENERIC, name)
    }

    pub const fn string(name: &'static str) -> Event {
        Event::new(Classes::STRING, name)
    }

    pub const fn list(name: &'static str) -> Event {
        Event::new(Classes::LIST, name)
    }

    pub const fn set(name: &'static str) -> Event {
        Event::new(Classes::SET, name)
    }

    pub const fn hash(name: &'static str) -> Event {
        Event::new(Classes::HASH, name)
    }

    pub const fn zset(name: &'static str) -> Event {
        Event::new(Classes::ZSET, name)
    }

    pub const fn stream(name: &'static str) -> Event {
        Event::new(Classes::STREAM, name)
    }

    /// One of a stream that changes no entry.
    pub const fn of_groups(self) -> Event {
        Event { is_of_groups: true, ..self }
    }

    /// Whether those who watch the key or keep a copy of it are told.
    pub fn changes_value(self) -> bool {
        self.is_change() && !self.is_of_groups
    }

    /// Whether the key was changed. One that was looked for in vain was not; what changes a new one is told
    /// by an event of its own.
    pub fn is_change(self) -> bool {
        self.class != Classes::KEYMISS && self.class != Classes::NEW
    }
}

/// An event of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub db: u16,
    /// The shard that the key lies in.
    pub shard: u32,
    pub key: Box<[u8]>,
    pub event: Event,
    /// Of [`Event::FIELDS_EXPIRED`], while changes are recorded: the fields that are gone.
    pub fields: Vec<Box<[u8]>>,
}

/// Who is told of events; see the file's opener. It is called with shards locked: it must not ask for a
/// shard, nor wait for anybody who does.
pub trait Listener: Send + Sync {
    /// These events happened, in this order. The shards of their keys are locked. Listeners may be told of
    /// keys that nobody listens to.
    fn hear(&self, told: &[Told]);

    /// A database, or all of them, is about to lose all keys. No shard is locked, and nobody else works on
    /// the keyspace.
    fn flush(&self, keyspace: &crate::Keyspace, db: Option<u16>);

    /// Two databases are about to change places; the same holds.
    fn swap(&self, keyspace: &crate::Keyspace, dbs: (u16, u16), now: base::Millis);
}
