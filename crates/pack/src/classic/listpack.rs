//! Listpacks: entries one after another, each with its own length behind it, so that they can be walked from
//! either end.
//!
//! ```text
//! | bytes: u32 | entries: u16 | entry | entry | ... | FF |
//! entry = | encoding | data | how long these two are: 7 bits a byte, the highest first |
//!
//! 0vvvvvvv            0 to 127              10llllll           a string below 64 bytes
//! 110vvvvv v          13 bits               1110llll l         one below 4,096
//! F1 F2 F3 F4         16, 24, 32, 64 bits   F0 llll (u32)      one of any length
//! ```
//!
//! The header has two bytes for the number of entries: from 65,535 on it does not say how many there are.
use super::{Broken, Bytes};
use base::Item;
use base::short::{self, WORD_BYTES};

const HEADER_BYTES: usize = 6;
const END: u8 = 0xFF;
/// Stands in the header where it does not say how many entries there are.
const UNKNOWN: u16 = u16::MAX;

/// How many bytes a listpack without entries has.
pub const EMPTY_BYTES: u64 = 7;

/// How many bytes a value takes as an entry.
#[inline]
pub fn entry_bytes(item: Item<'_>) -> u64 {
    match item {
        Item::Int(0..=127) => 2,
        Item::Int(-4096..=4095) => 3,
        Item::Int(-0x8000..=0x7FFF) => 4,
        Item::Int(-0x80_0000..=0x7F_FFFF) => 5,
        Item::Int(-0x8000_0000..=0x7FFF_FFFF) => 6,
        Item::Int(_) => 10,
        Item::Bytes(bytes) => string_bytes(bytes.len() as u64),
    }
}

fn string_bytes(len: u64) -> u64 {
    let head = match len {
        0..64 => 1,
        64..4096 => 2,
        _ => 5,
    };
    let body = head + len;
    let back = match body {
        0..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    body + back
}

/// A listpack that is read from its beginning.
pub struct Listpack<'b> {
    bytes: Bytes<'b>,
    left: Option<u16>,
    is_over: bool,
}

impl<'b> Listpack<'b> {
    /// Checks the header. Each entry is checked when it is read.
    pub fn new(bytes: &'b [u8]) -> Result<Listpack<'b>, Broken> {
        let mut bytes_left = Bytes::new(bytes);
        if bytes_left.u32()? as usize != bytes.len() {
            return Err(Broken { what: "a listpack's length is not that of its bytes", at: 0 });
        }
        let count = bytes_left.u16()?;
        let left = (count != UNKNOWN).then_some(count);
        Ok(Listpack { bytes: bytes_left, left, is_over: false })
    }

    /// How many entries are left to be read, by the header; None where it does not say.
    pub fn len(&self) -> Option<usize> {
        self.left.map(usize::from)
    }

    /// Whether no entry is left to be read, by the header.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The next entry; None behind the last one, where the listpack has to end.
    #[inline]
    pub fn next_entry(&mut self) -> Result<Option<Item<'b>>, Broken> {
        if self.is_over {
            return Ok(None);
        }
        let start = self.bytes.at;
        let head = self.bytes.byte()?;
        if head == END {
            return self.end(start).map(|()| None);
        }
        let item = self.item(head)?;
        let len = self.bytes.at - start;
        self.check_back(len)?;
        self.left = match self.left {
            Some(0) => return Err(Broken { what: "a listpack has too many entries", at: start }),
            left => left.map(|left| left - 1),
        };
        Ok(Some(item))
    }

    #[cold]
    fn end(&mut self, start: usize) -> Result<(), Broken> {
        self.is_over = true;
        match (self.bytes.byte(), self.left) {
            (Ok(_), _) => Err(Broken { what: "a listpack goes on behind its end", at: start }),
            (Err(_), None | Some(0)) => Ok(()),
            (Err(_), Some(_)) => Err(Broken { what: "a listpack has too few entries", at: start }),
        }
    }

