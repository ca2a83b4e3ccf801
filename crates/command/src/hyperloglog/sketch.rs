//! The string that a sketch is, as Redis lays it out.
//!
//! ```text
//! byte 0     4         5       8            16
//!      HYLL  encoding  unused  cardinality  registers
//! ```
//!
//! The encoding is 0 for an array of registers ([`dense`]) and 1 for runs ([`sparse`]). The cardinality is
//! the estimate that was made last, little endian; its topmost bit says that registers have changed since.
//! Example: a sketch to which `a` was added is `48 59 4c 4c  01  00 00 00  00 00 00 00 00 00 00 80` and its
//! runs.
//!
//! Whether a string is a sketch is decided by its head, and for an array by its length, as in Redis. What the
//! runs say can still be wrong, and shows where they are read.
use super::estimate::{Histogram, INDEX_BITS, REGISTERS, VALUE_BITS};
use super::sparse::Raised;
use super::{dense, sparse};
use base::murmur::murmur_hash_64a;
use store::sixes::Greatest;

const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const CARDINALITY_AT: usize = 8;
const HEADER_BYTES: usize = 16;
/// In the last byte of the cardinality.
const STALE: u8 = 0x80;
const HASH_SEED: u64 = 0xADC8_3B19;

/// The runs of a sketch are not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Corrupt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Dense,
    Sparse,
}

/// A string that was looked at and is a sketch.
#[derive(Clone, Copy)]
pub(super) struct Sketch<'t> {
    text: &'t [u8],
    pub(super) encoding: Encoding,
}

/// The register that an element chooses, and what it proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Proposal {
    index: usize,
    value: u8,
}

impl Proposal {
    fn of(element: &[u8]) -> Proposal {
        let hash = murmur_hash_64a(element, HASH_SEED);
        let index = hash as usize % REGISTERS;
        // The one behind the last bit ends a run of zeros: bits that are all zero propose the largest value.
        let rest = hash >> INDEX_BITS | 1 << VALUE_BITS;
        Proposal { index, value: rest.trailing_zeros() as u8 + 1 }
    }
}

impl<'t> Sketch<'t> {
    /// `text` as a sketch, if its head is that of one.
    pub(super) fn parse(text: &'t [u8]) -> Option<Sketch<'t>> {
        let header = text.first_chunk::<HEADER_BYTES>()?;
        if !header.starts_with(MAGIC) {
            return None;
        }
        match header[ENCODING_AT] {
            0 if text.len() == HEADER_BYTES + dense::BYTES => {
                Some(Sketch { text, encoding: Encoding::Dense })
            }
            1 => Some(Sketch { text, encoding: Encoding::Sparse }),
            _ => None,
        }
    }

    fn registers(self) -> &'t [u8] {
        &self.text[HEADER_BYTES..]
    }

    /// The estimate that was made last, if it still holds.
    pub(super) fn cached(self) -> Option<u64> {
        let bytes = self.text[CARDINALITY_AT..].first_chunk()?;
        (bytes[7] & STALE == 0).then(|| u64::from_le_bytes(*bytes))
    }

    /// The estimate, made anew.
    pub(super) fn estimate(self) -> Result<u64, Corrupt> {
        if self.encoding == Encoding::Dense {
            return Ok(Histogram::of(self.registers()).cardinality());
        }
        let mut histogram = Histogram::new();
        sparse::count(self.registers(), &mut histogram)?;
        Ok(histogram.cardinality())
    }

    /// Raises `registers` to those of the sketch.
    pub(super) fn merge_into(self, registers: &mut Greatest) -> Result<(), Corrupt> {
        match self.encoding {
            Encoding::Dense => {
                registers.raise_all(self.registers());
                Ok(())
            }
            Encoding::Sparse => sparse::merge_into(self.registers(), registers),
        }
    }

