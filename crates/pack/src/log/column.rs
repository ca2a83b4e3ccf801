//! A column: one field's values of all entries of a sealed stream leaf, together. Values of one field
//! resemble each other, and what they share is written once. The shortest of three forms is taken:
//!
//! ```text
//! line  00 | prefix | width | base | stride | offsets     `prefix`, then base + stride * row + offset
//! text  01 | prefix | code [letters] | least | width | lengths | codes
//! few   02 | count | width | the values as cells | which of them
//! ```
//!
//! Prefixes are cells, base and stride varints with the sign in the lowest bit; offsets, lengths (less the
//! least) and numbers of values have `width` bits each. Text is written in codes of as many bits as its
//! letters need: `code` is these bits, with 10 where the letters are the [`COMMON`] ones, which need not be
//! named (else they follow a count), and with 20 where the last code is an escape: then two codes with the
//! halves of a letter that is rare. With 8 bits the codes are the bytes. Lengths are counted in codes. Runs
//! of bits begin at a byte, low bits first, and are read eight bytes at a time, so a leaf ends with eight
//! more.
//!
//! `user:7 user:9 user:8`: `00 | 05 75 73 65 72 3a | 02 | 0e | 00 | 18` (offsets 0, 2, 1).
//!
//! Cost: nothing an entry for a constant or a sequence, a bit or a few for one of few values, 5 bits a letter
//! for words. Reading a number is a multiplication and a load at any row; text begins where the lengths
//! before it say.
use crate::code::probe::last_word;
use crate::code::varint::{read_varint, write_varint};
use crate::code::words::{bits_of, u64_at};
use crate::log::cell;
use base::Item;
use base::text::{I64Text, parse_i64};

/// Bytes behind the last column that a read may touch.
pub(crate) const PADDING: usize = 8;
const LINE: u8 = 0;
const TEXT: u8 = 1;
const FEW: u8 = 2;
/// The most values of a dictionary, which is read from its start to look one up.
const FEW_MAX: usize = 32;
/// The greatest width: eight bytes hold so many bits wherever in a byte they begin.
const WIDTH_MAX: u32 = 57;
const LETTER_BITS_MAX: u32 = 6;
/// A letter without a code is written as its two halves.
const HALF_BITS: u32 = 4;
const COMMON_FLAG: u8 = 0x10;
const ESCAPE_FLAG: u8 = 0x20;
/// Letters of most texts, for columns that need not name theirs.
const COMMON: &[u8; 31] = b"etaoinshrdlucmfwypvbgkjqxz _-./";

/// `width` bits at bit `at`. One load: the leaf ends with [`PADDING`].
#[inline]
fn bits(bytes: &[u8], at: usize, width: u32) -> u64 {
    debug_assert!(width <= WIDTH_MAX, "{width} bits");
    u64_at(bytes, at / 8) >> (at % 8) & ((1 << width) - 1)
}

/// Bits on their way into a column.
#[derive(Default)]
struct BitWriter {
    out: Vec<u8>,
    word: Word,
}

/// Bits that are not written yet. Written eight bytes at a time.
#[derive(Clone, Copy, Default)]
struct Word {
    bits: u64,
    used: u32,
}

impl Word {
    #[inline(always)]
    fn put(&mut self, n: u64, width: u32, out: &mut Vec<u8>) {
        debug_assert!(width <= WIDTH_MAX && (width == 0 && n == 0 || n >> width == 0));
        debug_assert!(self.used < u64::BITS);
        self.bits |= n << self.used;
        self.used += width;
        if self.used >= u64::BITS {
            out.extend_from_slice(&self.bits.to_le_bytes());
            self.used -= u64::BITS;
            // The bits of `n` that did not fit. There was room for one at least.
            self.bits = n >> (width - self.used);
        }
    }
}

impl BitWriter {
    #[inline]
    fn put(&mut self, n: u64, width: u32) {
        self.word.put(n, width, &mut self.out);
    }

