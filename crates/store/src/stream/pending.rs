//! What a group keeps of an entry that a consumer was given: who has it, since when, and how often it was
//! delivered.
//!
//! ```text
//! consumer  u32     its number in the group
//! delivered 6 bytes milliseconds since 1970       all numbers little endian
//! count     u64     deliveries
//! ```
//!
//! These are 18 bytes behind the id's 16 in the records of the group. The records of the consumer have the id
//! once more: 50 bytes for each pending entry, and no allocation of its own.
use super::group::ConsumerId;
use base::Millis;
use pack::log::Id;

pub(super) const PAYLOAD_BYTES: usize = 18;
/// Times up to the year 10889 fit 48 bits; later ones are stored as this one.
const MS_MAX: i64 = (1 << 48) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    pub id: Id,
    pub consumer: ConsumerId,
    pub delivered: Millis,
    pub count: u64,
}

impl Pending {
    pub(super) fn encode(&self) -> [u8; PAYLOAD_BYTES] {
        let mut bytes = [0; PAYLOAD_BYTES];
        bytes[..4].copy_from_slice(&self.consumer.0.to_le_bytes());
        bytes[4..10].copy_from_slice(&self.delivered.0.clamp(0, MS_MAX).to_le_bytes()[..6]);
        bytes[10..].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    pub(super) fn decode(id: Id, bytes: [u8; PAYLOAD_BYTES]) -> Pending {
        let mut consumer = [0; 4];
        consumer.copy_from_slice(&bytes[..4]);
        let (mut delivered, mut count) = ([0; 8], [0; 8]);
        delivered[..6].copy_from_slice(&bytes[4..10]);
        count.copy_from_slice(&bytes[10..]);
        Pending {
            id,
            consumer: ConsumerId(u32::from_le_bytes(consumer)),
            delivered: Millis(i64::from_le_bytes(delivered)),
            count: u64::from_le_bytes(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let pending = |delivered| Pending {
            id: Id { ms: 1, seq: 2 },
            consumer: ConsumerId(70_000),
            delivered: Millis(delivered),
            count: u64::MAX,
        };
        for (ms, kept) in [(0, 0), (1_800_000_000_000, 1_800_000_000_000), (-5, 0), (i64::MAX, MS_MAX)] {
            assert_eq!(Pending::decode(Id { ms: 1, seq: 2 }, pending(ms).encode()), pending(kept));
        }
    }
}
