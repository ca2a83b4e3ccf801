//! Functions and runs over an interpreter of their own, without a server and without a sandbox.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use lua::{
    Argument, Buffer, Ended, Form, Functions, Kept, Name, Outcome, Runner, Seen, Spot, Stack, Start, Tables,
    Written, function, maker, unpacker, writer,
};
use mlua::{Function, Lua, Value};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
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
            out.clear();
            noted.borrow_mut().extend(arguments.map(|argument| match argument {
                Argument::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Argument::Number(n) => n.to_string(),
                Argument::Other => "?".into(),
            }));
            out.extend_from_slice(&answer.borrow());
            outcome
        };
        lua.globals().set("call", function(&lua, Rc::default(), body).unwrap()).unwrap();
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
                Ended::Done(mut stack) => match stack.first() {
                    Seen::Nil => "nil".into(),
                    Seen::Boolean(is_true) => is_true.to_string(),
                    Seen::Number(n) => n.to_string(),
                    Seen::String(text) => String::from_utf8_lossy(text).into_owned(),
                    Seen::Table(_) => "table".into(),
                    Seen::Null => "null".into(),
                    Seen::Other(name) => name.into(),
                },
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
    let panicking =
        function(&bench.lua, Rc::<RefCell<Vec<u8>>>::default(), |_, _| panic!("of a body")).unwrap();
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
    let is_one = |ended: Ended<'_>| match ended {
        Ended::Done(mut stack) => Ok(stack.first() == Seen::Number(1.0)),
        Ended::Failed(_) => Ok(false),
    };
    assert!(bench.runner.run(start, 0, is_one).unwrap());
}

