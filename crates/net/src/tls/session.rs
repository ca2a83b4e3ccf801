//! One connection's side of TLS: received bytes in, plaintext and bytes to send out. No socket, no clock.
//!
//! ```text
//! handshake --- it is done ---> open --- close_notify ---> ended (it may still be sent to)
//!     \                          /
//!      `-- a protocol error ----`---> failed
//! ```
//!
//! rustls keeps no buffers here (its *unbuffered* API): records are decrypted where they were received, and
//! only what is incomplete is kept, a part of a record or of a message of the handshake. So an open
//! connection that is idle holds its keys and nothing else. rustls remembers positions in what is incomplete,
//! so it has to see just that at every call, also when something is sent. On the path of every request with
//! TLS; rustls allocates for each record in either direction.
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{Error, ServerConfig};
use std::hint::cold_path;
use std::sync::Arc;

/// More than a record grows by when it is encrypted, its head included.
const RECORD_GROWS_BYTES: usize = 64;
/// The most that a record holds.
const RECORD_BYTES: usize = 16 << 10;
/// What may be incomplete: a message of the handshake (certificates are the longest), or a record.
const INCOMPLETE_BYTES_MAX: usize = 32 << 10;

pub(crate) struct Session {
    conn: UnbufferedServerConnection,
    stage: Stage,
    incomplete: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Handshake,
    Open,
    /// The peer sends nothing more.
    Ended,
    Failed,
}

/// Where plaintext goes: into a buffer as far as there is room for it, and the rest into another.
pub(crate) struct Plain<'b> {
    pub(crate) into: &'b mut Vec<u8>,
    pub(crate) room: usize,
    pub(crate) rest: &'b mut Vec<u8>,
}

impl Plain<'_> {
    fn push(&mut self, bytes: &[u8]) {
        let (now, later) = bytes.split_at(bytes.len().min(self.room));
        self.into.extend_from_slice(now);
        self.room -= now.len();
        if !later.is_empty() {
            self.rest.extend_from_slice(later);
        }
    }
}

impl Session {
    /// A session before its first byte.
    pub(crate) fn new(config: &Arc<ServerConfig>) -> Result<Session, Error> {
        let conn = UnbufferedServerConnection::new(Arc::clone(config))?;
        Ok(Session { conn, stage: Stage::Handshake, incomplete: Vec::new() })
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// What has been received and is not complete: the next bytes are appended to a copy of it.
    pub(crate) fn incomplete(&self) -> &[u8] {
        &self.incomplete
    }

    /// Takes in what has been received, behind what was incomplete before. What the protocol answers is
    /// appended to `out`, also where it fails.
    pub(crate) fn open(
        &mut self,
        received: &mut [u8],
        mut plain: Plain<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { discard, state } = self.conn.process_tls_records(&mut received[used..]);
            used += discard;
            let is_blocked = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        match record {
                            Ok(record) => {
                                plain.push(record.payload);
                                used += record.discard;
                            }
                            Err(error) => return self.fail(error, out),
                        }
                    }
                    false
                }
                Ok(ConnectionState::WriteTraffic(_)) => {
                    if self.stage == Stage::Handshake {
                        self.stage = Stage::Open;
                    }
                    true
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.stage = Stage::Ended;
                    false
                }
                Ok(ConnectionState::Closed | ConnectionState::BlockedHandshake) => true,
                Ok(other) => !answer(other, out),
                Err(error) => return self.fail(error, out),
            };
            if is_blocked {
                return self.keep(&received[used..], out);
            }
        }
    }

    /// Keeps what is incomplete.
    fn keep(&mut self, rest: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        if rest.len() > INCOMPLETE_BYTES_MAX {
            return self.fail(Error::General("a message is too long".into()), out);
        }
        if !(rest.is_empty() && self.incomplete.is_empty()) {
            self.incomplete = rest.to_vec();
        }
        Ok(())
    }

    /// The session is over. What it still has to say (an alert) is appended to `out`.
    #[cold]
    fn fail(&mut self, error: Error, out: &mut Vec<u8>) -> Result<(), Error> {
        self.stage = Stage::Failed;
        self.incomplete = Vec::new();
        // What has been received must not be looked at again.
        while self.conn.wants_write()
            && let Ok(state) = self.conn.process_tls_records(&mut []).state
            && answer(state, out)
        {}
        Err(error)
    }

    /// Encrypts all of `data` behind what is in `out`, once the handshake is done. Returns whether it could.
    /// Where not the session has failed: whatever came behind `data` would be taken for what follows.
    pub(crate) fn seal(&mut self, data: &[u8], out: &mut Vec<u8>) -> bool {
        let records = data.len().div_ceil(RECORD_BYTES);
        let is_done = self.write(data.len() + records * RECORD_GROWS_BYTES, out, |room, traffic| {
            traffic.encrypt(data, room)
        });
        if !is_done {
            cold_path();
            self.stage = Stage::Failed;
        }
        is_done
    }

    /// Appends the alert that ends the session. False where there is none: before the handshake is done, or
    /// after a failure.
    pub(crate) fn close_notify(&mut self, out: &mut Vec<u8>) -> bool {
        self.write(2 * RECORD_GROWS_BYTES, out, |room, traffic| traffic.queue_close_notify(room))
    }

    /// Calls `write` with so much room behind what is in `out`, once what the protocol has to say is there.
    fn write(
        &mut self,
        room_bytes: usize,
        out: &mut Vec<u8>,
        mut write: impl FnMut(&mut [u8], &mut WriteTraffic<'_>) -> Result<usize, EncryptError>,
    ) -> bool {
        if matches!(self.stage, Stage::Handshake | Stage::Failed) {
            return false;
        }
        let mut room_bytes = room_bytes;
        loop {
            // All that can be done with what is incomplete was done when it came: nothing of it goes here.
            match self.conn.process_tls_records(&mut self.incomplete).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let start = out.len();
                    out.resize(start + room_bytes, 0);
                    let written = write(&mut out[start..], &mut traffic);
                    out.truncate(start + *written.as_ref().unwrap_or(&0));
                    match written {
                        Ok(_) => return true,
                        Err(EncryptError::InsufficientSize(size)) => room_bytes = size.required_size,
                        Err(EncryptError::EncryptExhausted) => return false,
                    }
                }
                Ok(state) => {
                    if !answer(state, out) {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
    }
}

type WriteTraffic<'c> = rustls::unbuffered::WriteTraffic<'c, rustls::server::ServerConnectionData>;

/// Appends what the protocol has to say by itself. False where it has nothing to say.
fn answer<Data>(state: ConnectionState<'_, '_, Data>, out: &mut Vec<u8>) -> bool {
    match state {
        ConnectionState::EncodeTlsData(mut record) => {
            let Err(EncodeError::InsufficientSize(size)) = record.encode(&mut []) else { return true };
            let start = out.len();
            out.resize(start + size.required_size, 0);
            record.encode(&mut out[start..]).is_ok()
        }
        ConnectionState::TransmitTlsData(told) => {
            told.done();
            true
        }
        _ => false,
    }
}
