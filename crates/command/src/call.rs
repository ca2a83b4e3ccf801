//! What a data command is given: the view of its keys, its arguments, and the reply to write.
//!
//! Nothing in it leads to a session, a socket or a lock, so a command can be run by anything that has a
//! keyspace: the server, the bare replays of the tests, a script or a journal one day. The reply is written
//! straight into the connection's buffer; where a command fails after it has begun to write, dispatch appends
//! the error behind it, so handlers fail before they write.
use crate::{Effects, Error, Wait};
use base::Millis;
use base::random::Random;
use resp::{Args, Reply};
use std::cell::Cell;
use store::{Garbage, Key, Keyspace, Settings, View};

/// A command on keys: their shards are locked.
pub struct Call<'c, 'k> {
    pub view: &'c mut View<'k>,
    pub args: Args<'k>,
    pub reply: &'c mut Reply,
    keys: &'c [Key<'k>],
    /// Left by a command that has found nothing and waits ([`crate::DataRun::Blocking`]).
    pub wait: Option<Box<Wait>>,
    /// Where the command says what it has done, if somebody reads the journal.
    pub(crate) effects: Option<&'c mut Effects>,
}

impl<'c, 'k> Call<'c, 'k> {
    /// `keys` are those of the request, in the order in which the key specs name them, and `view` holds their
    /// shards.
    #[inline(always)]
    pub fn new(
        view: &'c mut View<'k>,
        args: Args<'k>,
        keys: &'c [Key<'k>],
        reply: &'c mut Reply,
    ) -> Call<'c, 'k> {
        Call { view, args, reply, keys, wait: None, effects: None }
    }

    /// Has the command say what it does, where its request does not tell (`effects.rs`). Inlined, because a
    /// copy would have to wait until the call, which was made just before, is written.
    #[inline(always)]
    pub fn telling(self, effects: Option<&'c mut Effects>) -> Call<'c, 'k> {
        Call { effects, ..self }
    }

    /// Key `index` in the order in which the key specs name them. Lent, because a copy would have to wait
    /// until the key, which was made just before, is written.
    pub fn key(&self, index: usize) -> &'c Key<'k> {
        &self.keys[index]
    }

    /// All keys, in that order.
    pub fn keys(&self) -> &'c [Key<'k>] {
        self.keys
    }
}

/// A command on the whole keyspace.
pub struct WholeCall<'c> {
    pub keyspace: &'c Keyspace,
    pub db: u16,
    pub now: Millis,
    pub settings: &'c Settings,
    pub args: Args<'c>,
    pub reply: &'c mut Reply,
    pub random: &'c mut Random,
    /// Whether what it looks up counts as used: not for a client with CLIENT NO-TOUCH.
    pub leaves_trace: bool,
    /// Takes what is to be freed in the background.
    pub garbage: &'c mut Vec<Garbage>,
    /// Of a call that may have to be taken back: it removes no key, and says here that it would have.
    pub spared: Option<&'c Cell<bool>>,
}

/// What a handler returns: the reply is written, or this error is to be.
pub type Done = Result<(), Error>;
