//! TLS over any engine: the same trait again, with a session between the engine and those connections that
//! have one. Others pass through, at the price of one branch a call.
//!
//! ```text
//! kernel <- engine: ciphertext <- [secure: sessions] -> plaintext -> caller
//! ```
//!
//! * **Receiving** decrypts what one `receive` of the engine brings, in a buffer that all connections share,
//!   and appends the plaintext for the caller. What is incomplete, less than a record, is kept with the
//!   session; else an idle connection has no buffer. The caller gets what came before an end or a failure
//!   first: the session remembers the news, and the next poll tells `Readable` for it.
//! * **Sending** encrypts all that the caller gives at once, in records as long as may be, into a buffer that
//!   the engine takes over. So the replies of a batch share a record, and `unsent_bytes` counts what waits.
//! * **Handshakes** are this layer's own: the caller hears nothing of a connection until its handshake is
//!   done, or `Unsecured` if it fails. A private key's work takes up to half a millisecond, so only some
//!   connections in handshake have a turn between two polls, those whose hello was answered before those that
//!   begin, and else in the order in which their bytes have come; the others wait and the poll does not
//!   sleep. One that has not finished in time is ended; time in which it only waits for its turn is added, as
//!   far as that is no way to stay for ever.
//! * **Closing** sends what is queued, then the alert that ends the session (close_notify). A close at once
//!   offers the alert to the kernel where nothing waits before it; otherwise the alert is lost.
use crate::listener::Listener;
use crate::tls::session::{Plain, Session, Stage};
use crate::tls::{HANDSHAKE_MS, Tls};
use crate::{Accepted, CloseWhen, ConnId, Engine, Event, Received, Wait, Waker, now};
use base::Millis;
use std::collections::VecDeque;
use std::hint::cold_path;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Received at once of a connection in handshake.
const HANDSHAKE_RECEIVE_BYTES: usize = 16 << 10;
/// The least that is received at once: a caller who asks for less gets the rest later.
const RECEIVE_BYTES_MIN: usize = 4 << 10;
/// Shared buffers with more room than this are freed after use.
const KEPT_CAPACITY_MAX: usize = 256 << 10;
/// What an idle session takes, rustls's part included: measured (docs/decisions/tls.md).
pub(crate) const SESSION_BYTES: usize = 3 << 10;
/// How many times a handshake gets its time again because its bytes wait for a turn here.
const EXTENSIONS_MAX: u32 = 5;
/// Events of one poll that are news of sessions rather than of the engine.
const NEWS_MAX: usize = 512;

pub(crate) struct TlsEngine<E> {
    inner: E,
    /// How many connections have a session.
    count: usize,
    /// The sessions, by the index of their connection.
    slots: Vec<Option<Box<Slot>>>,
    /// Connections in handshake of which bytes have come, in the order of their turns.
    waiting: VecDeque<ConnId>,
    /// Until when each handshake has to be done, soonest first. Handshakes that are done stay in it until
    /// then.
    deadlines: VecDeque<(Millis, ConnId)>,
    handshakes_per_turn: usize,
    /// Connections of which the next poll tells `Readable`.
    news: VecDeque<ConnId>,
    /// Ciphertext that is being decrypted; empty between two calls.
    received: Vec<u8>,
    /// What is being sent; empty between two calls.
    sealed: Vec<u8>,
}

/// A connection with TLS.
struct Slot {
    generation: u32,
    session: Session,
    /// Plaintext that the caller did not ask for yet: it came with the end of the handshake, or in a record
    /// longer than what was asked for.
    plain: Vec<u8>,
    /// What was sent before the handshake was done.
    early: Vec<u8>,
    /// On the list of that name.
    is_waiting: bool,
    /// Its hello has been answered.
    is_answered: bool,
    /// Since when, and for how long before that.
    waits_since: Millis,
    waited_ms: i64,
    /// How long its handshake may take, and how often it has been given that time again.
    handshake_ms: i64,
    extensions: u32,
    /// `receive` has something to tell that no byte will bring: plaintext, the end, a failure.
    has_news: bool,
    is_paused: bool,
    /// `close` was called: the connection closes once `early` has been sent, or is closing already.
    is_closing: bool,
    /// Why it has failed; told by the next `receive`.
    error: Option<io::Error>,
}

