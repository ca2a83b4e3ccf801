//! Ziplists, which Redis wrote until 6.2: entries one after another, each with the length of the one before
//! in front.
//!
//! ```text
//! | bytes: u32 | where the last entry begins: u32 | entries: u16 | entry | ... | FF |
//! entry = | length of the entry before: 1 byte below 254, else FE and u32 | encoding | data |
//!
//! 00llllll         a string below 64 bytes         C0 D0 E0    16, 32, 64 bits
//! 01llllll l       one below 16,384                F0 FE       24, 8 bits
//! 80 llll          one of any length               F1 to FD    0 to 12
//!                  (lengths have their highest byte first)
//! ```
use super::{Broken, Bytes};
use base::Item;

const END: u8 = 0xFF;
/// Stands in the header where it does not say how many entries there are.
const UNKNOWN: u16 = u16::MAX;

/// A ziplist that is read from its beginning.
pub struct Ziplist<'b> {
    bytes: Bytes<'b>,
    left: Option<u16>,
    /// Where the header says that the last entry begins.
    last_at: usize,
    /// Where the entry that was read last begins, and how long it is.
    before: (usize, usize),
    is_over: bool,
}

impl<'b> Ziplist<'b> {
    /// Checks the header. Each entry is checked when it is read.
    pub fn new(bytes: &'b [u8]) -> Result<Ziplist<'b>, Broken> {
        let mut bytes_left = Bytes::new(bytes);
        if bytes_left.u32()? as usize != bytes.len() {
            return Err(Broken { what: "a ziplist's length is not that of its bytes", at: 0 });
        }
        let last_at = bytes_left.u32()? as usize;
        let count = bytes_left.u16()?;
        let left = (count != UNKNOWN).then_some(count);
        let before = (bytes_left.at, 0);
        Ok(Ziplist { bytes: bytes_left, left, last_at, before, is_over: false })
    }

    /// The next entry; None behind the last one, where the ziplist has to end.
    pub fn next_entry(&mut self) -> Result<Option<Item<'b>>, Broken> {
        if self.is_over {
            return Ok(None);
        }
        let start = self.bytes.at;
        let head = self.bytes.byte()?;
        if head == END {
            self.is_over = true;
            return self.end(start).map(|()| None);
        }
        let before_len = match head {
            254 => self.bytes.u32()? as usize,
            len => usize::from(len),
        };
        if before_len != self.before.1 {
            return Err(Broken { what: "a ziplist's entry has another length in front of it", at: start });
        }
        let item = self.item()?;
        self.before = (start, self.bytes.at - start);
        self.left = match self.left {
            Some(0) => return Err(Broken { what: "a ziplist has too many entries", at: start }),
            left => left.map(|left| left - 1),
        };
        Ok(Some(item))
    }

    /// The next entry; an error where there is none.
    pub fn entry(&mut self) -> Result<Item<'b>, Broken> {
        self.next_entry()?.ok_or_else(|| self.bytes.broken("a ziplist ends too early"))
    }

    fn end(&mut self, at: usize) -> Result<(), Broken> {
        let what = if self.bytes.byte().is_ok() {
            "a ziplist goes on behind its end"
        } else if self.left.is_some_and(|left| left > 0) {
            "a ziplist has too few entries"
        } else if self.last_at != self.before.0 {
            "a ziplist's last entry is elsewhere"
        } else {
            return Ok(());
        };
        Err(Broken { what, at })
    }

    fn item(&mut self) -> Result<Item<'b>, Broken> {
        let bytes = &mut self.bytes;
        let head = bytes.byte()?;
        Ok(match head {
            0..0x40 => Item::Bytes(bytes.take(usize::from(head))?),
            0x40..0x80 => {
                let len = usize::from(head & 0x3F) << 8 | usize::from(bytes.byte()?);
                Item::Bytes(bytes.take(len)?)
            }
            0x80 => {
                let len = u32::from_be_bytes(bytes.array()?) as usize;
                Item::Bytes(bytes.take(len)?)
            }
            0xC0 => Item::Int(bytes.int(2)?),
            0xD0 => Item::Int(bytes.int(4)?),
            0xE0 => Item::Int(bytes.int(8)?),
            0xF0 => Item::Int(bytes.int(3)?),
            0xFE => Item::Int(bytes.int(1)?),
            0xF1..0xFE => Item::Int(i64::from(head) - 0xF1),
            _ => return Err(bytes.broken("a ziplist's entry is of no encoding")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, Broken> {
        let (mut ziplist, mut values) = (Ziplist::new(bytes)?, Vec::new());
        while let Some(item) = ziplist.next_entry()? {
            let mut text = Vec::new();
            item.append_to(&mut text);
            values.push(text);
        }
        Ok(values)
    }

    /// A ziplist with an entry of every encoding: nothing here writes them, so a test does.
    fn written() -> (Vec<u8>, Vec<Vec<u8>>) {
        let long = vec![b'x'; 300];
        let longest = vec![b'y'; 20_000];
        let bodies: Vec<(Vec<u8>, Vec<u8>)> = vec![
            (b"\x03foo".to_vec(), b"foo".to_vec()),
            ([&[0x41, 44][..], &long].concat(), long),
            ([&[0x80, 0, 0, 0x4E, 0x20][..], &longest].concat(), longest),
            (vec![0xC0, 0x2C, 0x01], b"300".to_vec()),
            (vec![0xD0, 0xFF, 0xFF, 0xFF, 0xFF], b"-1".to_vec()),
            ([&[0xE0][..], &i64::MIN.to_le_bytes()].concat(), i64::MIN.to_string().into_bytes()),
            (vec![0xF0, 0x70, 0x11, 0x01], b"70000".to_vec()),
            (vec![0xFE, 0x80], b"-128".to_vec()),
            (vec![0xF1], b"0".to_vec()),
            (vec![0xFD], b"12".to_vec()),
        ];
        let (mut bytes, mut before, mut last_at) = (vec![0; 10], 0, 10);
        for (body, _) in &bodies {
            last_at = bytes.len();
            match before {
                0..254 => bytes.push(before as u8),
                _ => bytes.extend([&[254][..], &(before as u32).to_le_bytes()].concat()),
            }
            bytes.extend(body);
            before = bytes.len() - last_at;
        }
        bytes.push(END);
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        bytes[4..8].copy_from_slice(&(last_at as u32).to_le_bytes());
        bytes[8..10].copy_from_slice(&(bodies.len() as u16).to_le_bytes());
        (bytes, bodies.into_iter().map(|(_, value)| value).collect())
    }

    #[test]
    fn an_entry_of_every_encoding_is_read() {
        let (bytes, values) = written();
        assert_eq!(read(&bytes), Ok(values));
    }

    #[test]
    fn every_cut_is_refused_and_every_flip_is_read_or_refused() {
        let (bytes, _) = written();
        (0..bytes.len()).for_each(|len| assert!(read(&bytes[..len]).is_err(), "{len}"));
        for at in (0..bytes.len()).filter(|at| *at < 20 || *at > 300 && *at % 97 == 0 || *at > 20_300) {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                let _ = read(&bytes);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = Random::new(1);
        for _ in 0..50_000 {
            let mut bytes = vec![0; 11 + random.below(60) as usize];
            random.fill(&mut bytes);
            let len = bytes.len() as u32;
            bytes[..4].copy_from_slice(&len.to_le_bytes());
            bytes[8..11].copy_from_slice(&[0xFF, 0xFF, 0]);
            let _ = read(&bytes);
        }
    }
}