    /// The bits as bytes; the rest of the last byte is zero.
    fn finish(mut self) -> Vec<u8> {
        let rest = (self.word.used as usize).div_ceil(8);
        self.out.extend_from_slice(&self.word.bits.to_le_bytes()[..rest]);
        self.out
    }
}

/// A signed number as an unsigned one that is small where its magnitude is: the sign in the lowest bit.
fn zigzag(n: i64) -> usize {
    ((n << 1) ^ (n >> 63)) as u64 as usize
}

/// The signed number again.
fn unzigzag(n: usize) -> i64 {
    (n as u64 >> 1) as i64 ^ -((n & 1) as i64)
}

fn push_varint(out: &mut Vec<u8>, n: usize) {
    let mut bytes = [0; 10];
    let len = write_varint(&mut bytes, n);
    out.extend_from_slice(&bytes[..len]);
}

fn push_cell(out: &mut Vec<u8>, text: &[u8]) {
    let at = out.len();
    out.resize(at + cell::len_max(text.len()), 0);
    let len = cell::write_string(&mut out[at..], text);
    out.truncate(at + len);
}

/// The column of these values, one for each row, in its shortest form. Tries the forms that may win, each in
/// one pass.
pub(crate) fn encode(values: &[Item<'_>]) -> Vec<u8> {
    assert!(!values.is_empty(), "a column has rows");
    if let Some(column) = integers(values).and_then(|numbers| encode_integers(&numbers)) {
        return column;
    }
    if let Some(texts) = lent_texts(values) {
        return encode_texts(&texts);
    }
    let mut digits: Vec<I64Text> = values.iter().map(|_| I64Text::new()).collect();
    let texts: Vec<&[u8]> =
        values.iter().zip(&mut digits).map(|(value, digits)| value.text(digits)).collect();
    encode_texts(&texts)
}

/// The values, if all are integers.
fn integers(values: &[Item<'_>]) -> Option<Vec<i64>> {
    let number = |value: &Item<'_>| match value {
        Item::Int(n) => Some(*n),
        Item::Bytes(_) => None,
    };
    values.iter().map(number).collect()
}

/// The values, if none is an integer.
fn lent_texts<'t>(values: &[Item<'t>]) -> Option<Vec<&'t [u8]>> {
    let text = |value: &Item<'t>| match value {
        Item::Bytes(text) => Some(*text),
        Item::Int(_) => None,
    };
    values.iter().map(text).collect()
}

/// The column of these integers, on a line or as few; None where they are too far from every line.
fn encode_integers(numbers: &[i64]) -> Option<Vec<u8>> {
    let line = encode_numbers(numbers)?;
    let Some(few) = Few::of(numbers, |n| n as u64) else { return Some(line) };
    let few_len = few.len(base::text::i64_len);
    if line.len() <= few_len {
        return Some(line);
    }
    let mut digits: Vec<I64Text> = few.values.iter().map(|_| I64Text::new()).collect();
    let values = few.values.iter().zip(&mut digits).map(|(n, digits)| digits.format(*n)).collect();
    Some(Few { values, numbers: few.numbers }.encode())
}

fn encode_texts(texts: &[&[u8]]) -> Vec<u8> {
    let prefix = common_prefix(texts);
    let line = encode_line_of_texts(texts, prefix);
    let Some(few) = Few::of(texts, last_word) else {
        return line.unwrap_or_else(|| encode_text(texts, prefix));
    };
    let few_len = few.len(<[u8]>::len);
    // As text a letter takes a bit at least, but where all letters are the same.
    let letters = texts.iter().map(|text| text.len() - prefix.len()).sum::<usize>();
    let text = (few_len * 8 > letters).then(|| encode_text(texts, prefix));
    let other = match (line, text) {
        (Some(line), Some(text)) => Some(if line.len() <= text.len() { line } else { text }),
        (line, text) => line.or(text),
    };
    other.filter(|other| other.len() < few_len).unwrap_or_else(|| few.encode())
}