impl Slot {
    /// Whether its handshake has waited for its turn for most of its time.
    fn was_held_up(&self, now: Millis) -> bool {
        let waits_ms = if self.is_waiting { now.since(self.waits_since) } else { 0 };
        2 * (self.waited_ms + waits_ms) >= self.handshake_ms
    }

    /// Whether `receive` has something to tell of which the engine knows nothing.
    fn can_be_received(&self) -> bool {
        !self.plain.is_empty() || matches!(self.session.stage(), Stage::Ended | Stage::Failed)
    }
}

impl<E: Engine> TlsEngine<E> {
    /// Over an engine without connections.
    pub(crate) fn over(inner: E) -> TlsEngine<E> {
        TlsEngine {
            inner,
            count: 0,
            slots: Vec::new(),
            waiting: VecDeque::new(),
            deadlines: VecDeque::new(),
            handshakes_per_turn: 1,
            news: VecDeque::new(),
            received: Vec::new(),
            sealed: Vec::new(),
        }
    }

    /// The session of a connection, if it has one.
    fn slot(&mut self, id: ConnId) -> Option<&mut Slot> {
        if self.count == 0 {
            return None;
        }
        self.slots.get_mut(id.index as usize)?.as_deref_mut().filter(|slot| slot.generation == id.generation)
    }

    // What a poll does for connections with sessions.

    #[inline(never)]
    fn poll_with_sessions(&mut self, wait: Wait, events: &mut Vec<Event>) -> io::Result<()> {
        let first = events.len();
        let is_busy = !self.waiting.is_empty() || !self.news.is_empty();
        let wait = if is_busy { Wait::Not } else { wait.or_until(self.next_deadline()) };
        self.inner.poll(wait, events)?;
        self.take_from(events, first);
        let mut turns_left = self.handshakes_per_turn;
        while turns_left > 0
            && let Some(id) = self.waiting.pop_front()
        {
            // Whoever has gone meanwhile takes no turn: many who come and go would hold up the rest.
            turns_left -= usize::from(self.advance_handshake(id, events));
        }
        self.end_overdue(events);
        self.tell_news(events);
        Ok(())
    }

    /// Takes out of the events what the caller must not see yet, and forgets who is gone.
    fn take_from(&mut self, events: &mut Vec<Event>, first: usize) {
        let mut number = 0;
        events.retain(|event| {
            number += 1;
            if number <= first {
                return true;
            }
            match *event {
                Event::Readable(id) => !self.is_for_handshake(id),
                Event::Gone(id) => {
                    self.forget(id);
                    true
                }
                _ => true,
            }
        });
    }

    /// Whether bytes have come for a handshake; its connection is then among those that wait.
    fn is_for_handshake(&mut self, id: ConnId) -> bool {
        let Some(slot) = self.slot(id).filter(|slot| slot.session.stage() == Stage::Handshake) else {
            return false;
        };
        if !std::mem::replace(&mut slot.is_waiting, true) {
            slot.waits_since = now();
            match slot.is_answered {
                // A stranger's hello costs us a private key's work. Who goes on after that comes first, so
                // that many who only begin cannot keep others from ending.
                true => self.waiting.push_front(id),
                false => self.waiting.push_back(id),
            }
        }
        true
    }

    fn forget(&mut self, id: ConnId) {
        if self.slot(id).is_none() {
            return;
        }
        self.slots[id.index as usize] = None;
        self.count -= 1;
        if self.count == 0 {
            self.slots = Vec::new();
            (self.received, self.sealed) = (Vec::new(), Vec::new());
            self.waiting.clear();
            self.deadlines.clear();
            self.news.clear();
        }
    }

