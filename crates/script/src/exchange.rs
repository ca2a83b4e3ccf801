//! What `redis.call` and its kin keep from call to call, so that a call allocates nothing.
use crate::arguments::{Arguments, KEPT_BYTES};
use resp::Reply;

/// What every call of a command uses again: its arguments, and the reply.
pub(crate) struct Exchange {
    pub(crate) arguments: Arguments,
    pub(crate) reply: Reply,
}

impl Exchange {
    pub(crate) fn new() -> Exchange {
        Exchange { arguments: Arguments::default(), reply: Reply::for_script() }
    }

    /// Gives back what has become large.
    pub(crate) fn let_go(&mut self) {
        self.arguments.let_go();
        if self.reply.out.capacity() > KEPT_BYTES {
            self.reply.out = Vec::new();
        }
    }
}

impl AsRef<[u8]> for Exchange {
    fn as_ref(&self) -> &[u8] {
        &self.reply.out
    }
}
