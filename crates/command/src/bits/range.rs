//! BITCOUNT and BITPOS, over a whole string or a part of it that is named in bytes or in bits, from either
//! end.
use super::row::{ABOUT, ROW};
use super::words;
use crate::argument::{from_end, int, is_word};
use crate::{
    Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, LONG_STEPS, Long, work,
};
use base::text::I64Text;
use resp::Args;

const UNIT: Arg =
    Arg::one_of("unit", &[Arg::word("byte", "BYTE"), Arg::word("bit", "BIT")]).optional().since("7.0.0");

pub(super) const BITCOUNT: Command = Command {
    name: "BITCOUNT",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.6.0",
        summary: "Counts the bits that are set in a string or a part of it.",
        complexity: "O(N) where N is the length of the part.",
        args: &[
            Arg::key("key", 0),
            Arg::block("range", &[Arg::int("start"), Arg::int("end"), UNIT]).optional(),
        ],
        history: &[("7.0.0", "Takes `BYTE` and `BIT`.")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(counted, bitcount)),
    ..ROW
};

pub(super) const BITPOS: Command = Command {
    name: "BITPOS",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.8.7",
        summary: "Finds the first bit that is set, or that is clear, in a string or a part of it.",
        complexity: "O(N) where N is the length of the part.",
        args: &[
            Arg::key("key", 0),
            Arg::int("bit"),
            Arg::block(
                "range",
                &[Arg::int("start"), Arg::block("end-unit-block", &[Arg::int("end"), UNIT]).optional()],
            )
            .optional(),
        ],
        history: &[("7.0.0", "Takes `BYTE` and `BIT`.")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(searched, bitpos)),
    ..ROW
};

/// What positions count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    fn parse(word: Option<&[u8]>) -> Result<Unit, Error> {
        match word {
            None => Ok(Unit::Byte),
            Some(word) if is_word(word, "BYTE") => Ok(Unit::Byte),
            Some(word) if is_word(word, "BIT") => Ok(Unit::Bit),
            Some(_) => Err(Error::syntax()),
        }
    }

    fn bits(self) -> u64 {
        match self {
            Unit::Byte => 8,
            Unit::Bit => 1,
        }
    }
}

/// A part as the client names it, both ends included.
#[derive(Clone, Copy)]
struct Part {
    start: i64,
    end: i64,
    unit: Unit,
}

impl Part {
    const WHOLE: Part = Part { start: 0, end: -1, unit: Unit::Byte };

    /// The first and the last of its bits in a string of `len_bytes`. An end before the beginning still means
    /// the first byte or bit.
    fn bits(self, len_bytes: usize) -> Option<(u64, u64)> {
        let scale = self.unit.bits();
        let len = len_bytes as u64 * 8 / scale;
        let start = from_end(self.start, len).max(0) as u64;
        let end = (from_end(self.end, len).max(0) as u64).min(len.checked_sub(1)?);
        (start <= end).then(|| (start * scale, end * scale + scale - 1))
    }
}

/// The steps of BITCOUNT.
fn counted(call: &mut Call<'_, '_>) -> Option<u64> {
    let part = bitcount_part(&call.args).ok();
    Some(part.map_or(0, |part| work::of_bytes(bytes(call, part))))
}

/// The steps of BITPOS: those of all bytes, unless the first bytes have the bit.
fn searched(call: &mut Call<'_, '_>) -> Option<u64> {
    let (Ok(bit), Ok(part)) = (bit(call.args.at(2)), bitpos_part(&call.args)) else { return Some(0) };
    let steps = work::of_bytes(bytes(call, part));
    if steps < LONG_STEPS {
        return Some(steps);
    }
    let Some(item) = call.view.peek_string(call.key(0)) else { return Some(0) };
    let mut scratch = I64Text::new();
    let text = item.text(&mut scratch);
    let is_near = part.bits(text.len()).is_some_and(|(first, last)| {
        find(text, bit, first, last.min(first + 8 * work::PROBED_BYTES)).is_some()
    });
    Some(if is_near { work::of_bytes(work::PROBED_BYTES) } else { steps })
}

