//! BITFIELD and BITFIELD_RO: integers of any width in a string, several operations at one instant.
//!
//! All operations are parsed before the key is looked at, so an error in the last leaves the first undone. If
//! any of them writes, the string is made long enough for all that write, before the first of them; then each
//! one answers a number, or null where OVERFLOW FAIL kept it from writing.
use super::integer::{Format, Overflow};
use super::row::{ABOUT, ROW, SETBIT_EVENT};
use super::single;
use crate::argument::{int, is_word};
use crate::string::check_growth;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use base::text::I64Text;
use resp::{Args, Reply};
use store::Growth;

const GET: Arg = Arg::block("get-block", &[Arg::str("encoding"), Arg::int("offset")]).after("GET");

const WRITE: Arg = Arg::block(
    "write",
    &[
        Arg::one_of(
            "overflow-block",
            &[Arg::word("wrap", "WRAP"), Arg::word("sat", "SAT"), Arg::word("fail", "FAIL")],
        )
        .after("OVERFLOW")
        .optional(),
        Arg::one_of(
            "write-operation",
            &[
                Arg::block("set-block", &[Arg::str("encoding"), Arg::int("offset"), Arg::int("value")])
                    .after("SET"),
                Arg::block(
                    "incrby-block",
                    &[Arg::str("encoding"), Arg::int("offset"), Arg::int("increment")],
                )
                .after("INCRBY"),
            ],
        ),
    ],
);

pub(super) const BITFIELD: Command = Command {
    name: "BITFIELD",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))
        .access_by(access)
        .note("This command allows both access and modification of the key")],
    doc: Doc {
        since: "3.2.0",
        summary: "Reads and writes integers of any width at any bits of a string.",
        complexity: "O(1) for each operation.",
        args: &[Arg::key("key", 0), Arg::one_of("operation", &[GET, WRITE]).optional().many()],
        ..ABOUT
    },
    run: DataRun::Keys(bitfield),
    ..ROW
};

pub(super) const BITFIELD_RO: Command = Command {
    name: "BITFIELD_RO",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.0.0",
        summary: "Reads integers of any width at any bits of a string.",
        complexity: "O(1) for each operation.",
        args: &[Arg::key("key", 0), GET.optional().many_with_token()],
        ..ABOUT
    },
    run: DataRun::Keys(bitfield_ro),
    ..ROW
};

struct Operation {
    format: Format,
    /// The first bit.
    offset: u64,
    action: Action,
    overflow: Overflow,
}

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Increment(i64),
}

impl Operation {
    /// How long the string must be for the operation to write; 0 if it only reads.
    fn len_min(&self) -> u64 {
        match self.action {
            Action::Get => 0,
            Action::Set(_) | Action::Increment(_) => (self.offset + self.format.width()).div_ceil(8),
        }
    }

    fn reply_value(&self, bytes: &[u8], reply: &mut Reply) {
        reply.int(self.format.read(bytes, self.offset));
    }

    /// Runs the operation and replies. SET answers the old value, INCRBY the new one. Returns what was
    /// written.
    fn run(&self, bytes: &mut [u8], reply: &mut Reply) -> Outcome {
        let old = self.format.read(bytes, self.offset);
        let (new, answer) = match self.action {
            Action::Get => {
                reply.int(old);
                return Outcome::Nothing;
            }
            Action::Set(value) => (self.format.convert(value, self.overflow), Some(old)),
            Action::Increment(by) => {
                let sum = self.format.add(old, by, self.overflow);
                (sum, sum)
            }
        };
        let (Some(new), Some(answer)) = (new, answer) else {
            reply.null();
            return Outcome::Nothing;
        };
        self.format.write(bytes, self.offset, new);
        reply.int(answer);
        if new == old { Outcome::SameAgain } else { Outcome::Change }
    }
}

/// What an operation has written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Nothing,
    SameAgain,
    Change,
}

impl Outcome {
    /// Whether Redis counts it as a change: writing the value that was there counts only if the command made
    /// the string longer.
    fn counts(self, growth: Growth) -> bool {
        match self {
            Outcome::Nothing => false,
            Outcome::SameAgain => growth == Growth::Longer,
            Outcome::Change => true,
        }
    }
}

fn bitfield(call: &mut Call<'_, '_>) -> Done {
    let operations = parse(call)?;
    match len_min(&operations) {
        0 => read(call, &operations),
        len_min => write(call, &operations, len_min),
    }
}

