//! Lengths, strings and numbers, read from a source.
use crate::source::Broken;
use crate::source::Source;
use base::Item;
use base::text::I64Text;
use pack::lzf;

/// What stands where a string or a number of elements is expected.
enum Length {
    Plain(u64),
    /// The encoding of a string.
    Encoded(u8),
}

const INT_8: u8 = 0;
const INT_16: u8 = 1;
const INT_32: u8 = 2;
const COMPRESSED: u8 = 3;

pub(super) const TOO_LONG: &str = "a string is longer than it may be, or can be";
const NOT_AS_SAID: &str = "a compressed string is not what it is said to be";

/// A compressed text of more bytes than that is gone through before room is made for it.
const TRUSTED_BYTES_MAX: u64 = 1 << 20;

/// How long the strings that are read may be, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LengthsMax {
    /// A string that is a value, or a block of elements.
    text: u64,
    /// An element, a field, a member.
    element: u64,
}

impl LengthsMax {
    /// The limits on what a client sends, by the settings in force.
    pub(crate) fn of_payload(settings: &store::Settings) -> LengthsMax {
        let element = settings.lengths.element_bytes_max as u64;
        LengthsMax { text: element.max(settings.proto_max_bulk_len_bytes), element }
    }

    /// The limits on what a file holds. Values and blocks were taken once, under whatever settings were in
    /// force then; nothing is made room for before it is there.
    pub(crate) fn of_file(settings: &store::Settings) -> LengthsMax {
        LengthsMax { text: u64::MAX, element: settings.lengths.element_bytes_max as u64 }
    }
}

/// Reads what values are made of.
pub(crate) struct Reader<S> {
    pub(crate) source: S,
    /// The version of the file.
    pub(crate) version: u16,
    /// The string that was read last, if it was compressed.
    text: Vec<u8>,
    digits: I64Text,
    lengths_max: LengthsMax,
}

impl<S: Source> Reader<S> {
    pub(crate) fn new(source: S, version: u16, lengths_max: LengthsMax) -> Reader<S> {
        Reader { source, version, text: Vec::new(), digits: I64Text::new(), lengths_max }
    }

    /// An error in what was read last; its place is where the source stands now.
    pub(crate) fn broken<R>(&self, what: &'static str) -> Result<R, Broken> {
        Err(Broken { what, at: self.source.at() })
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.source.take(N as u64)?);
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Broken> {
        Ok(self.array::<1>()?[0])
    }

    /// Milliseconds since 1970.
    pub(crate) fn millis(&mut self) -> Result<i64, Broken> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(crate) fn double(&mut self) -> Result<f64, Broken> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    fn head(&mut self) -> Result<Length, Broken> {
        let first = self.byte()?;
        let low = u64::from(first & 0x3F);
        Ok(match first {
            0..0x40 => Length::Plain(low),
            0x40..0x80 => Length::Plain(low << 8 | u64::from(self.byte()?)),
            0x80 => Length::Plain(u64::from(u32::from_be_bytes(self.array()?))),
            0x81 => Length::Plain(u64::from_be_bytes(self.array()?)),
            0xC0.. => Length::Encoded(first & 0x3F),
            _ => return self.broken("a length is of no encoding"),
        })
    }

