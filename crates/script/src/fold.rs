//! What is the same whenever a script runs, put into variables around it when it runs again.
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
//! the fields. It would say "upvalue" where it has said "field", but of what is called rightly there is no
//! error: where a function is used as what it is not, it is fetched as before.
//!
//! The outermost function is folded, and of those within it the ones that are lifted out (`lift.rs`): others
//! would have to catch the variables first.
use crate::dump::{
    ADD, CONCATENATE, Constant, EQUAL, Function, GET_GLOBAL, GET_TABLE, GET_UPVALUE, JUMP, LENGTH,
    LOAD_BOOLEAN, LOOP, LOOP_OVER, METHOD, MINUS, NOTHING, POWER, PREPARE_LOOP, Reader, SET_LIST, SET_TABLE,
    TEST_SET, code_of, operand_a, operand_b, operand_bx, operand_c, target, with_a_b,
};
use crate::lift;

/// An operand of so much and more is a constant.
const CONSTANT: usize = 256;
/// As many variables as a function catches at most, in Lua's own compiler.
const VARIABLES_MAX: usize = 60;

/// A chunk that is to be given values in variables around it.
pub(crate) struct Folded<V> {
    pub(crate) dump: Vec<u8>,
    pub(crate) values: Vec<V>,
    /// What makes the values behind these.
    pub(crate) maker: Option<Maker<V>>,
}

/// A chunk that makes functions: it is given its values, called once, and returns them among others.
pub(crate) struct Maker<V> {
    pub(crate) dump: Vec<u8>,
    pub(crate) values: Vec<V>,
    /// Where the functions are among the results.
    pub(crate) results: Vec<u8>,
}

/// What libraries have under names, in variables around a function.
pub(crate) struct Variables<'d, V> {
    names: Vec<Name<'d>>,
    pub(crate) values: Vec<V>,
}

/// What a library has under a name.
pub(crate) type ValueOf<'f, V> = &'f mut dyn FnMut(&[u8], &[u8]) -> Option<V>;

/// Of a library and of a field.
pub(crate) type Name<'d> = (&'d [u8], &'d [u8]);

impl<'d, V> Variables<'d, V> {
    pub(crate) fn new() -> Variables<'d, V> {
        Variables { names: Vec::new(), values: Vec::new() }
    }

    /// The number of the variable that has this name, which is a new one where there is none yet; None where
    /// there are too many, or nothing has the name.
    pub(crate) fn number_of(&mut self, name: Name<'d>, value_of: ValueOf<'_, V>) -> Option<u32> {
        if let Some(known) = self.names.iter().position(|known| *known == name) {
            return Some(known as u32);
        }
        let value = if self.values.len() < VARIABLES_MAX { value_of(name.0, name.1) } else { None };
        self.values.push(value?);
        self.names.push(name);
        Some(self.values.len() as u32 - 1)
    }

    pub(crate) fn name(&self, number: usize) -> Option<Name<'d>> {
        self.names.get(number).copied()
    }

    /// The fields, which are the names of the variables.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &'d [u8]> {
        self.names.iter().map(|(_, field)| *field)
    }
}

/// Folds a chunk. `value_of` is asked for what a library has under a name; None where that may change, or is
/// nothing. None where there is nothing to fold.
pub(crate) fn fold<V>(dump: &[u8], mut value_of: impl FnMut(&[u8], &[u8]) -> Option<V>) -> Option<Folded<V>> {
    let mut chunk = Reader::new(dump)?.function()?;
    if chunk.upvalues != 0 || !chunk.names.is_empty() {
        return None;
    }
    let mut variables = Variables::new();
    fold_names(&mut chunk, |name| variables.number_of(name, &mut value_of));
    chunk.names.extend(variables.fields());
    let maker = lift::lift(dump, &mut chunk, &variables, &mut value_of);
    if chunk.names.is_empty() {
        return None;
    }
    chunk.upvalues = chunk.names.len() as u8;
    Some(Folded { dump: chunk.dumped(dump), values: variables.values, maker })
}

