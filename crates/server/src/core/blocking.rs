//! Commands whose reply comes later: what such a command leaves in its session, and how others end its
//! waiting.
//!
//! ```text
//! runs --- ServerCall::wait ---> parked --- its time is over ---> the late reply, goes on
//!                                   \--- CLIENT UNBLOCK --------> the late reply or an error, goes on
//!                                    \--- leaves, is killed ----> forgotten
//! ```
//!
//! Nothing blocks: the worker keeps what the client sends meanwhile (`worker/park.rs`) and wakes for the
//! earliest end (`worker/block.rs`). Whoever takes `ClientRecord::is_waiting` away ends the waiting, so it
//! ends once: the client's own worker when the time is over, or CLIENT UNBLOCK on any worker, which then
//! sends a letter.
use crate::core::call::ServerCall;
use crate::core::error;
use crate::core::session::{After, Waiting};
use base::Millis;
use command::Error;
use resp::Reply;

impl ServerCall<'_> {
    /// Nothing is answered now; `late` writes the reply for when the time is over. Nothing further of this
    /// client runs before.
    pub(crate) fn wait(&mut self, until: Option<Millis>, late: impl FnOnce(&mut Reply)) {
        let mut reply = Reply::new(self.reply.protocol);
        late(&mut reply);
        let waiting = Waiting { until, late_reply: reply.out, is_mute: false };
        self.session.waiting = Some(Box::new(waiting));
        self.session.after = After::Wait;
    }
}

/// When a timeout in milliseconds is over.
pub(crate) fn deadline(timeout: &[u8], now: Millis) -> Result<Millis, Error> {
    let timeout_ms = base::text::parse_i64(timeout).ok_or_else(Error::timeout_not_an_integer)?;
    if timeout_ms < 0 {
        return Err(Error::timeout_negative());
    }
    let end_ms = now.0.checked_add(timeout_ms);
    end_ms.map(Millis).ok_or_else(error::timeout_out_of_range)
}

/// The same where a timeout of 0 has no end.
pub(crate) fn deadline_if_any(timeout: &[u8], now: Millis) -> Result<Option<Millis>, Error> {
    let until = deadline(timeout, now)?;
    Ok((until != now).then_some(until))
}
