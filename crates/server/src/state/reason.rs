//! What the system says of an error, as clients and the log are told.
use std::io;

/// What the system says of an error, without Rust's "(os error 2)".
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
