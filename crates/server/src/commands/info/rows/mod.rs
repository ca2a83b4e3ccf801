//! The rows of metrics, a file for each subject. A new metric is a row in its section's list, under Redis's
//! name for it.
pub(super) mod calls;
pub(super) mod clients;
pub(super) mod memory;
pub(super) mod persistence;
pub(super) mod replication;
pub(super) mod server;
pub(super) mod stats;

// Why metrics of mechanisms that Sardine does not have are the same at all times. Monitoring reads them by
// name, so they are there.

const NO_CLUSTER: &str = "There is no cluster mode.";
const NO_FORKS: &str = "The process never forks.";
const NO_IO_THREADS: &str = "No thread does nothing but input and output: workers do their own.";
const NO_REPLICATION: &str = "There is no replication yet.";
const NO_SANITIZING: &str = "Every payload and every file is checked in depth while it is read.";
