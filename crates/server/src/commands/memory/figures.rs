//! Where the process's memory goes, taken at one moment: what INFO, MEMORY STATS and MEMORY DOCTOR show.
use crate::core::client_memory;
use crate::core::memory_limit::uncounted_bytes;
use crate::core::server::Server;
use crate::state::system::resident_bytes;
use pack::arena::{self, Usage};
use pack::counted;

/// All in bytes. Parts are counted one after the other while other threads work, so they need not add up
/// exactly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// In use by everything in the process; resident bytes where allocations are not counted.
    pub(crate) used: u64,
    /// Of these, what does not count against `maxmemory`.
    pub(crate) uncounted: u64,
    pub(crate) resident: u64,
    pub(crate) peak: u64,
    /// In use by an empty server.
    pub(crate) startup: u64,
    /// What clients take, as INFO and CLIENT LIST show it.
    pub(crate) clients: u64,
    /// The buffers of clients and of the event loops.
    pub(crate) buffers: u64,
    /// The timing wheels, which know when keys expire.
    pub(crate) wheels: u64,
    /// Texts of scripts and functions, and the interpreters that run them.
    pub(crate) scripts: u64,
    pub(crate) arena: Usage,
}

impl Figures {
    /// Takes the figures now. It reads files of the system and goes through all clients and databases: not
    /// for every request.
    pub(crate) fn of(server: &Server) -> Figures {
        let resident = resident_bytes();
        let (counted, uncounted) = used_and_uncounted(server);
        let used = Some(counted).filter(|n| *n > 0).unwrap_or(resident);
        Figures {
            used,
            uncounted,
            resident,
            peak: (counted::peak_bytes() as u64).max(used),
            startup: counted::startup_bytes() as u64,
            clients: client_memory::total_bytes(server),
            buffers: server.counters.buffer_bytes(),
            wheels: server.keyspace.wheel_bytes(None),
            scripts: script_bytes(server)
                + function_bytes(server)
                + server.interpreter_bytes()
                + server.functions_bytes(),
            arena: arena::usage(),
        }
    }

    /// All that is not data. Most buffers are clients', so the larger of both sums is taken.
    pub(crate) fn overhead(&self) -> u64 {
        let connections = self.buffers.max(self.clients);
        (self.startup + connections + self.wheels + self.scripts).min(self.used)
    }

    /// What the data takes.
    pub(crate) fn dataset(&self) -> u64 {
        self.used - self.overhead()
    }

    /// The data's part of what was added since the start.
    pub(crate) fn dataset_percent(&self) -> f64 {
        percent(self.dataset(), self.used.saturating_sub(self.startup))
    }

    /// The memory in use, in percent of the most that ever was.
    pub(crate) fn peak_percent(&self) -> f64 {
        percent(self.used, self.peak)
    }

    /// How much of the resident memory the allocators hold: the arena's pages, and what is in use elsewhere.
    pub(crate) fn allocator_resident(&self) -> u64 {
        let elsewhere = self.used.saturating_sub(self.arena.used_bytes as u64);
        (self.arena.resident_bytes as u64 + elsewhere).min(self.resident)
    }

    /// Resident bytes for each byte in use.
    pub(crate) fn fragmentation(&self) -> f64 {
        self.resident as f64 / self.used.max(1) as f64
    }

    /// Resident bytes that are not in use; below zero where memory in use has never been touched.
    pub(crate) fn fragmentation_bytes(&self) -> i64 {
        self.resident as i64 - self.used as i64
    }
}

/// How often two counts are taken again that are to be of one moment.
const TRIES: usize = 16;

/// What is in use, and what of it does not count against `maxmemory`. Who subtracts one from the other wants
/// both of one moment: they are taken again where something was allocated or freed in between.
fn used_and_uncounted(server: &Server) -> (u64, u64) {
    let mut used = counted::used_bytes();
    for _ in 1..TRIES {
        let uncounted = uncounted_bytes(server);
        let before = std::mem::replace(&mut used, counted::used_bytes());
        if used == before {
            return (used as u64, uncounted);
        }
    }
    (used as u64, uncounted_bytes(server))
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// What the texts of scripts take.
pub(crate) fn script_bytes(server: &Server) -> u64 {
    server.scripts.cache.size().1 as u64
}

/// What libraries of functions take.
pub(crate) fn function_bytes(server: &Server) -> u64 {
    server.scripts.libraries.now().bytes() as u64
}