    /// Goes on with a handshake as far as what has come allows. Whether there was anything to be done.
    fn advance_handshake(&mut self, id: ConnId, events: &mut Vec<Event>) -> bool {
        let in_handshake = self.slot(id).filter(|slot| slot.session.stage() == Stage::Handshake);
        let Some(slot) = in_handshake else { return false };
        slot.is_waiting = false;
        slot.waited_ms += now().since(slot.waits_since);
        let is_answered = slot.is_answered;
        let mut received = self.receive_sealed(id, HANDSHAKE_RECEIVE_BYTES);
        if !is_answered && matches!(received, Received::Bytes(_)) {
            // One that has left behind its hello is not worth a private key's work.
            match self.inner.receive(id, &mut self.received, RECEIVE_BYTES_MIN) {
                Received::Bytes(_) | Received::Empty => {}
                gone => received = gone,
            }
        }
        match received {
            Received::Bytes(_) => self.take_in_handshake(id, events),
            Received::Empty => return false,
            Received::End => self.refuse(id, io::ErrorKind::UnexpectedEof.into(), events),
            Received::Failed(error) => events.push(Event::Unsecured(id, error)),
        }
        true
    }

    /// Takes in what was received of a handshake.
    fn take_in_handshake(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let Some(slot) = slot_of(&mut self.slots, id) else { return };
        let plain = Plain { into: &mut Vec::new(), room: 0, rest: &mut slot.plain };
        let opened = slot.session.open(&mut self.received, plain, &mut self.sealed);
        self.received.clear();
        match opened {
            Err(error) => self.refuse(id, io::Error::new(io::ErrorKind::InvalidData, error), events),
            Ok(()) => self.after_handshake_step(id),
        }
    }

    /// Sends what the handshake answers, and, once it is done, what has waited for that.
    fn after_handshake_step(&mut self, id: ConnId) {
        let Some(slot) = slot_of(&mut self.slots, id) else { return };
        let is_done = slot.session.stage() != Stage::Handshake;
        let early = std::mem::take(&mut slot.early);
        let is_lost = is_done && !early.is_empty() && !slot.session.seal(&early, &mut self.sealed);
        if !is_done {
            slot.early = early;
        }
        slot.is_answered |= !self.sealed.is_empty();
        let is_closing = is_done && std::mem::take(&mut slot.is_closing);
        let has_news = !slot.plain.is_empty() || slot.session.stage() == Stage::Ended || is_lost;
        self.send_sealed(id);
        if is_closing {
            self.close(id, CloseWhen::Flushed);
        } else if is_done && has_news {
            self.note_news(id);
        }
    }

    /// Ends a connection whose handshake has failed, with the alert that says so.
    #[cold]
    fn refuse(&mut self, id: ConnId, error: io::Error, events: &mut Vec<Event>) {
        if !self.sealed.is_empty() {
            self.inner.last_words(id, &self.sealed);
            self.sealed.clear();
        }
        self.inner.close(id, CloseWhen::Now);
        events.push(Event::Unsecured(id, error));
    }

    /// Ends handshakes whose time is over. One that has spent at least half of it waiting for its turn here
    /// gets the same time again, but not without end.
    fn end_overdue(&mut self, events: &mut Vec<Event>) {
        let now = now();
        while let Some((due, id)) = self.deadlines.front().copied() {
            let slot = slot_of(&mut self.slots, id).filter(|slot| slot.session.stage() == Stage::Handshake);
            // A clock that was put back must not make it last longer.
            if slot.is_some() && (1..=HANDSHAKE_MS).contains(&due.since(now)) {
                return;
            }
            self.deadlines.pop_front();
            match slot {
                Some(slot) if slot.was_held_up(now) && slot.extensions < EXTENSIONS_MAX => {
                    (slot.extensions, slot.waited_ms) = (slot.extensions + 1, 0);
                    self.deadlines.push_back((Millis(now.0.saturating_add(slot.handshake_ms)), id));
                }
                Some(_) => self.refuse(id, io::ErrorKind::TimedOut.into(), events),
                None => {}
            }
        }
    }

    /// When the first of those that are still in handshake has to be done.
    fn next_deadline(&self) -> Option<Millis> {
        self.deadlines.front().map(|(due, _)| *due)
    }

