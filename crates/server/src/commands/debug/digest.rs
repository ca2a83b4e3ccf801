//! DEBUG DIGEST and DIGEST-VALUE: 160 bits that are the same wherever the same data is, in whatever order and
//! however it is kept. The sums are Redis's, so they can be compared with a real server's:
//!
//! ```text
//! xor(d, text) = d ^ SHA1(text)        for what has no order
//! mix(d, text) = SHA1(xor(d, text))    for what has
//!
//! value    mix the type as 32 bits big endian; mix the string, or each element of a list; xor each member of
//!          a set; of a sorted set xor each entry's digest, which begins with zeros: mix the member, mix the
//!          score; of a stream mix each entry's id as `ms.seq`, then its fields and values; of a hash xor
//!          each field's digest, which begins with zeros: mix the field, mix its value, xor "!!hexpire!!"
//!          if it has a deadline;
//!          xor "!!expire!!" if the key has a deadline
//! data set for each database that is not empty: mix its number, 32 bits big endian;
//!          xor each key's digest, which begins with zeros: mix the key, go on with its value
//! ```
use crate::core::call::ServerCall;
use base::Millis;
use base::double::F64Text;
use command::Done;
use std::ops::ControlFlow;
use store::{Deadline, Direction, End, Id, Key, Keyspace, Kind, Settings, View};

/// 160 bits, all zero for what is empty.
#[derive(Clone, Copy, Default)]
struct Digest([u8; 20]);

impl Digest {
    /// Adds something that has no order: the sum is the same in whatever order its parts come.
    fn xor(&mut self, text: &[u8]) {
        self.0.iter_mut().zip(base::digest::sha1(text)).for_each(|(byte, other)| *byte ^= other);
    }

    /// Adds something that has an order.
    fn mix(&mut self, text: &[u8]) {
        self.xor(text);
        self.0 = base::digest::sha1(&self.0);
    }

    fn hex(&self) -> String {
        base::text::hex(&self.0)
    }

    /// Adds a key's value, if it is there.
    fn add_value(&mut self, view: &mut View<'_>, key: &Key<'_>) {
        let (Some(kind), Some(deadline)) = (view.kind(key), view.deadline(key)) else { return };
        let type_number: u32 = match kind {
            Kind::String => 0,
            Kind::List => 1,
            Kind::ZSet => 3,
            Kind::Set => 2,
            Kind::Stream => 6,
            Kind::Hash => 4,
        };
        self.mix(&type_number.to_be_bytes());
        match kind {
            Kind::String => self.add_string(view, key),
            Kind::List => self.add_list(view, key),
            Kind::ZSet => self.add_zset(view, key),
            Kind::Set => self.add_set(view, key),
            Kind::Stream => self.add_stream(view, key),
            Kind::Hash => self.add_hash(view, key),
        }
        if deadline != Deadline::Never {
            self.xor(b"!!expire!!");
        }
    }

    fn add_string(&mut self, view: &mut View<'_>, key: &Key<'_>) {
        if let Ok(Some(item)) = view.string(key) {
            let mut text = Vec::new();
            item.append_to(&mut text);
            self.mix(&text);
        }
    }

    fn add_list(&mut self, view: &mut View<'_>, key: &Key<'_>) {
        let Ok(Some(list)) = view.list(key) else { return };
        let mut text = Vec::new();
        list.visit(0, End::Tail, &mut |_, item| {
            text.clear();
            item.append_to(&mut text);
            self.mix(&text);
            ControlFlow::Continue(())
        });
    }

    /// A member and its score are one element; the elements have no order.
    fn add_zset(&mut self, view: &mut View<'_>, key: &Key<'_>) {
        let Ok(Some(set)) = view.zset(key) else { return };
        set.visit(0, End::Tail, &mut |entry| {
            let mut one = Digest::default();
            one.mix(&entry.member.to_vec());
            one.mix(F64Text::new().format_digits(entry.score));
            self.xor(&one.0);
            ControlFlow::Continue(())
        });
    }

    fn add_set(&mut self, view: &mut View<'_>, key: &Key<'_>) {
        let Ok(Some(set)) = view.set(key) else { return };
        let mut text = Vec::new();
        set.for_each(&mut |member| {
            text.clear();
            member.append_to(&mut text);
            self.xor(&text);
        });
    }

    /// The digest does not depend on consumer groups.
    fn add_stream(&mut self, view: &mut View<'_>, key: &Key<'_>) {
        let Ok(Some(stream)) = view.stream(key) else { return };
        let mut text = Vec::new();
        stream.visit(Id::MIN, Direction::Up, &mut |row| {
            self.mix(format!("{}.{}", row.id.ms, row.id.seq).as_bytes());
            row.for_each(&mut |name, value| {
                self.mix(name);
                text.clear();
                value.append_to(&mut text);
                self.mix(&text);
            });
            ControlFlow::Continue(())
        });
    }
}

impl Digest {
    /// Fields have no order.
    fn add_hash(&mut self, view: &mut View<'_>, key: &Key<'_>) {
        let Ok(Some(hash)) = view.hash(key) else { return };
        let mut text = Vec::new();
        hash.for_each_timed(&mut |field, value, deadline| {
            let mut one = Digest::default();
            for item in [field, value] {
                text.clear();
                item.append_to(&mut text);
                one.mix(&text);
            }
            if deadline != Deadline::Never {
                one.xor(b"!!hexpire!!");
            }
            self.xor(&one.0);
        });
    }
}

/// How many keys one step of the walk names before their values are looked up.
const KEYS_AT_A_TIME: u64 = 1000;

/// DEBUG DIGEST: the digest of all data. It goes through all of them while nothing else runs.
pub(super) fn digest(call: &mut ServerCall<'_>) -> Done {
    let (keyspace, config) = (&call.server.keyspace, call.server.config());
    let mut sum = Digest::default();
    for db in (0..keyspace.databases()).filter(|db| !keyspace.is_empty(*db)) {
        sum.mix(&u32::from(db).to_be_bytes());
        add_database(&mut sum, keyspace, &config.store, db, call.now);
    }
    call.reply.simple(&sum.hex());
    Ok(())
}

/// Adds the digests of all keys of a database. Nothing else runs meanwhile, so a walk meets every key once.
fn add_database(sum: &mut Digest, keyspace: &Keyspace, settings: &Settings, db: u16, now: Millis) {
    let mut cursor = 0;
    loop {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let step = keyspace.scan(db, now, cursor, KEYS_AT_A_TIME, &mut |name, kind| {
            if kind.is_some() {
                names.push(name.to_vec());
            }
        });
        for name in &names {
            let (mut view, key) = keyspace.lock_one(db, now, settings, name);
            let mut one = Digest::default();
            one.mix(name);
            one.add_value(&mut view, &key);
            sum.xor(&one.0);
        }
        cursor = step.next_cursor;
        if cursor == 0 {
            return;
        }
    }
}

/// DEBUG DIGEST-VALUE: the digest of each key's value; zeros for a key that is not there.
pub(super) fn digest_value(call: &mut ServerCall<'_>) -> Done {
    let config = call.server.config();
    call.reply.array(call.args.len() - 2);
    for name in call.args.iter_from(2) {
        let (mut view, key) = call.server.keyspace.lock_one(call.session.db, call.now, &config.store, name);
        let mut one = Digest::default();
        one.add_value(&mut view, &key);
        call.reply.simple(&one.hex());
    }
    Ok(())
}
