//! The registers as runs, while most of them are zero: a few bytes for each element added so far.
//!
//! ```text
//! 00nnnnnn             ZERO   n + 1 registers (1 to 64) are zero
//! 01nnnnnn nnnnnnnn    XZERO  n + 1 registers (1 to 16,384) are zero
//! 1vvvvvnn             VAL    n + 1 registers (1 to 4) hold v + 1 (1 to 32)
//! ```
//!
//! The runs cover all 16,384 registers in their order. Example: an empty sketch is `7f ff`, one run of 16,384
//! zeros; with 2 in register 1,000 it is `43 e7 84 7c 16`: zeros up to there (XZERO 1,000), VAL 2 once, zeros
//! for the other 15,383 (XZERO).
//!
//! Other runs could say the same registers. Which ones a sketch has follows from the order of its edits, and
//! must be what Redis makes of them: an edit splits the run that it falls into, and then joins equal values
//! among the five runs from the one before it on, up to four registers a run. A string comes from clients, so
//! it may hold anything: runs that pass the last register, stop before it, or end in the middle are
//! [`Corrupt`].
use super::estimate::{Histogram, REGISTERS};
use super::sketch::Corrupt;
use store::sixes::Greatest;

/// The runs of a sketch that nothing was added to.
pub(super) const EMPTY: [u8; 2] = [0x7F, 0xFF];

/// Larger values need the array.
const VALUE_MAX: u8 = 32;
const ZERO_REGISTERS_MAX: usize = 64;
const VAL_REGISTERS_MAX: usize = 4;
/// How many runs an edit looks at to join them.
const JOINED_RUNS_MAX: usize = 5;
/// Two long runs of zeros and a value between them.
const EDIT_BYTES_MAX: usize = 5;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) registers: usize,
    /// 0: zeros.
    pub(super) value: u8,
    /// What it takes.
    pub(super) bytes: usize,
}

impl Run {
    /// The run that `runs` begins with.
    pub(super) fn read(runs: &[u8]) -> Result<Run, Corrupt> {
        match *runs {
            [first @ 0x80..=0xFF, ..] => {
                Ok(Run { registers: usize::from(first & 3) + 1, value: (first >> 2 & 31) + 1, bytes: 1 })
            }
            [first @ 0x40..=0x7F, second, ..] => {
                let registers = usize::from(first & 0x3F) << 8 | usize::from(second);
                Ok(Run { registers: registers + 1, value: 0, bytes: 2 })
            }
            [first @ 0..=0x3F, ..] => Ok(Run { registers: usize::from(first) + 1, value: 0, bytes: 1 }),
            _ => Err(Corrupt),
        }
    }
}

/// What became of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    /// The register was as large already.
    Unchanged,
    Changed,
    /// Only an array can hold it.
    NoRoom,
}

/// The run that a register is in.
struct RunOf {
    /// Where it begins in the text.
    at: usize,
    /// Where the run before it begins, or where it begins itself.
    before: usize,
    /// Its first register.
    first: usize,
    run: Run,
}

/// Makes register `index` at least `value`. The runs of `sketch` begin at `start`; all of it may take
/// `bytes_max`.
pub(super) fn raise(
    sketch: &mut Vec<u8>,
    start: usize,
    index: usize,
    value: u8,
    bytes_max: usize,
) -> Result<Raised, Corrupt> {
    if value > VALUE_MAX {
        return Ok(Raised::NoRoom);
    }
    let found = find(sketch, start, index)?;
    if found.run.value >= value {
        return Ok(Raised::Unchanged);
    }
    let edit = split(&found, index, value);
    let bytes = edit.len.saturating_sub(found.run.bytes);
    if bytes > 0 && sketch.len() + bytes > bytes_max {
        return Ok(Raised::NoRoom);
    }
    sketch.splice(found.at..found.at + found.run.bytes, edit.as_bytes().iter().copied());
    join(sketch, found.before);
    Ok(Raised::Changed)
}