fn common_prefix<'t>(texts: &[&'t [u8]]) -> &'t [u8] {
    let mut prefix = texts[0];
    for text in texts {
        let shared = prefix.iter().zip(*text).take_while(|(a, b)| a == b).count();
        prefix = &prefix[..shared];
    }
    prefix
}

/// A column of plain numbers, of which there are some; None where they are too far from every line.
pub(crate) fn encode_numbers(numbers: &[i64]) -> Option<Vec<u8>> {
    encode_line(numbers, b"")
}

/// A column of texts that are `prefix` and a number each; None where they are not. Digits with which all
/// numbers begin belong to the numbers, not to the prefix.
fn encode_line_of_texts(texts: &[&[u8]], prefix: &[u8]) -> Option<Vec<u8>> {
    let digits = prefix.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let mut prefix = &prefix[..prefix.len() - digits];
    if prefix.last() == Some(&b'-') && parse_i64(&texts[0][prefix.len()..]).is_some() && prefix.len() == 1 {
        prefix = b"";
    }
    let numbers: Option<Vec<i64>> = texts.iter().map(|text| parse_i64(&text[prefix.len()..])).collect();
    encode_line(&numbers?, prefix)
}

fn encode_line(numbers: &[i64], prefix: &[u8]) -> Option<Vec<u8>> {
    let last = numbers.len() - 1;
    let slope = numbers[last].checked_sub(numbers[0])?.checked_div(last as i64).unwrap_or(0);
    let flat = fit(numbers, 0);
    let (stride, (base, width)) = match (flat, fit(numbers, slope)) {
        (Some(flat), Some(sloped)) if sloped.1 < flat.1 => (slope, sloped),
        (Some(flat), _) => (0, flat),
        (None, sloped) => (slope, sloped?),
    };
    let mut out = vec![LINE];
    push_cell(&mut out, prefix);
    out.push(width as u8);
    push_varint(&mut out, zigzag(base));
    push_varint(&mut out, zigzag(stride));
    let mut offsets = BitWriter::default();
    for (row, n) in numbers.iter().enumerate() {
        offsets.put(n.wrapping_sub(line(base, stride, row)) as u64, width);
    }
    out.extend_from_slice(&offsets.finish());
    Some(out)
}

#[inline]
fn line(base: i64, stride: i64, row: usize) -> i64 {
    base.wrapping_add(stride.wrapping_mul(row as i64))
}

/// The base of the line of this stride that is below all numbers, and the bits of the greatest distance above
/// it. None where that is too far.
fn fit(numbers: &[i64], stride: i64) -> Option<(i64, u32)> {
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for (row, n) in numbers.iter().enumerate() {
        let above = n.checked_sub(stride.checked_mul(row as i64)?)?;
        (low, high) = (low.min(above), high.max(above));
    }
    let width = bits_of(high.checked_sub(low)? as u64);
    (width <= WIDTH_MAX).then_some((low, width))
}

fn encode_text(texts: &[&[u8]], prefix: &[u8]) -> Vec<u8> {
    let rests = || texts.iter().map(|text| &text[prefix.len()..]);
    let code = Code::choose(rests());
    // No code takes more bits than the letters have.
    let mut codes =
        BitWriter { out: Vec::with_capacity(rests().map(<[u8]>::len).sum()), ..BitWriter::default() };
    let lens: Vec<usize> = rests().map(|text| code.write(text, &mut codes)).collect();
    let (least, most) = (lens.iter().min().copied().unwrap_or(0), lens.iter().max().copied().unwrap_or(0));
    let width = bits_of((most - least) as u64);
    let mut out = vec![TEXT];
    push_cell(&mut out, prefix);
    code.push(&mut out);
    push_varint(&mut out, least);
    out.push(width as u8);
    let mut lengths = BitWriter::default();
    lens.iter().for_each(|len| lengths.put((len - least) as u64, width));
    out.extend_from_slice(&lengths.finish());
    out.extend_from_slice(&codes.finish());
    out
}

