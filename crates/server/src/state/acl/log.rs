//! ACL LOG: what was refused lately, the newest first.
//!
//! A request that is refused again within a minute adds to its entry, which becomes the newest, if that entry
//! is among the ten newest. The length is `acllog-max-len`. An entry keeps the beginning of a name only, so
//! that a client cannot fill memory with what it is refused.
use super::selector::Reason;
use crate::state::log::NAME_BYTES_LOGGED;
use base::Millis;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many of the newest entries are compared with a new one.
const COMPARED: usize = 10;
/// A refusal adds to an entry if no more time than this lies between them.
const GROUPING_MS: i64 = 60_000;

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A user's rules.
    Rules(Reason),
    /// A wrong name or password.
    Login,
}

/// Whether the request was part of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    Toplevel,
    /// It was queued in a transaction, or run by EXEC.
    Multi,
    /// A script has called it.
    Lua,
}

/// What was refused.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) cause: Cause,
    pub(crate) context: Context,
    /// The command, key or channel; of a login the command that it was tried with.
    pub(crate) object: Vec<u8>,
    pub(crate) username: Vec<u8>,
    /// The client's line of CLIENT LIST, with no more of its names than their beginnings.
    pub(crate) client: Vec<u8>,
}

/// Keeps the beginning of a name, and gives the room of the rest back.
fn shorten(name: &mut Vec<u8>) {
    name.truncate(NAME_BYTES_LOGGED);
    name.shrink_to_fit();
}

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) count: u64,
    pub(crate) what: Refused,
    pub(crate) created: Millis,
    pub(crate) updated: Millis,
}

/// The log. It is locked for moments, and only where something was refused.
#[derive(Default)]
pub(crate) struct AclLog(Mutex<Entries>);

/// The entries, the newest first.
#[derive(Default)]
pub(crate) struct Entries {
    pub(crate) list: VecDeque<Entry>,
    next_id: u64,
}

impl AclLog {
    /// Adds what was refused. With a new entry at most `max_len` are kept; none are where that is 0.
    pub(crate) fn note(&self, mut what: Refused, now: Millis, max_len: usize) {
        let mut entries = self.entries();
        if max_len == 0 {
            return entries.list.clear();
        }
        shorten(&mut what.object);
        shorten(&mut what.username);
        let is_same = |entry: &Entry| {
            let (old, new) = (&entry.what, &what);
            (old.cause, old.context) == (new.cause, new.context)
                && (now.0 - entry.updated.0).abs() <= GROUPING_MS
                && (&old.object, &old.username) == (&new.object, &new.username)
        };
        let place = entries.list.iter().take(COMPARED).position(is_same);
        if let Some(mut entry) = place.and_then(|place| entries.list.remove(place)) {
            (entry.count, entry.updated, entry.what.client) = (entry.count + 1, now, what.client);
            entries.list.push_front(entry);
            return;
        }
        let id = entries.next_id;
        entries.next_id += 1;
        entries.list.push_front(Entry { id, count: 1, what, created: now, updated: now });
        entries.list.truncate(max_len);
    }

    /// All entries, locked: nobody adds to them while the caller holds them.
    pub(crate) fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// ACL LOG RESET. Ids go on.
    pub(crate) fn reset(&self) {
        self.entries().list = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(object: &str) -> Refused {
        Refused {
            cause: Cause::Rules(Reason::Key),
            context: Context::Toplevel,
            object: object.into(),
            username: b"u".to_vec(),
            client: b"id=1".to_vec(),
        }
    }

    fn shown(log: &AclLog) -> Vec<(String, u64)> {
        let text = |e: &Entry| String::from_utf8_lossy(&e.what.object).into_owned();
        log.entries().list.iter().map(|e| (text(e), e.count)).collect()
    }

    #[test]
    fn what_is_refused_again_within_a_minute_adds_to_its_entry_which_becomes_the_newest() {
        let log = AclLog::default();
        log.note(refused("a"), Millis(0), 128);
        log.note(refused("b"), Millis(1), 128);
        log.note(refused("a"), Millis(60_000), 128);
        assert_eq!(shown(&log), [("a".into(), 2), ("b".into(), 1)]);
        log.note(refused("b"), Millis(60_002), 128);
        assert_eq!(shown(&log), [("b".into(), 1), ("a".into(), 2), ("b".into(), 1)]);
        log.note(Refused { context: Context::Multi, ..refused("b") }, Millis(60_002), 128);
        log.note(Refused { cause: Cause::Login, ..refused("b") }, Millis(60_002), 128);
        log.note(Refused { username: b"v".to_vec(), ..refused("b") }, Millis(60_002), 128);
        assert_eq!(log.entries().list.len(), 6);
        let ids: Vec<u64> = log.entries().list.iter().map(|e| e.id).collect();
        assert_eq!(ids, [5, 4, 3, 2, 0, 1]);
        log.reset();
        log.note(refused("a"), Millis(60_003), 128);
        assert_eq!(log.entries().list[0].id, 6, "ids are not used twice");
    }

    #[test]
    fn only_the_ten_newest_are_compared_and_only_so_many_are_kept() {
        let log = AclLog::default();
        for n in 0..11 {
            log.note(refused(&n.to_string()), Millis(0), 128);
        }
        log.note(refused("0"), Millis(0), 128);
        assert_eq!(log.entries().list.len(), 12, "the eleventh is too old");
        log.note(refused("2"), Millis(0), 3);
        assert_eq!(log.entries().list.len(), 12, "what adds to an entry lets none go");
        log.note(refused("new"), Millis(0), 3);
        assert_eq!(shown(&log).len(), 3);
        log.note(refused("new"), Millis(0), 0);
        assert_eq!(shown(&log), []);
    }

    #[test]
    fn of_a_long_name_the_beginning_is_kept_and_nothing_else() {
        let log = AclLog::default();
        let long = "k".repeat(1 << 20);
        let what = Refused { username: long.clone().into(), ..refused(&long) };
        log.note(what, Millis(0), 128);
        let kept = &log.entries().list[0].what;
        assert_eq!(kept.object.len(), NAME_BYTES_LOGGED);
        assert!(
            kept.object.capacity() + kept.username.capacity() <= 4 * NAME_BYTES_LOGGED,
            "room is given back"
        );
    }
}
