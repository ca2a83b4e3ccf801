//! What tools print. A reader that has read enough closes the pipe, which is no error. Where the output goes
//! to a disk that is full, the tool says so, goes on, and fails in the end.
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Prints a line.
macro_rules! say {
    ($($words:tt)*) => { $crate::told::tell(format_args!("{}\n", format_args!($($words)*))) };
}
pub(crate) use say;

/// Prints this as it is.
pub(crate) fn tell(text: Arguments<'_>) {
    note(io::stdout().write_fmt(text));
}

/// The tool ends like this, unless what it has printed is lost.
pub(crate) fn ended(code: ExitCode) -> ExitCode {
    note(io::stdout().flush());
    if HAS_FAILED.load(Relaxed) { ExitCode::FAILURE } else { code }
}

fn note(done: io::Result<()>) {
    if let Err(error) = done
        && error.kind() != ErrorKind::BrokenPipe
        && !HAS_FAILED.swap(true, Relaxed)
    {
        let _ = writeln!(io::stderr(), "The output cannot be written: {}", base::reason::reason(&error));
    }
}
