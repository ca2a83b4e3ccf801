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
    rest: &'d [u8],
}

/// A function in full, to be changed and written again.
pub(crate) struct Function<'d> {
    /// Its source and its two lines, as they are in the dump.
    place: &'d [u8],
    /// How many variables around it it uses.
    pub(crate) upvalues: u8,
    pub(crate) parameters: u8,
    /// [`VARIADIC`], with other bits where it has the variable `arg` of older versions.
    pub(crate) variadic: u8,
    /// The registers that it needs.
    pub(crate) stack: u8,
    pub(crate) code: Vec<u32>,
    pub(crate) constants: Vec<Constant<'d>>,
    pub(crate) functions: Vec<Function<'d>>,
    /// The lines of instructions, and the names of variables, as they are in the dump.
    debug: &'d [u8],
    /// The names of the variables around it.
    pub(crate) names: Vec<&'d [u8]>,
    constants_as_dumped: &'d [u8],
}

/// No lines and no names.
const NO_DEBUG: &[u8] = &[0; 8];
pub(crate) const VARIADIC: u8 = 2;

impl<'d> Function<'d> {
    /// A function of that code, with the source, the constants and the functions of another.
    pub(crate) fn beside(
        other: &Function<'d>,
        (code, stack): (Vec<u32>, u8),
        functions: Vec<Function<'d>>,
        names: Vec<&'d [u8]>,
    ) -> Function<'d> {
        Function {
            upvalues: names.len() as u8,
            constants: other.constants.clone(),
            debug: NO_DEBUG,
            stack,
            code,
            functions,
            names,
            ..*other
        }
    }

    /// The whole dump of a chunk, which has the header of that one.
    pub(crate) fn dumped(&self, header_of: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(header_of.len());
        out.extend_from_slice(&header_of[..HEADER_BYTES]);
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        let int = |out: &mut Vec<u8>, count: usize| out.extend_from_slice(&word_bytes(count as u32));
        out.extend_from_slice(self.place);
        out.extend_from_slice(&[self.upvalues, self.parameters, self.variadic, self.stack]);
        int(out, self.code.len());
        self.code.iter().for_each(|instruction| out.extend_from_slice(&word_bytes(*instruction)));
        out.extend_from_slice(self.constants_as_dumped);
        int(out, self.functions.len());
        self.functions.iter().for_each(|function| function.write(out));
        out.extend_from_slice(self.debug);
        int(out, self.names.len());
        self.names.iter().for_each(|name| append_string(out, name));
    }
}