fn find(sketch: &[u8], start: usize, index: usize) -> Result<RunOf, Corrupt> {
    let (mut at, mut before, mut first) = (start, start, 0);
    loop {
        let run = Run::read(sketch.get(at..).unwrap_or_default())?;
        let end = first + run.registers;
        if end > REGISTERS {
            return Err(Corrupt);
        }
        if index < end {
            return Ok(RunOf { at, before, first, run });
        }
        (before, at, first) = (at, at + run.bytes, end);
    }
}

/// Runs that replace one.
#[derive(Default)]
struct Edit {
    bytes: [u8; EDIT_BYTES_MAX],
    len: usize,
}

impl Edit {
    /// Adds a run, if it has any registers.
    fn push(&mut self, value: u8, registers: usize) {
        match (value, registers) {
            (_, 0) => {}
            (0, 1..=ZERO_REGISTERS_MAX) => self.put(registers as u8 - 1),
            (0, _) => {
                self.put(0x40 | ((registers - 1) >> 8) as u8);
                self.put((registers - 1) as u8);
            }
            _ => self.put(val(value, registers)),
        }
    }

    fn put(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn val(value: u8, registers: usize) -> u8 {
    debug_assert!((1..=VALUE_MAX).contains(&value) && (1..=VAL_REGISTERS_MAX).contains(&registers));
    0x80 | (value - 1) << 2 | (registers as u8 - 1)
}

/// The run split for one changed register: the registers before it, the register, the registers behind it.
fn split(found: &RunOf, index: usize, value: u8) -> Edit {
    let RunOf { first, run, .. } = *found;
    let mut edit = Edit::default();
    edit.push(run.value, index - first);
    edit.push(value, 1);
    edit.push(run.value, first + run.registers - 1 - index);
    edit
}

/// Joins neighbours of the same value, from the run at `at` on.
fn join(sketch: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOINED_RUNS_MAX {
        let Some(Ok(run)) = sketch.get(at..).map(Run::read) else { break };
        // The joined run stays the current one: it may have an equal neighbour on its right again.
        match sketch.get(at + 1..).map(Run::read) {
            Some(Ok(next)) if can_join(run, next) => {
                sketch[at] = val(run.value, run.registers + next.registers);
                sketch.remove(at + 1);
            }
            _ => at += run.bytes,
        }
    }
}

/// Whether two neighbouring runs can be one: both hold the same value, which is not 0, and together not too
/// many registers. Runs of a value take one byte each.
fn can_join(run: Run, next: Run) -> bool {
    run.value > 0 && run.value == next.value && run.registers + next.registers <= VAL_REGISTERS_MAX
}

/// The runs in order, up to the first that is not valid.
pub(super) fn runs(mut text: &[u8]) -> impl Iterator<Item = Result<Run, Corrupt>> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let run = Run::read(text);
        text = run.map_or(&[], |run| &text[run.bytes..]);
        Some(run)
    })
}

/// Shows every run with the number of its first register to `see`. Fails if the runs are not exactly all
/// registers.
fn see_all(text: &[u8], mut see: impl FnMut(usize, Run)) -> Result<(), Corrupt> {
    let mut first = 0;
    for run in runs(text) {
        let run = run?;
        if first + run.registers > REGISTERS {
            return Err(Corrupt);
        }
        see(first, run);
        first += run.registers;
    }
    if first == REGISTERS { Ok(()) } else { Err(Corrupt) }
}

/// The registers of several sketches of runs, and how many hold each value, kept true as they are raised.
pub(super) struct Union {
    registers: Vec<u8>,
    histogram: Histogram,
}

impl Default for Union {
    fn default() -> Union {
        let mut histogram = Histogram::new();
        histogram.count(0, REGISTERS as u32);
        Union { registers: vec![0; REGISTERS], histogram }
    }
}

impl Union {
    /// Adds a sketch of runs. If they are not valid, the registers read so far stay raised: there will be no
    /// estimate then.
    pub(super) fn add(&mut self, text: &[u8]) -> Result<(), Corrupt> {
        let Union { registers, histogram } = self;
        see_all(text, |first, run| {
            if run.value > 0 {
                for register in &mut registers[first..first + run.registers] {
                    if *register < run.value {
                        histogram.move_one(*register, run.value);
                        *register = run.value;
                    }
                }
            }
        })
    }