    /// A number of elements, or another number.
    pub(crate) fn length(&mut self) -> Result<u64, Broken> {
        match self.head()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(_) => self.broken("a string stands where a number belongs"),
        }
    }

    /// A string that is a value, or a block of elements. It is lent until the next call.
    pub(crate) fn string(&mut self) -> Result<&[u8], Broken> {
        self.string_of(self.lengths_max.text)
    }

    /// How long an element may be.
    pub(crate) fn element_bytes_max(&self) -> usize {
        usize::try_from(self.lengths_max.element).unwrap_or(usize::MAX)
    }

    /// An element, a field or a member.
    pub(crate) fn element(&mut self) -> Result<&[u8], Broken> {
        self.string_of(self.lengths_max.element)
    }

    /// An element, as an integer where its text reads as one.
    pub(crate) fn item(&mut self) -> Result<Item<'_>, Broken> {
        Ok(match self.text_or_int(self.lengths_max.element)? {
            Item::Bytes(text) => Item::classify(text),
            Item::Int(n) => Item::Int(n),
        })
    }

    fn string_of(&mut self, len_max: u64) -> Result<&[u8], Broken> {
        // The number is written below, where nothing is borrowed any more.
        let value = match self.head()? {
            Length::Plain(len) if len > len_max => return self.broken(TOO_LONG),
            Length::Plain(len) => return self.source.take(len),
            Length::Encoded(COMPRESSED) => {
                self.decompress(len_max)?;
                return Ok(&self.text);
            }
            Length::Encoded(encoding) => self.int(encoding)?,
        };
        Ok(self.digits.format(value))
    }

    /// A string as it is written: as text, or as an integer.
    fn text_or_int(&mut self, len_max: u64) -> Result<Item<'_>, Broken> {
        match self.head()? {
            Length::Plain(len) if len > len_max => self.broken(TOO_LONG),
            Length::Plain(len) => self.source.take(len).map(Item::Bytes),
            Length::Encoded(COMPRESSED) => {
                self.decompress(len_max)?;
                Ok(Item::Bytes(&self.text))
            }
            Length::Encoded(encoding) => self.int(encoding).map(Item::Int),
        }
    }

    fn int(&mut self, encoding: u8) -> Result<i64, Broken> {
        Ok(match encoding {
            INT_8 => i64::from(i8::from_le_bytes(self.array()?)),
            INT_16 => i64::from(i16::from_le_bytes(self.array()?)),
            INT_32 => i64::from(i32::from_le_bytes(self.array()?)),
            _ => return self.broken("a string is of no encoding"),
        })
    }

    /// An element, written over what `text` held.
    pub(crate) fn element_into(&mut self, text: &mut Vec<u8>) -> Result<(), Broken> {
        text.clear();
        text.extend_from_slice(self.element()?);
        Ok(())
    }

    /// A score as text behind a byte with its length, where 253 to 255 mean no number and the two infinities.
    /// None where it is no number.
    pub(crate) fn double_text(&mut self) -> Result<Option<f64>, Broken> {
        Ok(match self.byte()? {
            255 => Some(f64::NEG_INFINITY),
            254 => Some(f64::INFINITY),
            253 => None,
            len => base::double::parse_f64(self.source.take(u64::from(len))?),
        })
    }

    /// Passes over so many bytes.
    #[inline]
    pub(crate) fn skip(&mut self, len: u64) -> Result<(), Broken> {
        self.source.take(len).map(drop)
    }

    /// Passes over a string without decompressing it.
    pub(crate) fn skip_string(&mut self) -> Result<(), Broken> {
        match self.head()? {
            Length::Plain(len) => self.skip(len),
            Length::Encoded(INT_8) => self.skip(1),
            Length::Encoded(INT_16) => self.skip(2),
            Length::Encoded(INT_32) => self.skip(4),
            Length::Encoded(COMPRESSED) => {
                let (compressed_len, _) = (self.length()?, self.length()?);
                self.skip(compressed_len)
            }
            Length::Encoded(_) => self.broken("a string is of no encoding"),
        }
    }

    fn decompress(&mut self, len_max: u64) -> Result<(), Broken> {
        let (compressed_len, len) = (self.length()?, self.length()?);
        let at = self.source.at();
        let broken = |what| Broken { what, at };
        let compressed = self.source.take(compressed_len)?;
        if len > len_max || len > lzf::len_max(compressed.len()) as u64 {
            return Err(broken(TOO_LONG));
        }
        if len > TRUSTED_BYTES_MAX && lzf::decompressed_len(compressed) != Ok(len as usize) {
            return Err(broken(NOT_AS_SAID));
        }
        // What the last text left is written over.
        self.text.resize(len as usize, 0);
        let done = lzf::decompress(compressed, &mut self.text);
        done.map_err(|_| broken(NOT_AS_SAID))
    }
}