/// How letters are written.
struct Code {
    width: u32,
    letters: Vec<u8>,
    /// The letters are those of every column ([`COMMON`]).
    is_common: bool,
    /// Whether the last code is an escape: it stands before the two halves of a letter that has no code.
    escapes: bool,
    /// What is written for each letter: the bits, and in the highest byte their number.
    written: [u32; 256],
}

/// So many letters are written at once: [`BitWriter::put`] takes their bits, escaped or not.
const LETTERS_AT_ONCE: usize = 3;
const _: () = assert!(LETTERS_AT_ONCE as u32 * 3 * LETTER_BITS_MAX <= WIDTH_MAX);
/// The number of bits in [`Code::written`].
const NUMBER_SHIFT: u32 = 24;
const _: () = assert!(3 * LETTER_BITS_MAX <= NUMBER_SHIFT);

impl Code {
    /// The code that writes these letters in the fewest bits, its own bytes included.
    fn choose<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Code {
        let mut counts = [0_usize; 256];
        texts.for_each(|text| text.iter().for_each(|letter| counts[usize::from(*letter)] += 1));
        let total: usize = counts.iter().sum();
        let mut often: Vec<u8> = (0..=255).filter(|letter| counts[usize::from(*letter)] > 0).collect();
        often.sort_by_key(|letter| std::cmp::Reverse(counts[usize::from(*letter)]));
        let mut best = (8, &[][..], false, false);
        let mut best_bits = total * 8;
        let mut consider = |width: u32, letters, is_common, escapes| {
            // A letter takes one code, or three with an escape.
            let coded: usize = <[u8]>::iter(letters).map(|letter| counts[usize::from(*letter)]).sum();
            let letters_bytes = if is_common { 0 } else { letters.len() };
            let bits = (coded + 3 * (total - coded)) * width as usize + letters_bytes * 8;
            if bits < best_bits {
                (best, best_bits) = ((width, letters, is_common, escapes), bits);
            }
        };
        consider(5, COMMON, true, true);
        for width in 0..=LETTER_BITS_MAX {
            let places = 1 << width;
            if often.len() <= places {
                consider(width, &often, false, false);
                break;
            }
            if width >= HALF_BITS {
                consider(width, &often[..places - 1], false, true);
            }
        }
        let (width, letters, is_common, escapes) = best;
        Code::new(width, letters, is_common, escapes)
    }

    fn new(width: u32, letters: &[u8], is_common: bool, escapes: bool) -> Code {
        let mut written = [0; 256];
        if escapes {
            debug_assert!(width >= HALF_BITS, "a half takes one code");
            let escape = (1 << width) - 1;
            for letter in 0..=255_u8 {
                let (low, high) = (u32::from(letter & 0xF), u32::from(letter >> HALF_BITS));
                written[usize::from(letter)] =
                    escape | low << width | high << (2 * width) | (3 * width) << NUMBER_SHIFT;
            }
        }
        for (code, letter) in letters.iter().enumerate() {
            written[usize::from(*letter)] = code as u32 | width << NUMBER_SHIFT;
        }
        Code { width, letters: letters.to_vec(), is_common, escapes, written }
    }

    /// Writes a text, of whose letters each has a code or is escaped. Returns how many codes that are.
    fn write(&self, text: &[u8], writer: &mut BitWriter) -> usize {
        if self.width == 8 {
            debug_assert_eq!(writer.word.used, 0, "codes begin at a byte");
            writer.out.extend_from_slice(text);
            return text.len();
        }
        // A copy, which stays in registers.
        let (mut word, mut all_bits) = (writer.word, 0);
        let mut put = |(n, width)| {
            word.put(n, width, &mut writer.out);
            all_bits += width as usize;
        };
        let (at_once, rest) = text.as_chunks::<LETTERS_AT_ONCE>();
        at_once.iter().for_each(|letters| put(self.bits(letters)));
        put(self.bits(rest));
        writer.word = word;
        if self.escapes { all_bits / self.width as usize } else { text.len() }
    }

