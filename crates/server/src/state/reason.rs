//! The text of an error of the system, as clients and the log get it.
use std::io;

/// The system's text for an error, without the "(os error 2)" that Rust appends.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
