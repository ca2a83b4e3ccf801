//! The sections of INFO, in its order: the table of all metrics.
use super::metric::Metric;
use super::rows;

pub(super) struct Section {
    /// The heading, by which requests name the section in any case.
    pub(super) title: &'static str,
    /// What its metrics are about, for the reference.
    pub(super) about: &'static str,
    pub(super) sort: Sort,
    pub(super) rows: &'static [Metric],
}

/// When a section is shown without being named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Default,
    /// Only by `all` and `everything`.
    Long,
}

const fn section(title: &'static str, about: &'static str, rows: &'static [Metric]) -> Section {
    Section { title, about, sort: Sort::Default, rows }
}

const fn long_section(title: &'static str, about: &'static str, rows: &'static [Metric]) -> Section {
    Section { title, about, sort: Sort::Long, rows }
}

pub(super) const SECTIONS: &[Section] = &[
    section("Server", "The program and the process.", rows::server::SERVER),
    section("Clients", "Connections, and what they wait for.", rows::clients::CLIENTS),
    section("Memory", "Where the memory of the process goes.", rows::memory::MEMORY),
    section("Persistence", "Snapshots and the append-only file.", rows::persistence::PERSISTENCE),
    section("Threads", "The workers, each with its own connections.", rows::clients::THREADS),
    section("Stats", "What the server has done since it started.", rows::stats::STATS),
    section("Replication", "Replicas, and whom they follow.", rows::replication::REPLICATION),
    section("CPU", "Processor time of the process.", rows::server::CPU),
    section("Modules", "There are none, so the section is empty.", &[]),
    long_section("Commandstats", "Each command that was called.", rows::calls::COMMAND_STATS),
    section("Errorstats", "Error replies, by the code that they begin with.", rows::calls::ERROR_STATS),
    long_section("Latencystats", "How long the calls of each command took.", rows::calls::LATENCY_STATS),
    section("Cluster", "Cluster mode.", rows::replication::CLUSTER),
    section("Keyspace", "Each database that holds keys.", rows::calls::KEYSPACE),
];