    /// Has the next poll tell that there is something to receive, or the first after a pause.
    fn note_news(&mut self, id: ConnId) {
        let Some(slot) = self.slot(id) else { return };
        let is_known = std::mem::replace(&mut slot.has_news, true);
        if !is_known && !slot.is_paused {
            self.news.push_back(id);
        }
    }

    fn tell_news(&mut self, events: &mut Vec<Event>) {
        for _ in 0..self.news.len().min(NEWS_MAX) {
            let Some(id) = self.news.pop_front() else { return };
            let Some(slot) = self.slot(id).filter(|slot| slot.has_news && !slot.is_paused) else { continue };
            slot.has_news = false;
            events.push(Event::Readable(id));
        }
    }

    // Bytes in and out.

    /// Receives behind what is incomplete of a connection, into `received`.
    fn receive_sealed(&mut self, id: ConnId, limit: usize) -> Received {
        self.received.clear();
        if let Some(slot) = slot_of(&mut self.slots, id) {
            self.received.extend_from_slice(slot.session.incomplete());
        }
        let limit = limit.saturating_sub(self.received.len()).max(RECEIVE_BYTES_MIN);
        self.inner.receive(id, &mut self.received, limit)
    }

    /// Hands what is sealed to the engine. Returns what is unsent then.
    fn send_sealed(&mut self, id: ConnId) -> usize {
        match self.sealed.is_empty() {
            true => self.inner.unsent_bytes(id),
            false => self.inner.send(id, &mut self.sealed),
        }
    }

    #[inline(never)]
    fn receive_secure(&mut self, id: ConnId, into: &mut Vec<u8>, limit: usize) -> Received {
        let Some(slot) = slot_of(&mut self.slots, id) else {
            return Received::Failed(io::ErrorKind::NotConnected.into());
        };
        if !slot.plain.is_empty() {
            cold_path();
            return self.receive_rest(id, into, limit);
        }
        match slot.session.stage() {
            Stage::Open => self.receive_open(id, into, limit),
            Stage::Handshake => Received::Empty,
            Stage::Ended => self.receive_ended(id),
            Stage::Failed => {
                let error = slot.error.take().unwrap_or_else(|| io::ErrorKind::NotConnected.into());
                self.inner.close(id, CloseWhen::Now);
                Received::Failed(error)
            }
        }
    }

    /// Hands over plaintext that is there already. Something may have come since, of which the engine will
    /// not tell again.
    #[cold]
    fn receive_rest(&mut self, id: ConnId, into: &mut Vec<u8>, limit: usize) -> Received {
        let Some(slot) = slot_of(&mut self.slots, id) else { return Received::Empty };
        let count = slot.plain.len().min(limit.max(1));
        into.extend_from_slice(&slot.plain[..count]);
        slot.plain = slot.plain[count..].to_vec();
        self.note_news(id);
        Received::Bytes(count)
    }

    /// Receives and decrypts. An end or a failure behind plaintext is told by the next `receive`.
    fn receive_open(&mut self, id: ConnId, into: &mut Vec<u8>, limit: usize) -> Received {
        match self.receive_sealed(id, limit) {
            Received::Bytes(_) => {}
            other => return other,
        }
        let Some(slot) = slot_of(&mut self.slots, id) else { return Received::Empty };
        let before = into.len();
        let plain = Plain { into, room: limit.max(1), rest: &mut slot.plain };
        let opened = slot.session.open(&mut self.received, plain, &mut self.sealed);
        let has_rest = !slot.plain.is_empty();
        if self.received.capacity() > KEPT_CAPACITY_MAX {
            cold_path();
            self.received = Vec::new();
        }
        if let Err(error) = opened {
            cold_path();
            slot.error = Some(io::Error::new(io::ErrorKind::InvalidData, error));
            self.inner.last_words(id, &self.sealed);
            self.sealed.clear();
        } else if !self.sealed.is_empty() {
            cold_path();
            self.inner.send(id, &mut self.sealed);
        }
        let count = into.len() - before;
        let is_open = slot_of(&mut self.slots, id).is_some_and(|slot| slot.session.stage() == Stage::Open);
        match (is_open && !has_rest, count) {
            (true, 0) => Received::Empty,
            (true, _) => Received::Bytes(count),
            (false, 0) => self.receive_secure(id, into, limit),
            (false, _) => {
                self.note_news(id);
                Received::Bytes(count)
            }
        }
    }

