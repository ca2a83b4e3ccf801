//! DEBUG CLIENT-EVICTION: how many clients take how much, by powers of two, as Redis shows the pools from
//! which it picks those that `maxmemory-clients` closes. There are no pools here: clients are counted when
//! they are asked for.
use crate::core::call::ServerCall;
use crate::core::client_memory::bytes_of;
use crate::core::error;
use command::Done;
use std::fmt::Write;

/// The first bucket ends below 2^15 bytes; the last begins at 2^32 and has no end.
const FIRST_POWER: u32 = 15;
const LAST_POWER: u32 = 32;

#[derive(Clone, Copy, Default)]
struct Bucket {
    clients: u64,
    bytes: u64,
}

/// Answers with a line for each bucket: how many clients are in it, and what they take together.
pub(super) fn eviction(call: &mut ServerCall<'_>) -> Done {
    let config = call.server.config();
    if config.maxmemory_clients.limit_for_clients(config.maxmemory_bytes) == 0 {
        return Err(error::client_memory_is_unlimited());
    }
    let all: Vec<u64> = call.server.clients().values().map(|record| bytes_of(record)).collect();
    call.reply.verbatim("txt", describe(&all).as_bytes());
    Ok(())
}

fn describe(clients: &[u64]) -> String {
    let mut buckets = [Bucket::default(); (LAST_POWER - FIRST_POWER + 2) as usize];
    for bytes in clients {
        let power = bytes.checked_ilog2().unwrap_or(0).clamp(FIRST_POWER - 1, LAST_POWER);
        let bucket = &mut buckets[(power + 1 - FIRST_POWER) as usize];
        bucket.clients += 1;
        bucket.bytes += bytes;
    }
    let mut text = String::new();
    for (power, Bucket { clients, bytes }) in (FIRST_POWER - 1..).zip(buckets) {
        let from = if power < FIRST_POWER { 0 } else { 1_u64 << power };
        let range = match power {
            LAST_POWER => format!("{from:>10}+{:12}", ""),
            _ => format!("{from:>10} - {:>10}", (2_u64 << power) - 1),
        };
        let _ = writeln!(text, "bucket {range}: tot-mem: {bytes:>10}, clients: {clients}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_in_the_bucket_of_its_size() {
        let text = describe(&[0, 1_920, 32_767, 32_768, 5 << 30]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 19);
        assert_eq!(lines[0], "bucket          0 -      32767: tot-mem:      34687, clients: 3");
        assert_eq!(lines[1], "bucket      32768 -      65535: tot-mem:      32768, clients: 1");
        assert_eq!(lines[2], "bucket      65536 -     131071: tot-mem:          0, clients: 0");
        assert_eq!(lines[18], "bucket 4294967296+            : tot-mem: 5368709120, clients: 1");
    }
}
