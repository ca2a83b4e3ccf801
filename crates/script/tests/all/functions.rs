//! Libraries of functions: what loading them answers, and what calls of their functions do.
use crate::host::{KILLED, Toy};
use crate::recorded::unescape;
use resp::{Protocol, Reply};
use script::{Flags, Kind, Library, Machine, Outcome, Settings, library_name};

fn machine() -> Machine {
    Machine::new(Kind::Functions, Settings::default())
}

fn call(machine: &Machine, library: &Library, words: &[&'static str]) -> Vec<u8> {
    let named = |name: &str| library.functions().iter().find(|f| f.name().eq_ignore_ascii_case(name));
    let function = named(words[0]).unwrap();
    let (keys, argv) = words[2..].split_at(words[1].parse().unwrap());
    let mut host = Toy { is_read_only: function.flags().has(Flags::NO_WRITES), ..Toy::default() };
    let mut reply = Reply::new(Protocol::Resp2);
    let bytes = |word: &&'static str| word.as_bytes();
    machine.run_function(function, keys.iter().map(bytes), argv.iter().map(bytes), &mut host, &mut reply);
    reply.out
}

/// Recorded from Redis 8.0.2: a line of code that is loaded, or of a call, above its reply.
#[test]
fn libraries_load_and_answer_as_redis_s_do() {
    let machine = machine();
    let mut library = None;
    let mut wrong = Vec::new();
    let lines: Vec<&str> = include_str!("recorded/functions.txt").lines().collect();
    for pair in lines.chunks_exact(2) {
        let expected = unescape(pair[1].trim_start());
        let got = match pair[0].split_at(2) {
            ("L ", code) => match machine.load_library(&unescape(code), &mut Toy::default()) {
                Ok(loaded) => {
                    let name = loaded.name().to_vec();
                    library = Some(loaded);
                    [format!("${}\r\n", name.len()).as_bytes(), &name, b"\r\n"].concat()
                }
                Err(text) => [b"-", text.as_slice(), b"\r\n"].concat(),
            },
            (_, words) => {
                let words: Vec<&'static str> = words.split(' ').collect();
                call(&machine, library.as_ref().unwrap(), &words)
            }
        };
        if got != expected {
            let (got, expected) = (got.escape_ascii(), expected.escape_ascii());
            wrong.push(format!("{}\n  got      {got}\n  expected {expected}", pair[0]));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_library_tells_its_functions() {
    let code = b"#!lua name=lib\nredis.register_function{function_name='f', callback=function() end, \
                 description='d', flags={'no-writes', 'allow-stale'}}";
    assert_eq!(library_name(code).unwrap(), b"lib");
    let library = machine().load_library(code, &mut Toy::default()).unwrap();
    let function = &library.functions()[0];
    assert_eq!((function.name(), function.description()), ("f", Some(&b"d"[..])));
    assert_eq!(function.flags().names().collect::<Vec<_>>(), ["no-writes", "allow-stale"]);
}

#[test]
fn loading_can_be_stopped() {
    let mut host = Toy { stop_at: Some(3), ..Toy::default() };
    let loaded = machine().load_library(b"#!lua name=lib\nwhile true do end", &mut host);
    let expected = format!("ERR Error registering functions: {KILLED}");
    assert_eq!(String::from_utf8(loaded.err().unwrap()).unwrap(), expected);
}

#[test]
fn functions_keep_the_variables_of_their_library() {
    let machine = machine();
    let code = b"#!lua name=lib\nlocal n = 0 redis.register_function('f', function() n = n + 1 return n end)";
    let library = machine.load_library(code, &mut Toy::default()).unwrap();
    for n in 1..4 {
        let mut reply = Reply::new(Protocol::Resp2);
        let function = &library.functions()[0];
        let outcome =
            machine.run_function(function, [].into_iter(), [].into_iter(), &mut Toy::default(), &mut reply);
        assert_eq!((outcome, reply.out), (Outcome::Done, format!(":{n}\r\n").into_bytes()));
    }
}

/// Whether a library of this code is said to keep nothing from call to call.
fn is_stateless(code: &str) -> bool {
    let code = format!("#!lua name=lib\n{code}");
    let library = machine().load_library(code.as_bytes(), &mut Toy::default());
    library.unwrap_or_else(|why| panic!("{code}: {}", why.escape_ascii())).is_stateless()
}

#[test]
fn what_a_library_keeps_is_known_wherever_it_is() {
    let sixty: Vec<String> = (0..60).map(|n| format!("v{n}")).collect();
    let (names, sum) = (sixty.join(","), sixty.join(" .. "));
    for code in [
        // An iterator that was begun while the library was loaded.
        "local it = ('abc'):gmatch('.') redis.register_function('f', function() return it() end)",
        "local call = redis.register_function redis.register_function('f', function(k, a) \
             return loadstring('return math.random()')() end)",
        "local name = 'random' redis.register_function('f', function() return math[name]() end)",
        "redis.register_function('f', function() cjson.encode_sparse_array(true) end)",
        "redis.register_function('f', function() return cjson.encode_max_depth(3) end)",
        // One of two functions, the last of sixty variables, a variable that two functions share.
        "local n = 0 redis.register_function('f', function() return n end) \
         redis.register_function('g', function() n = n + 1 return n end)",
        "local t = {} redis.register_function('f', function() return #t end)",
        &format!("local {names} redis.register_function('f', function() v59 = 1 return {sum} end)"),
    ] {
        assert!(!is_stateless(code), "{code}");
    }
    for code in [
        "local function f() return 1 end redis.register_function('f', f) redis.register_function('g', f)",
        "redis.register_function('f', function() local it = ('abc'):gmatch('.') return it() .. it() end)",
        "redis.register_function('f', function(k) return cjson.encode(cjson.decode(k[1])) end)",
        &format!("local {names} redis.register_function('f', function() return {sum} end)"),
    ] {
        assert!(is_stateless(code), "{code}");
    }
}

#[test]
fn a_library_that_makes_functions_without_end_is_not_looked_at_for_long() {
    let body = "local x = 1 ".repeat(190);
    let chain = format!(
        "local f = function() end for i = 1, 50000 do local g = f f = function() {body} g() end end \
         redis.register_function('f', f)"
    );
    assert!(!is_stateless(&chain));
    let large = "x = 1 ".repeat(100_000);
    let many = "local f = function() end for i = 1, 900 do local g = f f = function() local x LARGE g() end end \
                redis.register_function('f', f)";
    assert!(!is_stateless(&many.replace("LARGE", &large)), "these are 360 MB of code");
}

#[test]
fn a_library_of_very_many_functions_loads() {
    let register = |n: usize| format!("redis.register_function('f{n}', function() return {n} end)\n");
    let code: String = (0..12_000).map(register).collect();
    let machine = machine();
    let library = machine.load_library(format!("#!lua name=lib\n{code}").as_bytes(), &mut Toy::default());
    let library = library.map_err(|text| text.escape_ascii().to_string()).unwrap();
    assert_eq!(
        (library.functions().len(), call(&machine, &library, &["f11999", "0"])),
        (12_000, b":11999\r\n".to_vec())
    );
    let twice = format!("#!lua name=lib\n{code}{}", register(0));
    assert!(machine.load_library(twice.as_bytes(), &mut Toy::default()).is_err());
}
