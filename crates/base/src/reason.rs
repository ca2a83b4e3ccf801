//! The text of an error of the system, as clients, the log and whoever calls a tool get it.
use std::fmt::Display;

/// The system's text for an error, without the "(os error 2)" that Rust appends.
pub fn reason(error: &impl Display) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
