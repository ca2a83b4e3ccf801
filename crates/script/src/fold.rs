//! Fields of the libraries that a script names, put into variables around it when it runs again.
//!
//! Scripts write `redis.call(...)` wherever they call a command. Lua looks `redis` up in the globals, finds a
//! face without fields there (see `sandbox.lua`), and looks `call` up in the table behind it: 7% of what a
//! short command costs. No script can change either, so what the name stands for is known beforehand.
//!
//! ```text
//! compiled    GETGLOBAL r 'redis'     folded    JMP 0
//!             GETTABLE  r r 'call'              GETUPVALUE r, of the variable that holds redis.call
//! ```
//! Nothing moves, so lines and jumps stay right. The jump does nothing; it comes first, because an error that
//! names a function takes the name from the instruction that has fetched it, and variables have the names of
//! the fields.
//!
//! Only the outermost function is folded: those within it would have to catch the variables first.
use crate::dump::{
    Constant, EQUAL, GET_GLOBAL, GET_TABLE, GET_UPVALUE, JUMP, LOAD_BOOLEAN, LOOP, LOOP_OVER, PREPARE_LOOP,
    Reader, SET_LIST, TEST_SET, append_string, code_of, operand_a, operand_b, operand_bx, operand_c, word,
    word_bytes,
};

/// The operand of a jump is from so much below zero.
const JUMP_ZERO: u32 = 131_071;
/// An operand of so much and more is a constant.
const CONSTANT: usize = 256;
/// As many variables as a function catches at most, in Lua's own compiler.
const VARIABLES_MAX: usize = 60;

/// A chunk that is to be given values in variables around it.
pub(crate) struct Folded<V> {
    pub(crate) dump: Vec<u8>,
    pub(crate) values: Vec<V>,
}

/// Folds the outermost function of a chunk. `value_of` is asked for what a library has under a name; None
/// where that may change, or is nothing. None where there is nothing to fold.
pub(crate) fn fold<V>(dump: &[u8], mut value_of: impl FnMut(&[u8], &[u8]) -> Option<V>) -> Option<Folded<V>> {
    let mut reader = Reader::new(dump)?;
    let head = reader.head()?;
    let constants: Option<Vec<Constant<'_>>> = (0..reader.int()?).map(|_| reader.constant()).collect();
    let constants = constants?;
    // What a function that catches nothing ends with: that there are no names of what it catches.
    let (rest, end) = dump.split_last_chunk::<4>()?;
    if head.upvalues != 0 || *end != [0; 4] {
        return None;
    }
    let code: Vec<u32> = head.instructions.iter().map(|bytes| word(*bytes)).collect();
    let reached = places_reached(&code);
    let mut variables: Vec<(&[u8], &[u8])> = Vec::new();
    let (mut values, mut folded) = (Vec::new(), rest.to_vec());
    for (at, pair) in code.windows(2).enumerate() {
        let Some(name) = named(pair, &constants).filter(|_| !reached[at + 1]) else { continue };
        let known = variables.iter().position(|known| *known == name);
        if known.is_none() {
            let value = if values.len() < VARIABLES_MAX { value_of(name.0, name.1) } else { None };
            let Some(value) = value else { continue };
            variables.push(name);
            values.push(value);
        }
        let variable = known.unwrap_or(values.len() - 1) as u32;
        let fetch = GET_UPVALUE | operand_a(pair[1]) << 6 | variable << 23;
        let place = head.instructions_at + 4 * at;
        folded[place..place + 4].copy_from_slice(&word_bytes(JUMP | JUMP_ZERO << 14));
        folded[place + 4..place + 8].copy_from_slice(&word_bytes(fetch));
    }
    if values.is_empty() {
        return None;
    }
    folded[head.upvalues_at] = values.len() as u8;
    folded.extend_from_slice(&word_bytes(values.len() as u32));
    variables.iter().for_each(|(_, field)| append_string(&mut folded, field));
    Some(Folded { dump: folded, values })
}

/// The names of the library and of the field, where these two instructions fetch the field and leave nothing
/// else behind.
fn named<'d>(pair: &[u32], constants: &[Constant<'d>]) -> Option<(&'d [u8], &'d [u8])> {
    let [global, field] = pair else { return None };
    let register = operand_a(*global);
    let is_field = (code_of(*global), code_of(*field)) == (GET_GLOBAL, GET_TABLE)
        && operand_b(*field) as u32 == register
        && operand_a(*field) == register;
    let name = operand_c(*field).checked_sub(CONSTANT).filter(|_| is_field)?;
    match (constants.get(operand_bx(*global))?, constants.get(name)?) {
        (Constant::Text(library), Constant::Text(field)) => Some((library, field)),
        _ => None,
    }
}

