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
//! among the five runs from the one before it on, up to four registers a run. Edits of ascending registers
//! ([`raise_all`]) are made in one walk over the runs, and each does to them what it would do alone.
//!
//! The place of a single edit is found without reading run after run: of eight bytes at a time arithmetic
//! tells which is the first of an XZERO, and how many registers those before it have together. Of a thousand
//! elements this takes a third of the time.
//!
//! A string comes from clients, so it may hold anything: runs that pass the last register, stop before it, or
//! end in the middle are [`Corrupt`].
use super::dense;
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
    Ok(raise_found(sketch, &found, index, value, bytes_max))
}

/// [`raise`] in the run that has been found; `sketch` may take `bytes_max`.
fn raise_found(sketch: &mut Vec<u8>, found: &RunOf, index: usize, value: u8, bytes_max: usize) -> Raised {
    if found.run.value >= value {
        return Raised::Unchanged;
    }
    let edit = split(found, index, value);
    let bytes = edit.len.saturating_sub(found.run.bytes);
    if bytes > 0 && sketch.len() + bytes > bytes_max {
        return Raised::NoRoom;
    }
    edit.replace(sketch, found);
    join(sketch, found.before);
    Raised::Changed
}

fn find(sketch: &[u8], start: usize, index: usize) -> Result<RunOf, Corrupt> {
    let (mut at, mut before, mut first) = skip(sketch, start, index);
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

/// Goes on from `start`, some runs at a time, as long as all of them end before register `index`. Returns
/// where the next one begins, where the one before it begins (or it itself, if it is the first), and its
/// first register.
fn skip(sketch: &[u8], start: usize, index: usize) -> (usize, usize, usize) {
    let (mut at, mut before, mut first) = (start, start, 0);
    while let Some(bytes) = sketch.get(at..).and_then(|runs| runs.first_chunk()) {
        let several = Several::read(bytes);
        let end = first + several.registers;
        if end > index {
            break;
        }
        (before, at, first) = (at + several.last, at + several.bytes, end);
    }
    (at, before, first)
}

/// Runs that follow each other: up to eight of one byte, or fewer and an XZERO.
struct Several {
    registers: usize,
    /// Where the last of them begins.
    last: usize,
    bytes: usize,
}

impl Several {
    /// The runs that these bytes begin with; the ninth byte is only looked at as the second of an XZERO.
    #[inline(always)]
    fn read(bytes: &[u8; 9]) -> Several {
        const EACH: u64 = 0x0101_0101_0101_0101;
        const TOPS: u64 = 0x80 * EACH;
        let [word @ .., _] = *bytes;
        let word = u64::from_le_bytes(word);
        // Bytes that are 01nnnnnn. Behind the first of them a byte may be the second of its run.
        let xzeros = word << 1 & !word & TOPS;
        // The lower 2 bits of a VAL say how many registers it has, of a ZERO the lower 6.
        let vals = (word & TOPS) >> 7;
        let registers = (word & ((0x3F * EACH) ^ (vals * 0x3C))) + EACH;
        if xzeros == 0 {
            return Several { registers: sum(registers), last: 7, bytes: 8 };
        }
        let short = xzeros.trailing_zeros() as usize / 8;
        let of_short = sum(registers & ((1 << (8 * short)) - 1));
        let of_long = usize::from(bytes[short] & 0x3F) << 8 | usize::from(bytes[short + 1]);
        Several { registers: of_short + of_long + 1, last: short, bytes: short + 2 }
    }
}

/// The sum of the eight bytes of a word.
fn sum(word: u64) -> usize {
    const PAIRS: u64 = 0x00FF_00FF_00FF_00FF;
    let pairs = (word & PAIRS) + (word >> 8 & PAIRS);
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as usize
}

/// [`raise`] of many registers, in ascending order. Where an edit has no room the others are not made.
pub(super) fn raise_all(
    sketch: &mut Vec<u8>,
    start: usize,
    values: impl Iterator<Item = (usize, u8)>,
    bytes_max: usize,
) -> Result<Raised, Corrupt> {
    let rest = sketch.split_off(start);
    let mut walk = Walk { seen: sketch, rest: &rest, passed: Vec::new(), at: start, first: 0, bytes_max };
    let mut outcome = Ok(Raised::Unchanged);
    for (index, value) in values {
        match walk.raise(index, value) {
            Ok(Raised::Unchanged) => {}
            Ok(Raised::Changed) => outcome = Ok(Raised::Changed),
            last => {
                outcome = last;
                break;
            }
        }
    }
    walk.seen.extend_from_slice(walk.rest);
    outcome
}

/// A walk over the runs that edits them on its way. What is ahead lies apart, so that an edit moves a few
/// bytes and not all that follow.
struct Walk<'a> {
    /// The runs up to here and a few more.
    seen: &'a mut Vec<u8>,
    /// All others.
    rest: &'a [u8],
    /// Where each run before `at` begins, and its first register: an edit may join the run before it with
    /// what follows, and then the walk goes one run back.
    passed: Vec<(usize, usize)>,
    at: usize,
    first: usize,
    bytes_max: usize,
}