    /// What a few letters are written as, and how many bits that are.
    #[inline(always)]
    fn bits(&self, letters: &[u8]) -> (u64, u32) {
        let (mut n, mut width) = (0, 0);
        for letter in letters {
            let written = self.written[usize::from(*letter)];
            n |= u64::from(written & ((1 << NUMBER_SHIFT) - 1)) << width;
            width += written >> NUMBER_SHIFT;
        }
        (n, width)
    }

    /// Appends what a reader has to know of the code.
    fn push(&self, out: &mut Vec<u8>) {
        debug_assert!(
            self.letters.len() <= 1 << self.width,
            "{} letters in {} bits",
            self.letters.len(),
            self.width
        );
        let common = if self.is_common { COMMON_FLAG } else { 0 };
        let escape = if self.escapes { ESCAPE_FLAG } else { 0 };
        out.push(self.width as u8 | common | escape);
        if self.width < 8 && !self.is_common {
            out.push(self.letters.len() as u8);
            out.extend_from_slice(&self.letters);
        }
    }
}

/// A column of at most [`FEW_MAX`] different values.
struct Few<T> {
    values: Vec<T>,
    /// Which value each row has.
    numbers: Vec<u64>,
}

impl<T: Copy + PartialEq> Few<T> {
    /// None where there are more. What `sign` makes of two values tells most of them apart.
    fn of(rows: &[T], sign: impl Fn(T) -> u64) -> Option<Few<T>> {
        let mut values: Vec<T> = Vec::with_capacity(FEW_MAX);
        let mut signs = [0; FEW_MAX];
        let mut numbers = Vec::with_capacity(rows.len());
        for row in rows {
            let own = sign(*row);
            let is_it = |number: &usize| signs[*number] == own && values[*number] == *row;
            let number = (0..values.len()).find(is_it);
            numbers.push(number.unwrap_or(values.len()) as u64);
            if number.is_none() {
                *signs.get_mut(values.len())? = own;
                values.push(*row);
            }
        }
        debug_assert!(numbers.len() == rows.len() && values.len() <= numbers.len());
        Some(Few { values, numbers })
    }

    fn width(&self) -> u32 {
        bits_of(self.values.len() as u64 - 1)
    }

    /// How long it is as a column, where `len` tells the text of a value.
    fn len(&self, len: impl Fn(T) -> usize) -> usize {
        let values: usize = self.values.iter().map(|value| cell::len_max(len(*value))).sum();
        3 + values + (self.numbers.len() * self.width() as usize).div_ceil(8)
    }
}

impl Few<&[u8]> {
    fn encode(&self) -> Vec<u8> {
        let (len, width) = (self.len(<[u8]>::len), self.width());
        let mut out = Vec::with_capacity(len);
        out.extend_from_slice(&[FEW, self.values.len() as u8, width as u8]);
        self.values.iter().for_each(|value| push_cell(&mut out, value));
        let mut writer = BitWriter::default();
        self.numbers.iter().for_each(|number| writer.put(*number, width));
        out.extend_from_slice(&writer.finish());
        debug_assert_eq!(out.len(), len);
        out
    }
}

/// A column, to read. Its bytes reach to the end of the leaf, whose padding makes every read whole.
#[derive(Clone, Copy)]
pub(crate) enum Column<'b> {
    Line { prefix: &'b [u8], width: u32, base: i64, stride: i64, offsets: &'b [u8] },
    Text(Text<'b>),
    Few { width: u32, values: &'b [u8], numbers: &'b [u8] },
}

#[derive(Clone, Copy)]
pub(crate) struct Text<'b> {
    prefix: &'b [u8],
    letter_bits: u32,
    letters: &'b [u8],
    escapes: bool,
    least: usize,
    width: u32,
    lengths: &'b [u8],
    codes: &'b [u8],
}