    /// After its close_notify nothing counts that the peer sends, but a reset has to be seen.
    #[cold]
    fn receive_ended(&mut self, id: ConnId) -> Received {
        self.received.clear();
        let received = self.inner.receive(id, &mut self.received, HANDSHAKE_RECEIVE_BYTES);
        self.received.clear();
        match received {
            Received::Failed(error) => Received::Failed(error),
            _ => Received::End,
        }
    }

    /// Encrypts and sends. Before the handshake is done it is kept.
    #[inline(never)]
    fn send_secure(&mut self, id: ConnId, data: &mut Vec<u8>, leave: Leave) -> usize {
        let Some(slot) = slot_of(&mut self.slots, id) else { return 0 };
        if slot.session.stage() == Stage::Handshake {
            cold_path();
            if !slot.is_closing {
                slot.early.append(data);
            }
            data.clear();
            return slot.early.len();
        }
        if !data.is_empty() {
            let is_sealed = slot.session.seal(data, &mut self.sealed);
            data.clear();
            if !is_sealed {
                cold_path();
                // That the session has failed is told by `receive`.
                self.note_news(id);
            }
        }
        let unsent = match leave {
            Leave::Soon => self.inner.send_at_once(id, &mut self.sealed),
            Leave::InTurn => self.inner.send_in_turn(id, &mut self.sealed),
        };
        if self.sealed.capacity() > KEPT_CAPACITY_MAX {
            cold_path();
            self.sealed = Vec::new();
        }
        unsent
    }

    #[inline(never)]
    fn close_secure(&mut self, id: ConnId, when: CloseWhen) {
        let Some(slot) = slot_of(&mut self.slots, id) else { return };
        let stage = slot.session.stage();
        match when {
            CloseWhen::Flushed if stage == Stage::Handshake && !slot.early.is_empty() => {
                slot.is_closing = true;
                return;
            }
            CloseWhen::Flushed if slot.is_closing => return self.inner.close(id, when),
            CloseWhen::Flushed if matches!(stage, Stage::Open | Stage::Ended) => {
                slot.is_closing = true;
                slot.session.close_notify(&mut self.sealed);
                self.inner.send(id, &mut self.sealed);
            }
            CloseWhen::Now if matches!(stage, Stage::Open | Stage::Ended) => {
                self.inner.try_now(id);
                let Some(slot) = slot_of(&mut self.slots, id) else { return };
                slot.session.close_notify(&mut self.sealed);
                self.inner.last_words(id, &self.sealed);
            }
            _ => {}
        }
        self.sealed.clear();
        self.inner.close(id, when);
    }
}

/// When what is encrypted leaves.
#[derive(Clone, Copy)]
enum Leave {
    Soon,
    InTurn,
}

/// The session of a connection, where it is known that there are some.
fn slot_of(slots: &mut [Option<Box<Slot>>], id: ConnId) -> Option<&mut Slot> {
    slots.get_mut(id.index as usize)?.as_deref_mut().filter(|slot| slot.generation == id.generation)
}

impl<E: Engine> Engine for TlsEngine<E> {
    fn listen(&mut self, listener: Arc<Listener>) -> io::Result<()> {
        self.inner.listen(listener)
    }

    fn stop_listening(&mut self) {
        self.inner.stop_listening();
    }

