//! Commands whose reply comes later: what such a command leaves in its session, and how others end its
//! waiting.
//!
//! ```text
//! runs --- ServerCall::wait ---> parked --- its time is over ---> the late reply, goes on
//!                                   \--- CLIENT UNBLOCK --------> the late reply or an error, goes on
//!                                    \--- leaves, is killed ----> forgotten
//! ```
//!
//! No thread blocks: the worker keeps what the client sends meanwhile (`worker/park.rs`) and wakes for the
//! earliest end (`worker/block.rs`). A wait has to end exactly once, though its time may be over at the
//! moment when another worker runs CLIENT UNBLOCK. So whoever takes the ticket out of `ClientRecord::waiting`
//! ends it: the client's own worker when the time is over, the worker that serves it because a key has
//! changed, or the worker that runs CLIENT UNBLOCK; the last two then send a message.
use crate::core::call::ServerCall;
use crate::core::error;
use crate::core::modes::Modes;
use crate::core::session::{After, Ticket, Waiting};
use base::Millis;
use command::Error;
use resp::Reply;

impl ServerCall<'_> {
    /// The command answers nothing now. `late` writes the reply that it gives when `until` has passed (None:
    /// never by itself). No further request of this client runs before. Inside a transaction nothing waits:
    /// the reply is given at once.
    pub(crate) fn wait(&mut self, until: Option<Millis>, late: impl FnOnce(&mut Reply)) {
        if self.session.modes.has(Modes::EXECUTING) {
            return late(self.reply);
        }
        let mut reply = Reply::new(self.reply.protocol);
        late(&mut reply);
        self.begin_to_wait(Ticket::NO_KEY, until, Some(reply.out));
    }

    fn begin_to_wait(&mut self, ticket: Ticket, until: Option<Millis>, late_reply: Option<Vec<u8>>) {
        let waiting = Waiting { until, late_reply, is_mute: false, waiter: None, local: None };
        *self.session.record.waiting() = Some(ticket);
        self.session.waiting = Some(Box::new(waiting));
        self.session.after = After::Wait;
    }
}

impl ServerCall<'_> {
    /// The command answers nothing now: a message brings its reply ([`Message::Served`]), and CLIENT UNBLOCK
    /// does not end the waiting. No further request of this client runs before.
    ///
    /// [`Message::Served`]: crate::core::mailbox::Message::Served
    pub(crate) fn wait_for_answer(&mut self) {
        self.begin_to_wait(Ticket::FOR_ANSWER, None, None);
    }

    /// Nobody will send that message: the command answers now.
    pub(crate) fn wait_no_longer(&mut self) {
        self.session.record.end_waiting();
        self.session.waiting = None;
        self.session.after = After::Next;
    }
}

/// When a timeout in milliseconds is over, counted from `now`; or what is wrong with it, in Redis's words.
pub(crate) fn deadline(timeout: &[u8], now: Millis) -> Result<Millis, Error> {
    let timeout_ms = base::text::parse_i64(timeout).ok_or_else(Error::timeout_not_an_integer)?;
    if timeout_ms < 0 {
        return Err(Error::timeout_negative());
    }
    let end_ms = now.0.checked_add(timeout_ms);
    end_ms.map(Millis).ok_or_else(error::timeout_out_of_range)
}

/// When such a timeout is over; None for a timeout of 0, which has no end.
pub(crate) fn deadline_if_any(timeout: &[u8], now: Millis) -> Result<Option<Millis>, Error> {
    let until = deadline(timeout, now)?;
    Ok((until != now).then_some(until))
}
