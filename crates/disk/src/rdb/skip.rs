//! Values that are passed over: where one ends is all that is found out. Nothing of it is judged but its
//! lengths.
use super::kind::Type;
use super::read::Reader;
use crate::source::Broken;
use crate::source::Source;

/// The bytes of a deadline, a time of day, a double.
const WORD_BYTES: u64 = 8;
/// The bytes of an id in a list of pending entries.
const ID_BYTES: u64 = 16;

/// Passes over a value of this type.
pub(super) fn skip(kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    match kind {
        Type::String
        | Type::HashZipmap
        | Type::ListZiplist
        | Type::SetInts
        | Type::ZSetZiplist
        | Type::HashZiplist
        | Type::HashListpack
        | Type::ZSetListpack
        | Type::SetListpack => reader.skip_string(),
        Type::TimedHashListpack => {
            reader.skip(WORD_BYTES)?;
            reader.skip_string()
        }
        Type::List | Type::Set | Type::ListZiplists => each(reader, Reader::skip_string),
        Type::Hash => each(reader, skip_pair),
        Type::ZSet => each(reader, |reader| {
            reader.skip_string()?;
            reader.skip(WORD_BYTES)
        }),
        Type::ZSetText => each(reader, |reader| {
            reader.skip_string()?;
            reader.double_text().map(drop)
        }),
        Type::ListListpacks => each(reader, |reader| {
            reader.length()?;
            reader.skip_string()
        }),
        Type::TimedHash => {
            reader.skip(WORD_BYTES)?;
            each(reader, |reader| {
                reader.length()?;
                skip_pair(reader)
            })
        }
        Type::TimedHashValkey => each(reader, |reader| {
            skip_pair(reader)?;
            reader.skip(WORD_BYTES)
        }),
        Type::Stream | Type::Stream2 | Type::Stream3 => skip_stream(kind, reader),
    }
}

fn each<S: Source>(
    reader: &mut Reader<S>,
    mut one: impl FnMut(&mut Reader<S>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    for _ in 0..reader.length()? {
        one(reader)?;
    }
    Ok(())
}

fn skip_pair(reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    reader.skip_string()?;
    reader.skip_string()
}

fn lengths(reader: &mut Reader<impl Source>, count: usize) -> Result<(), Broken> {
    (0..count).try_for_each(|_| reader.length().map(drop))
}

/// As `load_stream.rs` shows a stream.
fn skip_stream(kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    each(reader, skip_pair)?;
    // How many entries, the last id; the first, the greatest deleted, how many were added.
    lengths(reader, if kind == Type::Stream { 3 } else { 8 })?;
    each(reader, |reader| {
        reader.skip_string()?;
        lengths(reader, if kind == Type::Stream { 2 } else { 3 })?;
        each(reader, |reader| {
            reader.skip(ID_BYTES + WORD_BYTES)?;
            lengths(reader, 1)
        })?;
        each(reader, |reader| {
            reader.skip_string()?;
            reader.skip(if kind == Type::Stream3 { 2 * WORD_BYTES } else { WORD_BYTES })?;
            each(reader, |reader| reader.skip(ID_BYTES))
        })
    })
}

/// Passes over what a module keeps: values of the kinds that modules may write, up to their end.
pub(super) fn skip_module(reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    const END: u64 = 0;
    const INT: u64 = 1;
    const UINT: u64 = 2;
    const FLOAT: u64 = 3;
    const DOUBLE: u64 = 4;
    const STRING: u64 = 5;
    loop {
        match reader.length()? {
            END => return Ok(()),
            INT | UINT => lengths(reader, 1)?,
            FLOAT => reader.skip(WORD_BYTES / 2)?,
            DOUBLE => reader.skip(WORD_BYTES)?,
            STRING => reader.skip_string()?,
            _ => return reader.broken("a value of a module is of no kind"),
        }
    }
}