/// Room in which a value is put together to be lent; only one of more than 64 bytes is allocated.
pub(crate) struct Scratch {
    short: [u8; 64],
    long: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { short: [0; 64], long: Vec::new() }
    }
}

impl Scratch {
    /// Lends so many bytes, whose content is not defined.
    fn room(&mut self, len: usize) -> &mut [u8] {
        if len <= self.short.len() {
            return &mut self.short[..len];
        }
        self.long.resize(len, 0);
        &mut self.long
    }
}

impl<'b> Column<'b> {
    /// The column at the start of `bytes`, of a leaf of `rows` rows.
    pub(crate) fn open(bytes: &'b [u8], rows: usize) -> Column<'b> {
        match bytes[0] {
            LINE => {
                let (prefix, len) = cell::read_string(&bytes[1..]);
                let width = u32::from(bytes[1 + len]);
                debug_assert!(width <= WIDTH_MAX, "{width} bits");
                let at = 2 + len;
                let (base, base_len) = read_varint(&bytes[at..]);
                let (stride, stride_len) = read_varint(&bytes[at + base_len..]);
                let offsets = &bytes[at + base_len + stride_len..];
                Column::Line { prefix, width, base: unzigzag(base), stride: unzigzag(stride), offsets }
            }
            TEXT => Column::Text(Text::open(&bytes[1..], rows)),
            form => {
                debug_assert!(form == FEW && rows > 0, "form {form} of {rows} rows");
                let (count, width) = (bytes[1], u32::from(bytes[2]));
                let mut at = 3;
                for _ in 0..count {
                    at += cell::read_string(&bytes[at..]).1;
                }
                Column::Few { width, values: &bytes[3..at], numbers: &bytes[at..] }
            }
        }
    }

    /// The number in a column of plain numbers.
    #[inline]
    pub(crate) fn number(&self, row: usize) -> i64 {
        match self {
            Column::Line { width, base, stride, offsets, .. } => {
                let offset = bits(offsets, row * *width as usize, *width);
                line(*base, *stride, row).wrapping_add(offset as i64)
            }
            _ => unreachable!("numbers are on a line"),
        }
    }

    /// How many codes the text of a row has: what separates its start from that of the next row. 0 in columns
    /// that find a row by its number.
    #[inline]
    pub(crate) fn text_len(&self, row: usize) -> usize {
        match self {
            Column::Text(text) => text.len(row),
            _ => 0,
        }
    }

    /// The value of a row, whose text begins at code `start`.
    #[inline]
    pub(crate) fn value<'s>(&self, row: usize, start: usize, scratch: &'s mut Scratch) -> Item<'s>
    where
        'b: 's,
    {
        match self {
            Column::Line { prefix, .. } => {
                let n = self.number(row);
                if prefix.is_empty() {
                    return Item::Int(n);
                }
                let mut digits = I64Text::new();
                let digits = digits.format(n);
                let to = scratch.room(prefix.len() + digits.len());
                to[..prefix.len()].copy_from_slice(prefix);
                to[prefix.len()..].copy_from_slice(digits);
                Item::Bytes(to)
            }
            Column::Text(text) => Item::Bytes(text.value(row, start, scratch)),
            Column::Few { width, values, numbers } => {
                let mut at = 0;
                for _ in 0..bits(numbers, row * *width as usize, *width) {
                    at += cell::read_string(&values[at..]).1;
                }
                Item::Bytes(cell::read_string(&values[at..]).0)
            }
        }
    }
}