    /// The runs, valid or not; none in an array. If the last run is cut off, its missing byte counts as 0,
    /// which is what stands behind every string in Redis.
    pub(super) fn runs(self) -> impl Iterator<Item = sparse::Run> {
        let runs = if self.encoding == Encoding::Sparse { self.registers() } else { &[] };
        sparse::runs(runs)
            .map_while(|run| run.or_else(|_| sparse::Run::read(&[*runs.last().unwrap_or(&0), 0])).ok())
    }
}

/// The union of several sketches, of which only the estimate is wanted. While all of them are sparse the
/// histogram is kept up to date as registers are raised, because few registers are set. The first dense
/// sketch makes the union an array.
#[derive(Default)]
pub(super) struct Union {
    runs: Option<sparse::Union>,
    array: Option<Greatest>,
}

impl Union {
    pub(super) fn add(&mut self, sketch: Sketch<'_>) -> Result<(), Corrupt> {
        if self.array.is_none() && sketch.encoding == Encoding::Sparse {
            return self.runs.get_or_insert_default().add(sketch.registers());
        }
        let runs = &mut self.runs;
        let array = self.array.get_or_insert_with(|| {
            let mut array = no_registers();
            if let Some(runs) = runs.take() {
                runs.merge_into(&mut array);
            }
            array
        });
        sketch.merge_into(array)
    }

    pub(super) fn cardinality(&self) -> u64 {
        match (&self.array, &self.runs) {
            (Some(array), _) => estimate(array),
            (None, Some(runs)) => runs.histogram().cardinality(),
            (None, None) => 0,
        }
    }
}

/// All registers at zero.
pub(super) fn no_registers() -> Greatest {
    Greatest::zeros(REGISTERS)
}

/// The estimate of merged registers.
fn estimate(registers: &Greatest) -> u64 {
    let mut array = [0; dense::BYTES];
    registers.write(&mut array);
    Histogram::of(&array).cardinality()
}

/// Makes `text`, which is empty, a sketch that nothing was added to.
pub(super) fn begin(text: &mut Vec<u8>) {
    debug_assert!(text.is_empty(), "a sketch is begun where nothing is");
    text.extend_from_slice(MAGIC);
    text.push(1);
    text.resize(HEADER_BYTES, 0);
    text.extend_from_slice(&sparse::EMPTY);
}

/// Adds an element, and returns whether that changed a register. Runs become an array if they would make the
/// text longer than `sparse_bytes_max`.
pub(super) fn add(text: &mut Vec<u8>, element: &[u8], sparse_bytes_max: usize) -> Result<bool, Corrupt> {
    raise(text, Proposal::of(element), sparse_bytes_max)
}

fn raise(text: &mut Vec<u8>, proposal: Proposal, sparse_bytes_max: usize) -> Result<bool, Corrupt> {
    let Proposal { index, value } = proposal;
    if text[ENCODING_AT] == 1 {
        match sparse::raise(text, HEADER_BYTES, index, value, sparse_bytes_max)? {
            Raised::Unchanged => return Ok(false),
            Raised::Changed => return Ok(true),
            Raised::NoRoom => make_dense(text)?,
        }
    }
    Ok(dense::raise(&mut text[HEADER_BYTES..], index, value))
}

/// Several sketches as one that will be kept: runs, unless one of them is an array.
#[derive(Default)]
pub(super) enum Merged {
    /// There are none.
    #[default]
    Nothing,
    Runs(sparse::Registers),
    Array(Greatest),
}

impl Merged {
    pub(super) fn add(&mut self, sketch: Sketch<'_>) -> Result<(), Corrupt> {
        if let Merged::Array(array) = self {
            return sketch.merge_into(array);
        }
        if sketch.encoding == Encoding::Dense {
            let mut array = no_registers();
            if let Merged::Runs(registers) = self {
                registers.merge_into(&mut array);
            }
            sketch.merge_into(&mut array)?;
            *self = Merged::Array(array);
            return Ok(());
        }
        if let Merged::Nothing = self {
            *self = Merged::Runs(sparse::Registers::default());
        }
        match self {
            Merged::Runs(registers) => registers.raise(sketch.registers()),
            _ => Ok(()),
        }
    }
}

