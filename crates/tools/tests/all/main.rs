//! The program itself: as a process, and served to the clients that people use.
mod analyze;
mod append_only;
mod ceiling;
mod check;
mod clients;
mod configuration;
mod daemon;
mod exchange;
mod failing_disk;
mod functions;
mod help;
mod home;
mod output;
mod process;
mod queues;
mod snapshots;
mod strange_files;
