//! What a completion belongs to, in the 64 bits that the kernel carries along:
//!
//! ```text
//! 63           32 31    28 27           0
//! [ generation   |  what  |   index      ]   generation 0: not a connection
//! ```
use crate::ConnId;
use crate::conn_table::INDEX_MAX;

/// An operation, and the connection or listener that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Receive(ConnId),
    /// A send that takes what fits at once: it completes while it is submitted.
    QuickSend(ConnId),
    /// A send that waits for room.
    PatientSend(ConnId),
    /// A wait for a reset, while nothing is received.
    Watch(ConnId),
    Accept(u32),
    Waker,
    /// A request to cancel: nothing depends on its answer.
    Cancel,
}

const WHAT_SHIFT: u32 = INDEX_MAX.count_ones();

impl Token {
    /// The 64 bits.
    pub(super) fn pack(self) -> u64 {
        let none = ConnId { index: 0, generation: 0 };
        let (what, id) = match self {
            Token::Receive(id) => (0, id),
            Token::QuickSend(id) => (1, id),
            Token::PatientSend(id) => (2, id),
            Token::Watch(id) => (3, id),
            Token::Accept(index) => (4, ConnId { index, ..none }),
            Token::Waker => (5, none),
            Token::Cancel => (6, none),
        };
        u64::from(id.generation) << 32 | u64::from(id.index | what << WHAT_SHIFT)
    }

    /// The token that was packed into these bits.
    pub(super) fn unpack(bits: u64) -> Token {
        let (generation, low) = ((bits >> 32) as u32, bits as u32);
        let id = ConnId { index: low & INDEX_MAX, generation };
        match low >> WHAT_SHIFT {
            0 => Token::Receive(id),
            1 => Token::QuickSend(id),
            2 => Token::PatientSend(id),
            3 => Token::Watch(id),
            4 => Token::Accept(id.index),
            5 => Token::Waker,
            _ => Token::Cancel,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let id = ConnId { index: INDEX_MAX, generation: u32::MAX };
        let conns = [Token::Receive(id), Token::QuickSend(id), Token::PatientSend(id), Token::Watch(id)];
        for token in conns.into_iter().chain([Token::Accept(7), Token::Waker, Token::Cancel]) {
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }
}