impl<'b> Text<'b> {
    fn open(bytes: &'b [u8], rows: usize) -> Text<'b> {
        let (prefix, len) = cell::read_string(bytes);
        let letter_bits = u32::from(bytes[len] & 0xF);
        let escapes = bytes[len] & ESCAPE_FLAG != 0;
        let mut at = len + 1;
        let mut letters: &[u8] = COMMON;
        if letter_bits < 8 && bytes[len] & COMMON_FLAG == 0 {
            letters = &bytes[at + 1..][..usize::from(bytes[at])];
            at += 1 + letters.len();
        }
        let (least, least_len) = read_varint(&bytes[at..]);
        let width = u32::from(bytes[at + least_len]);
        debug_assert!(width <= WIDTH_MAX && (letter_bits <= LETTER_BITS_MAX || letter_bits == 8));
        let lengths = &bytes[at + least_len + 1..];
        let codes = &lengths[(rows * width as usize).div_ceil(8)..];
        Text { prefix, letter_bits, letters, escapes, least, width, lengths, codes }
    }

    #[inline]
    fn len(&self, row: usize) -> usize {
        self.least + bits(self.lengths, row * self.width as usize, self.width) as usize
    }

    #[inline]
    fn value<'s>(&self, row: usize, start: usize, scratch: &'s mut Scratch) -> &'s [u8] {
        let len = self.len(row);
        let to = scratch.room(self.prefix.len() + len);
        let (head, rest) = to.split_at_mut(self.prefix.len());
        head.copy_from_slice(self.prefix);
        let written = if self.letter_bits == 8 {
            rest.copy_from_slice(&self.codes[start..start + len]);
            len
        } else if self.escapes {
            self.decode_escaped(start, rest)
        } else {
            self.decode(start, rest);
            len
        };
        &to[..self.prefix.len() + written]
    }

    /// Fills `to` with letters, one for each code from `start` on.
    #[inline]
    fn decode(&self, start: usize, to: &mut [u8]) {
        self.for_each_code(start, to.len(), &mut |index, code| to[index] = self.letters[code]);
    }

    /// The same where codes may be escapes: fills the front of `to` and returns how many letters that are.
    fn decode_escaped(&self, start: usize, to: &mut [u8]) -> usize {
        let escape = (1 << self.letter_bits) - 1;
        let (mut at, mut halves, mut low) = (0, 0, 0);
        self.for_each_code(start, to.len(), &mut |_, code| match halves {
            2 => (low, halves) = (code as u8, 1),
            1 => {
                (to[at], halves) = (low | (code as u8) << HALF_BITS, 0);
                at += 1;
            }
            _ if code == escape => halves = 2,
            _ => {
                to[at] = self.letters[code];
                at += 1;
            }
        });
        at
    }

    /// Visits codes from `start` on, as many for each load as eight bytes surely hold.
    #[inline(always)]
    fn for_each_code(&self, start: usize, count: usize, visit: &mut impl FnMut(usize, usize)) {
        let width = self.letter_bits as usize;
        let at_once = WIDTH_MAX as usize / width.max(1);
        let (mut at, mut index) = (start * width, 0);
        while index < count {
            let mut word = bits(self.codes, at, WIDTH_MAX);
            let end = count.min(index + at_once);
            at += (end - index) * width;
            for index in index..end {
                visit(index, (word & ((1 << width) - 1)) as usize);
                word >>= width;
            }
            index = end;
        }
    }
}

