//! Libraries of functions as a payload: what FUNCTION DUMP replies and FUNCTION RESTORE takes.
//!
//! ```text
//! payload = | F5 | library: string | ... | version: u16 | checksum: u64 |
//! ```
//!
//! That is how they stand in a file, behind one another, with the end of a value's payload. `F5 03 61 62 63
//! 0A 00` and a checksum is one library of the code "abc". No library at all is a payload too.
use super::file::mark;
use super::payload::{check, seal};
use super::read::{LengthsMax, Reader};
use super::save::Form;
use super::write::Writer;
use crate::source::{Slice, Source};
use store::Settings;

/// Why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibrariesError {
    /// It is too short, its version is newer than all known ones, or its checksum is not that of its bytes.
    Footer,
    /// Something else than a library stands in it.
    Other,
    /// A library in the form of a test version of Redis 7.0.
    OldForm,
    /// A library whose bytes cannot be read.
    Broken,
}

/// The payload of libraries with these codes.
pub fn dump_libraries<'c>(codes: impl Iterator<Item = &'c [u8]>, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, form);
    codes.for_each(|code| save_library(&mut writer, code));
    seal(out, form.version)
}

/// Writes one library.
pub(super) fn save_library(writer: &mut Writer<'_>, code: &[u8]) {
    writer.bytes(&[mark::FUNCTION]);
    writer.string(code);
}

/// The codes of a payload's libraries, in their order.
pub fn read_libraries(payload: &[u8], settings: &Settings) -> Result<Vec<Vec<u8>>, LibrariesError> {
    let (bytes, version) = check(payload).map_err(|_| LibrariesError::Footer)?;
    let mut reader = Reader::new(Slice::new(bytes), version, LengthsMax::of_payload(settings));
    let mut codes = Vec::new();
    while reader.source.at() < bytes.len() as u64 {
        match reader.byte() {
            Ok(mark::FUNCTION) => {}
            Ok(mark::OLD_FUNCTION) => return Err(LibrariesError::OldForm),
            _ => return Err(LibrariesError::Other),
        }
        codes.push(reader.string().map_err(|_| LibrariesError::Broken)?.to_vec());
    }
    Ok(codes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::VERSION_WRITTEN;
    use base::random::Random;

    const FORM: Form = Form { version: VERSION_WRITTEN, compresses: true };

    fn read(payload: &[u8]) -> Result<Vec<Vec<u8>>, LibrariesError> {
        read_libraries(payload, &Settings::default())
    }

    #[test]
    fn libraries_are_read_as_they_were_written() {
        let codes: [&[u8]; 4] = [b"abc", b"", b"12", &[b'x'; 100_000]];
        let payload = dump_libraries(codes.into_iter(), FORM);
        assert_eq!(read(&payload).unwrap(), codes);
        assert!(payload.len() < 2_000, "what repeats itself is compressed");
        assert_eq!(read(&dump_libraries([].into_iter(), FORM)).unwrap(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn what_redis_8_has_written_is_read() {
        let payload = b"\x0c\x00\x96\xedh\x80\xf5U<\x93";
        assert_eq!(read(payload).unwrap(), Vec::<Vec<u8>>::new());
        assert_eq!(dump_libraries([].into_iter(), Form { version: 12, ..FORM }), payload);
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let sealed = |bytes: &[u8]| seal(bytes.to_vec(), VERSION_WRITTEN);
        assert_eq!(read(b""), Err(LibrariesError::Footer));
        assert_eq!(read(&seal(Vec::new(), 81)), Err(LibrariesError::Footer));
        assert_eq!(read(&sealed(b"\x00\x01k\x01v")), Err(LibrariesError::Other));
        assert_eq!(read(&sealed(b"\xF5\x01a\xFF")), Err(LibrariesError::Other));
        assert_eq!(read(&sealed(b"\xF6\x01a")), Err(LibrariesError::OldForm));
        assert_eq!(read(&sealed(b"\xF5")), Err(LibrariesError::Broken));
        assert_eq!(read(&sealed(b"\xF5\x02a")), Err(LibrariesError::Broken));
        assert_eq!(read(&sealed(b"\xF5\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFa")), Err(LibrariesError::Broken));
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = Random::new(11);
        let whole = dump_libraries([&b"abc"[..], &[b'y'; 300]].into_iter(), FORM);
        let body = &whole[..whole.len() - 10];
        let mut good = 0;
        for _ in 0..20_000 {
            let mut bytes = body.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            bytes.truncate(random.below(bytes.len() as u64 + 20) as usize);
            good += usize::from(read(&seal(bytes, VERSION_WRITTEN)).is_ok());
        }
        assert!((1..20_000).contains(&good), "{good}");
    }
}
