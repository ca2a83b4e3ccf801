//! Functions and runs over an interpreter of their own, without a server and without a sandbox.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use lua::{Argument, Ended, Functions, Kept, Outcome, Returned, Runner, Start, Tables, function};
use mlua::{Function, Lua, Value};
use proptest::prelude::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// An interpreter with a function `call` that answers with `reply`, and writes down what it was given.
struct Bench {
    lua: Lua,
    functions: Functions,
    runner: Runner,
    given: Rc<RefCell<Vec<String>>>,
    reply: Rc<RefCell<Vec<u8>>>,
}

impl Bench {
    fn new(outcome: Outcome) -> Bench {
        let lua = Lua::new();
        let functions = Functions::new(&lua).unwrap();
        let handler = lua.load("return ...").into_function().unwrap();
        let runner = Runner::new(&lua, &lua.globals(), &functions, &handler).unwrap();
        let (given, reply) = (Rc::<RefCell<Vec<String>>>::default(), Rc::<RefCell<Vec<u8>>>::default());
        let (noted, answer) = (Rc::clone(&given), Rc::clone(&reply));
        let body = move |arguments: lua::Arguments<'_>, out: &mut Vec<u8>| {
            assert!(out.is_empty());
            noted.borrow_mut().extend(arguments.map(|argument| match argument {
                Argument::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Argument::Number(n) => n.to_string(),
                Argument::Other => "?".into(),
            }));
            out.extend_from_slice(&answer.borrow());
            outcome
        };
        lua.globals().set("call", function(&lua, body).unwrap()).unwrap();
        Bench { lua, functions, runner, given, reply }
    }

    fn keep(&self, text: &str) -> Kept {
        self.functions.keep(self.lua.load(text).into_function().unwrap()).unwrap()
    }

    /// What a script shows of itself: its result or its error as text.
    fn run_with(&self, text: &str, tables: Tables<'_, '_>, bytes_max: usize) -> String {
        let function = self.keep(text);
        let used = self.lua.used_memory();
        let shown = self.runner.run(Start { function: &function, tables }, bytes_max, |ended| {
            Ok(match ended {
                Ended::Done(Returned::Nil) => "nil".into(),
                Ended::Done(Returned::Boolean(is_true)) => is_true.to_string(),
                Ended::Done(Returned::Number(n)) => n.to_string(),
                Ended::Done(Returned::String(text)) => String::from_utf8_lossy(text).into_owned(),
                Ended::Done(Returned::Other(value)) => value.type_name().into(),
                Ended::Failed(Value::String(text)) => format!("raised {}", text.to_string_lossy()),
                Ended::Failed(Value::Table(table)) => {
                    format!("raised {}", table.get::<String>("err").unwrap())
                }
                Ended::Failed(value) => format!("raised a {}", value.type_name()),
            })
        });
        self.lua.gc_collect().unwrap();
        assert!(self.lua.used_memory() < used + (1 << 20), "nothing of a run stays");
        shown.unwrap()
    }

    fn run(&self, text: &str) -> String {
        self.run_with(text, Tables::None, 0)
    }

    /// How `reply` arrives, written by Lua itself.
    fn shown(&self, reply: &[u8]) -> String {
        *self.reply.borrow_mut() = reply.to_vec();
        self.run(SHOW)
    }
}

