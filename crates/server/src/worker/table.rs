//! One worker's connections, by the index that its engine gave them.
use super::input::Input;
use super::pieces::Unfinished;
use crate::core::client_memory::CONNECTION_BYTES;
use crate::core::session::Session;
use net::ConnId;
use resp::{Parser, Protocol};

/// What the worker keeps of a connection between two batches. An idle connection holds no buffer. The struct
/// is aligned, so that it lies on as few cache lines as it can.
#[repr(align(64))]
pub(super) struct Connection {
    pub(super) id: ConnId,
    pub(super) session: Session,
    pub(super) protocol: Protocol,
    pub(super) parser: Parser,
    /// What has arrived and has not run.
    pub(super) input: Input,
    pub(super) flow: Flow,
    /// It has a turn in the batch that is being put together.
    pub(super) is_in_batch: bool,
    /// It is on the list of those that the cron looks at.
    pub(super) is_watched: bool,
    /// It is on the list of those that are looked at after the next poll.
    pub(super) is_looked_at: bool,
    /// The client has shut down its sending side.
    pub(super) has_ended: bool,
    /// How much may wait unsent before the client is paused; see `slow_readers`.
    pub(super) allowance_bytes: usize,
    /// Unsent bytes when the client was last looked at, while it is paused.
    pub(super) unsent_before_bytes: usize,
    /// Since when it is over the soft output limit, by the steady time in milliseconds.
    pub(super) over_soft_limit_since_ms: Option<i64>,
    /// The reply that is being written to it, with [`Flow::Writing`], or while it is paused.
    pub(super) unfinished: Option<Box<Unfinished>>,
}

// Unit tests count in `Input` how many bytes it has moved.
const _: () = assert!(cfg!(test) || size_of::<Connection>() == CONNECTION_BYTES);

impl Connection {
    /// Bytes of memory that the reply which is being written to it takes.
    pub(super) fn unfinished_bytes(&self) -> usize {
        self.unfinished.as_ref().map_or(0, |unfinished| unfinished.bytes())
    }
}

/// Whether a connection is read from and served. Each state's file has a picture of how it begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Open,
    /// Whole requests of it are kept: they run at its next turn, and nothing more is read before that.
    Busy,
    /// A reply is being written to it piece by piece; see `pieces`.
    Writing,
    /// It does not read its replies: nothing more is read from it, and nothing executed.
    Paused,
    /// Its next request has to wait: what it sends is kept, nothing executed; see `park`.
    Parked,
    /// Its session is lent, with a request that takes long: what it sends is kept, nothing executed; see
    /// `lent`.
    Lent,
    /// It is being closed; what still arrives is not looked at.
    Closing,
}

impl Flow {
    /// Whether what has arrived behind the request that ran last has to wait.
    #[inline]
    pub(super) fn keeps_all(self) -> bool {
        matches!(self, Flow::Parked | Flow::Writing | Flow::Lent)
    }
}

/// Connections by index. An index is used again when its connection has gone, with another generation.
#[derive(Default)]
pub(super) struct Table {
    slots: Vec<Option<Box<Connection>>>,
    count: usize,
}

impl Table {
    /// Takes in a connection; its index must be free.
    pub(super) fn insert(&mut self, connection: Connection) {
        let index = connection.id.index as usize;
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, || None);
        }
        assert!(self.slots[index].is_none(), "the engine gave one index to two connections");
        self.slots[index] = Some(Box::new(connection));
        self.count += 1;
    }

    /// The connection with this id, unless it has gone.
    pub(super) fn at(&mut self, id: ConnId) -> Option<&mut Connection> {
        let connection = self.slots.get_mut(id.index as usize)?.as_deref_mut()?;
        (connection.id == id).then_some(connection)
    }

    /// Asks for the memory of a connection that is about to be served.
    pub(super) fn prefetch(&self, id: ConnId) {
        if let Some(Some(connection)) = self.slots.get(id.index as usize) {
            pack::prefetch_value(&**connection);
        }
    }

    /// Takes a connection out.
    pub(super) fn remove(&mut self, id: ConnId) -> Option<Box<Connection>> {
        self.at(id)?;
        self.count -= 1;
        self.slots[id.index as usize].take()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Places for connections, taken or not.
    pub(super) fn room(&self) -> usize {
        self.slots.len()
    }

    /// The connections in `count` places from `first` on.
    pub(super) fn part(&self, first: usize, count: usize) -> impl Iterator<Item = &Connection> {
        self.slots.iter().skip(first).take(count).flatten().map(Box::as_ref)
    }

    /// All connections.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().flatten().map(Box::as_ref)
    }

    /// All connections, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut().flatten().map(Box::as_mut)
    }
}