impl Walk<'_> {
    /// What an edit sees at most from the run on that it falls into: that run, and five others, which it may
    /// join. Each takes two bytes at most.
    const AHEAD_BYTES: usize = 12;
    const FETCHED_BYTES: usize = 48;

    /// Raises a register behind those that were raised before.
    fn raise(&mut self, index: usize, value: u8) -> Result<Raised, Corrupt> {
        if value > VALUE_MAX {
            return Ok(Raised::NoRoom);
        }
        let found = self.find(index)?;
        let bytes_max = self.bytes_max.saturating_sub(self.rest.len());
        let raised = raise_found(self.seen, &found, index, value, bytes_max);
        if raised == Raised::Changed
            && let Some(before) = self.passed.pop()
        {
            (self.at, self.first) = before;
        }
        Ok(raised)
    }

    fn find(&mut self, index: usize) -> Result<RunOf, Corrupt> {
        loop {
            self.fetch();
            let Walk { at, first, .. } = *self;
            let run = Run::read(&self.seen[at..])?;
            let end = first + run.registers;
            if end > REGISTERS {
                return Err(Corrupt);
            }
            if index < end {
                let before = self.passed.last().map_or(at, |before| before.0);
                return Ok(RunOf { at, before, first, run });
            }
            self.passed.push((at, first));
            (self.at, self.first) = (at + run.bytes, end);
        }
    }

    /// Fetches runs from ahead where there are not enough.
    fn fetch(&mut self) {
        if self.seen.len() < self.at + Self::AHEAD_BYTES && !self.rest.is_empty() {
            let (near, rest) = self.rest.split_at(Self::FETCHED_BYTES.min(self.rest.len()));
            self.seen.extend_from_slice(near);
            self.rest = rest;
        }
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

    /// Puts the runs in the place of the one that was found.
    fn replace(&self, sketch: &mut Vec<u8>, found: &RunOf) {
        let (len, end) = (sketch.len(), found.at + found.run.bytes);
        let new_end = found.at + self.len;
        // Only a run of two bytes can become shorter, by one.
        sketch.resize(len.max(len + new_end - end), 0);
        sketch.copy_within(end..len, new_end);
        sketch.truncate(len + new_end - end);
        sketch[found.at..new_end].copy_from_slice(&self.bytes[..self.len]);
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
#[inline(always)]
fn see_all(text: &[u8], mut see: impl FnMut(usize, Run)) -> Result<(), Corrupt> {
    let (mut at, mut first) = (0, 0);
    while at < text.len() {
        let run = Run::read(&text[at..])?;
        if first + run.registers > REGISTERS {
            return Err(Corrupt);
        }
        see(first, run);
        at += run.bytes;
        first += run.registers;
    }
    if first == REGISTERS { Ok(()) } else { Err(Corrupt) }
}

/// The registers of several sketches of runs, in a byte each.
pub(super) struct Registers(Vec<u8>);

impl Default for Registers {
    fn default() -> Registers {
        Registers(vec![0; REGISTERS])
    }
}

impl Registers {
    /// Raises them to those of a sketch. If its runs are not valid, those read so far stay raised.
    pub(super) fn raise(&mut self, text: &[u8]) -> Result<(), Corrupt> {
        see_all(text, |first, run| {
            if run.value > 0 {
                let registers = &mut self.0[first..first + run.registers];
                registers.iter_mut().for_each(|register| *register = run.value.max(*register));
            }
        })
    }

    /// Those that are not zero, in ascending order. Zeros are passed over eight at a time.
    pub(super) fn held(&self) -> impl Iterator<Item = (usize, u8)> + '_ {
        let words = self.0.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).enumerate();
        words.filter(|(_, word)| *word != 0).flat_map(|(number, mut word)| {
            std::iter::from_fn(move || {
                let byte = (word != 0).then_some(word.trailing_zeros() & !7)?;
                let value = (word >> byte) as u8;
                word &= !(0xFF << byte);
                Some((8 * number + byte as usize / 8, value))
            })
        })
    }

    pub(super) fn merge_into(&self, registers: &mut Greatest) {
        let mut array = dense::Filled::default();
        self.held().for_each(|(index, value)| array.put(index, value));
        registers.raise_all(array.as_bytes());
    }
}

/// The registers of several sketches of runs, and how many hold each value, kept true as they are raised.
pub(super) struct Union {
    registers: Registers,
    histogram: Histogram,
}

impl Default for Union {
    fn default() -> Union {
        let mut histogram = Histogram::new();
        histogram.count(0, REGISTERS as u32);
        Union { registers: Registers::default(), histogram }
    }
}

impl Union {
    /// Adds a sketch of runs. If they are not valid, the registers read so far stay raised: there will be no
    /// estimate then.
    pub(super) fn add(&mut self, text: &[u8]) -> Result<(), Corrupt> {
        let Union { registers: Registers(registers), histogram } = self;
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
        self.registers.merge_into(registers);
    }
}

