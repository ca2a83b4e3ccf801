//! BITOP: strings combined bit by bit into another.
//!
//! DIFF, DIFF1, ANDOR and ONE came with Redis 8.2. They are accepted here because they change nothing about
//! requests that 8.0 accepts.
use super::row::{ABOUT, ROW};
use super::words::{self, Growing, Operation};
use crate::argument::is_word;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use base::text::I64Text;
use store::{Event, LookUp};

pub(super) const BITOP: Command = Command {
    name: "BITOP",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[
        KeySpec::one(2, Access::OW.or(Access::UPDATE)),
        KeySpec::range(3, -1, 1, Access::RO.or(Access::ACCESS)),
    ],
    doc: Doc {
        since: "2.6.0",
        summary: "Combines strings bit by bit and stores the result.",
        complexity: "O(N) where N is the length of the strings together.",
        args: &[
            Arg::one_of(
                "operation",
                &[
                    Arg::word("and", "AND"),
                    Arg::word("or", "OR"),
                    Arg::word("xor", "XOR"),
                    Arg::word("not", "NOT"),
                    Arg::word("diff", "DIFF").since("8.2.0"),
                    Arg::word("diff1", "DIFF1").since("8.2.0"),
                    Arg::word("andor", "ANDOR").since("8.2.0"),
                    Arg::word("one", "ONE").since("8.2.0"),
                ],
            ),
            Arg::key("destkey", 0),
            Arg::key("key", 1).many(),
        ],
        history: &[("8.2.0", "Takes `DIFF`, `DIFF1`, `ANDOR` and `ONE`.")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::texts_of_sources, bitop)),
    ..ROW
};

const OPERATIONS: [(&str, Operation); 8] = [
    ("AND", Operation::And),
    ("OR", Operation::Or),
    ("XOR", Operation::Xor),
    ("NOT", Operation::Not),
    ("DIFF", Operation::Diff),
    ("DIFF1", Operation::Diff1),
    ("ANDOR", Operation::AndOr),
    ("ONE", Operation::One),
];

/// The destination may be among the sources: the result is complete before it is written.
fn bitop(call: &mut Call<'_, '_>) -> Done {
    let operation = operation(call)?;
    let result = combined(call, operation)?;
    let key = call.key(0);
    let len = result.len();
    // An empty result leaves no key, whatever the destination held before.
    if len == 0 {
        let existed = call.view.remove(key);
        call.view.changed(key, u64::from(existed), Event::DEL);
    } else {
        call.view.put_bytes(key, result);
        call.view.changed(key, 1, Event::string("set"));
    }
    call.reply.int(len as i64);
    Ok(())
}

/// The number of sources is checked before their types.
fn operation(call: &Call<'_, '_>) -> Result<Operation, Error> {
    let word = call.args.at(1);
    let found = OPERATIONS.iter().find(|(name, _)| is_word(word, name));
    let (name, operation) = *found.ok_or_else(Error::syntax)?;
    let source_count = call.keys().len() - 1;
    match operation {
        Operation::Not if source_count != 1 => Err(Error::bitop_not_of_many()),
        Operation::Diff | Operation::Diff1 | Operation::AndOr if source_count < 2 => {
            Err(Error::bitop_too_few(name))
        }
        _ => Ok(operation),
    }
}

/// Short strings are combined as they are looked up. These lookups count, though the command writes.
fn combined(call: &mut Call<'_, '_>, operation: Operation) -> Result<Vec<u8>, Error> {
    call.view.count_lookups();
    let of_short = combined_if_short(call, operation)?;
    call.view.ignore_lookups();
    of_short.map_or_else(|| combined_in_blocks(call, operation), Ok)
}

/// None where some string is too long to be read but once for the whole of it. All are looked up even so.
fn combined_if_short(call: &mut Call<'_, '_>, operation: Operation) -> Result<Option<Vec<u8>>, Error> {
    let mut result = Some(Growing::new(operation));
    for key in &call.keys()[1..] {
        let item = call.view.string(key)?;
        let mut scratch = I64Text::new();
        let row = item.as_ref().map_or(&b""[..], |item| item.text(&mut scratch));
        if row.len() > Growing::ROW_BYTES_MAX {
            result = None;
        }
        if let Some(result) = &mut result {
            result.add(row);
        }
    }
    Ok(result.map(Growing::finish))
}

/// The strings, which have been looked up, are read where they lie, a block of each at a time.
fn combined_in_blocks(call: &mut Call<'_, '_>, operation: Operation) -> Result<Vec<u8>, Error> {
    let (dest, sources) = (call.key(0), &call.keys()[1..]);
    // The result is written into the allocation of the string that it replaces, unless that is a source as
    // well.
    let is_read = sources.iter().any(|key| key.bytes() == dest.bytes());
    let room = if is_read { None } else { call.view.reclaim(dest) };
    let items = call.view.strings(sources, LookUp::Again)?;
    let mut texts = vec![I64Text::new(); items.len()];
    let rows: Vec<&[u8]> = (items.iter().zip(&mut texts))
        .map(|(item, scratch)| item.as_ref().map_or(&b""[..], |item| item.text(scratch)))
        .collect();
    Ok(words::combine(operation, &rows, room.unwrap_or_default()))
}
