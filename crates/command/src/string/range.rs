//! Parts of strings: APPEND, SETRANGE, GETRANGE and its older name SUBSTR.
//!
//! A value that is kept as an integer is edited and read as its text. Edits go through the store, which knows
//! where the bytes lie: a long string is edited where it is, a short one by way of a buffer that its shard
//! keeps.
use super::grow::{check_end, check_growth, string_len};
use super::row::{ABOUT, ROW};
use super::text;
use crate::argument::{from_end, int};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Deprecated, Doc, Done, Error, Flags, KeySpec};
use std::ops::Range;
use store::Event;

pub(super) const APPEND: Command = Command {
    name: "APPEND",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "2.0.0",
        summary: "Appends a string to a value; creates the key where it is missing.",
        complexity: "O(1) for each byte appended, the value's own length aside.",
        args: &[Arg::key("key", 0), Arg::str("value")],
        ..ABOUT
    },
    run: DataRun::Keys(append),
    ..ROW
};

pub(super) const GETRANGE: Command = Command {
    name: "GETRANGE",
    arity: Arity::Exactly(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.4.0",
        summary: "Answers a part of a string.",
        complexity: "O(N) where N is the length of the part.",
        args: &[Arg::key("key", 0), Arg::int("start"), Arg::int("end")],
        ..ABOUT
    },
    run: DataRun::Keys(getrange),
    ..ROW
};

pub(super) const SUBSTR: Command = Command {
    name: "SUBSTR",
    arity: Arity::Exactly(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers a part of a string.",
        complexity: "O(N) where N is the length of the part.",
        args: &[Arg::key("key", 0), Arg::int("start"), Arg::int("end")],
        deprecated: Some(Deprecated { since: "2.0.0", replaced_by: "`GETRANGE`" }),
        ..ABOUT
    },
    run: DataRun::Keys(substr),
    ..ROW
};

pub(super) const SETRANGE: Command = Command {
    name: "SETRANGE",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "2.2.0",
        summary: "Overwrites a part of a string from an offset on; creates the key where it is missing.",
        complexity: "O(N) where N is the length of the part and of the padding.",
        args: &[Arg::key("key", 0), Arg::int("offset"), Arg::str("value")],
        ..ABOUT
    },
    run: DataRun::Keys(setrange),
    ..ROW
};

/// The size is checked before the edit, so that a value never grows beyond what a client could send.
fn append(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let tail = call.args.at(2);
    let len = string_len(call)?;
    check_end(call, len, tail.len() as u64)?;
    check_growth(call, len + tail.len() as u64)?;
    let len = call.view.append(key, tail)?;
    call.view.changed(key, 1, Event::string("append"));
    call.reply.int(len as i64);
    Ok(())
}

/// The offset is refused before the key is looked at; the type even where nothing is to be written.
fn setrange(call: &mut Call<'_, '_>) -> Done {
    let offset = u64::try_from(int(call.args.at(2))?).map_err(|_| Error::negative_offset())?;
    let bytes = call.args.at(3);
    let mut len = string_len(call)?;
    // If nothing is to be written nothing changes: no key is created, and nothing is padded.
    if !bytes.is_empty() {
        check_end(call, offset, bytes.len() as u64)?;
        check_growth(call, offset + bytes.len() as u64)?;
        let key = call.key(0);
        len = call.view.set_range(key, offset, bytes)?;
        call.view.changed(key, 1, Event::string("setrange"));
    }
    call.reply.int(len as i64);
    Ok(())
}

/// The part is copied from the entry straight into the reply.
fn getrange(call: &mut Call<'_, '_>) -> Done {
    let start = int(call.args.at(2))?;
    let end = int(call.args.at(3))?;
    let key = call.key(0);
    let item = call.view.string(key)?;
    let mut scratch = base::text::I64Text::new();
    let whole = item.as_ref().map_or(&b""[..], |item| item.text(&mut scratch));
    let wanted = part(whole.len() as u64, start, end);
    if text::may_leave(wanted.len(), call.reply, &call.args) {
        text::leave(call, wanted);
    } else {
        call.reply.bulk(&whole[wanted]);
    }
    Ok(())
}

fn substr(call: &mut Call<'_, '_>) -> Done {
    getrange(call)
}

/// Which part of a text of so many bytes `start..=end` is, positions from the end where negative. Unlike the
/// ranges of lists, an end before the first byte still means the first byte, unless both are negative and out
/// of order.
fn part(len: u64, start: i64, end: i64) -> Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let start = from_end(start, len).max(0) as u64;
    let end = (from_end(end, len).max(0) as u64).min(len.saturating_sub(1));
    if start > end || len == 0 { 0..0 } else { start as usize..end as usize + 1 }
}
