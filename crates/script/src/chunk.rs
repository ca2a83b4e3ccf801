//! Whether a compiled chunk assigns to a global variable, itself or in a function within it.
//!
//! Scripts may not, and the environment that refuses it (a *face*, see `sandbox.lua`) makes each look-up of a
//! global two. A chunk that has no such instruction can be given the table behind that face.
//!
//! What is read is Lua 5.1's own form of a compiled chunk, as this interpreter dumps it, debug information
//! stripped. Numbers are in the machine's order.
//!
//! ```text
//! chunk     1B 'Lua' 51 00, five sizes, 00 | function
//! function  source: string | two lines: int | 4 bytes
//!           | count: int, instructions of 4 bytes | count: int, constants | count: int, functions
//!           | lines: count: int, ints | variables: count: int, (string, int, int)
//!           | upvalues: count: int, strings
//! constant  0 | 1, a byte | 3, 8 bytes | 4, string          (nil, boolean, number, string)
//! string    length: 8 bytes | bytes
//! ```

/// The header, and the sizes that are read here: of an int, of a length, of an instruction and of a number.
const HEADER_BYTES: usize = 12;
const SIZES: [u8; 4] = [4, 8, 4, 8];
/// The operation code of SETGLOBAL, in the lowest six bits of an instruction.
const SET_GLOBAL: u32 = 7;
const CODE_MASK: u32 = 63;

/// Whether the chunk may assign to a global; also where it cannot be read.
pub(crate) fn may_set_globals(dump: &[u8]) -> bool {
    let is_known = dump.get(7..11).is_some_and(|sizes| *sizes == SIZES);
    let mut reader = Reader { rest: dump.get(HEADER_BYTES..).unwrap_or_default() };
    !is_known || reader.function().unwrap_or(true)
}

struct Reader<'d> {
    rest: &'d [u8],
}

impl<'d> Reader<'d> {
    /// Whether the function at the front assigns to a global; None where it cannot be read.
    fn function(&mut self) -> Option<bool> {
        self.string()?;
        self.take(12)?;
        let (instructions, _) = self.array(4)?.as_chunks::<4>();
        let sets = |instruction: &[u8; 4]| number(*instruction) & CODE_MASK == SET_GLOBAL;
        let mut sets_globals = instructions.iter().any(sets);
        for _ in 0..self.int()? {
            self.constant()?;
        }
        for _ in 0..self.int()? {
            sets_globals |= self.function()?;
        }
        self.array(4)?;
        for _ in 0..self.int()? {
            self.string()?;
            self.take(8)?;
        }
        for _ in 0..self.int()? {
            self.string()?;
        }
        Some(sets_globals)
    }

    fn constant(&mut self) -> Option<()> {
        match self.take(1)?[0] {
            0 => Some(()),
            1 => self.take(1).map(drop),
            3 => self.take(8).map(drop),
            4 => self.string(),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<()> {
        let length: [u8; 8] = self.take(8)?.try_into().ok()?;
        self.take(usize::from_ne_bytes(length)).map(drop)
    }

    /// A number of parts, and these, of so many bytes each.
    fn array(&mut self, part_bytes: usize) -> Option<&'d [u8]> {
        let count = self.int()? as usize;
        self.take(count.checked_mul(part_bytes)?)
    }

    fn int(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(number)
    }

    fn take(&mut self, count: usize) -> Option<&'d [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}

/// A number in the machine's order.
#[allow(clippy::disallowed_methods, reason = "the interpreter writes its own machine's order")]
fn number(bytes: [u8; 4]) -> u32 {
    u32::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlua::Lua;

    fn dump(text: &str) -> Vec<u8> {
        Lua::new().load(text).into_function().unwrap().dump(true)
    }

    #[test]
    fn a_chunk_that_assigns_to_a_global_anywhere_is_known() {
        for text in [
            "x = 1",
            "local function f() return function() x = 'y' end end return f()",
            "for i = 1, 3 do local y = i end if false then x = nil end",
            "function f() end",
        ] {
            assert!(may_set_globals(&dump(text)), "{text}");
        }
        for text in [
            "",
            "return 1",
            "local x = 1 x = 2 return x, 1.5, 'text', true, nil",
            "local t = {} t.x = 1 t['y'] = function(...) return ..., redis end return t",
            "local a, b = 'a', 'b' local function f(x) if x then return a .. b else return f(a) end end return f",
        ] {
            assert!(!may_set_globals(&dump(text)), "{text}");
        }
    }

    #[test]
    fn what_is_cut_off_or_another_form_counts_as_one_that_does() {
        let whole = dump("local function f(x) return x .. 'text' end return f(redis)");
        assert!(!may_set_globals(&whole));
        assert!((0..whole.len()).all(|len| may_set_globals(&whole[..len])));
        let mut other = whole;
        other[8] = 4;
        assert!(may_set_globals(&other));
    }
}