/// Which places are reached by other ways than from the instruction before; also those of numbers that stand
/// among instructions, and what follows them.
fn places_reached(code: &[u32]) -> Vec<bool> {
    let mut reached = vec![false; code.len() + 2];
    for (at, instruction) in code.iter().copied().enumerate() {
        let places = match code_of(instruction) {
            JUMP | LOOP | PREPARE_LOOP => {
                let to = (at + 1 + operand_bx(instruction)).wrapping_sub(JUMP_ZERO as usize);
                [to, to]
            }
            // Tests leave the next instruction out, or not.
            EQUAL..=TEST_SET | LOOP_OVER => [at + 2; 2],
            LOAD_BOOLEAN if operand_c(instruction) != 0 => [at + 2; 2],
            SET_LIST if operand_c(instruction) == 0 => [at + 1, at + 2],
            _ => continue,
        };
        for place in places {
            if let Some(place) = reached.get_mut(place) {
                *place = true;
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlua::chunk::ChunkMode;
    use mlua::{Function, Lua};

    /// The names that were folded, where `a` and `b` are libraries.
    fn folded(text: &str) -> Vec<String> {
        let dump = Lua::new().load(text).into_function().unwrap().dump(false);
        let value_of = |library: &[u8], field: &[u8]| {
            let is_library = library == b"a" || library == b"b";
            is_library.then(|| String::from_utf8([library, b".", field].concat()).unwrap())
        };
        fold(&dump, value_of).map(|folded| folded.values).unwrap_or_default()
    }

    #[test]
    fn what_a_script_looks_up_in_libraries_is_folded_once_for_each_name() {
        assert_eq!(folded("a.x() a.x(a.y) b.x() return a.x"), ["a.x", "a.y", "b.x"]);
        assert_eq!(folded("local f = a.x for i = 1, 3 do f(b.y) end"), ["a.x", "b.y"]);
        for text in [
            "",
            "return c.x",
            "local a = {} return a.x",
            "return a[1]",
            "local t = a return t.x",
            "return function() return a.x end",
            "a.x = 1",
            "a:x()",
            "local x = 'x' return a[x]",
        ] {
            assert!(folded(text).is_empty(), "{text}");
        }
        let many: String = (0..100).map(|n| format!("a.x{n}() ")).collect();
        assert_eq!(folded(&many).len(), VARIABLES_MAX);
    }

    #[test]
    fn a_look_up_that_is_reached_by_a_jump_stays_one() {
        for text in [
            "local y = ... return (y and a or b).x",
            "local y = ... return (y == 1 and c or a).x",
            "local y = ... return (y or a).x",
            "local y = ... local z = (not y and c or a).x return z",
        ] {
            let lua = Lua::new();
            lua.load("a, b, c = {x = 'a'}, {x = 'b'}, {x = 'c'}").exec().unwrap();
            let function = lua.load(text).into_function().unwrap();
            let is_folded = fold(&function.dump(false), |_, _| Some(())).is_some();
            assert!(!is_folded, "{text}");
        }
    }

    #[test]
    fn numbers_among_instructions_are_not_folded() {
        // The number of the last fifty elements stands behind the instruction, and is that of GETGLOBAL.
        for blocks in (512 + GET_GLOBAL as usize..1100).step_by(64) {
            let text = format!("return {{{}a.x}}", "1,".repeat(50 * (blocks - 1)));
            let lua = Lua::new();
            lua.load("a = {x = 'a'}").exec().unwrap();
            let function = lua.load(text).into_function().unwrap();
            let Folded { dump, values } = fold(&function.dump(false), |_, _| Some("folded")).unwrap();
            assert_eq!(values, ["folded"]);
            let function = lua.load(&dump[..]).set_mode(ChunkMode::Binary).into_function().unwrap();
            lua::set_upvalues(&lua, &function, vec![mlua::Value::Boolean(true)]).unwrap();
            let list: mlua::Table = function.call(()).unwrap();
            assert_eq!(list.raw_len(), 50 * (blocks - 1) + 1);
            assert!(list.raw_get::<bool>(list.raw_len()).unwrap());
        }
    }

    #[test]
    fn a_folded_chunk_has_the_lines_and_the_names_of_before() {
        let lua = Lua::new();
        let text = "local x = 1\nif x then\nx = string.rep('-', 2)\nend\nreturn pcall(function() error('e') end), \
                    x, string.rep()";
        let function = lua.load(text).set_name("@script").into_function().unwrap();
        let rep = lua.globals().get::<mlua::Table>("string").unwrap().get::<mlua::Value>("rep").unwrap();
        let Folded { dump, values } = fold(&function.dump(false), |_, _| Some(rep.clone())).unwrap();
        let folded: Function = lua.load(&dump[..]).set_mode(ChunkMode::Binary).into_function().unwrap();
        lua::set_upvalues(&lua, &folded, values).unwrap();
        lua.globals().set("string", mlua::Value::Nil).unwrap();
        let error = folded.call::<()>(()).unwrap_err().to_string();
        assert!(error.contains("script:5: bad argument #1 to 'rep'"), "{error}");
    }

    #[test]
    fn what_is_cut_off_is_not_folded() {
        let whole =
            Lua::new().load("return a.x, function() return 1 end").into_function().unwrap().dump(false);
        assert!(fold(&whole, |_, _| Some(())).is_some());
        for len in 0..whole.len() {
            let folded = fold(&whole[..len], |_, _| Some(()));
            assert!(folded.is_none() || whole[..len].ends_with(&[0; 4]), "{len}");
        }
    }
}