/// Has a function find what it looks up in libraries in the variables of which `variable_of` gives the
/// numbers.
pub(crate) fn fold_names<'d>(
    function: &mut Function<'d>,
    mut variable_of: impl FnMut(Name<'d>) -> Option<u32>,
) {
    let reached = places_reached(&function.code);
    for at in (1..function.code.len()).filter(|at| !reached[*at]) {
        let pair = [function.code[at - 1], function.code[at]];
        let rest = &function.code[at + 1..];
        let name = named(pair, &function.constants).filter(|_| !may_be_named(operand_a(pair[1]), rest));
        if let Some(variable) = name.and_then(&mut variable_of) {
            function.code[at - 1] = NOTHING;
            function.code[at] = with_a_b(GET_UPVALUE, operand_a(pair[1]), variable);
        }
    }
}

/// The names of the library and of the field, where these two instructions fetch the field and leave nothing
/// else behind.
fn named<'d>([global, field]: [u32; 2], constants: &[Constant<'d>]) -> Option<Name<'d>> {
    let register = operand_a(global);
    let is_field = (code_of(global), code_of(field)) == (GET_GLOBAL, GET_TABLE)
        && operand_b(field) as u32 == register
        && operand_a(field) == register;
    let name = operand_c(field).checked_sub(CONSTANT).filter(|_| is_field)?;
    match (constants.get(operand_bx(global))?, constants.get(name)?) {
        (Constant::Text(library), Constant::Text(field)) => Some((library, field)),
        _ => None,
    }
}

/// Whether an error may name what has been fetched into this register, by what comes next: where it is
/// indexed, counted with or joined to a string, for none of which a function is. The name would be another.
pub(crate) fn may_be_named(register: u32, rest: &[u32]) -> bool {
    let register = register as usize;
    for instruction in rest.iter().copied().take(SEEN_MAX) {
        let (a, b, c) = (operand_a(instruction) as usize, operand_b(instruction), operand_c(instruction));
        let is_named = match code_of(instruction) {
            GET_TABLE | METHOD => b == register,
            SET_TABLE => a == register,
            ADD..=POWER => b == register || c == register,
            MINUS | LENGTH => b == register,
            CONCATENATE => (b..=c).contains(&register),
            _ => false,
        };
        if is_named || lift::written(instruction).iter().any(|range| range.contains(&register)) {
            return is_named;
        }
    }
    false
}

/// So many instructions behind one are looked at for a use of what it has fetched. What is used later is in a
/// variable, and errors name that.
const SEEN_MAX: usize = 200;

/// Which places are reached by other ways than from the instruction before; also those of numbers that stand
/// among instructions, and what follows them.
fn places_reached(code: &[u32]) -> Vec<bool> {
    let mut reached = vec![false; code.len() + 2];
    for (at, instruction) in code.iter().copied().enumerate() {
        if code_of(instruction) == SET_LIST && operand_c(instruction) == 0 {
            reached[at + 1..at + 3].fill(true);
        }
        if let Some(place) = leads_to(at, instruction).and_then(|place| reached.get_mut(place)) {
            *place = true;
        }
    }
    reached
}

/// Where an instruction at this place leads to if not to the next.
pub(crate) fn leads_to(at: usize, instruction: u32) -> Option<usize> {
    match code_of(instruction) {
        JUMP | LOOP | PREPARE_LOOP => Some(target(at, instruction)),
        // Tests leave the next instruction out, or not.
        EQUAL..=TEST_SET | LOOP_OVER => Some(at + 2),
        LOAD_BOOLEAN if operand_c(instruction) != 0 => Some(at + 2),
        _ => None,
    }
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
            let Folded { dump, values, .. } = fold(&function.dump(false), |_, _| Some("folded")).unwrap();
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
        let Folded { dump, values, .. } = fold(&function.dump(false), |_, _| Some(rep.clone())).unwrap();
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
