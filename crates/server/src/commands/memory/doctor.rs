//! MEMORY DOCTOR: what is remarkable about where the memory goes, in sentences. Each finding is a function
//! that looks at the figures and has something to say or not.
use super::figures::Figures;
use crate::commands::info::human;

/// The figures that findings look at.
pub(super) struct Patient {
    pub(super) figures: Figures,
    pub(super) clients: u64,
    /// The setting, in bytes; 0 means no limit.
    pub(super) maxmemory: u64,
    /// The memory of the whole machine, in bytes.
    pub(super) machine: u64,
    /// The number of values that were deleted and are not yet freed.
    pub(super) pending: u64,
}

/// With less data than this nothing is said: the parts would be parts of the program, not of the data.
const SMALL_BYTES: u64 = 5 << 20;
/// A client that takes more than this on average takes much.
const CLIENT_BYTES: u64 = 200 << 10;
/// Differences below this are of no interest.
const NOTABLE_BYTES: u64 = 10 << 20;

/// All findings as one text.
pub(super) fn examine(patient: &Patient) -> String {
    let figures = &patient.figures;
    let data = figures.used.saturating_sub(figures.startup);
    if data < SMALL_BYTES {
        return format!(
            "The server holds {} beyond what it needs when it is empty: too little to say anything about.\n",
            human(data)
        );
    }
    let found: Vec<String> = FINDINGS.iter().filter_map(|finding| finding(patient)).collect();
    if found.is_empty() {
        return "Nothing is remarkable about where the memory goes.\n".into();
    }
    let lines = found.iter().map(|text| format!("\n * {text}\n"));
    format!("This is remarkable about where the memory goes:\n{}", lines.collect::<String>())
}

/// All findings, in the order in which they are told.
const FINDINGS: &[fn(&Patient) -> Option<String>] =
    &[peak, fragmentation, free_blocks, clients, limit, machine, pending];

fn peak(patient: &Patient) -> Option<String> {
    let Figures { peak, used, .. } = patient.figures;
    (peak > used / 2 * 3).then(|| {
        format!(
            "Peak: {} were in use at one time, {} are now. Pages that the peak left free are given back by themselves; \
             `used_memory_rss` tells how many are.",
            human(peak),
            human(used)
        )
    })
}

fn fragmentation(patient: &Patient) -> Option<String> {
    let figures = &patient.figures;
    let excess = figures.resident.saturating_sub(figures.used);
    (figures.fragmentation() > 1.4 && excess > NOTABLE_BYTES).then(|| {
        format!(
            "Fragmentation: the process is resident with {}, {:.2} times what is in use. MEMORY PURGE gives free pages \
             back at once, activedefrag moves data together so that more become free, and MEMORY MALLOC-STATS shows \
             where they lie.",
            human(figures.resident),
            figures.fragmentation()
        )
    })
}

fn free_blocks(patient: &Patient) -> Option<String> {
    let arena = patient.figures.arena;
    let free = arena.mapped_bytes.saturating_sub(arena.used_bytes) as u64;
    (free > NOTABLE_BYTES && free > arena.used_bytes as u64).then(|| {
        format!(
            "Holes: of what the arena has mapped, {} are free blocks, more than are in use. New data fills them before \
             anything else is mapped.",
            human(free)
        )
    })
}

fn clients(patient: &Patient) -> Option<String> {
    let buffers = patient.figures.clients;
    let is_much = buffers / patient.clients.max(1) > CLIENT_BYTES;
    is_much.then(|| {
        format!(
            "Clients: {} are taken by {} clients. CLIENT LIST shows which (tot-mem); client-output-buffer-limit and \
             maxmemory-clients are what stops them.",
            human(buffers),
            patient.clients
        )
    })
}

fn limit(patient: &Patient) -> Option<String> {
    let used = patient.figures.used;
    let is_near = patient.maxmemory > 0 && used > patient.maxmemory / 10 * 9;
    is_near.then(|| {
        format!(
            "Limit: {} are in use, and maxmemory is {}. Keys are evicted, or writes refused, as maxmemory-policy says.",
            human(used),
            human(patient.maxmemory)
        )
    })
}

fn machine(patient: &Patient) -> Option<String> {
    let resident = patient.figures.resident;
    let is_near = patient.machine > 0 && resident > patient.machine / 10 * 8;
    is_near.then(|| {
        format!(
            "Machine: the process is resident with {} of the machine's {}. Set maxmemory, before the system ends it \
             or swaps.",
            human(resident),
            human(patient.machine)
        )
    })
}

fn pending(patient: &Patient) -> Option<String> {
    (patient.pending > 0).then(|| {
        format!("Freeing: {} deleted values are still being freed in the background.", patient.pending)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn healthy() -> Patient {
        let figures =
            Figures { used: 100 * MB, peak: 110 * MB, resident: 105 * MB, startup: MB, ..Figures::default() };
        Patient { figures, clients: 10, maxmemory: 0, machine: 1000 * MB, pending: 0 }
    }

    #[track_caller]
    fn check(change: fn(&mut Patient), word: &str) {
        let mut patient = healthy();
        change(&mut patient);
        let text = examine(&patient);
        assert!(text.contains(word) && text.matches("\n * ").count() == 1, "{text}");
    }

    #[test]
    fn each_finding_is_made_on_its_own() {
        check(|p| p.figures.peak = 151 * MB, "Peak: 151.00M");
        check(
            |p| p.figures.resident = 150 * MB,
            "Fragmentation: the process is resident with 150.00M, 1.50 times",
        );
        check(|p| p.figures.arena.mapped_bytes = 11 << 20, "Holes: of what the arena has mapped, 11.00M");
        check(|p| p.figures.clients = 5 * MB, "Clients: 5.00M are taken by 10 clients");
        check(|p| p.maxmemory = 105 * MB, "Limit: 100.00M are in use, and maxmemory is 105.00M");
        check(|p| p.machine = 120 * MB, "Machine: ");
        check(|p| p.pending = 3, "Freeing: 3 deleted values");
    }

    #[test]
    fn a_healthy_server_is_told_so_and_a_small_one_that_nothing_can_be_told() {
        assert_eq!(examine(&healthy()), "Nothing is remarkable about where the memory goes.\n");
        let mut small = healthy();
        small.figures.used = 3 * MB;
        assert!(examine(&small).contains("2.00M beyond"), "{}", examine(&small));
    }
}