    /// The next entry; an error where there is none.
    pub fn entry(&mut self) -> Result<Item<'b>, Broken> {
        self.next_entry()?.ok_or_else(|| self.bytes.broken("a listpack ends too early"))
    }

    /// The next entry as an integer; an error where there is none, or it is none.
    pub fn int(&mut self) -> Result<i64, Broken> {
        let at = self.bytes.at;
        let number = match self.entry()? {
            Item::Int(number) => Some(number),
            Item::Bytes(text) => base::text::parse_i64(text),
        };
        number.ok_or(Broken { what: "a listpack has a text where a number belongs", at })
    }

    #[inline]
    fn item(&mut self, head: u8) -> Result<Item<'b>, Broken> {
        let bytes = &mut self.bytes;
        Ok(match head {
            0..0x80 => Item::Int(i64::from(head)),
            0x80..0xC0 => Item::Bytes(bytes.take(usize::from(head & 0x3F))?),
            0xC0..0xE0 => {
                let value = i64::from(head & 0x1F) << 8 | i64::from(bytes.byte()?);
                Item::Int(value << 51 >> 51)
            }
            0xE0..0xF0 => {
                let len = usize::from(head & 0x0F) << 8 | usize::from(bytes.byte()?);
                Item::Bytes(bytes.take(len)?)
            }
            0xF0 => {
                let len = bytes.u32()? as usize;
                Item::Bytes(bytes.take(len)?)
            }
            0xF1 => Item::Int(bytes.int(2)?),
            0xF2 => Item::Int(bytes.int(3)?),
            0xF3 => Item::Int(bytes.int(4)?),
            0xF4 => Item::Int(bytes.int(8)?),
            _ => return Err(bytes.broken("a listpack's entry is of no encoding")),
        })
    }

    /// The length behind an entry must be the entry's.
    #[inline]
    fn check_back(&mut self, len: usize) -> Result<(), Broken> {
        if len < 128 {
            return match usize::from(self.bytes.byte()?) == len {
                true => Ok(()),
                false => Err(self.bytes.broken(WRONG_BACK)),
            };
        }
        self.check_long_back(len)
    }

    #[cold]
    fn check_long_back(&mut self, len: usize) -> Result<(), Broken> {
        let (expected, count) = back(len);
        match self.bytes.take(count)? == &expected[..count] {
            true => Ok(()),
            false => Err(self.bytes.broken(WRONG_BACK)),
        }
    }
}

const WRONG_BACK: &str = "a listpack's entry has another length behind it";

