//! The checksum of dump files and payloads: a CRC of 64 bits.
use crc::{Crc, Digest, Table};

/// Jones' polynomial, bits reversed, from 0.
static CHECKSUM: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&crc::CRC_64_REDIS);

/// The checksum of `bytes`.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    CHECKSUM.checksum(bytes)
}

/// The checksum of bytes that come one after another.
pub(crate) struct Sum(Digest<'static, u64, Table<16>>);

impl Sum {
    pub(crate) fn new() -> Sum {
        Sum(CHECKSUM.digest())
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.clone().finalize()
    }
}
