//! The process as its surroundings see it: the service manager, the file with its number, the kernel's out-of-memory
//! killer. All of them are told by writing to files and sockets; nothing here needs a library.
mod oom_score;
mod pidfile;
mod supervisor;

pub(crate) use oom_score::adjust as adjust_oom_score;
pub use pidfile::PidFile;
pub use supervisor::Supervisor;