/// Raises the registers of a sketch to those of `merged`, of which it is one. The runs are those that Redis
/// makes by raising register after register, and become an array if they must.
pub(super) fn merge(text: &mut Vec<u8>, merged: &Merged, sparse_bytes_max: usize) -> Result<(), Corrupt> {
    match merged {
        Merged::Nothing => {}
        Merged::Array(array) => write_array(text, array),
        Merged::Runs(registers) => {
            debug_assert_eq!(text[ENCODING_AT], 1, "an array is merged into an array");
            let raised = sparse::raise_all(text, HEADER_BYTES, registers.held(), sparse_bytes_max)?;
            if raised == Raised::NoRoom {
                let mut array = no_registers();
                registers.merge_into(&mut array);
                write_array(text, &array);
            }
        }
    }
    Ok(())
}

/// Makes an array of the runs, if they are runs; the rest of the header stays.
pub(super) fn make_dense(text: &mut Vec<u8>) -> Result<(), Corrupt> {
    if text[ENCODING_AT] == 0 {
        return Ok(());
    }
    let mut registers = no_registers();
    sparse::merge_into(&text[HEADER_BYTES..], &mut registers)?;
    write_array(text, &registers);
    Ok(())
}

/// Makes a sketch an array of these registers, whatever it was; the rest of the header stays.
fn write_array(text: &mut Vec<u8>, registers: &Greatest) {
    text[ENCODING_AT] = 0;
    text.resize(HEADER_BYTES + dense::BYTES, 0);
    registers.write(&mut text[HEADER_BYTES..]);
}

/// Remembers the estimate.
pub(super) fn remember(text: &mut [u8], cardinality: u64) {
    text[CARDINALITY_AT..HEADER_BYTES].copy_from_slice(&cardinality.to_le_bytes());
}

/// Says that registers have changed since the last estimate.
pub(super) fn forget(text: &mut [u8]) {
    text[HEADER_BYTES - 1] |= STALE;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Vec<u8> {
        let mut text = Vec::new();
        begin(&mut text);
        text
    }

    #[test]
    fn a_new_sketch_is_empty_and_knows_it() {
        let text = empty();
        let sketch = Sketch::parse(&text).unwrap();
        assert_eq!((sketch.encoding, sketch.cached(), sketch.estimate()), (Encoding::Sparse, Some(0), Ok(0)));
        assert_eq!(text, b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    }

    #[test]
    fn an_estimate_is_remembered_until_registers_change() {
        let mut text = empty();
        forget(&mut text);
        assert_eq!(Sketch::parse(&text).unwrap().cached(), None);
        remember(&mut text, 1 << 40);
        assert_eq!(Sketch::parse(&text).unwrap().cached(), Some(1 << 40));
    }

    #[test]
    fn only_strings_with_the_head_and_length_of_a_sketch_are_one() {
        let dense = |len: usize| [&b"HYLL\0"[..], &vec![0; len - 5]].concat();
        for text in
            [&b""[..], b"HYLL", b"hyll\x01\0\0\0\0\0\0\0\0\0\0\0", b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0\x7f\xff"]
        {
            assert!(Sketch::parse(text).is_none(), "{text:?}");
        }
        assert!(Sketch::parse(&dense(12_303)).is_none() && Sketch::parse(&dense(12_305)).is_none());
        assert!(Sketch::parse(&dense(12_304)).is_some());
        // Runs show their faults only when they are read.
        assert_eq!(Sketch::parse(b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0").unwrap().estimate(), Err(Corrupt));
    }

    #[test]
    fn proposals_are_made_of_every_bit_of_the_hash() {
        for n in 0..10_000_u32 {
            let Proposal { index, value } = Proposal::of(&n.to_le_bytes());
            assert!(index < REGISTERS && (1..=51).contains(&value));
        }
    }
}
