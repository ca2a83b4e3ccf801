//! The process as its surroundings see it: the service manager, and the file with its number. They are told by writing
//! to files and sockets; nothing here needs a library.
mod pidfile;
mod supervisor;

pub use pidfile::PidFile;
pub use supervisor::Supervisor;