const SHOW: &str = "
local function show(v)
    if type(v) ~= 'table' then return type(v) == 'string' and '<' .. v .. '>' or tostring(v) end
    local parts = {}
    for k, x in pairs(v) do parts[#parts + 1] = show(k) .. '=' .. show(x) end
    table.sort(parts)
    return '{' .. table.concat(parts, ' ') .. '}'
end
return show(call())";

const REPLY: Outcome = Outcome::Reply { raises: false };

#[test]
fn arguments_arrive_as_they_are() {
    let bench = Bench::new(REPLY);
    *bench.reply.borrow_mut() = b":1\r\n".to_vec();
    assert_eq!(bench.run("return call('a', '', 1, -0.5, true, nil, {}, 'b\\0c')"), "1");
    assert_eq!(*bench.given.borrow(), ["a", "", "1", "-0.5", "?", "?", "?", "b\0c"]);
    bench.given.borrow_mut().clear();
    assert_eq!(bench.run("local n = 12 call(n, n) return type(n)"), "number");
    assert_eq!(*bench.given.borrow(), ["12", "12"]);
    assert_eq!(bench.run("return call()"), "1");
    assert_eq!(bench.given.borrow().len(), 2);
}

#[test]
fn replies_of_every_type() {
    let bench = Bench::new(REPLY);
    for (reply, shown) in [
        (&b":-12\r\n"[..], "-12"),
        (b"$3\r\na\r\n\r\n", "<a\r\n>"),
        (b"$0\r\n\r\n", "<>"),
        (b"$-1\r\n", "false"),
        (b"*-1\r\n", "false"),
        (b"_\r\n", "nil"),
        (b"#t\r\n", "true"),
        (b"#f\r\n", "false"),
        (b"+OK\r\n", "{<ok>=<OK>}"),
        (b"-ERR x\r\n", "{<err>=<ERR x> <ignore_error_stats_update>=true}"),
        (b",1.5\r\n", "{<double>=1.5}"),
        (b"(123\r\n", "{<big_number>=<123>}"),
        (b"=7\r\ntxt:abc\r\n", "{<verbatim_string>={<format>=<txt> <string>=<abc>}}"),
        (b"*0\r\n", "{}"),
        (b"*3\r\n$1\r\na\r\n:2\r\n*1\r\n+x\r\n", "{1=<a> 2=2 3={1={<ok>=<x>}}}"),
        (b">1\r\n:1\r\n", "{1=1}"),
        (b"%2\r\n:1\r\n:2\r\n_\r\n:3\r\n", "{<map>={1=2}}"),
        (b"~2\r\n$1\r\na\r\n,nan\r\n", "{<set>={<a>=true {<double>=nan}=true}}"),
        (b"|1\r\n+k\r\n:9\r\n:5\r\n", "5"),
        (b"*2\r\n-E\r\n:1\r\n", "{1={<err>=<E> <ignore_error_stats_update>=true} 2=1}"),
    ] {
        assert_eq!(bench.shown(reply).replace("-nan", "nan"), shown, "{}", reply.escape_ascii());
    }
}

#[test]
fn a_reply_that_is_none_is_an_error() {
    let bench = Bench::new(REPLY);
    let deep = b"*1\r\n".repeat(200);
    for reply in [
        &b""[..],
        b"\r\n",
        b":x\r\n",
        b"$6\r\nabc\r\n",
        b"*2\r\n:1\r\n",
        b"*9999999999\r\n:1\r\n",
        b"%1\r\n:1\r\n",
        b"=2\r\nab\r\n",
        b"?\r\n",
        b"$18446744073709551615\r\n",
        b",x\r\n",
        &deep,
    ] {
        assert_eq!(bench.shown(reply), "raised the reply of a command cannot be read");
    }
}

#[test]
fn errors_are_raised_or_returned() {
    let try_it = "local ok, e = pcall(call) return tostring(ok) .. ' ' .. e.err .. ' ' .. \
                  tostring(e.ignore_error_stats_update)";
    for (outcome, reply, shown) in [
        (Outcome::Reply { raises: true }, "-ERR x\r\n", "false ERR x true"),
        (Outcome::Reply { raises: false }, "-ERR x\r\n", "true ERR x true"),
        (Outcome::Error { raises: true }, "ERR y", "false ERR y nil"),
        (Outcome::Error { raises: false }, "ERR y", "true ERR y nil"),
    ] {
        let bench = Bench::new(outcome);
        *bench.reply.borrow_mut() = reply.into();
        assert_eq!(bench.run(try_it), shown);
    }
    let bench = Bench::new(Outcome::Stopped);
    assert_eq!(bench.run("return call()"), "raised the script was stopped");
}

#[test]
fn tables_of_keys_and_arguments() {
    let bench = Bench::new(REPLY);
    let texts = [b"a".as_slice(), b"", b"c\0"];
    let (mut keys, mut argv) = (texts.into_iter(), [b"z".as_slice()].into_iter());
    let tables = Tables::Globals(&mut keys, &mut argv);
    let text = "return #KEYS .. KEYS[1] .. #KEYS[2] .. #KEYS[3] .. #ARGV .. ARGV[1]";
    assert_eq!(bench.run_with(text, tables, 0), "3a021z");
    let (mut keys, mut argv) = (texts.into_iter(), std::iter::empty());
    let tables = Tables::Arguments(&mut keys, &mut argv);
    assert_eq!(bench.run_with("local k, a = ... return k[1] .. #k .. #a", tables, 0), "a30");
    assert_eq!(bench.run("return select('#', ...)"), "0");
}

#[test]
fn the_bound_on_memory_ends_what_needs_more() {
    let bench = Bench::new(REPLY);
    let bound = || bench.lua.used_memory() + (200 << 10);
    *bench.reply.borrow_mut() = [b"*100000\r\n".to_vec(), b"$1\r\na\r\n".repeat(100_000)].concat();
    assert_eq!(bench.run_with("return call()", Tables::None, bound()), "raised not enough memory");
    let strings = vec![b"0123456789".as_slice(); 100_000];
    let (mut keys, mut argv) = (strings.iter().copied(), std::iter::empty());
    let tables = Tables::Globals(&mut keys, &mut argv);
    assert_eq!(bench.run_with("return 1", tables, bound()), "raised not enough memory");
    assert_eq!(bench.run("return #call()"), "100000", "there is no bound behind it");
}

#[test]
fn a_panic_goes_through_the_script_to_who_has_run_it() {
    let bench = Bench::new(REPLY);
    let panicking = function(&bench.lua, |_, _| panic!("of a body")).unwrap();
    bench.lua.globals().set("panicking", panicking).unwrap();
    for text in ["panicking()", "pcall(panicking) return 1"] {
        let panic = catch_unwind(AssertUnwindSafe(|| bench.run(text))).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"of a body"));
    }
    *bench.reply.borrow_mut() = b":1\r\n".to_vec();
    assert_eq!(bench.run("return call()"), "1");
}

