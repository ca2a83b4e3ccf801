//! What DUMP replies and RESTORE takes: a value, the version of the format, a checksum.
use super::kind::Type;
use super::load::{Loaded, load};
use super::read::{LengthsMax, Reader};
use super::save::{Form, save};
use super::version::VERSION_MAX;
use super::write::Writer;
use crate::checksum::checksum;
use crate::source::Broken;
use crate::source::Slice;
use store::{Key, Settings, ValueRef, View};

/// The bytes of the version and the checksum, behind the value.
const FOOTER_BYTES: usize = 10;

/// Why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadError {
    /// It is too short, its version is newer than all known ones, or its checksum is not that of its bytes.
    Footer,
    /// Its checksum is right, but its bytes are no value.
    Broken(Broken),
}

/// The payload of a value.
pub fn dump(value: ValueRef<'_>, settings: &Settings, form: Form) -> Vec<u8> {
    let mut out = Vec::new();
    let version = save(&mut Writer::new(&mut out, form), value, settings);
    seal(out, version)
}

/// Makes a payload of a type and a value: appends the version and the checksum.
pub fn seal(mut value: Vec<u8>, version: u16) -> Vec<u8> {
    value.extend_from_slice(&version.to_le_bytes());
    let sum = checksum(&value);
    value.extend_from_slice(&sum.to_le_bytes());
    value
}

/// Checks the version and the checksum of a payload. Returns what stands before them, and the version.
pub fn check(payload: &[u8]) -> Result<(&[u8], u16), PayloadError> {
    let (value, footer) =
        payload.len().checked_sub(FOOTER_BYTES).map(|at| payload.split_at(at)).ok_or(PayloadError::Footer)?;
    let (version, sum) = footer.split_at(2);
    let version = u16::from_le_bytes([version[0], version[1]]);
    let is_whole = checksum(&payload[..value.len() + 2]).to_le_bytes() == sum;
    if version > VERSION_MAX || !is_whole { Err(PayloadError::Footer) } else { Ok((value, version)) }
}

/// Puts the value of a payload under `key`, which holds nothing, and still holds nothing after an error.
pub fn restore(view: &mut View<'_>, key: &Key<'_>, payload: &[u8]) -> Result<(), PayloadError> {
    let (value, version) = check(payload)?;
    let lengths_max = LengthsMax::of_payload(view.settings());
    let mut reader = Reader::new(Slice::new(value), version, lengths_max);
    read(view, key, &mut reader).map_err(PayloadError::Broken)
}

fn read(view: &mut View<'_>, key: &Key<'_>, reader: &mut Reader<Slice<'_>>) -> Result<(), Broken> {
    let kind = reader.byte()?;
    let Some(kind) = Type::of(kind, reader.version) else {
        return reader.broken("the value is of a type that is not known");
    };
    // What may come behind the value is not looked at, as in Redis.
    match load(view, key, kind, reader)? {
        Loaded::Value => Ok(()),
        Loaded::Nothing => reader.broken("the value has no elements"),
    }
}