/// Appends a column with its length in front.
pub(crate) fn push(out: &mut Vec<u8>, column: &[u8]) {
    push_varint(out, column.len());
    out.extend_from_slice(column);
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn check(texts: &[&[u8]]) -> usize {
        let items: Vec<Item<'_>> = texts.iter().map(|text| Item::classify(text)).collect();
        let mut bytes = encode(&items);
        let len = bytes.len();
        bytes.extend_from_slice(&[0; PADDING]);
        let column = Column::open(&bytes, texts.len());
        let mut start = 0;
        for (row, text) in texts.iter().enumerate() {
            let mut out = Vec::new();
            column.value(row, start, &mut Scratch::default()).append_to(&mut out);
            assert_eq!(out, *text, "row {row}");
            start += column.text_len(row);
        }
        len
    }

    #[test]
    fn the_example_in_the_opener_is_true() {
        let column = encode_line_of_texts(&[b"user:7", b"user:9", b"user:8"], b"user:");
        assert_eq!(column.unwrap(), b"\x00\x05user:\x02\x0e\x00\x18");
    }

    #[test]
    fn every_form_gives_back_what_it_was_given() {
        let long = vec![b'x'; 500];
        let sets: [&[&[u8]]; 15] = [
            &[b"a"],
            &[b""],
            &[b"", b"", b"x"],
            &[b"-5", b"-6", b"-70"],
            &[b"5", b"-6", b"7"],
            &[b"x-5", b"x-6", b"x--7"],
            &[b"007", b"008"],
            &[b"10", b"100", b"1000"],
            &[b"9223372036854775807", b"-9223372036854775808", b"0"],
            &[b"21.35", b"20.1", b"-3.77"],
            &[b"one", b"two", b"one", b"two"],
            &[&long, b"short", &long[..100]],
            &[b"user:1", b"user:22", b"user:"],
            &[b"user:1", b"user:1", b"user:1"],
            &[b"Sardine", b"anchovy", b"herring and MACKEREL", b"a\xff\x00b", b""],
        ];
        for texts in sets {
            check(texts);
        }
        let bytes: Vec<[u8; 2]> = (0..=255_u8).map(|byte| [byte, byte.wrapping_mul(7)]).collect();
        check(&bytes.iter().map(|pair| &pair[..]).collect::<Vec<_>>());
    }

    /// Bits one by one, as bytes.
    fn packed(bits: &[bool]) -> Vec<u8> {
        let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        bits.chunks(8).map(byte).collect()
    }

    #[test]
    fn bits_lie_one_behind_the_other_whatever_their_widths() {
        let mut random = Random::new(5);
        for count in 0..300 {
            let (mut writer, mut twin) = (BitWriter::default(), Vec::new());
            for _ in 0..count {
                let width = random.below(u64::from(WIDTH_MAX) + 1) as u32;
                let n = random.next_u64() & ((1 << width) - 1);
                writer.put(n, width);
                twin.extend((0..width).map(|bit| n >> bit & 1 == 1));
            }
            assert_eq!(writer.finish(), packed(&twin));
        }
    }

    #[test]
    fn a_text_is_the_codes_of_its_letters_one_behind_the_other() {
        let mut random = Random::new(6);
        for letters in 1..=255 {
            let mut letter = || {
                let most = random.below(letters);
                random.below(most + 1) as u8
            };
            let text: Vec<u8> = (0..letters * 2).map(|_| letter()).collect();
            let code = Code::choose([&text[..]].into_iter());
            let codes_of = |letter: u8| match code.letters.iter().position(|coded| *coded == letter) {
                Some(place) => vec![place],
                None if code.width == 8 => vec![usize::from(letter)],
                None => vec![(1 << code.width) - 1, usize::from(letter & 0xF), usize::from(letter >> 4)],
            };
            let codes: Vec<usize> = text.iter().flat_map(|letter| codes_of(*letter)).collect();
            let bits: Vec<bool> =
                codes.iter().flat_map(|own| (0..code.width).map(move |bit| own >> bit & 1 == 1)).collect();
            let mut writer = BitWriter::default();
            assert_eq!(code.write(&text, &mut writer), codes.len());
            assert_eq!(writer.finish(), packed(&bits));
            check(&[&text, &text[text.len() / 2..], b""]);
        }
    }

    #[test]
    fn columns_take_the_bits_that_their_values_have() {
        let numbered = |f: &dyn Fn(u64) -> String| -> usize {
            let texts: Vec<String> = (0..100).map(f).collect();
            check(&texts.iter().map(|text| text.as_bytes()).collect::<Vec<_>>())
        };
        assert!(numbered(&|row| format!("{}", row * 3)) <= 5);
        assert!(numbered(&|_| "click".to_string()) <= 9);
        assert!(numbered(&|row| format!("user:{}", row * 7919 % 1000)) <= 10 + 128);
        assert!(
            numbered(&|row| ["click", "view", "buy", "login"][row as usize * 7 % 4].to_string()) <= 25 + 25
        );
    }
}