#[test]
fn functions_are_forgotten_when_they_are_dropped() {
    let bench = Bench::new(REPLY);
    let first = bench.keep("return 1");
    for n in 0..1000 {
        let text = format!("return {n}, '{}'", "x".repeat(10_000));
        assert_eq!(bench.run(&text), n.to_string());
        bench.functions.forget_dropped();
    }
    bench.lua.gc_collect().unwrap();
    assert!(bench.lua.used_memory() < 1 << 20);
    let start = Start { function: &first, tables: Tables::None };
    let is_one = |ended: Ended<'_>| Ok(matches!(ended, Ended::Done(Returned::Number(1.0))));
    assert!(bench.runner.run(start, 0, is_one).unwrap());
}

#[test]
fn values_of_other_types_and_the_depth_of_the_stack() {
    let bench = Bench::new(REPLY);
    assert_eq!(bench.run("return {}"), "table");
    assert_eq!(bench.run("return print"), "function");
    assert_eq!(bench.run("return"), "nil");
    assert_eq!(bench.run("return true, 2"), "true");
    assert_eq!(bench.run("error({err = 'x'})"), "raised x");
    assert_eq!(bench.run("error(print)"), "raised a function");
    *bench.reply.borrow_mut() = b":1\r\n".to_vec();
    let deep = "local function f(n) if n > 0 then return (f(n - 1)) end return call(unpack({}, 1, 200)) end \
                return f(15000)";
    assert_eq!(bench.run(deep), "1");
    let in_coroutine =
        "return select(2, coroutine.resume(coroutine.create(function() return call('x') end)))";
    assert_eq!(bench.run(in_coroutine), "1");
    let nested: Function = bench.lua.load("return call()").into_function().unwrap();
    assert_eq!(nested.call::<i64>(()).unwrap(), 1, "also without a runner");
}

/// What broken replies are made of.
const PARTS: &[&[u8]] = &[
    b":1\r\n",
    b"$3\r\nabc\r\n",
    b"*2\r\n",
    b"%1\r\n",
    b"~3\r\n",
    b"|1\r\n",
    b"_\r\n",
    b"-E\r\n",
    b"=5\r\ntxt:a\r\n",
    b",nan\r\n",
    b"$",
    b"\r\n",
    b"9999",
    b"*-1\r\n",
    b"\0",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes are a reply or an error, with a bound on memory or without.
    #[test]
    fn any_reply(
        parts in prop::collection::vec(
            prop::sample::select(PARTS),
            0..40,
        ),
        spare in prop_oneof![Just(usize::MAX / 4), 0..40_000_usize],
    ) {
        let bench = Bench::new(REPLY);
        *bench.reply.borrow_mut() = parts.concat();
        let bound = bench.lua.used_memory().saturating_add(spare);
        let shown = bench.run_with(SHOW, Tables::None, bound);
        prop_assert!(!shown.is_empty());
    }
}