    pub(super) fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    pub(super) fn merge_into(&self, registers: &mut Greatest) {
        let held = self.registers.iter().enumerate().filter(|(_, value)| **value > 0);
        held.for_each(|(index, value)| registers.raise(index, *value));
    }
}

/// Raises `registers` to what the runs say.
pub(super) fn merge_into(text: &[u8], registers: &mut Greatest) -> Result<(), Corrupt> {
    see_all(text, |first, run| {
        if run.value > 0 {
            (first..first + run.registers).for_each(|index| registers.raise(index, run.value));
        }
    })
}

pub(super) fn count(text: &[u8], histogram: &mut Histogram) -> Result<(), Corrupt> {
    see_all(text, |_, run| histogram.count(run.value, run.registers as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(runs: &[u8], index: usize, value: u8) -> Vec<u8> {
        let mut sketch = runs.to_vec();
        assert_eq!(raise(&mut sketch, 0, index, value, 100), Ok(Raised::Changed));
        sketch
    }

    #[test]
    fn the_example_in_the_opener_is_true() {
        assert_eq!(raised(&EMPTY, 1_000, 2), [0x43, 0xE7, 0x84, 0x7C, 0x16]);
    }

    #[test]
    fn the_ends_of_a_run_leave_no_empty_neighbour() {
        assert_eq!(raised(&EMPTY, 0, 1), [0x80, 0x7F, 0xFE]);
        assert_eq!(raised(&EMPTY, REGISTERS - 1, 1), [0x7F, 0xFE, 0x80]);
        assert_eq!(raised(&[0x00, 0x7F, 0xFE], 0, 32), [0xFC, 0x7F, 0xFE]);
    }

    #[test]
    fn equal_values_side_by_side_become_one_run_of_four_at_most() {
        let mut sketch = EMPTY.to_vec();
        for index in 0..5 {
            sketch = raised(&sketch, index, 3);
        }
        assert_eq!(sketch, [0x8B, 0x88, 0x7F, 0xFA]);
        // A larger value in the middle parts them, and what is behind it joins its neighbour.
        assert_eq!(raised(&sketch, 1, 4), [0x88, 0x8C, 0x8A, 0x7F, 0xFA]);
    }

    #[test]
    fn what_does_not_fit_leaves_the_runs_as_they_were() {
        let mut sketch = EMPTY.to_vec();
        assert_eq!(raise(&mut sketch, 0, 5, 33, 100), Ok(Raised::NoRoom));
        assert_eq!(raise(&mut sketch, 0, 5, 1, 3), Ok(Raised::NoRoom));
        assert_eq!(sketch, EMPTY);
        // An edit that takes no more bytes is made, however many there are.
        let mut sketch = vec![0x80, 0x7F, 0xFE];
        assert_eq!(raise(&mut sketch, 0, 0, 2, 0), Ok(Raised::Changed));
        assert_eq!(raise(&mut sketch, 0, 0, 2, 0), Ok(Raised::Unchanged));
    }

    #[test]
    fn runs_that_are_not_all_registers_are_corrupt() {
        let mut registers = Greatest::zeros(REGISTERS);
        for text in
            [&b""[..], &[0x7F], &[0x7F, 0xFE], &[0x80, 0x7F, 0xFF], &[0x7F, 0xFF, 0x00], &[0x7F, 0xFE, 0x81]]
        {
            assert_eq!(merge_into(text, &mut registers), Err(Corrupt), "{text:?}");
            assert_eq!(count(text, &mut Histogram::new()), Err(Corrupt), "{text:?}");
        }
        assert_eq!(raise(&mut vec![0x7F, 0xFE], 0, REGISTERS - 1, 1, 100), Err(Corrupt));
        assert_eq!(raise(&mut vec![0x3F, 0x7F, 0xFF], 0, REGISTERS - 1, 1, 100), Err(Corrupt));
        assert_eq!(raise(&mut vec![], 0, 0, 1, 100), Err(Corrupt));
    }
}
