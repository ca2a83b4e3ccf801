//! Chunks whose functions are lifted return what they return as they were compiled, at every run.
use super::*;
use crate::fold::{Folded, fold};
use base::random::Random;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, MultiValue, Table, Value};

const LIBRARY: &str = "lib = {call = function(...) return ... end, name = 'library'}";

/// The chunk that `text` becomes, and how many of its functions are lifted.
fn lifted(lua: &Lua, text: &str) -> (Function, usize) {
    lua.load(LIBRARY).exec().unwrap();
    let library: Table = lua.globals().get("lib").unwrap();
    let chunk = lua.load(text).set_name("@script").into_function().unwrap();
    let value_of = |of: &[u8], field: &[u8]| {
        let value = library.raw_get::<Value>(lua.create_string(field).unwrap()).unwrap();
        (of == b"lib" && value.is_function()).then_some(value)
    };
    let Some(Folded { dump, mut values, maker }) = fold(&chunk.dump(false), value_of) else {
        return (chunk, 0);
    };
    let load = |dump: &[u8], values| {
        let loaded = lua.load(dump).set_mode(ChunkMode::Binary).into_function().unwrap();
        lua::set_upvalues(lua, &loaded, values).unwrap();
        loaded
    };
    let count = maker.as_ref().map_or(0, |maker| maker.results.len());
    if let Some(Maker { dump, values: its, results }) = maker {
        let made: MultiValue = load(&dump, its).call(()).unwrap();
        values.extend(results.iter().map(|place| made[usize::from(*place)].clone()));
    }
    assert!(values.iter().all(|value| !value.is_nil()), "{text}");
    (load(&dump, values), count)
}

