//! Fuzzing: functions that take any bytes, and must neither panic nor find a structure that differs from its
//! naive twin.
//!
//! One list, two drivers. `cargo xtask fuzz` builds them with libFuzzer's coverage and AddressSanitizer on
//! nightly (`fuzz/`) and runs for as long as it is told. `tests/fuzz.rs` needs neither: it replays the corpus
//! that the repository keeps and goes on with random changes of it ([`change`]) for some seconds, on the
//! build with checks.
//!
//! The corpus is one file a target, `fuzz/corpus/TARGET.txt`, an input a line in hexadecimal. A new target is
//! a file here and a row in [`TARGETS`].
mod append_file;
mod change;
mod commands;
mod config;
mod dump_file;
mod fields;
mod glob;
mod int_map;
mod int_set;
mod integers;
mod leaf;
mod log;
mod map;
mod numbers;
mod pairs;
mod payload;
mod records;
mod resp;
mod script_bytes;
mod seq;
mod set_image;
mod sketch;
mod sorted;
mod users;

pub use change::change;
use std::io;
use std::path::Path;

/// Takes any bytes.
pub type Target = fn(&[u8]);

pub const TARGETS: &[(&str, Target)] = &[
    ("append_file", append_file::run),
    ("commands", commands::run),
    ("config", config::run),
    ("dump_file", dump_file::run),
    ("fields", fields::run),
    ("glob", glob::run),
    ("int_map", int_map::run),
    ("int_set", int_set::run),
    ("leaf", leaf::run),
    ("log", log::run),
    ("map", map::run),
    ("numbers", numbers::run),
    ("pairs", pairs::run),
    ("payload", payload::run),
    ("records", records::run),
    ("resp", resp::run),
    ("script_bytes", script_bytes::run),
    ("seq", seq::run),
    ("set_image", set_image::run),
    ("sketch", sketch::run),
    ("sorted", sorted::run),
    ("users", users::run),
];

/// The inputs that the repository keeps for a target; none where it keeps none yet.
pub fn corpus(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let text = std::fs::read_to_string(folder.join(target).with_extension("txt"))?;
    text.lines()
        .map(|line| unhex(line).ok_or_else(|| io::Error::other(format!("{target}: {line}"))))
        .collect()
}

fn unhex(line: &str) -> Option<Vec<u8>> {
    let digits = line.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(|pair| byte(pair).filter(|_| pair.len() == 2)).collect()
}