/// The length that stands behind an entry of `len` bytes, and how many bytes that length takes.
fn back(len: usize) -> ([u8; 5], usize) {
    let count = match len {
        0..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    let mut bytes = [0; 5];
    for (at, byte) in bytes[..count].iter_mut().enumerate() {
        let group = (len >> (7 * (count - 1 - at))) as u8 & 0x7F;
        *byte = if at == 0 { group } else { group | 0x80 };
    }
    (bytes, count)
}

/// A listpack that is written from its beginning.
pub struct ListpackWriter {
    bytes: Vec<u8>,
    count: usize,
}

impl Default for ListpackWriter {
    fn default() -> ListpackWriter {
        ListpackWriter { bytes: vec![0; HEADER_BYTES], count: 0 }
    }
}

impl ListpackWriter {
    /// How many entries it has.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How long it is with its end.
    pub fn bytes(&self) -> u64 {
        let bytes = self.bytes.len() as u64 + 1;
        debug_assert!(bytes >= EMPTY_BYTES, "a listpack is no shorter than an empty one");
        bytes
    }

    /// Appends a value: as an integer, where its text is that of one.
    pub fn push(&mut self, item: Item<'_>) {
        match item {
            Item::Int(value) => self.push_int(value),
            Item::Bytes(text) => match Item::classify(text) {
                Item::Int(value) => self.push_int(value),
                Item::Bytes(text) => self.push_text(text),
            },
        }
    }

    /// Appends an integer.
    pub fn push_int(&mut self, value: i64) {
        let behind = |head: u8| u128::from(head) | u128::from(value as u64) << 8;
        let (bytes, len) = match value {
            0..=127 => (value as u128, 1),
            -4096..=4095 => (u128::from(0xC0 | (value >> 8) as u8 & 0x1F) | u128::from(value as u8) << 8, 2),
            -0x8000..=0x7FFF => (behind(0xF1), 3),
            -0x80_0000..=0x7F_FFFF => (behind(0xF2), 4),
            -0x8000_0000..=0x7FFF_FFFF => (behind(0xF3), 5),
            _ => (behind(0xF4), 9),
        };
        self.push_short(bytes, len);
    }

    /// Appends an entry of the lowest `len` bytes of these, and its length. All are written at once, and
    /// those too many cut off: that is a few instructions.
    fn push_short(&mut self, bytes: u128, len: usize) {
        let entry = bytes & ((1 << (8 * len)) - 1) | (len as u128) << (8 * len);
        let end = self.bytes.len() + len + 1;
        self.bytes.extend_from_slice(&entry.to_le_bytes());
        self.bytes.truncate(end);
        self.count += 1;
    }

    fn push_text(&mut self, text: &[u8]) {
        let (start, len) = (self.bytes.len(), text.len());
        let head_of_short = 0x80 | len as u8;
        match len {
            1..=WORD_BYTES => {
                let entry = u128::from(head_of_short) | u128::from(short::word(text)) << 8;
                return self.push_short(entry, len + 1);
            }
            0..64 => self.bytes.push(head_of_short),
            64..4096 => self.bytes.extend([0xE0 | (len >> 8) as u8, len as u8]),
            _ => {
                self.bytes.push(0xF0);
                self.bytes.extend_from_slice(&(len as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(text);
        self.close(start);
    }

    fn close(&mut self, start: usize) {
        let (bytes, count) = back(self.bytes.len() - start);
        self.bytes.extend_from_slice(&bytes[..count]);
        self.count += 1;
    }

    /// Writes the end and the header, and lends the whole listpack; [`ListpackWriter::clear`] begins another.
    pub fn finish(&mut self) -> &[u8] {
        self.bytes.push(END);
        let bytes = u32::try_from(self.bytes.len()).expect("a listpack is shorter than 4 GB");
        let count = u16::try_from(self.count).unwrap_or(UNKNOWN);
        self.bytes[..4].copy_from_slice(&bytes.to_le_bytes());
        self.bytes[4..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
        &self.bytes
    }

    /// Appends all entries of another, which is empty then.
    pub fn append(&mut self, other: &mut ListpackWriter) {
        self.bytes.extend_from_slice(&other.bytes[HEADER_BYTES..]);
        self.count += other.count;
        other.clear();
    }

    /// Empties it, and keeps its room.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn written(values: &[Vec<u8>]) -> Vec<u8> {
        let mut writer = ListpackWriter::default();
        values.iter().for_each(|value| writer.push(Item::Bytes(value)));
        assert_eq!(writer.count(), values.len());
        writer.finish().to_vec()
    }

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Broken> {
        let (mut listpack, mut values) = (Listpack::new(bytes)?, Vec::new());
        while let Some(item) = listpack.next_entry()? {
            let mut text = Vec::new();
            item.append_to(&mut text);
            values.push(text);
        }
        Ok(values)
    }

    /// A text or the text of an integer, often at an edge between two encodings.
    fn value(random: &mut Random) -> Vec<u8> {
        let edges = [-4097, -4096, -1, 0, 127, 128, 4095, 4096, 32_767, 32_768, 1 << 23, 1 << 31, i64::MAX];
        let len = match random.below(5) {
            0 => return (random.next_u64() as i64).to_string().into_bytes(),
            1 => return edges[random.below(13) as usize].to_string().into_bytes(),
            2 => random.below(70),
            3 => 4090 + random.below(10),
            _ => 16_370 + random.below(20),
        };
        let mut text = vec![0; len as usize];
        random.fill(&mut text);
        text
    }

    fn values(random: &mut Random) -> Vec<Vec<u8>> {
        (0..random.below(12)).map(|_| value(random)).collect()
    }

    #[test]
    fn what_is_written_is_read_and_as_long_as_it_is_said_to_be() {
        let mut random = Random::new(1);
        for _ in 0..500 {
            let values = values(&mut random);
            let bytes = written(&values);
            let sizes: u64 = values.iter().map(|value| entry_bytes(Item::classify(value))).sum();
            assert_eq!(bytes.len() as u64, EMPTY_BYTES + sizes);
            assert_eq!(read(&bytes), Ok(values));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = Random::new(2);
        for _ in 0..5_000 {
            let mut bytes = written(&values(&mut random));
            let len = bytes.len() as u64;
            assert!(read(&bytes[..random.below(len) as usize]).is_err());
            for _ in 0..1 + random.below(3) {
                bytes[random.below(len) as usize] = random.next_u64() as u8;
            }
            let _ = read(&bytes);
        }
    }

    #[test]
    fn a_listpack_of_redis_is_read() {
        // RPUSH 1 2 foo 300 70000, as redis-server 7.0.15 dumps it.
        let bytes = b"\x1b\x00\x00\x00\x05\x00\x01\x01\x02\x01\x83foo\x04\xc1\x2c\x02\xf2\x70\x11\x01\x04";
        let mut bytes = bytes.to_vec();
        bytes.push(END);
        bytes[0] = bytes.len() as u8;
        assert_eq!(read(&bytes).unwrap(), [&b"1"[..], b"2", b"foo", b"300", b"70000"]);
        assert_eq!(written(&read(&bytes).unwrap()), bytes);
    }

    #[test]
    fn a_listpack_of_more_entries_than_its_header_can_say_is_read() {
        let values = vec![b"1".to_vec(); 70_000];
        let bytes = written(&values);
        assert_eq!((&bytes[4..6], read(&bytes).unwrap().len()), (&[0xFF, 0xFF][..], 70_000));
    }

    #[test]
    fn entries_are_as_long_as_a_listpack_makes_them() {
        let ints = [
            (0, 2),
            (127, 2),
            (128, 3),
            (-1, 3),
            (-4096, 3),
            (4095, 3),
            (4096, 4),
            (-4097, 4),
            (32_768, 5),
            (1 << 23, 6),
            (1 << 31, 10),
            (i64::MIN, 10),
        ];
        for (n, bytes) in ints {
            assert_eq!(entry_bytes(Item::Int(n)), bytes, "{n}");
        }
        for (len, bytes) in
            [(0, 2), (63, 65), (64, 67), (100, 103), (125, 128), (126, 130), (4095, 4099), (4096, 4103)]
        {
            assert_eq!(string_bytes(len), bytes, "{len}");
        }
    }
}