/// How many bytes this part of the string has.
fn bytes(call: &Call<'_, '_>, part: Part) -> u64 {
    let len = call.extent(call.key(0)).bytes;
    part.bits(len as usize).map_or(0, |(first, last)| last / 8 - first / 8 + 1)
}

fn bitcount(call: &mut Call<'_, '_>) -> Done {
    let part = bitcount_part(&call.args)?;
    let key = call.key(0);
    let item = call.view.string(key)?;
    let mut scratch = I64Text::new();
    let text = item.as_ref().map_or(&b""[..], |item| item.text(&mut scratch));
    let is_backwards = part.start < 0 && part.end < 0 && part.start > part.end;
    let bits = part.bits(text.len()).filter(|_| !is_backwards);
    call.reply.int(bits.map_or(0, |(first, last)| count(text, first, last)) as i64);
    Ok(())
}

fn bitcount_part(args: &Args<'_>) -> Result<Part, Error> {
    match args.len() {
        2 => Ok(Part::WHOLE),
        4 | 5 => {
            let (start, end) = (int(args.at(2))?, int(args.at(3))?);
            Ok(Part { start, end, unit: Unit::parse(args.get(4))? })
        }
        _ => Err(Error::syntax()),
    }
}

/// How many of the bits `first..=last` are set: all that are set in their bytes, less those before and behind
/// them.
fn count(text: &[u8], first: u64, last: u64) -> u64 {
    let bytes = &text[(first / 8) as usize..=(last / 8) as usize];
    let before = bytes[0] & !from_bit(first);
    let behind = bytes[bytes.len() - 1] & !up_to_bit(last);
    store::count_ones(bytes) - u64::from(before.count_ones() + behind.count_ones())
}

/// The bits of a byte from bit `position % 8` on.
fn from_bit(position: u64) -> u8 {
    0xFF >> (position % 8)
}

/// The bits of a byte up to bit `position % 8`.
fn up_to_bit(position: u64) -> u8 {
    !(0x7F >> (position % 8))
}

/// A missing key is a row of zeroes without an end, and so is what follows a string whose end was not named.
fn bitpos(call: &mut Call<'_, '_>) -> Done {
    let bit = bit(call.args.at(2))?;
    let part = bitpos_part(&call.args)?;
    let key = call.key(0);
    let Some(item) = call.view.string(key)? else {
        call.reply.int(if bit == Bit::Clear { 0 } else { -1 });
        return Ok(());
    };
    let mut scratch = I64Text::new();
    let text = item.text(&mut scratch);
    let has_end = call.args.len() > 4;
    let position = part.bits(text.len()).and_then(|(first, last)| {
        let behind = (bit == Bit::Clear && !has_end).then_some(last + 1);
        find(text, bit, first, last).or(behind)
    });
    call.reply.int(position.map_or(-1, |position| position as i64));
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bit {
    Clear,
    Set,
}

fn bit(text: &[u8]) -> Result<Bit, Error> {
    match int(text)? {
        0 => Ok(Bit::Clear),
        1 => Ok(Bit::Set),
        _ => Err(Error::bit_argument()),
    }
}

/// The unit is refused before the end is read, as in Redis.
fn bitpos_part(args: &Args<'_>) -> Result<Part, Error> {
    if args.len() > 6 {
        return Err(Error::syntax());
    }
    let start = args.get(3).map_or(Ok(0), int)?;
    let unit = Unit::parse(args.get(5))?;
    let end = args.get(4).map_or(Ok(-1), int)?;
    Ok(Part { start, end, unit })
}

/// The first bit among `first..=last` that is set, or clear.
fn find(text: &[u8], bit: Bit, first: u64, last: u64) -> Option<u64> {
    // A search for a clear bit is one for a set bit of the complement.
    let blank = if bit == Bit::Set { 0x00 } else { 0xFF };
    let start = (first / 8) as usize;
    let bytes = &text[start..=(last / 8) as usize];
    let head = (bytes[0] ^ blank) & from_bit(first);
    let (index, byte) = if head != 0 {
        (0, head)
    } else {
        let index = 1 + words::find_other(&bytes[1..], blank)?;
        (index, bytes[index] ^ blank)
    };
    let position = (start + index) as u64 * 8 + u64::from(byte.leading_zeros());
    (position <= last).then_some(position)
}
