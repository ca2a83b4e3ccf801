//! What a compiled function may do, itself or in a function within it, by its instructions.
//!
//! Whether it assigns to a global variable: scripts may not, and the environment that refuses it (a *face*,
//! see `sandbox.lua`) makes each look-up of a global two. A chunk that has no such instruction can be given
//! the table behind that face.
//!
//! Whether it leaves anything for its next call: in a variable around it, or in the interpreter, which has a
//! generator of random numbers and settings of cjson. A function within it may assign to its variables, which
//! are new for every call.
use crate::dump::{
    CLOSURE, Constant, GET_UPVALUE, MOVE, Reader, SET_GLOBAL, SET_LIST, SET_UPVALUE, code_of, operand_b,
    operand_bx, operand_c, word,
};

/// The names of what leaves something in the interpreter, or compiles a text that may.
const KEEPERS: [&[u8]; 11] = [
    b"random",
    b"randomseed",
    b"load",
    b"loadstring",
    b"encode_sparse_array",
    b"encode_max_depth",
    b"decode_max_depth",
    b"encode_number_precision",
    b"encode_keep_buffer",
    b"encode_invalid_numbers",
    b"decode_invalid_numbers",
];

/// Whether a function that knows this text may call by it what leaves something in the interpreter.
pub(crate) fn names_state(text: &[u8]) -> bool {
    KEEPERS.contains(&text)
}

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
    let mut found = Found::default();
    // All that the outermost function has caught outlives its calls.
    found.function(&mut Reader::new(dump)?, None)?;
    Some(found)
}

impl Found {
    /// Reads the function at the front, which that code makes as its function of this number; nobody
    /// makes the outermost. None where it cannot be read.
    fn function(&mut self, reader: &mut Reader<'_>, maker: Option<(&Code<'_>, u32)>) -> Option<()> {
        let head = reader.head()?;
        let code = Code::new(head.instructions, (head.upvalues, maker));
        self.sets_globals |= code.sets_globals();
        self.keeps_state |= code.sets_kept();
        for _ in 0..reader.int()? {
            if let Constant::Text(text) = reader.constant()? {
                self.keeps_state |= names_state(text);
            }
        }
        for inner in 0..reader.int()? {
            self.function(reader, Some((&code, inner)))?;
        }
        reader.debug_information()
    }
}

/// The instructions of one function.
struct Code<'d> {
    instructions: &'d [[u8; 4]],
    /// Which of the variables around it that it uses outlive a call of the outermost function.
    kept: Vec<bool>,
    /// The numbers of the functions within it, each with where it is made, in ascending order.
    makers: Vec<(u32, usize)>,
}

impl<'d> Code<'d> {
    /// Of a function that uses so many variables around it.
    fn new(instructions: &'d [[u8; 4]], (upvalues, maker): (usize, Option<(&Code<'_>, u32)>)) -> Code<'d> {
        let kept = match maker {
            Some((around, inner)) => around.caught(inner, upvalues),
            None => vec![true; upvalues],
        };
        let mut code = Code { instructions, kept, makers: Vec::new() };
        code.makers = code
            .iter()
            .filter(|(_, i)| code_of(*i) == CLOSURE)
            .map(|(at, i)| (operand_bx(i) as u32, at))
            .collect();
        code.makers.sort_unstable();
        code
    }

    /// The instructions and their places, but for numbers that stand in the place of some.
    fn iter(&self) -> impl Iterator<Item = (usize, u32)> {
        let mut is_number = false;
        let all = self.instructions.iter().map(|instruction| word(*instruction)).enumerate();
        all.filter(move |(_, instruction)| {
            let is_code = !is_number;
            is_number = is_code && code_of(*instruction) == SET_LIST && operand_c(*instruction) == 0;
            is_code
        })
    }

    fn sets_globals(&self) -> bool {
        self.iter().any(|(_, instruction)| code_of(instruction) == SET_GLOBAL)
    }

    /// Whether it assigns to a variable that outlives a call.
    fn sets_kept(&self) -> bool {
        let is_kept = |instruction| self.kept.get(operand_b(instruction)).is_none_or(|is_kept| *is_kept);
        self.iter().any(|(_, instruction)| code_of(instruction) == SET_UPVALUE && is_kept(instruction))
    }

    /// Which of so many variables outlive a call that function `inner` catches where this code makes it.
    /// Behind the instruction that makes it stands one for each: a register of this call, or a variable
    /// around this function.
    fn caught(&self, inner: u32, count: usize) -> Vec<bool> {
        let first = self.makers.partition_point(|(made, _)| *made < inner);
        let makers = self.makers[first..].iter().take_while(|(made, _)| *made == inner);
        let mut kept: Option<Vec<bool>> = None;
        for (_, at) in makers {
            let caught = (at + 1..=at + count).map(|at| self.outlives(at));
            let before = kept.take().unwrap_or_else(|| vec![false; count]);
            kept = Some(before.iter().zip(caught).map(|(before, now)| *before || now).collect());
        }
        kept.unwrap_or_else(|| vec![true; count])
    }

    /// Whether what is caught by the instruction there outlives a call.
    fn outlives(&self, at: usize) -> bool {
        let Some(instruction) = self.instructions.get(at).map(|instruction| word(*instruction)) else {
            return true;
        };
        match code_of(instruction) {
            MOVE => false,
            GET_UPVALUE => self.kept.get(operand_b(instruction)).is_none_or(|is_kept| *is_kept),
            _ => true,
        }
    }
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
            "return function() cjson.encode_sparse_array(true) end",
            "return function() return loadstring('return math.random()')() end",
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
    fn numbers_among_instructions_are_none() {
        // A list of so many elements that the number of its last fifty stands behind the instruction. That
        // reads like one that assigns to a variable around the function: 8 in its lowest bits.
        let list = |blocks: usize| format!("return function() return {{{}}} end", "1,".repeat(50 * blocks));
        assert!(!keeps(&list(520)) && !keeps(&list(584)));
    }

    #[test]
    fn a_function_of_many_assignments_and_many_functions_is_looked_at_once() {
        let many = "n = 1 ".repeat(100_000);
        let text = format!("return function() local n {many} return function() {many} end end");
        assert!(!keeps(&text), "looked at from each assignment, this would take minutes");
        let many = "f = function() return f end ".repeat(50_000);
        assert!(!keeps(&format!("return function() local f {many} return f end")));
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
