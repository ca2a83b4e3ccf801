//! Keys that are on their way to another server (MIGRATE), or that a command elsewhere is working on; and
//! connections to other servers that are kept for the next MIGRATE.
//!
//! As in Redis nobody sees or changes a key between the moment at which it is sent and the one at which it is
//! deleted here. Redis stands still for that; here requests that name such a key are held back, and all
//! others run. Keys are added only while all gates are held, so whoever begins a batch sees them.
//!
//! A command that writes and runs elsewhere *holds* its keys: requests that may change one of them wait, so
//! that it does not have to begin anew; those that read go on. They are held by and by: a worker may miss it
//! for the rest of its batch, and what it changes is seen when the command has run
//! (`core/dispatch/writing.rs`). Requests that are tried again once in a millisecond would never come in
//! where several clients send such commands one after the other. So a key that a short request has waited for
//! is not held again for some milliseconds.
//!
//! A request of very many keys runs *in parts* (`core/dispatch/parts.rs`), one of them at a time in the whole
//! server, and begins while all gates are held: so nobody who runs meanwhile misses that its keys are its
//! own. Requests that had to wait for it come in before the next one begins, for they are tried again only
//! once in a millisecond: else clients that send one after the other would keep them out.
use crate::state::clock::Stopwatch;
use crate::state::lock::lock;
use base::Millis;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A connection that nobody has used for so long is closed.
const IDLE_MS: i64 = 10_000;
/// So many are kept at most.
const SOCKETS_MAX: usize = 64;
/// After a request that has run in parts, for which others have waited, no other begins for so long. The same
/// for a key that was held.
const CALM: Duration = Duration::from_millis(3);
/// For so many ticks, of a tenth of a second, something is put off.
const PUT_OFF_MAX: usize = 20;

/// A request that runs in parts.
pub(crate) trait InParts: Send + Sync {
    /// Whether this is one of its keys, in this database; None: in any.
    fn names(&self, db: Option<u16>, name: &[u8]) -> bool;
    /// Whether it may change its keys. Others may read them otherwise.
    fn writes(&self) -> bool;
    /// Runs what is left of it. The caller holds all gates.
    fn finish(&self);
}

/// Who asks for keys.
#[derive(Clone, Copy)]
pub(crate) struct Asks {
    pub(crate) db: u16,
    /// It may change them.
    pub(crate) changes: bool,
    /// It may take long, and hold them then.
    pub(crate) may_hold: bool,
    /// It names another database besides.
    pub(crate) goes_further: bool,
}

impl Asks {
    /// One that only reads keys of this database.
    pub(crate) fn to_read(db: u16) -> Asks {
        Asks { db, changes: false, may_hold: false, goes_further: false }
    }
}

/// A key of a database.
type Place = (u16, Vec<u8>);

/// A key that commands elsewhere hold, or that such commands may not hold yet.
#[derive(Default)]
struct Holding {
    /// How many hold it.
    commands: usize,
    /// A request that does not take long waits for it.
    is_waited_for: bool,
}

#[derive(Default)]
struct HeldKeys {
    keys: BTreeMap<Place, Holding>,
    /// Those which nobody holds any more, and such requests have waited for, in the order in which they were
    /// let go: nobody may hold them for a while.
    calm: VecDeque<(Stopwatch, Place)>,
}

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Moving {
    /// How many keys there are, of all kinds.
    count: AtomicUsize,
    keys: Mutex<BTreeSet<Place>>,
    held: Mutex<HeldKeys>,
    in_parts: Mutex<Option<Arc<dyn InParts>>>,
    /// Others have to wait for it.
    is_waited_for: AtomicBool,
    /// Since the last one has ended for which others had to wait.
    calm: Mutex<Option<Stopwatch>>,
    /// How often what begins by itself was put off because of it.
    put_off: AtomicUsize,
    /// After so many more parts it is held back (tests); 0 for never, else one more.
    parts_to_hold: AtomicUsize,
    sockets: Mutex<Vec<Socket>>,
}

/// A connection to another server.
pub(crate) struct Socket {
    /// As the client has named the server.
    pub(crate) target: (Vec<u8>, Vec<u8>),
    pub(crate) line: Line,
    /// The database that is selected there; None where that is not known.
    pub(crate) db: Option<i64>,
    used: Millis,
}

/// What a connection goes through.
pub(crate) enum Line {
    Plain(TcpStream),
    Secure(Box<net::TlsStream>),
}

impl Socket {
    pub(crate) fn new(target: (Vec<u8>, Vec<u8>), line: Line) -> Socket {
        // Whoever has connected speaks to the first database.
        Socket { target, line, db: None, used: Millis(0) }
    }
}

impl Line {
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Line::Plain(stream) => stream,
            Line::Secure(stream) => stream.socket(),
        }
    }

    fn is_secure(&self) -> bool {
        matches!(self, Line::Secure(_))
    }
}

impl Read for Line {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Line::Plain(stream) => stream.read(buf),
            Line::Secure(stream) => stream.read(buf),
        }
    }
}