/// What the text returns, as one text.
fn shown(function: &Function) -> String {
    match function.call::<MultiValue>(()) {
        Ok(values) => values.iter().map(|value| value.to_string().unwrap()).collect::<Vec<_>>().join(" "),
        Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

#[track_caller]
fn check(text: &str, expected: usize) {
    assert_eq!(check_runs(text), expected, "{text}");
}

/// Every run of the text returns what it returns as it was compiled. Returns how many functions are lifted.
#[track_caller]
fn check_runs(text: &str) -> usize {
    let lua = Lua::new();
    let (function, count) = lifted(&lua, text);
    let as_it_is = lua.load(text).set_name("@script").into_function().expect(text);
    let before = shown(&as_it_is);
    for run in 0..3 {
        assert_eq!(shown(&function), before, "run {run}:\n{text}");
    }
    count
}

#[test]
fn functions_that_catch_what_is_constant_are_lifted() {
    check("local function f(x) return x + 1 end return f(1)", 1);
    check("local function f(n) if n < 2 then return 1 end return n * f(n - 1) end return f(9)", 1);
    check("local f f = function(n) return n < 2 and 1 or n * f(n - 1) end return f(9)", 1);
    check("local call = lib.call local function f(x) return call(x, lib.name) end return f(1)", 1);
    check(
        "local call = lib.call local n, s, b, z = 2, 's', true, nil \
           local function f(x) return call(n, s, tostring(b), tostring(z), x) end return f(1)",
        1,
    );
    check(
        "local function f() return 1 end local function g() return f() + 1 end \
           local function h() return f() + g() end return h() + g() + f()",
        3,
    );
    check(
        "local function f() return 2 end if lib.name == 'x' then return 0 end \
           local function g() return f() end return g()",
        2,
    );
    check("local x = ... return (pcall(function() error('e') end)), x == nil", 1);
    check("local x = ... if not x then local function f() return 1 end return f() end return 2", 1);
    check(
        "local function f() local n = 0 return function() n = n + 1 return n end end \
           local g, h = f(), f() return g(), g(), h()",
        1,
    );
    check(
        "local x = tostring(tostring(1)) .. 'x' local function f() return 1 end \
           local function g() return f() end return g() .. x",
        2,
    );
    check("do local function f() return 1 end end local function g() return 2 end return g()", 2);
    check(
        "local t = {} function t.f(a) return a, lib.name end function t:g() return self == t end \
           return t.f(1)",
        1,
    );
}

#[test]
fn functions_whose_runs_or_makings_can_be_told_apart_are_not() {
    for text in [
        // What they catch changes, or is made anew.
        "local n = 0 local function f() n = n + 1 return n end return f(), f()",
        "local t = {} local function f() t[1] = (t[1] or 0) + 1 return t[1] end return f(), f()",
        "local n = 1 local function f() return n end n = 2 return f()",
        "local n = 1 local function f() return n end for n = 3, 4 do n = 5 end n = 6 return f()",
        "local n = tostring(1) local function f() return n end return f()",
        "local f = function() return 1 end f = 2 local function g() return f end return g()",
        // It comes after the function, or not on every way.
        "local a local function f() return a end local b = f() a = function() end return tostring(b)",
        "local a if lib.name == 'x' then a = function() end end local function f() return a end \
         return tostring(f())",
        "local a if lib.name ~= 'x' then a = 2 else a = 3 end local function f() return a end return f()",
        "local a = lib.name == 'library' and 1 local function f() return a end return f()",
        // Each is another.
        "local t, n = {}, 0 for i = 1, 3 do local f = function() return 1 end t[f] = i end \
         for _ in pairs(t) do n = n + 1 end return n",
        "local t, n, i = {}, 0, 0 repeat local f = function() return 1 end t[f] = i i = i + 1 until i > 3 \
         for _ in pairs(t) do n = n + 1 end return n",
        "local n = 0 while n < 3 do local k = n local function f() return k end n = f() + 1 end return n",
        "for _, v in ipairs({1, 2}) do local function f() return v end if v == 2 then return f() end end",
        "local function f(...) return ... end return ...",
    ] {
        check_runs(text);
    }
}

#[test]
fn what_another_function_assigns_to_is_not_constant() {
    check(
        "local n = 1 local function set() n = n + 1 end local function f() return n end set() return f()",
        0,
    );
    check(
        "local n = 1 local function outer() return function() n = n + 1 end end \
         local function f() return n end outer()() return f()",
        0,
    );
    check(
        "local n, m = 1, 2 local function outer() return function() m = m + 1 end end \
         local function f() return n end outer()() return f() + m",
        1,
    );
}

#[test]
fn errors_have_their_lines_and_names() {
    check("local function f(x)\n return x .. nil\nend\nreturn f(1)", 1);
    check("local function f(x)\n return lib.call(x).y.z\nend\nreturn f({})", 1);
    check("local function f(x)\n local g\n g()\nend\nreturn f(1)", 1);
    check("local f = function() return 1 end\nreturn f.x", 0);
    check("local function f() return lib.none() end return f()", 1);
    check("local function f() return string.rep() end\nreturn f()", 1);
    for text in [
        "return (function() end).x",
        "return (function() end) + 1",
        "return -(function() end)",
        "return #(function() end)",
        "return (function() end) .. 'x'",
        "return 'x' .. tostring(1) .. (function() end) .. 'y'",
        "return (function() end):x()",
        "(function() end).x = 1",
        "return lib.call.x",
        "return 1 + lib.call",
        "return lib.call .. tostring(1)",
        "lib.call.x = tostring(1)",
        "return lib.call:x()",
    ] {
        check(text, 0);
        check(&format!("local f = function() {text} end return pcall(f)"), 1);
    }
}

#[test]
fn who_asks_for_what_was_collected_or_for_bytecode_gets_what_was() {
    for text in [
        "local t = setmetatable({}, {__mode = 'k'}) do local function f() end t[f] = 1 end \
         local x = 1 collectgarbage() return next(t) == nil",
        "local function f() return lib.call(1) end return #string.dump(f)",
    ] {
        check(text, 0);
    }
}

#[test]
fn as_many_are_lifted_as_there_are_registers_for() {
    let many: String = (0..190).map(|n| format!("local function f{n}() return {n} end ")).collect();
    check(&format!("{many} return f0() + f100() + f189()"), usize::from(MAKER_REGISTERS));
    let each: String = (0..100).map(|n| format!("t[{n}] = function() return lib.name .. {n} end ")).collect();
    check(&format!("local t = {{}} {each} {each} return t[0]() .. t[99]()"), usize::from(MAKER_REGISTERS));
    let names: String = (0..100).map(|n| format!("local x{n} = lib.x{n} ")).collect();
    let lua = Lua::new();
    assert_eq!(lifted(&lua, &format!("return function() {names} return 1 end")).1, 1);
}

/// Scripts of functions that catch each other, assign to what they have caught, or do not, in loops and
/// branches, from a seed. Each tells all that can be told of the values that it has had.
struct Writer {
    random: Random,
    text: String,
    /// The variables that can be named, innermost last.
    variables: Vec<String>,
    named: usize,
    /// Functions that this is within, and statements that may still be written.
    depth: usize,
    left: usize,
}

/// The functions that all of them begin with: `show` names a value, `try` calls one if it can be called.
const HEAD: &str = "local t = {} local seen = {} local call = lib.call \
    local function show(v) return type(v) == 'function' and 'f' or tostring(v) end \
    local function try(v, n) if n < 0 then return 0 end local ok, r = pcall(v, n) return show(r) end\n";

impl Writer {
    fn script(seed: u64) -> String {
        let mut writer = Writer {
            random: Random::new(seed),
            text: HEAD.into(),
            variables: Vec::new(),
            named: 0,
            depth: 0,
            left: 40,
        };
        while writer.left > 0 {
            writer.statement();
        }
        writer
            .text
            .push_str("local n = 0 for _ in pairs(seen) do n = n + 1 end return table.concat(t, ' '), n");
        writer.text
    }

    fn new_name(&mut self) -> String {
        self.named += 1;
        format!("v{}", self.named)
    }

    fn variable(&mut self) -> Option<String> {
        let count = self.variables.len() as u64;
        (count > 0).then(|| self.variables[self.random.below(count) as usize].clone())
    }

    fn value(&mut self) -> String {
        let variable = self.variable().unwrap_or_else(|| "nil".into());
        match self.random.below(12) {
            0 => self.random.below(100).to_string(),
            1 => "'s'".into(),
            2 => "nil".into(),
            3 => "lib.call".into(),
            4 => "lib.call(1)".into(),
            5 => format!("try({variable}, {})", if self.depth > 0 { "n - 1" } else { "2" }),
            6 => format!("call({variable})"),
            7 => format!("show({variable}) .. lib.name"),
            8 | 9 => {
                let end = self.text.len();
                self.text.push_str("function");
                self.body();
                self.text.split_off(end)
            }
            _ => variable,
        }
    }

    /// A function behind its name.
    fn body(&mut self) {
        self.text.push_str("(n)\n");
        self.depth += 1;
        self.block(3);
        let value = self.value();
        self.text.push_str(&format!("return {value} end\n"));
        self.depth -= 1;
    }

    fn block(&mut self, most: u64) {
        let variables = self.variables.len();
        for _ in 0..self.random.below(most + 1) {
            self.statement();
        }
        self.variables.truncate(variables);
    }

    fn statement(&mut self) {
        self.left = self.left.saturating_sub(1);
        let is_deep = self.depth > 3 || self.left == 0;
        match self.random.below(if is_deep { 6 } else { 12 }) {
            0 => {
                let (value, name) = (self.value(), self.new_name());
                self.text.push_str(&format!("local {name} = {value}\n"));
                self.variables.push(name);
            }
            1 => {
                let name = self.new_name();
                self.text.push_str(&format!("local {name}\n"));
                self.variables.push(name);
            }
            2 => {
                let (value, variable) = (self.value(), self.variable());
                let Some(variable) = variable else { return };
                self.text.push_str(&format!("{variable} = {value}\n"));
            }
            3 | 4 => {
                let (a, b) = (self.value(), self.variable().unwrap_or_else(|| "1".into()));
                if self.depth > 0 {
                    // The table would be caught, and is not constant.
                    let name = self.new_name();
                    self.text.push_str(&format!("local {name} = show({a}) .. tostring({b} == {a})\n"));
                    self.variables.push(name);
                    return;
                }
                self.text.push_str(&format!(
                    "t[#t + 1] = show({a}) t[#t + 1] = tostring({b} == {a}) if {b} then seen[{b}] = 1 end\n"
                ));
            }
            5 if self.depth > 0 => {
                let value = self.value();
                self.text.push_str(&format!("if n == 1 then return {value} end\n"));
            }
            5 => {
                let value = self.variable().unwrap_or_else(|| "show".into());
                self.text.push_str(&format!("t[#t + 1] = try({value}, 2)\n"));
            }
            6..=8 => {
                let name = self.new_name();
                self.text.push_str(&format!("local function {name}"));
                self.variables.push(name);
                self.body();
            }
            9 => {
                let value = self.value();
                self.text.push_str(&format!("if {value} then\n"));
                self.block(3);
                self.text.push_str("else\n");
                self.block(2);
                self.text.push_str("end\n");
            }
            10 => {
                let name = self.new_name();
                self.text.push_str(&format!("for {name} = 1, 2 do\n"));
                let variables = self.variables.len();
                self.variables.push(name);
                self.block(3);
                self.variables.truncate(variables);
                self.text.push_str("end\n");
            }
            _ => {
                self.text.push_str("do\n");
                self.block(3);
                self.text.push_str("end\n");
            }
        }
    }
}

#[test]
fn random_scripts_return_what_they_returned() {
    let all: usize = (0..2_000).map(|seed| check_runs(&Writer::script(seed))).sum();
    assert!(all > 5_500, "{all} were lifted, with the two of each head");
}