    fn is_listening(&self) -> bool {
        self.inner.is_listening()
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn adopt(&mut self, accepted: Accepted) -> io::Result<ConnId> {
        self.inner.adopt(accepted)
    }

    fn adopt_with(&mut self, accepted: Accepted, tls: &Tls) -> io::Result<ConnId> {
        let session = Session::new(&tls.config).map_err(io::Error::other)?;
        let id = self.inner.adopt(accepted)?;
        let slot = Slot {
            generation: id.generation,
            session,
            plain: Vec::new(),
            early: Vec::new(),
            is_waiting: false,
            is_answered: false,
            waits_since: Millis(0),
            waited_ms: 0,
            handshake_ms: tls.handshake_ms,
            extensions: 0,
            has_news: false,
            is_paused: false,
            is_closing: false,
            error: None,
        };
        let index = id.index as usize;
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || None);
        }
        assert!(self.slots[index].is_none(), "the engine gave one index to two connections");
        self.slots[index] = Some(Box::new(slot));
        self.count += 1;
        self.handshakes_per_turn = tls.handshakes_per_turn;
        self.deadlines.push_back((Millis(now().0.saturating_add(tls.handshake_ms)), id));
        Ok(id)
    }

    fn poll(&mut self, wait: Wait, events: &mut Vec<Event>) -> io::Result<()> {
        if self.count == 0 {
            return self.inner.poll(wait, events);
        }
        self.poll_with_sessions(wait, events)
    }

    fn receive(&mut self, id: ConnId, into: &mut Vec<u8>, limit: usize) -> Received {
        match self.slot(id) {
            None => self.inner.receive(id, into, limit),
            Some(_) => self.receive_secure(id, into, limit),
        }
    }

    fn send(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize {
        match self.slot(id) {
            None => self.inner.send(id, data),
            Some(_) => self.send_secure(id, data, Leave::Soon),
        }
    }

    fn send_in_turn(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize {
        match self.slot(id) {
            None => self.inner.send_in_turn(id, data),
            Some(_) => self.send_secure(id, data, Leave::InTurn),
        }
    }

    fn in_turn_bytes(&self) -> usize {
        self.inner.in_turn_bytes()
    }

    fn spare_bytes(&self) -> Arc<AtomicUsize> {
        self.inner.spare_bytes()
    }

    fn free_spare(&mut self) {
        self.inner.free_spare();
    }

    fn keep_back(&mut self, id: ConnId) {
        self.inner.keep_back(id);
    }

    fn let_go(&mut self, id: ConnId) {
        self.inner.let_go(id);
    }

    fn try_now(&mut self, id: ConnId) {
        self.inner.try_now(id);
    }

    fn send_at_once(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize {
        match self.slot(id) {
            None => self.inner.send_at_once(id, data),
            Some(_) => self.send_secure(id, data, Leave::Soon),
        }
    }

    fn send_from(&mut self, id: ConnId, pieces: &[IoSlice<'_>]) -> usize {
        match self.slot(id) {
            None => self.inner.send_from(id, pieces),
            Some(_) => 0,
        }
    }

    fn unsent_bytes(&self, id: ConnId) -> usize {
        let early = match self.slots.get(id.index as usize) {
            Some(Some(slot)) if slot.generation == id.generation => slot.early.len(),
            _ => 0,
        };
        early + self.inner.unsent_bytes(id)
    }

    fn tls_bytes(&self, id: ConnId) -> usize {
        match self.slots.get(id.index as usize) {
            Some(Some(slot)) if slot.generation == id.generation => {
                SESSION_BYTES + slot.session.incomplete().len() + slot.plain.capacity()
            }
            _ => 0,
        }
    }

    fn pause(&mut self, id: ConnId) {
        if let Some(slot) = self.slot(id) {
            slot.is_paused = true;
        }
        self.inner.pause(id);
    }

    fn resume(&mut self, id: ConnId) {
        if let Some(slot) = self.slot(id)
            && std::mem::replace(&mut slot.is_paused, false)
            && (slot.has_news || slot.can_be_received())
        {
            // Whoever was told before the pause may not have received it.
            slot.has_news = false;
            self.note_news(id);
        }
        self.inner.resume(id);
    }

    fn last_words(&mut self, id: ConnId, words: &[u8]) {
        self.inner.last_words(id, words);
    }

    fn close(&mut self, id: ConnId, when: CloseWhen) {
        match self.slot(id) {
            None => self.inner.close(id, when),
            Some(_) => self.close_secure(id, when),
        }
    }
}