impl Write for Line {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Line::Plain(stream) => stream.write(buf),
            Line::Secure(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Line::Plain(stream) => stream.flush(),
            Line::Secure(stream) => stream.flush(),
        }
    }
}

impl Moving {
    /// Whether there is any.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// From here on requests that name these keys are held back. The caller holds all gates.
    pub(crate) fn begin<'k>(&self, db: u16, names: impl Iterator<Item = &'k [u8]>) {
        let mut keys = lock(&self.keys);
        let before = keys.len();
        keys.extend(names.map(|name| (db, name.to_vec())));
        self.count.fetch_add(keys.len() - before, Relaxed);
    }

    /// They are not any more.
    pub(crate) fn end<'k>(&self, db: u16, names: impl Iterator<Item = &'k [u8]>) {
        let mut keys = lock(&self.keys);
        let before = keys.len();
        for name in names {
            keys.remove(&(db, name.to_vec()));
        }
        self.count.fetch_sub(before - keys.len(), Relaxed);
    }

    /// From here on requests that may change these keys are held back.
    pub(crate) fn hold(&self, db: u16, names: &[Vec<u8>]) {
        let mut held = lock(&self.held);
        for name in names {
            held.keys.entry((db, name.clone())).or_default().commands += 1;
        }
        self.count.fetch_add(names.len(), Relaxed);
    }

    /// One command fewer holds each of these keys.
    pub(crate) fn let_go(&self, db: u16, names: &[Vec<u8>]) {
        let mut held = lock(&self.held);
        for name in names {
            let key = (db, name.clone());
            let holding = held.keys.get_mut(&key).expect("it is held");
            holding.commands -= 1;
            if holding.commands > 0 {
                continue;
            }
            if std::mem::take(&mut holding.is_waited_for) {
                held.calm.push_back((Stopwatch::start(), key));
                self.count.fetch_add(1, Relaxed);
            } else {
                held.keys.remove(&key);
            }
        }
        self.count.fetch_sub(names.len(), Relaxed);
    }

    /// Forgets keys that were not held for long enough.
    fn end_calm(&self, held: &mut HeldKeys) {
        let is_over = |(since, _): &mut (Stopwatch, Place)| u128::from(since.elapsed_ns()) >= CALM.as_nanos();
        while let Some((_, key)) = held.calm.pop_front_if(is_over) {
            if held.keys.get(&key).is_some_and(|holding| holding.commands == 0) {
                held.keys.remove(&key);
            }
            self.count.fetch_sub(1, Relaxed);
        }
    }

    /// A request begins to run in parts; false where it has to wait, for another one or because one of its
    /// keys is moving or held. The caller holds all gates.
    pub(crate) fn begin_parts(&self, db: u16, request: Arc<dyn InParts>) -> bool {
        let (keys, mut held) = (lock(&self.keys), lock(&self.held));
        let mut current = lock(&self.in_parts);
        let names = |(other, name): &Place| *other == db && request.names(Some(db), name);
        let mut is_free = current.is_none() && !keys.iter().any(names);
        let its = held.keys.iter_mut().filter(|(key, holding)| holding.commands > 0 && names(key));
        for (_, holding) in its {
            // It is tried again too.
            (holding.is_waited_for, is_free) = (true, false);
        }
        if !is_free {
            return false;
        }
        *current = Some(request);
        self.count.fetch_add(1, Relaxed);
        true
    }

    /// It has ended.
    pub(crate) fn end_parts(&self) {
        if lock(&self.in_parts).take().is_some() {
            self.count.fetch_sub(1, Relaxed);
            if self.is_waited_for.swap(false, Relaxed) {
                *lock(&self.calm) = Some(Stopwatch::start());
            }
        }
    }

    /// A request has to wait for it.
    pub(crate) fn note_waited_for(&self) {
        if self.in_parts().is_some() {
            self.is_waited_for.store(true, Relaxed);
        }
    }

    /// Whether what begins by itself, with all gates held, is put off until it asks again at the next tick:
    /// the rest of the request would have to run at once. Not for ever, if one follows the other.
    pub(crate) fn puts_off(&self) -> bool {
        let is_put_off = self.in_parts().is_some() && self.put_off.fetch_add(1, Relaxed) < PUT_OFF_MAX;
        if !is_put_off {
            self.put_off.store(0, Relaxed);
        }
        is_put_off
    }

    /// Whether another may begin to run in parts: there is none, and those who have waited for the last one
    /// had time to come in.
    pub(crate) fn may_begin_parts(&self) -> bool {
        let mut calm = lock(&self.calm);
        calm.take_if(|since| u128::from(since.elapsed_ns()) >= CALM.as_nanos());
        calm.is_none() && self.in_parts().is_none()
    }

    /// Whether the request that runs in parts may run one more now.
    pub(crate) fn may_run_part(&self) -> bool {
        let left = self.parts_to_hold.load(Relaxed);
        if left > 1 {
            // Unless a test has just said otherwise.
            let _ = self.parts_to_hold.compare_exchange(left, left - 1, Relaxed, Relaxed);
        }
        left != 1
    }

    /// From here on so many parts run and no more, but where all gates are held; None: all. For tests.
    pub(crate) fn hold_parts_after(&self, parts: Option<usize>) {
        self.parts_to_hold.store(parts.map_or(0, |parts| parts + 1), Relaxed);
    }

    /// The request that runs in parts at the moment.
    pub(crate) fn in_parts(&self) -> Option<Arc<dyn InParts>> {
        if self.is_any() { lock(&self.in_parts).clone() } else { None }
    }

    /// Whether any of these keys is moving, a key of the request that runs in parts or, for a request that
    /// may change it, held.
    pub(crate) fn has_any<'k>(&self, asks: Asks, mut names: impl Iterator<Item = &'k [u8]>) -> bool {
        let in_parts = self.in_parts().filter(|request| asks.changes || request.writes());
        let (keys, mut held) = (lock(&self.keys), lock(&self.held));
        self.end_calm(&mut held);
        if in_parts.is_none() && keys.is_empty() && (!asks.changes || held.keys.is_empty()) {
            return false;
        }
        let mut is_held = |key: &Place| match held.keys.get_mut(key) {
            Some(Holding { commands: 0, .. }) => asks.may_hold,
            Some(holding) => {
                holding.is_waited_for |= !asks.may_hold;
                true
            }
            None => false,
        };
        let db = (!asks.goes_further).then_some(asks.db);
        names.any(|name| {
            let key = (asks.db, name.to_vec());
            in_parts.as_ref().is_some_and(|request| request.names(db, name))
                || keys.contains(&key)
                || asks.changes && is_held(&key)
        })
    }

    /// A connection to this server that is kept and that nobody uses.
    pub(crate) fn take_socket(&self, target: &(Vec<u8>, Vec<u8>), is_secure: bool) -> Option<Socket> {
        let mut sockets = lock(&self.sockets);
        let is_it = |socket: &Socket| socket.target == *target && socket.line.is_secure() == is_secure;
        let at = sockets.iter().rposition(is_it)?;
        Some(sockets.swap_remove(at))
    }

    /// Keeps a connection for the next.
    pub(crate) fn keep_socket(&self, socket: Socket, now: Millis) {
        let mut sockets = lock(&self.sockets);
        if sockets.len() < SOCKETS_MAX {
            sockets.push(Socket { used: now, ..socket });
        }
    }

    /// Closes those that were not used for a while.
    pub(crate) fn close_idle(&self, now: Millis) {
        lock(&self.sockets).retain(|socket| now.0 - socket.used.0 <= IDLE_MS);
    }

    /// How many connections are kept.
    pub(crate) fn sockets(&self) -> usize {
        lock(&self.sockets).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl InParts for Nothing {
        fn names(&self, _: Option<u16>, _: &[u8]) -> bool {
            false
        }

        fn writes(&self) -> bool {
            true
        }

        fn finish(&self) {}
    }

    #[test]
    fn a_key_that_a_short_request_has_waited_for_is_not_held_again_at_once() {
        let (moving, names) = (Moving::default(), [b"key".to_vec(), b"other".to_vec()]);
        let long = Asks { changes: true, may_hold: true, ..Asks::to_read(0) };
        let short = Asks { may_hold: false, ..long };
        let asks = |asks, name: &'static [u8]| moving.has_any(asks, std::iter::once(name));
        moving.hold(0, &names);
        assert!(asks(short, b"key") && asks(long, b"key") && asks(long, b"other"));
        assert!(!asks(Asks::to_read(0), b"key"));
        moving.let_go(0, &names);
        let calm = |moving: &Moving| lock(&moving.held).calm.len();
        assert_eq!(calm(&moving), 1, "long ones have waited for the other");
        assert!(!asks(short, b"key") && !asks(long, b"other"));
        // Nobody waits for it now, so this is a matter of milliseconds.
        while asks(long, b"key") {
            std::thread::yield_now();
        }
        assert!(calm(&moving) == 0 && !moving.is_any());
    }

    #[test]
    fn what_begins_by_itself_waits_for_the_end_of_a_request_but_not_for_ever() {
        let moving = Moving::default();
        assert!(!moving.puts_off());
        assert!(moving.begin_parts(0, Arc::new(Nothing)));
        for _ in 0..2 {
            assert!((0..PUT_OFF_MAX).all(|_| moving.puts_off()));
            assert!(!moving.puts_off());
        }
        assert!(moving.puts_off());
        moving.end_parts();
        assert!(!moving.puts_off());
    }

    #[test]
    fn those_who_have_waited_come_in_before_the_next_begins() {
        let moving = Moving::default();
        for waits in [false, true] {
            assert!(moving.may_begin_parts() && moving.begin_parts(0, Arc::new(Nothing)));
            assert!(!moving.may_begin_parts());
            if waits {
                moving.note_waited_for();
            }
            moving.end_parts();
            assert_eq!(lock(&moving.calm).is_some(), waits);
        }
        // Nobody asks for anything now, so this is a matter of milliseconds.
        moving.note_waited_for();
        while !moving.may_begin_parts() {
            std::thread::yield_now();
        }
        assert!(lock(&moving.calm).is_none());
    }
}
