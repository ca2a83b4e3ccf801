//! SETBIT and GETBIT: one bit of a string, whatever its length, at the cost of one lookup.
use super::row::{ABOUT, ROW, SETBIT_EVENT};
use crate::string::check_growth;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use base::text::{I64Text, parse_i64};
use store::Growth;

pub(super) const SETBIT: Command = Command {
    name: "SETBIT",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "2.2.0",
        summary: "Sets or clears one bit of a string and answers what it was; creates the key where it is missing.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::int("offset"), Arg::int("value")],
        ..ABOUT
    },
    run: DataRun::Keys(setbit),
    ..ROW
};

pub(super) const GETBIT: Command = Command {
    name: "GETBIT",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.2.0",
        summary: "Answers one bit of a string.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::int("offset")],
        ..ABOUT
    },
    run: DataRun::Keys(getbit),
    ..ROW
};

/// The index of the byte that a bit is in, and the bit's mask in it.
fn byte_and_mask(offset: u64) -> (u64, u8) {
    (offset / 8, 0x80 >> (offset % 8))
}

/// The bit that `text` names, checked against the longest string there may be.
pub(super) fn offset(call: &Call<'_, '_>, text: &[u8]) -> Result<u64, Error> {
    scaled_offset(call, text, 1)
}

/// The bit where field `text` begins, if fields have `width` bits.
pub(super) fn scaled_offset(call: &Call<'_, '_>, text: &[u8], width: u64) -> Result<u64, Error> {
    let number = parse_i64(text).and_then(|n| u64::try_from(n).ok());
    let offset = number.and_then(|n| n.checked_mul(width)).ok_or_else(Error::bit_offset)?;
    let is_inside = offset / 8 < call.view.string_bytes_max();
    if is_inside { Ok(offset) } else { Err(Error::bit_offset()) }
}

/// SETBIT. It counts as no change if the bit had that value already and the string was long enough.
fn setbit(call: &mut Call<'_, '_>) -> Done {
    let (byte, mask) = byte_and_mask(offset(call, call.args.at(2))?);
    let wanted = match call.args.at(3) {
        b"0" => 0,
        b"1" => mask,
        _ => return Err(Error::bit_value()),
    };
    check_growth(call, byte + 1)?;
    let key = call.key(0);
    let (old, growth) = call.view.edit_bytes(key, byte + 1, |bytes, growth| {
        let byte = &mut bytes[byte as usize];
        let old = *byte & mask;
        *byte = *byte & !mask | wanted;
        (old, growth)
    })?;
    let changes = u64::from(old != wanted || growth == Growth::Longer);
    call.view.changed(key, changes, SETBIT_EVENT);
    call.reply.int(i64::from(old != 0));
    Ok(())
}

fn getbit(call: &mut Call<'_, '_>) -> Done {
    let (byte, mask) = byte_and_mask(offset(call, call.args.at(2))?);
    let key = call.key(0);
    let item = call.view.string(key)?;
    let mut scratch = I64Text::new();
    let text = item.as_ref().map_or(&b""[..], |item| item.text(&mut scratch));
    let is_set = text.get(byte as usize).is_some_and(|byte| byte & mask != 0);
    call.reply.int(i64::from(is_set));
    Ok(())
}