#[test]
fn values_of_other_types_and_the_depth_of_the_stack() {
    let bench = Bench::new(REPLY);
    assert_eq!(bench.run("return {}"), "table");
    assert_eq!(bench.run("return print"), "function");
    assert_eq!(bench.run("return coroutine.create(function() end)"), "thread");
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

/// What a value is, tables in the way of `SHOW`; of a table only where it lies.
fn plain(seen: Seen<'_>) -> Result<String, Spot> {
    Ok(match seen {
        Seen::Nil => "nil".into(),
        Seen::Boolean(is_true) => is_true.to_string(),
        Seen::Number(n) => n.to_string(),
        Seen::String(text) => format!("<{}>", String::from_utf8_lossy(text)),
        Seen::Null => "null".into(),
        Seen::Other(name) => name.into(),
        Seen::Table(table) => return Err(table),
    })
}

fn show(stack: &mut Stack<'_>, table: Spot) -> String {
    let pairs = stack.pairs(table);
    let mut parts = Vec::new();
    while let Some(key) = stack.next(pairs) {
        let key = plain(key).unwrap_or_else(|table| show(stack, table));
        let value = plain(stack.value(pairs)).unwrap_or_else(|table| show(stack, table));
        parts.push(format!("{key}={value}"));
    }
    parts.sort();
    format!("{{{}}}", parts.join(" "))
}

fn show_first(mut stack: Stack<'_>) -> String {
    plain(stack.first()).unwrap_or_else(|table| show(&mut stack, table))
}

impl Bench {
    fn look<R>(&self, text: &str, look: impl FnOnce(Stack<'_>) -> R) -> R {
        let function = self.keep(text);
        self.runner
            .run(Start { function: &function, tables: Tables::None }, 0, |ended| match ended {
                Ended::Done(stack) => Ok(look(stack)),
                Ended::Failed(value) => panic!("{value:?}"),
            })
            .unwrap()
    }
}

#[test]
fn tables_are_read_where_they_lie() {
    let bench = Bench::new(REPLY);
    let shown = |text| bench.look(text, show_first);
    assert_eq!(shown("return {}"), "{}");
    assert_eq!(shown("return {1, 'a', x = true}"), "{1=1 2=<a> <x>=true}");
    assert_eq!(
        shown("return {{1, {2}}, [{3}] = {{4}, print}}"),
        "{1={1=1 2={1=2}} {1=3}={1={1=4} 2=function}}"
    );
    let (err, none) = (Name::new(&bench.lua, "err").unwrap(), Name::new(&bench.lua, "none").unwrap());
    bench.look("return setmetatable({'a', {'b'}, err = 'c'}, {__index = error})", |mut stack| {
        let Seen::Table(table) = stack.first() else { panic!("a table") };
        assert_eq!(stack.field(table, &err), Seen::String(b"c"));
        assert_eq!(stack.field(table, &none), Seen::Nil);
        assert_eq!(stack.element(table, 1), Seen::String(b"a"));
        let Seen::Table(inner) = stack.element(table, 2) else { panic!("a table") };
        assert_eq!(stack.element(inner, 1), Seen::String(b"b"));
        assert_eq!(stack.element(table, 3), Seen::Nil);
        // The one that was let go of is no table any more.
        assert_eq!(stack.element(inner, 1), Seen::Nil);
    });
}

#[test]
fn what_was_seen_stays_whatever_runs_meanwhile() {
    let bench = Bench::new(REPLY);
    bench.look("t = {('x'):rep(1000), {}} return t", |mut stack| {
        let Seen::Table(table) = stack.first() else { panic!("a table") };
        let pairs = stack.pairs(table);
        assert_eq!(stack.next(pairs), Some(Seen::Number(1.0)));
        let Seen::String(text) = stack.value(pairs) else { panic!("a string") };
        bench.lua.load("t[1] = nil collectgarbage() local s = ('y'):rep(1000)").exec().unwrap();
        assert_eq!(text, [b'x'; 1000]);
        // The key is gone, so there is no next one.
        assert_eq!(stack.next(pairs), None);
        assert_eq!(stack.element(table, 1), Seen::Nil);
    });
}

#[test]
fn tables_that_hold_themselves_end_with_the_stack() {
    let bench = Bench::new(REPLY);
    bench.look("local t = {} t[1] = t return t", |mut stack| {
        let (Seen::Table(mut table), mut depth) = (stack.first(), 0) else { panic!("a table") };
        loop {
            depth += 1;
            let has_room = stack.has_room();
            let Seen::Table(nested) = stack.element(table, 1) else { break assert!(!has_room) };
            table = nested;
        }
        assert!((7_900..8_000).contains(&depth), "{depth}");
    });
}

/// What a body sees of its arguments, as text.
fn show_all(stack: &mut Stack<'_>, out: &mut Vec<u8>) -> Written {
    if stack.count() == 0 {
        return Written::BadArgument(1, c"something expected");
    }
    for index in 1..=stack.count() {
        let table = match stack.argument(index) {
            Seen::Table(table) => table,
            Seen::String(b"fail") => {
                out.splice(.., *b"a reason");
                return Written::Error;
            }
            Seen::String(b"panic") => panic!("a body"),
            Seen::String(text) => {
                out.extend_from_slice(text);
                continue;
            }
            other => {
                out.extend_from_slice(format!("{other:?} ").as_bytes());
                continue;
            }
        };
        let mut keys = 0;
        stack.visit_keys(table, &mut |_| keys += 1);
        let pairs = stack.pairs(table);
        while let Some(key) = stack.next(pairs) {
            out.extend_from_slice(format!("{key:?}").as_bytes());
            out.extend_from_slice(format!("={:?} ", stack.value(pairs)).as_bytes());
            keys -= 1;
        }
        out.extend_from_slice(format!("{keys} left ").as_bytes());
    }
    Written::Text
}

#[test]
fn a_writer_makes_a_string_of_its_arguments() {
    let bench = Bench::new(REPLY);
    let write = writer(&bench.lua, &Buffer::default(), |mut stack, out| show_all(&mut stack, out)).unwrap();
    bench.lua.globals().set("write", write).unwrap();
    bench.lua.globals().set("null", Value::NULL).unwrap();
    assert_eq!(
        bench.run("return write({'a', x = true}, 'and ', nil, null, write, {}, 'last')"),
        "Number(1.0)=String([97]) String([120])=Boolean(true) 0 left and Nil Null Other(\"function\") 0 left last"
    );
    assert_eq!(bench.run("return write(write('in'), write('side'))"), "inside");
    assert!(bench.run("write()").contains("bad argument #1 to 'write' (something expected)"));
    assert!(bench.run("write('x', 'fail')").ends_with("1: a reason"), "nothing of before, and the line");
    assert_eq!(bench.run("return #write(('x'):rep(3000000)) + #write('y')"), "3000001");
    let nests = "local t = {} t[t] = t for i = 1, 300 do t[i] = i end return #write(t, t) > 3000";
    assert_eq!(bench.run(nests), "true");
    catch_unwind(AssertUnwindSafe(|| bench.run("pcall(write, 'panic') return write('more')"))).unwrap_err();
    assert!(bench.run_with("return write(('x'):rep(1000000))", Tables::None, 1_500_000).contains("memory"));
    assert_eq!(bench.run("return write('fine')"), "fine");
}

#[test]
fn what_a_function_is_made_over_goes_with_it() {
    let bench = Bench::new(REPLY);
    let held = Rc::new(());
    let buffer = Buffer::default();
    for _ in 0..10 {
        let body = Rc::clone(&held);
        let write = writer(&bench.lua, &buffer, move |_, out| {
            out.push(b'0' + Rc::strong_count(&body) as u8);
            Written::Text
        });
        bench.lua.globals().set("write", write.unwrap()).unwrap();
        bench.lua.gc_collect().unwrap();
        bench.lua.gc_collect().unwrap();
        assert_eq!(bench.run("return write()"), "2");
    }
    bench.lua.globals().set("write", Value::Nil).unwrap();
    bench.lua.gc_collect().unwrap();
    bench.lua.gc_collect().unwrap();
    assert_eq!((Rc::strong_count(&held), Rc::strong_count(&buffer)), (1, 1));
}

#[test]
fn a_maker_makes_the_value_that_it_has_written() {
    let bench = Bench::new(REPLY);
    let make = maker(&bench.lua, &Buffer::default(), |mut stack, out| match stack.argument(1) {
        Seen::String(bytes) => {
            out.extend_from_slice(bytes);
            Written::Text
        }
        _ => Written::NotAString(1),
    });
    bench.lua.globals().set("make", make.unwrap()).unwrap();
    let shown = |text| bench.look(text, show_first);
    assert_eq!(shown(r"return make('\147\1\161a\193')"), "{1=1 2=<a> 3=null}");
    assert_eq!(shown(r"return make('\130\161a\1\161a\2')"), "{<a>=2}");
    for broken in [r"make('')", r"make('\193\145')", r"make('\146\1')", "make(('\\145'):rep(1001) .. '1')"] {
        assert!(!bench.run(broken).is_empty(), "{broken}");
    }
    assert!(bench.run("make({})").contains("bad argument #1 to 'make' (string expected, got table)"));
    let large = r"return make('\219\0\16\0\0' .. ('x'):rep(1048576))";
    assert!(bench.run_with(large, Tables::None, 1_500_000).contains("memory"));
    assert_eq!(bench.run(r"return #make('\219\0\16\0\0' .. ('x'):rep(1048576))"), "1048576");
}

/// An unpacker that is told to go on for so many values.
fn unpacking(bench: &Bench, form: Form, steps_max: u32) {
    let left = Cell::new(steps_max);
    let may_go_on = move |steps| {
        left.set(left.get().saturating_sub(steps));
        assert_ne!(left.get(), 1, "a panic of the body");
        left.get() > 0
    };
    bench.lua.globals().set("unpack", unpacker(&bench.lua, form, may_go_on).unwrap()).unwrap();
}

#[test]
fn messages_become_values() {
    let bench = Bench::new(REPLY);
    unpacking(&bench, Form::All, u32::MAX);
    let shown = |text| bench.look(text, show_first);
    assert_eq!(shown(r"return {unpack('\147\1\161a\129\161b\195')}"), "{1={1=1 2=<a> 3={<b>=true}}}");
    assert_eq!(shown(r"return {unpack('\1\255\192\2')}"), "{1=1 2=-1 4=2}");
    for (call, raised) in [
        (r"unpack('\146\1')", "Missing bytes in input."),
        (r"unpack('\193')", "Bad data format in input."),
        (r"unpack(('\145'):rep(1001) .. '\1')", "stack overflow (in function mp_decode_to_lua_array)"),
        (r"unpack(('\1'):rep(8000))", "stack overflow (too many return values at once;"),
        ("unpack()", "bad argument #1 to 'unpack' (string expected, got no value)"),
        (r"unpack('\129\192\1')", "index is nil"),
    ] {
        let text = bench.run(call);
        assert!(text.contains(raised), "{call}: {text}");
    }
    unpacking(&bench, Form::One, u32::MAX);
    assert_eq!(shown(r"return {unpack('\1\2', 1)}"), "{1=-1 2=2}");
    assert!(bench.run("unpack('a', 2)").contains("Start offset 2 greater than input length 1."));
    assert!(
        bench.run("unpack('a', -1)").contains("Invalid request to unpack with offset of -1 and limit of 1.")
    );
}

#[test]
fn nested_tables_take_no_memory_for_what_they_only_announce() {
    let bench = Bench::new(REPLY);
    unpacking(&bench, Form::All, u32::MAX);
    let text = r"return unpack(('\221\255\255\255\255'):rep(1000) .. ('\1'):rep(100000))";
    assert!(bench.run_with(text, Tables::None, 64 << 20).contains("Missing bytes in input."));
}

#[test]
fn reading_a_message_ends_when_it_is_to_end() {
    let bench = Bench::new(REPLY);
    unpacking(&bench, Form::All, 3 << 10);
    assert_eq!(bench.run(r"return #unpack('\221\0\0\8\0' .. ('\1'):rep(2048))"), "2048");
    assert!(bench.run(r"return #unpack('\221\0\0\8\0' .. ('\1'):rep(2048))").contains("stopped"));
    unpacking(&bench, Form::All, 1025);
    let many = r"return #unpack('\221\0\0\8\0' .. ('\1'):rep(2048))";
    catch_unwind(AssertUnwindSafe(|| bench.run(many))).unwrap_err();
}

proptest! {
    /// Spots of tables that were let go of, of other runs, and keys that are none find nothing, and harm
    /// nothing.
    #[test]
    fn looks_in_any_order_harm_nothing(looks in proptest::collection::vec((0_usize..8, 0_u8..6), 0..60)) {
        let bench = Bench::new(REPLY);
        let name = Name::new(&bench.lua, "a").unwrap();
        let (mut spots, mut all_pairs): (Vec<Spot>, Vec<lua::Pairs>) = Default::default();
        for _ in 0..2 {
            bench.look("return {{1, {2, {3}}}, a = {b = {}}, [{}] = {5}}", |mut stack| {
                if let Seen::Table(spot) = stack.first() {
                    spots.push(spot);
                }
                for (at, what) in &looks {
                    let spot = spots[at % spots.len()];
                    let seen = match what {
                        0 => stack.element(spot, 1),
                        1 => stack.element(spot, 2),
                        2 => stack.field(spot, &name),
                        3 => {
                            all_pairs.push(stack.pairs(spot));
                            Seen::Nil
                        }
                        _ if all_pairs.is_empty() => Seen::Nil,
                        4 => stack.next(all_pairs[at % all_pairs.len()]).unwrap_or(Seen::Nil),
                        _ => stack.value(all_pairs[at % all_pairs.len()]),
                    };
                    if let Seen::Table(spot) = seen {
                        spots.push(spot);
                    }
                }
            });
        }
        prop_assert_eq!(bench.run("return 1"), "1");
    }
}