/// OVERFLOW is accepted in BITFIELD_RO too, because it writes nothing by itself.
fn bitfield_ro(call: &mut Call<'_, '_>) -> Done {
    let operations = parse(call)?;
    if len_min(&operations) > 0 {
        return Err(Error::bitfield_read_only());
    }
    read(call, &operations)
}

/// The length that all writes together need.
fn len_min(operations: &[Operation]) -> u64 {
    operations.iter().map(Operation::len_min).max().unwrap_or(0)
}

/// A missing key reads as zeroes and stays missing. The lookup counts, also where the command may write.
fn read(call: &mut Call<'_, '_>, operations: &[Operation]) -> Done {
    call.view.count_lookups();
    let key = call.key(0);
    let item = call.view.string(key)?;
    let mut scratch = I64Text::new();
    let bytes = item.as_ref().map_or(&b""[..], |item| item.text(&mut scratch));
    call.reply.array(operations.len());
    for operation in operations {
        operation.reply_value(bytes, call.reply);
    }
    Ok(())
}

fn write(call: &mut Call<'_, '_>, operations: &[Operation], len_min: u64) -> Done {
    check_growth(call, len_min)?;
    let key = call.key(0);
    let reply = &mut *call.reply;
    let changes = call.view.edit_bytes(key, len_min, |bytes, growth| {
        reply.array(operations.len());
        let outcomes = operations.iter().map(|operation| operation.run(bytes, reply));
        outcomes.filter(|outcome| outcome.counts(growth)).count()
    })?;
    call.view.changed(key, changes as u64, SETBIT_EVENT);
    call.view.tell_if_created(key);
    Ok(())
}

/// What a request does with its key: with nothing but GET and OVERFLOW it only reads. An incomplete operation
/// counts as a write.
fn access(args: &Args<'_>) -> Access {
    let mut i = 2;
    while let Some(word) = args.get(i) {
        i += if is_word(word, "GET") {
            3
        } else if is_word(word, "OVERFLOW") {
            2
        } else {
            break;
        };
    }
    let only_reads = i == args.len();
    if only_reads { Access::RO.or(Access::ACCESS) } else { Access::RW.or(Access::ACCESS).or(Access::UPDATE) }
}

/// OVERFLOW holds for the writes after it, up to the next.
fn parse(call: &Call<'_, '_>) -> Result<Vec<Operation>, Error> {
    let args = call.args;
    let (mut operations, mut overflow) = (Vec::new(), Overflow::Wrap);
    let mut i = 2;
    while let Some(word) = args.get(i) {
        let rest = args.len() - i - 1;
        if is_word(word, "OVERFLOW") && rest >= 1 {
            overflow = parse_overflow(args.at(i + 1))?;
            i += 2;
            continue;
        }
        let taken = match word {
            word if is_word(word, "GET") && rest >= 2 => 3,
            word if (is_word(word, "SET") || is_word(word, "INCRBY")) && rest >= 3 => 4,
            _ => return Err(Error::syntax()),
        };
        operations.push(parse_operation(call, i, overflow)?);
        i += taken;
    }
    Ok(operations)
}

fn parse_overflow(word: &[u8]) -> Result<Overflow, Error> {
    let words = [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];
    let found = words.iter().find(|(name, _)| is_word(word, name));
    found.map(|(_, overflow)| *overflow).ok_or_else(Error::bitfield_overflow)
}

/// The operation whose word is argument `i`, and which has all its arguments.
fn parse_operation(call: &Call<'_, '_>, i: usize, overflow: Overflow) -> Result<Operation, Error> {
    let format = Format::parse(call.args.at(i + 1)).ok_or_else(Error::bitfield_type)?;
    let offset = match call.args.at(i + 2) {
        // `#` counts in integers of this width instead of bits.
        [b'#', index @ ..] => single::scaled_offset(call, index, format.width())?,
        text => single::offset(call, text)?,
    };
    let word = call.args.at(i);
    let action = if is_word(word, "GET") {
        Action::Get
    } else if is_word(word, "SET") {
        Action::Set(int(call.args.at(i + 3))?)
    } else {
        Action::Increment(int(call.args.at(i + 3))?)
    };
    Ok(Operation { format, offset, action, overflow })
}
