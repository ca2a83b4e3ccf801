//! Configuration files of any text: read, or refused with a line. What was read can be told about.
use server::Source;

/// Lines that name files of the machine. An input with one of these words is left out.
const NAMES_FILES: [&[u8]; 2] = [b"include", b"dir"];

pub(super) fn run(data: &[u8]) {
    let lower = data.to_ascii_lowercase();
    if NAMES_FILES.iter().any(|word| lower.windows(word.len()).any(|window| window == *word)) {
        return;
    }
    let source = Source { file: None, reads_stdin: true, options: Vec::new() };
    match source.load(&mut &data[..]) {
        Ok(config) => {
            config.warnings();
            config.without_effect();
        }
        Err(error) => assert!(!error.0.is_empty(), "a refusal says why"),
    }
    let args: Vec<Vec<u8>> = data.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
    let source = Source::from_args(&args);
    if source.file.is_none() {
        let _ = Source { reads_stdin: false, ..source }.load(&mut &b""[..]);
    }
}