/// The front of a function, up to its constants.
pub(crate) struct Head<'d> {
    /// How many variables around it it uses.
    pub(crate) upvalues: usize,
    pub(crate) instructions: &'d [[u8; 4]],
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
        Some(Reader { rest: dump.get(HEADER_BYTES..)? })
    }

    pub(crate) fn head(&mut self) -> Option<Head<'d>> {
        self.string()?;
        self.take(8)?;
        let upvalues = usize::from(self.take(4)?[0]);
        let (instructions, _) = self.array(4)?.as_chunks::<4>();
        Some(Head { upvalues, instructions })
    }

    /// A function with all that is within it.
    pub(crate) fn function(&mut self) -> Option<Function<'d>> {
        let start = self.rest;
        self.string()?;
        self.take(8)?;
        let place = self.since(start);
        let [upvalues, parameters, variadic, stack] = *self.take(4)? else { return None };
        let (instructions, _) = self.array(4)?.as_chunks::<4>();
        let start = self.rest;
        let constants = self.many(Reader::constant)?;
        let constants_as_dumped = self.since(start);
        let functions = self.many(Reader::function)?;
        let start = self.rest;
        self.lines_and_variables()?;
        let debug = self.since(start);
        let names = self.many(Reader::text)?;
        let code = instructions.iter().map(|bytes| word(*bytes)).collect();
        Some(Function {
            place,
            upvalues,
            parameters,
            variadic,
            stack,
            code,
            constants,
            functions,
            debug,
            names,
            constants_as_dumped,
        })
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Reader<'d>) -> Option<T>) -> Option<Vec<T>> {
        (0..self.int()?).map(|_| one(self)).collect()
    }

    /// What was read since there was so much to read.
    fn since(&self, start: &'d [u8]) -> &'d [u8] {
        &start[..start.len() - self.rest.len()]
    }

    pub(crate) fn constant(&mut self) -> Option<Constant<'d>> {
        match self.take(1)?[0] {
            0 => {}
            1 => drop(self.take(1)?),
            3 => drop(self.take(8)?),
            4 => return self.text().map(Constant::Text),
            _ => return None,
        }
        Some(Constant::Other)
    }

    /// What stands behind the functions within a function.
    pub(crate) fn debug_information(&mut self) -> Option<()> {
        self.lines_and_variables()?;
        self.each(|reader| reader.string().map(drop))
    }

    fn lines_and_variables(&mut self) -> Option<()> {
        self.array(4)?;
        self.each(|reader| {
            reader.string()?;
            reader.take(8).map(drop)
        })
    }

    fn each(&mut self, mut one: impl FnMut(&mut Reader<'d>) -> Option<()>) -> Option<()> {
        (0..self.int()?).try_for_each(|_| one(self))
    }

    pub(crate) fn int(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(word)
    }

    /// A string without the zero behind it.
    fn text(&mut self) -> Option<&'d [u8]> {
        let text = self.string()?;
        Some(text.strip_suffix(b"\0").unwrap_or(text))
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
pub(crate) const LOAD_CONSTANT: u32 = 1;
pub(crate) const LOAD_BOOLEAN: u32 = 2;
pub(crate) const LOAD_NIL: u32 = 3;
pub(crate) const GET_UPVALUE: u32 = 4;
pub(crate) const GET_GLOBAL: u32 = 5;
pub(crate) const GET_TABLE: u32 = 6;
pub(crate) const SET_GLOBAL: u32 = 7;
pub(crate) const SET_UPVALUE: u32 = 8;
pub(crate) const SET_TABLE: u32 = 9;
pub(crate) const METHOD: u32 = 11;
pub(crate) const ADD: u32 = 12;
pub(crate) const POWER: u32 = 17;
pub(crate) const MINUS: u32 = 18;
pub(crate) const LENGTH: u32 = 20;
pub(crate) const CONCATENATE: u32 = 21;
pub(crate) const JUMP: u32 = 22;
pub(crate) const EQUAL: u32 = 23;
pub(crate) const TEST: u32 = 26;
pub(crate) const TEST_SET: u32 = 27;
pub(crate) const CALL: u32 = 28;
pub(crate) const CALL_LAST: u32 = 29;
pub(crate) const RETURN: u32 = 30;
pub(crate) const LOOP: u32 = 31;
pub(crate) const PREPARE_LOOP: u32 = 32;
pub(crate) const LOOP_OVER: u32 = 33;
pub(crate) const SET_LIST: u32 = 34;
pub(crate) const CLOSE: u32 = 35;
pub(crate) const CLOSURE: u32 = 36;
pub(crate) const ARGUMENTS: u32 = 37;

/// The operand of a jump is from so much below zero.
const JUMP_ZERO: u32 = 131_071;

/// Goes to the next instruction.
pub(crate) const NOTHING: u32 = JUMP | JUMP_ZERO << 14;

/// Where a jump at this place leads to.
pub(crate) fn target(at: usize, jump: u32) -> usize {
    (at + 1 + operand_bx(jump)).wrapping_sub(JUMP_ZERO as usize)
}

/// An instruction with A and B.
pub(crate) fn with_a_b(code: u32, a: u32, b: u32) -> u32 {
    code | a << 6 | b << 23
}

/// An instruction with A and Bx.
pub(crate) fn with_a_bx(code: u32, a: u32, bx: u32) -> u32 {
    code | a << 6 | bx << 14
}

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
