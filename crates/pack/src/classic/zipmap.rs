//! Zipmaps, in which Redis kept small hashes until 2.4.
//!
//! ```text
//! | fields: u8 | length, field | length, unused bytes: u8, value, unused bytes | ... | FF |
//! length = 1 byte below 254, else FE and u32
//! ```
use super::{Broken, Bytes};

const END: u8 = 0xFF;

/// A field and its value.
type Pair<'b> = (&'b [u8], &'b [u8]);

/// A zipmap that is read from its beginning.
pub struct Zipmap<'b>(Bytes<'b>);

impl<'b> Zipmap<'b> {
    /// Skips the header: Redis itself does not trust the number of fields in it.
    pub fn new(bytes: &'b [u8]) -> Result<Zipmap<'b>, Broken> {
        let mut bytes = Bytes::new(bytes);
        bytes.byte()?;
        Ok(Zipmap(bytes))
    }

    /// The next field and its value; None behind the last one, where the zipmap has to end.
    pub fn next_pair(&mut self) -> Result<Option<Pair<'b>>, Broken> {
        let at = self.0.at;
        let Some(len) = self.len()? else {
            return match self.0.byte() {
                Ok(_) => Err(Broken { what: "a zipmap goes on behind its end", at }),
                Err(_) => {
                    // The next call finds the end again.
                    self.0.at = at;
                    Ok(None)
                }
            };
        };
        let field = self.0.take(len)?;
        let at = self.0.at;
        let len = self.len()?.ok_or(Broken { what: "a zipmap's field has no value", at })?;
        let unused = usize::from(self.0.byte()?);
        let value = self.0.take(len)?;
        self.0.take(unused)?;
        Ok(Some((field, value)))
    }

    fn len(&mut self) -> Result<Option<usize>, Broken> {
        Ok(match self.0.byte()? {
            END => None,
            254 => Some(self.0.u32()? as usize),
            len => Some(usize::from(len)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<[Vec<u8>; 2]>, Broken> {
        let (mut zipmap, mut pairs) = (Zipmap::new(bytes)?, Vec::new());
        while let Some((field, value)) = zipmap.next_pair()? {
            pairs.push([field.to_vec(), value.to_vec()]);
        }
        assert_eq!(zipmap.next_pair(), Ok(None));
        Ok(pairs)
    }

    #[test]
    fn fields_are_read_and_what_is_unused_is_left_out() {
        let long = vec![b'v'; 300];
        let parts: [&[u8]; 6] = [
            b"\x02\x03foo\x03\x00bar",
            b"\x02hi\x02\x03yo...",
            b"\x00\xFE\x2C\x01\x00\x00\x00",
            &long,
            b"\xFF",
            b"",
        ];
        let bytes = parts.concat();
        let pairs = [[b"foo".to_vec(), b"bar".to_vec()], [b"hi".to_vec(), b"yo".to_vec()], [vec![], long]];
        assert_eq!(read(&bytes).unwrap(), pairs);
        (0..bytes.len()).for_each(|len| assert!(read(&bytes[..len]).is_err(), "{len}"));
        assert!(read(&[&bytes[..], b"x"].concat()).is_err());
    }
}