/// Raises `registers` to what the runs say. If they are not valid, some may be raised all the same.
pub(super) fn merge_into(text: &[u8], registers: &mut Greatest) -> Result<(), Corrupt> {
    /// To go through an array takes as long as to raise the registers of about so many bytes one by one.
    const FEW_BYTES: usize = 400;
    if text.len() < FEW_BYTES {
        return see_held(text, |index, value| registers.raise(index, value));
    }
    // To put values into an array takes no branches, and arrays are merged by vectors.
    let mut array = dense::Filled::default();
    see_held(text, |index, value| array.put(index, value))?;
    registers.raise_all(array.as_bytes());
    Ok(())
}

/// Shows every register that is not zero to `see`, each once.
#[inline(always)]
fn see_held(text: &[u8], mut see: impl FnMut(usize, u8)) -> Result<(), Corrupt> {
    see_all(text, |first, run| {
        if run.value > 0 {
            (first..first + run.registers).for_each(|index| see(index, run.value));
        }
    })
}

pub(super) fn count(text: &[u8], histogram: &mut Histogram) -> Result<(), Corrupt> {
    see_all(text, |_, run| histogram.count(run.value, run.registers as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

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

    /// Runs that hold all registers, of which few are joined where they could be: whatever a client may send.
    fn any_runs(random: &mut Random) -> Vec<u8> {
        let (mut runs, mut left) = (Vec::new(), REGISTERS);
        let (vals, values) = (1 + random.below(8), 1 + random.below(4));
        while left > 0 {
            let mut edit = Edit::default();
            let (value, most) = match random.below(10) {
                kind if kind < vals => (1 + random.below(values) as u8, VAL_REGISTERS_MAX),
                8 => (0, REGISTERS / 8),
                _ => (0, ZERO_REGISTERS_MAX),
            };
            let registers = (1 + random.below(most as u64) as usize).min(left);
            edit.push(value, registers);
            runs.extend_from_slice(&edit.bytes[..edit.len]);
            left -= registers;
        }
        runs
    }

    #[test]
    fn registers_are_found_where_reading_run_by_run_finds_them() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let runs = any_runs(&mut random);
            for _ in 0..20 {
                let index = random.below(REGISTERS as u64) as usize;
                let (mut at, mut before, mut first) = (0, 0, 0);
                let mut run = Run::read(&runs).unwrap();
                while first + run.registers <= index {
                    (before, at, first) = (at, at + run.bytes, first + run.registers);
                    run = Run::read(&runs[at..]).unwrap();
                }
                let found = find(&runs, 0, index).unwrap();
                assert_eq!(
                    (found.at, found.before, found.first, found.run),
                    (at, before, first, run),
                    "seed {seed}: {index}"
                );
            }
        }
    }

    #[test]
    fn edits_in_one_walk_do_what_each_would_do_alone() {
        let mut no_room = 0;
        for seed in 0..150 {
            let mut random = Random::new(seed);
            let runs = if random.below(4) == 0 { EMPTY.to_vec() } else { any_runs(&mut random) };
            let mut sketch = [&b"head"[..], &runs].concat();
            let bytes_max = sketch.len() + [3, 400, 100_000][random.below(3) as usize];
            let apart_max = [3, 40, 400][random.below(3) as usize];
            let apart = 1 + random.below(apart_max);
            let mut index = random.below(apart) as usize;
            let mut values = Vec::new();
            while index < REGISTERS {
                let value_max = if random.below(30_000) == 0 { 40 } else { 5 };
                values.push((index, 1 + random.below(value_max) as u8));
                index += 1 + random.below(apart) as usize;
            }
            let mut alone = sketch.clone();
            let each = values.iter().map(|(index, value)| raise(&mut alone, 4, *index, *value, bytes_max));
            let mut expected = Raised::Unchanged;
            for raised in each {
                match raised.unwrap() {
                    Raised::Unchanged => {}
                    raised => expected = raised,
                }
                if expected == Raised::NoRoom {
                    break;
                }
            }
            let raised = raise_all(&mut sketch, 4, values.into_iter(), bytes_max).unwrap();
            assert_eq!(raised, expected, "seed {seed}");
            assert!(sketch == alone, "seed {seed}: {sketch:x?}, not {alone:x?}");
            no_room += u32::from(raised == Raised::NoRoom);
        }
        assert!((30..120).contains(&no_room), "{no_room} times no room");
    }

    #[test]
    fn registers_that_are_held_are_shown_in_order() {
        let mut registers = Registers::default();
        for text in [&raised(&EMPTY, 1_000, 2)[..], &raised(&EMPTY, 1_001, 7), &raised(&EMPTY, 16_383, 1)] {
            registers.raise(text).unwrap();
        }
        registers.raise(&raised(&EMPTY, 1_001, 3)).unwrap();
        assert_eq!(registers.held().collect::<Vec<_>>(), [(1_000, 2), (1_001, 7), (16_383, 1)]);
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
