//! The form of a compiled chunk, as this interpreter dumps it: Lua 5.1's own. Numbers are in the machine's
//! order.
//!
//! ```text
//! chunk     1B 'Lua' 51 00, five sizes, 00 | function
//! function  source: string | two lines: int | 4 bytes, of which the first is how many variables it catches
//!           | count: int, instructions of 4 bytes | count: int, constants | count: int, functions
//!           | lines: count: int, ints | variables: count: int, (string, int, int)
//!           | upvalues: count: int, strings
//! constant  0 | 1, a byte | 3, 8 bytes | 4, string          (nil, boolean, number, string)
//! string    length, with a zero at the end: 8 bytes | bytes
//! ```
//! An instruction has its code in the lowest six bits, then A of eight bits, C of nine and B of nine; C and B
//! together are Bx.

/// The header, and the sizes that are read here: of an int, of a length, of an instruction and of a number.
const HEADER_BYTES: usize = 12;
const SIZES: [u8; 4] = [4, 8, 4, 8];

/// Reads a chunk from the front. All methods return None where it cannot be read.
pub(crate) struct Reader<'d> {
    dump: &'d [u8],
    rest: &'d [u8],
}

/// The front of a function, up to its constants.
pub(crate) struct Head<'d> {
    /// How many variables around it it uses, and where that stands in the dump.
    pub(crate) upvalues: usize,
    pub(crate) upvalues_at: usize,
    pub(crate) instructions: &'d [[u8; 4]],
    pub(crate) instructions_at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Constant<'d> {
    Text(&'d [u8]),
    /// Of another type.
    Other,
}

impl<'d> Reader<'d> {
    /// At the outermost function.
    pub(crate) fn new(dump: &'d [u8]) -> Option<Reader<'d>> {
        dump.get(7..11).filter(|sizes| **sizes == SIZES)?;
        Some(Reader { dump, rest: dump.get(HEADER_BYTES..)? })
    }

    pub(crate) fn head(&mut self) -> Option<Head<'d>> {
        self.string()?;
        self.take(8)?;
        let upvalues_at = self.place();
        let upvalues = usize::from(self.take(4)?[0]);
        let instructions_at = self.place() + 4;
        let (instructions, _) = self.array(4)?.as_chunks::<4>();
        Some(Head { upvalues, upvalues_at, instructions, instructions_at })
    }

    pub(crate) fn constant(&mut self) -> Option<Constant<'d>> {
        match self.take(1)?[0] {
            0 => {}
            1 => drop(self.take(1)?),
            3 => drop(self.take(8)?),
            4 => {
                let text = self.string()?;
                return Some(Constant::Text(text.strip_suffix(b"\0").unwrap_or(text)));
            }
            _ => return None,
        }
        Some(Constant::Other)
    }

    /// What stands behind the functions within a function.
    pub(crate) fn debug_information(&mut self) -> Option<()> {
        self.array(4)?;
        for _ in 0..self.int()? {
            self.string()?;
            self.take(8)?;
        }
        for _ in 0..self.int()? {
            self.string()?;
        }
        Some(())
    }

    pub(crate) fn int(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(word)
    }

    fn string(&mut self) -> Option<&'d [u8]> {
        let length: [u8; 8] = self.take(8)?.try_into().ok()?;
        #[allow(clippy::disallowed_methods, reason = "the interpreter writes its own machine's order")]
        self.take(usize::from_ne_bytes(length))
    }

    /// A number of parts, and these, of so many bytes each.
    fn array(&mut self, part_bytes: usize) -> Option<&'d [u8]> {
        let count = self.int()? as usize;
        self.take(count.checked_mul(part_bytes)?)
    }

    fn take(&mut self, count: usize) -> Option<&'d [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn place(&self) -> usize {
        self.dump.len() - self.rest.len()
    }
}

/// Appends a string as a dump has it.
#[allow(clippy::disallowed_methods, reason = "the interpreter reads its own machine's order")]
pub(crate) fn append_string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() + 1).to_ne_bytes());
    out.extend_from_slice(text);
    out.push(0);
}

/// Operation codes.
pub(crate) const MOVE: u32 = 0;
pub(crate) const LOAD_BOOLEAN: u32 = 2;
pub(crate) const GET_UPVALUE: u32 = 4;
pub(crate) const GET_GLOBAL: u32 = 5;
pub(crate) const GET_TABLE: u32 = 6;
pub(crate) const SET_GLOBAL: u32 = 7;
pub(crate) const SET_UPVALUE: u32 = 8;
pub(crate) const JUMP: u32 = 22;
pub(crate) const EQUAL: u32 = 23;
pub(crate) const TEST_SET: u32 = 27;
pub(crate) const LOOP: u32 = 31;
pub(crate) const PREPARE_LOOP: u32 = 32;
pub(crate) const LOOP_OVER: u32 = 33;
pub(crate) const SET_LIST: u32 = 34;
pub(crate) const CLOSURE: u32 = 36;

pub(crate) fn code_of(instruction: u32) -> u32 {
    instruction & 63
}

pub(crate) fn operand_a(instruction: u32) -> u32 {
    instruction >> 6 & 0xff
}

pub(crate) fn operand_b(instruction: u32) -> usize {
    (instruction >> 23) as usize
}

pub(crate) fn operand_c(instruction: u32) -> usize {
    (instruction >> 14 & 0x1ff) as usize
}

pub(crate) fn operand_bx(instruction: u32) -> usize {
    (instruction >> 14) as usize
}

/// A number in the machine's order.
#[allow(clippy::disallowed_methods, reason = "the interpreter writes its own machine's order")]
pub(crate) fn word(bytes: [u8; 4]) -> u32 {
    u32::from_ne_bytes(bytes)
}

#[allow(clippy::disallowed_methods, reason = "the interpreter reads its own machine's order")]
pub(crate) fn word_bytes(word: u32) -> [u8; 4] {
    word.to_ne_bytes()
}
