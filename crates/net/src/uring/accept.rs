//! Accepting with io_uring: one multishot operation a listener.
//!
//! A listener is *armed* while the kernel accepts from it. The operation ends by an error, and is armed anew
//! by the next poll, or after a pause where descriptors have run out; or it is *ending*, cancelled by
//! `stop_listening`, and its place in the list is free for another listener once its last completion has
//! come. The kernel takes entries in order, so a cancellation that comes too late finds nothing, and not what
//! has been armed behind it.
use super::Uring;
use super::token::Token;
use crate::Event;
use crate::accept_pause::AcceptPause;
use crate::listener::Listener;
use base::Millis;
use io_uring::{cqueue, opcode, types};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

/// A listener and whether the kernel is accepting from it.
pub(super) struct Accepting {
    pub(super) listener: Arc<Listener>,
    pub(super) is_armed: bool,
    /// Somebody was accepted since it was armed.
    pub(super) has_accepted: bool,
    pub(super) is_ending: bool,
}

impl Uring {
    /// Accepts from it from the next poll on, in the first place that is free.
    pub(super) fn add_listener(&mut self, listener: Arc<Listener>) {
        let new = Some(Accepting { listener, is_armed: false, has_accepted: false, is_ending: false });
        match self.accepting.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = new,
            None => self.accepting.push(new),
        }
    }

    /// Arms every listener that is not armed, unless there is a pause in accepting. Returns until when that
    /// lasts.
    pub(super) fn arm_listeners(&mut self) -> Option<Millis> {
        let pause_until = self.accept_pause.until();
        if pause_until.is_some() {
            return pause_until;
        }
        for index in 0..self.accepting.len() {
            self.arm_listener(index);
        }
        None
    }

    /// Has the kernel accept from a listener, if it does not already.
    fn arm_listener(&mut self, index: usize) {
        let Some(accepting) = self.accepting[index].as_mut().filter(|a| !a.is_armed && !a.is_ending) else {
            return;
        };
        accepting.is_armed = true;
        accepting.has_accepted = false;
        let fd = types::Fd(accepting.listener.fd());
        let entry = opcode::AcceptMulti::new(fd).flags(libc::SOCK_CLOEXEC).build();
        // SAFETY: the entry points to nothing.
        unsafe { self.ring.push(entry.user_data(Token::Accept(index as u32).pack())) };
    }

    /// Acts on a completion of a listener: a connection, a shortage, or the end of accepting.
    pub(super) fn on_accepted(&mut self, index: usize, entry: &cqueue::Entry, events: &mut Vec<Event>) {
        let Some(Some(accepting)) = self.accepting.get_mut(index) else { return };
        match entry.result() {
            fd @ 0.. => {
                // SAFETY: the kernel has just made this descriptor for us.
                let fd = unsafe { OwnedFd::from_raw_fd(fd) };
                // A connection that is gone already has no address, and is dropped.
                events.extend(accepting.listener.described(fd).ok().map(Event::Accepted));
                accepting.has_accepted = true;
            }
            // Some of those who were accepted may be turned away, which makes room: it is armed anew at once.
            error if is_shortage(error) && accepting.has_accepted => {}
            error if is_shortage(error) => {
                self.accept_pause.begin();
                events.push(Event::Refused(io::Error::from_raw_os_error(-error)));
            }
            // The error is of one connection, or the end of accepting.
            _ => {}
        }
        if !cqueue::more(entry.flags()) {
            accepting.is_armed = false;
            if accepting.is_ending {
                self.accepting[index] = None;
            }
        }
    }

    /// Stops accepting on all listeners.
    pub(super) fn end_accepting(&mut self) {
        for index in 0..self.accepting.len() {
            let Some(accepting) = &mut self.accepting[index] else { continue };
            match accepting.is_armed {
                // The listener must stay open while an entry that has not been submitted names its number.
                true => {
                    accepting.is_ending = true;
                    self.cancel(Token::Accept(index as u32));
                }
                false => self.accepting[index] = None,
            }
        }
        self.accept_pause = AcceptPause::default();
    }
}

/// Whether a completion says that descriptors or memory have run out.
fn is_shortage(result: i32) -> bool {
    AcceptPause::is_needed(&io::Error::from_raw_os_error(-result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Wait};
    use std::net::Ipv4Addr;

    #[test]
    fn the_places_of_listeners_are_used_again() {
        // Not every kernel allows io_uring.
        let Ok(mut engine) = Uring::new() else { return };
        for round in 0..50 {
            let listener = Listener::tcp((Ipv4Addr::LOCALHOST, 0).into(), 16).unwrap();
            engine.listen(Arc::new(listener)).unwrap();
            // Now and then one goes before the kernel has heard of it.
            if round % 3 > 0 {
                engine.poll(Wait::Not, &mut Vec::new()).unwrap();
            }
            engine.stop_listening();
            for _ in 0..round % 5 {
                engine.poll(Wait::Not, &mut Vec::new()).unwrap();
            }
        }
        assert!(engine.accepting.len() <= 4, "{}", engine.accepting.len());
    }
}
