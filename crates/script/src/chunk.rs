//! What a compiled function may do, itself or in a function within it, by its instructions.
//!
//! Whether it assigns to a global variable: scripts may not, and the environment that refuses it (a *face*,
//! see `sandbox.lua`) makes each look-up of a global two. A chunk that has no such instruction can be given
//! the table behind that face.
//!
//! Whether it leaves anything for its next call: in a variable around it, or by drawing random numbers. A
//! function within it may assign to its variables, which are new for every call.
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
/// Operation codes, which are in the lowest six bits of an instruction.
const MOVE: u32 = 0;
const GET_UPVALUE: u32 = 4;
const SET_GLOBAL: u32 = 7;
const SET_UPVALUE: u32 = 8;
const CLOSURE: u32 = 36;
const CODE_MASK: u32 = 63;
/// What names the generator of random numbers.
const DRAWS: [&[u8]; 2] = [b"random\0", b"randomseed\0"];

/// Whether the chunk may assign to a global; also where it cannot be read.
pub(crate) fn may_set_globals(dump: &[u8]) -> bool {
    read(dump).is_none_or(|found| found.sets_globals)
}

/// Whether the function may leave something for its next call; also where it cannot be read.
pub(crate) fn may_keep_state(dump: &[u8]) -> bool {
    read(dump).is_none_or(|found| found.keeps_state)
}

/// What was found in a function and those within it.
#[derive(Default)]
struct Found {
    sets_globals: bool,
    keeps_state: bool,
}

fn read(dump: &[u8]) -> Option<Found> {
    dump.get(7..11).filter(|sizes| **sizes == SIZES)?;
    let mut reader = Reader { rest: dump.get(HEADER_BYTES..)?, found: Found::default() };
    reader.function(&|_, _| true)?;
    Some(reader.found)
}

struct Reader<'d> {
    rest: &'d [u8],
    found: Found,
}

impl<'d> Reader<'d> {
    /// Reads the function at the front. Which variables around it outlive a call is asked by their places,
    /// of which there are so many. None where it cannot be read.
    fn function(&mut self, outlives: &dyn Fn(usize, usize) -> bool) -> Option<()> {
        self.string()?;
        let upvalues = usize::from(self.take(12)?[8]);
        let (code, _) = self.array(4)?.as_chunks::<4>();
        let is_kept = |place: usize| outlives(place, upvalues);
        for instruction in code.iter().map(|instruction| number(*instruction)) {
            match instruction & CODE_MASK {
                SET_GLOBAL => self.found.sets_globals = true,
                SET_UPVALUE => self.found.keeps_state |= is_kept(operand_b(instruction)),
                _ => {}
            }
        }
        for _ in 0..self.int()? {
            self.constant()?;
        }
        for inner in 0..self.int()? {
            self.function(&|place, count| catches_kept(code, inner, (place, count), &is_kept))?;
        }
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

    fn constant(&mut self) -> Option<()> {
        match self.take(1)?[0] {
            0 => {}
            1 => drop(self.take(1)?),
            3 => drop(self.take(8)?),
            4 => {
                let text = self.string()?;
                self.found.keeps_state |= DRAWS.contains(&text);
            }
            _ => return None,
        }
        Some(())
    }

    fn string(&mut self) -> Option<&'d [u8]> {
        let length: [u8; 8] = self.take(8)?.try_into().ok()?;
        self.take(usize::from_ne_bytes(length))
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

/// Whether a variable outlives a call that function `inner` catches from around it where this code makes it.
/// An instruction that makes a function has one behind it for each of `count` variables: a register of this
/// call, or a variable around this one.
fn catches_kept(
    code: &[[u8; 4]],
    inner: u32,
    (place, count): (usize, usize),
    is_kept: &dyn Fn(usize) -> bool,
) -> bool {
    let makes_it = |at: &usize| {
        let instruction = number(code[*at]);
        instruction & CODE_MASK == CLOSURE && instruction >> 14 == inner
    };
    let catches = |at: usize| {
        let caught =
            code.get(at + 1..=at + count).and_then(|caught| caught.get(place)).map(|caught| number(*caught));
        caught.is_none_or(|caught| match caught & CODE_MASK {
            MOVE => false,
            GET_UPVALUE => is_kept(operand_b(caught)),
            _ => true,
        })
    };
    let mut makers = (0..code.len()).filter(makes_it).peekable();
    makers.peek().is_none() || makers.any(catches)
}

fn operand_b(instruction: u32) -> usize {
    (instruction >> 23) as usize
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

    /// Of the last function that the text returns.
    fn keeps(text: &str) -> bool {
        let lua = Lua::new();
        let function: mlua::Function = lua.load(text).eval().unwrap();
        may_keep_state(&function.dump(true))
    }

    #[test]
    fn a_function_that_assigns_to_what_is_around_it_is_known() {
        for text in [
            "local n = 0 return function() n = n + 1 return n end",
            "local n = 0 return function() return function() n = n + 1 end end",
            "local a, n, b = 1, 2, 3 \
             return function() local x = a return function() return x, b, function() n = x end end end",
            "local function make() local n = 0 return function() n = n + 1 return n end end return make()",
            "return function() return math.random() end",
            "return function() return function() math.randomseed(1) end end",
        ] {
            assert!(keeps(text), "{text}");
        }
        for text in [
            "return function(keys, args) return redis.call('GET', keys[1]) end",
            "local a, b = 1, 2 return function() local n = a n = n + b return n end",
            "local a = 1 return function(list) local n = a for_each(list, function(x) n = n + x end) return n end",
            "local a = 1 return function() local n return function() return function() n = a end end end",
            "local function fact(n) if n < 2 then return 1 end return n * fact(n - 1) end return fact",
            "return function() local t = {1, 2, 3} t.random_id = 'randomly' return t end",
        ] {
            assert!(!keeps(text), "{text}");
        }
    }

    #[test]
    fn what_is_cut_off_or_another_form_counts_as_one_that_does() {
        let whole = dump("local function f(x) return x .. 'text' end return f(redis)");
        assert!(!may_set_globals(&whole));
        assert!((0..whole.len()).all(|len| may_set_globals(&whole[..len]) && may_keep_state(&whole[..len])));
        let mut other = whole;
        other[8] = 4;
        assert!(may_set_globals(&other));
    }
}
