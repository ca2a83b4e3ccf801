//! What scripts try: to go on for ever, to take all memory, to survive their end, to leave something behind
//! for the next script, and the ways out of Redis's interpreter that were found over the years.
use crate::host::{KILLED, Toy};
use crate::{run_all, run_in};
use resp::{Protocol, Reply};
use script::{Kind, Machine, Outcome, Settings};

/// A small interpreter that asks its host often.
fn machine() -> Machine {
    Machine::new(Kind::Scripts, Settings { bytes_max: 8 << 20, instructions_between: 100 })
}

/// Runs a script whose host ends it after some questions; it must not survive that.
#[track_caller]
fn is_stopped(body: &str) {
    let machine = machine();
    let mut host = Toy { stop_at: Some(50), ..Toy::default() };
    let (outcome, reply) = run_in(&machine, body.as_bytes(), Protocol::Resp2, &mut host);
    let reply = String::from_utf8_lossy(&reply).into_owned();
    assert_eq!(outcome, Outcome::Stopped, "{body}: {reply}");
    assert!(reply.starts_with(&format!("-{KILLED}")), "{body}: {reply}");
    is_well(&machine);
}

/// Runs a script that needs more memory than there is; it must not survive that.
#[track_caller]
fn is_out_of_memory(body: &str) {
    let machine = machine();
    let mut host = Toy { stop_at: Some(5_000_000), ..Toy::default() };
    let (outcome, reply) = run_in(&machine, body.as_bytes(), Protocol::Resp2, &mut host);
    let reply = String::from_utf8_lossy(&reply).into_owned();
    assert_eq!(outcome, Outcome::Stopped, "{body}: {reply:.200}");
    assert!(reply.starts_with("-ERR not enough memory"), "{body}: {reply:.200}");
    assert!(machine.used_bytes() <= 9 << 20, "{} bytes", machine.used_bytes());
    is_well(&machine);
}

/// Runs a script that fails with an error of its own.
#[track_caller]
fn fails(body: &str, expected: &str) {
    let machine = machine();
    let (outcome, reply) = run_in(&machine, body.as_bytes(), Protocol::Resp2, &mut Toy::default());
    let reply = String::from_utf8_lossy(&reply).into_owned();
    assert!(matches!(outcome, Outcome::Failed { .. }), "{body}: {reply:.200}");
    assert!(reply.contains(expected), "{body}: {reply:.300}");
    is_well(&machine);
}

#[track_caller]
fn answers(body: &str, expected: &str) {
    let hosts = &mut [&mut Toy::default(), &mut Toy::default(), &mut Toy::default()];
    for (_, reply) in run_all(&machine(), body.as_bytes(), Protocol::Resp2, hosts) {
        assert_eq!(String::from_utf8_lossy(&reply), expected, "{body}");
    }
}

/// Whether an interpreter answers the next script.
#[track_caller]
fn is_well(machine: &Machine) {
    machine.tidy();
    let body = b"local t = {} for i = 1, 100 do t[i] = tostring(i) end return #table.concat(t)";
    let (_, reply) = run_in(machine, body, Protocol::Resp2, &mut Toy::default());
    assert_eq!(reply, b":192\r\n");
}

#[test]
fn loops_end_when_the_host_says_so() {
    is_stopped("while true do end");
    is_stopped("while true do redis.call('ping') end");
    is_stopped("while true do pcall(function() while true do end end) end");
    is_stopped("while true do pcall(redis.call, 'ping') end");
    is_stopped(
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
    );
    is_stopped("while true do pcall(error) end");
    is_stopped("local function f() pcall(f) while true do end end f()");
    is_stopped("local function f() pcall(f) f() end f()");
    is_stopped("while true do coroutine.resume(coroutine.create(function() while true do end end)) end");
    is_stopped(
        "local w = coroutine.wrap(function() while true do coroutine.yield() end end) while true do w() end",
    );
    is_stopped("local w = coroutine.wrap(function() while true do end end) while true do pcall(w) end");
    is_stopped("setmetatable({}, {__index=function() while true do end end}).x()");
    is_stopped("string.gsub('x', 'x', function() while true do end end)");
    is_stopped("table.sort({3,2,1}, function() while true do end end)");
    is_stopped("for w in string.gmatch('a', 'a') do while true do end end");
    is_stopped("load(function() while true do end end)");
    is_stopped("load(function() return ' ' end)");
    is_stopped("tostring(setmetatable({}, {__tostring=function() while true do end end}))");
    is_stopped("return 'x' .. setmetatable({}, {__concat=function() while true do end end})");
    is_stopped("loadstring('while true do end')()");
    is_stopped("while true do string.find('x', 'y') end");
    is_stopped("while true do cjson.encode({}) end");
}

#[test]
fn work_inside_libraries_ends_when_the_host_says_so() {
    is_stopped("string.find(string.rep('a', 5000), '.-.-.-.-.-.-.-.-b')");
    is_stopped("string.match(string.rep('a', 5000), '(.-)(.-)(.-)(.-)(.-)b')");
    is_stopped("string.gsub(string.rep('a', 5000), '.*.*.*.*.*b', '')");
    is_stopped("for w in string.gmatch(string.rep('a', 5000), '.-.-.-.-.-b') do end");
    is_stopped("pcall(string.find, string.rep('a', 5000), '.-.-.-.-.-.-.-.-b') while true do end");
    // A table that holds itself twice at every level is two to the thousandth values long.
    is_stopped(
        "local t = {1} for i = 1, 40 do t = {t, t} end cjson.encode_max_depth(1000) \
                while true do pcall(cjson.encode, {t, 'x'}) end",
    );
    is_stopped("table.insert({}, -2^31, 1) while true do end");
    is_stopped("return table.insert({1,2,3}, -2^30, 1)");
    is_stopped("return table.insert({1,2,3}, 2^31, 1)");
}

#[test]
fn memory_is_bounded_and_its_end_is_not_caught() {
    is_out_of_memory("local s = 'x' while true do s = s .. s end");
    is_out_of_memory("local s = 'x' while true do pcall(function() s = s .. s end) end");
    is_out_of_memory("local t = {} while true do t[#t + 1] = {} end");
    is_out_of_memory("local t = {} while true do pcall(table.insert, t, {1, 2, 3}) end");
    is_out_of_memory("string.rep('x', 2^30)");
    answers(
        "return string.rep('x', 2^40) .. string.rep('x', 1e300) .. string.rep('x', 2^32 + 1)",
        "$1\r\nx\r\n",
    );
    is_out_of_memory("string.rep(string.rep('x', 2^20), 2^30)");
    is_out_of_memory("pcall(string.rep, 'x', 2^30) return 1");
    is_out_of_memory("coroutine.resume(coroutine.create(function() string.rep('x', 2^30) end)) return 1");
    is_out_of_memory("string.gsub(string.rep('x', 100000), 'x', string.rep('y', 1000))");
    is_out_of_memory(
        "string.gsub(string.rep('x', 100000), 'x', function() return string.rep('y', 1000) end)",
    );
    is_out_of_memory(
        "local t = {} for i = 1, 2^20 do t[i] = 'abcdefgh' end table.concat(t, string.rep('x', 100))",
    );
    is_out_of_memory("local t = {string.rep('x', 10000)} for i = 1, 40 do t = {t, t} end cjson.encode(t)");
    is_out_of_memory(
        "local t = {} for i = 1, 100 do t[i] = string.rep('x', 2^16) .. i end cjson.encode({t, t, t, t})",
    );
    is_out_of_memory(
        "local t = {} for i = 1, 100 do t[i] = string.rep('x', 2^16) end cmsgpack.pack({t, t, t})",
    );
    is_out_of_memory("local t = {} for i = 1, 1e9 do t[i] = coroutine.create(function() end) end");
    is_out_of_memory("local f = {} while true do f[#f + 1] = loadstring('return 1') end");
    is_out_of_memory("local t = {} while true do t[#t + 1] = cjson.new() end");
    is_out_of_memory("local t = {} while true do t[#t + 1] = string.gmatch('x', 'x') end");
    is_out_of_memory(
        "local t = {} while true do t[#t + 1] = redis.call('echo', string.rep('x', 1000) .. #t) end",
    );
    is_out_of_memory("cjson.decode(string.rep('[', 1000) .. string.rep('{},', 1500000) .. ']')");
}

#[test]
fn an_iterator_whose_captures_fail_comes_to_its_end() {
    answers(
        "local it, n = string.gmatch('aaa', '(()a'), 0 repeat local ok, v = pcall(it) n = n + 1 until ok or n > 9 \
         return n < 9 and 1 or n",
        ":1\r\n",
    );
}

#[test]
fn recursion_is_bounded() {
    fails("local function f() return f() + 1 end return f()", "stack overflow");
    fails(
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k + 1] end return t[1]",
        "stack overflow",
    );
    fails("local function f() return coroutine.wrap(f)() end return f()", "C stack overflow");
    fails("local function f() return string.gsub('x', 'x', f) end return f()", "C stack overflow");
    fails("local function f() return table.sort({2, 1}, f) end return f()", "stack overflow");
    fails("return loadstring(string.rep('(', 10000) .. '1' .. string.rep(')', 10000))()", "");
    fails("return string.find(string.rep('a', 200000), string.rep('.?', 100000))", "pattern too complex");
    answers("local function f() return pcall(f) end return f()", ":1\r\n");
}

#[test]
fn nothing_is_left_for_the_next_script() {
    let machine = machine();
    let run = |body: &str| {
        let (_, reply) = run_in(&machine, body.as_bytes(), Protocol::Resp2, &mut Toy::default());
        String::from_utf8_lossy(&reply).into_owned()
    };
    for write in [
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "redis.x = 1",
        "string.x = 1",
        "rawset(string, 'x', 1)",
        "table.insert(redis, 1)",
        "table.insert(redis, 1, 1)",
        "setmetatable(_G, {})",
        "setmetatable(redis, {__index = {x = 1}})",
        "getmetatable(_G).__index = nil",
        "getmetatable('').__index = nil",
        "getmetatable('').__index.x = 1",
        "rawset(getmetatable(''), '__index', 1)",
        "rawset(getmetatable(_G), '__index', 1)",
        "getmetatable('').__add = function() end",
        "_G._G.x = 1",
        "cjson.x = 1",
        "coroutine.wrap(function() x = 1 end)()",
        "loadstring('x = 1')()",
        "server.x = 1",
        "bit.x = 1",
        "os.x = 1",
        "for k in pairs(redis) do redis[k] = nil end",
        "KEYS = {1}",
    ] {
        let reply = run(write);
        assert!(reply.contains("Attempt to modify a readonly table"), "{write}: {reply}");
    }
    run("KEYS[1] = 'left' ARGV.x = 'left'");
    run("table.sort(redis) table.remove(redis) next(redis)");
    let left =
        run("local n = 0 for _, t in pairs({_G, redis, string, getmetatable(''), getmetatable(_G)}) do \
         if rawget(t, 'x') ~= nil or rawget(t, 1) ~= nil then n = n + 1 end end \
         return {n, #KEYS, tostring(ARGV.x), ('a'):upper(), #redis}");
    assert_eq!(left, "*5\r\n:0\r\n:0\r\n$3\r\nnil\r\n$1\r\nA\r\n:0\r\n");
}

#[test]
fn there_is_no_way_to_files_compiled_code_or_other_environments() {
    for name in [
        "print", "dofile", "loadfile", "require", "module", "package", "io", "debug", "getfenv", "setfenv",
        "newproxy",
    ] {
        fails(&format!("return {name}"), &format!("nonexistent global variable '{name}'"));
    }
    answers("local n = '' for k in pairs(os) do n = n .. k end return n", "$5\r\nclock\r\n");
    answers("return loadstring(string.dump(function() return 1 end))", "$-1\r\n");
    answers(
        "return load(coroutine.wrap(function() coroutine.yield(string.dump(function() end)) end))",
        "$-1\r\n",
    );
    // The parser must not run code that could collect its strings (CVE-2025-49844).
    answers(
        "local n = 0 local f = load(function() n = n + 1 collectgarbage() if n == 2 then return 'return 7' end \
         if n > 2 then return nil end return '  ' end, string.rep('n', 100) .. 'x') return f()",
        ":7\r\n",
    );
    // Counts of unpack that go past 32 bits (CVE-2025-46817).
    for range in ["0, 2147483647", "-2147483648, 2147483647", "-2147483648, -1", "1, 8000"] {
        fails(&format!("return unpack({{}}, {range})"), "too many results to unpack");
    }
    // What does not fit into them is cut, as in Redis.
    for range in ["1, 2^31", "1, 2^53", "0/0, 5", "1, 1/0", "-1/0, 1"] {
        answers(&format!("return unpack({{}}, {range})"), "$-1\r\n");
    }
    // Nothing is left out where the stack has no room for what nests in the last of very many arguments.
    answers(
        "local t = {} for i = 1, 7990 do t[i] = {{i}} end local ok, text = pcall(cmsgpack.pack, unpack(t)) \
         return ok and #text == 7990 * 3 or string.match(text, 'stack overflow')",
        "$14\r\nstack overflow\r\n",
    );
    // Digits of bit.tohex (CVE-2024-31449), sizes of struct (CVE-2020-14147).
    answers("return bit.tohex(65535, -2147483648)", "$8\r\n0000FFFF\r\n");
    fails("return struct.unpack('>I2147483647', 'x')", "larger than limit");
    fails("return struct.pack('>I2147483648', 1)", "integral size overflow");
    fails("return struct.unpack('c2147483647', 'x', 2147483647)", "data string too short");
    fails("return struct.unpack('bc0', string.char(255) .. 'x')", "data string too short");
    fails("return cmsgpack.unpack(string.char(0xdd, 255, 255, 255, 255))", "Missing bytes");
    fails("return cmsgpack.unpack(string.char(0xdf, 255, 255, 255, 255))", "Missing bytes");
    fails("return cmsgpack.unpack(string.char(0xdb, 255, 255, 255, 255))", "Missing bytes");
    fails("local t = {} for i = 1, 5000 do t = {t} end return cjson.encode(t)", "excessive nesting");
    fails(
        "cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('[', 100000))",
        "too many nested",
    );
    fails(
        "cjson.encode_max_depth(2147483647) local t = {} for i = 1, 10000 do t = {a = t} end return cjson.encode(t)",
        "excessive nesting",
    );
}

#[test]
fn server_is_another_name_of_redis() {
    answers("return server == redis and server.call('echo', 'x')", "$1\r\nx\r\n");
}

#[test]
fn what_was_looked_up_while_compiling_is_what_a_look_up_finds() {
    answers("return redis.call == _G.redis.call and redis.call == server.call", ":1\r\n");
    answers("local r = redis return r.call == redis.call and redis['call'] == r['call']", ":1\r\n");
    answers(
        "return {redis.LOG_WARNING, tostring(redis.nothing), type(math.pi)}",
        "*3\r\n:3\r\n$3\r\nnil\r\n$6\r\nnumber\r\n",
    );
    for change in [
        "redis.call = nil",
        "local r = redis r.call = nil",
        "rawset(redis, 'call', 1)",
        "redis = {call = 1}",
        "_G.redis = {call = 1}",
        "loadstring('redis = {call = 1}')()",
        "setmetatable(redis, {__index = function() return 1 end})",
    ] {
        answers(
            &format!(
                "local ok = pcall(function() {change} end) collectgarbage() \
                 return ok or redis.call('echo', redis.call('echo', 'x'))"
            ),
            "$1\r\nx\r\n",
        );
    }
    answers(
        "local redis = {call = function() return 'mine' end} return redis.call('echo')",
        "$4\r\nmine\r\n",
    );
    answers("KEYS.call = 'key' return {KEYS.call, _G.KEYS.call}", "*2\r\n$3\r\nkey\r\n$3\r\nkey\r\n");
}

#[test]
fn a_command_can_end_the_script() {
    let (outcome, reply) =
        run_in(&machine(), b"pcall(redis.call, 'stop') return 1", Protocol::Resp2, &mut Toy::default());
    assert_eq!(outcome, Outcome::Stopped);
    assert!(reply.starts_with(b"-ERR stopped by a command"));
}

/// Names that differ in one byte of a thousand have places of their own in a table, so they have hashes of
/// their own: names with the same hash lie in the order in which they came, or the other way round.
#[test]
fn every_byte_of_a_long_string_counts() {
    for at in [0, 1, 3, 500, 992, 998, 999] {
        answers(
            &format!(
                "local t, last, turns, way = {{}}, nil, 0, nil \
                 for i = 1, 64 do t[('x'):rep({at}) .. string.char(i) .. ('x'):rep(999 - {at})] = i end \
                 for _, i in pairs(t) do \
                   if last then if way ~= nil and way ~= (i > last) then turns = turns + 1 end way = i > last end \
                   last = i \
                 end return turns > 10"
            ),
            ":1\r\n",
        );
    }
}

/// A script that is stopped at its first question, at its second, and so on until it ends by itself: each
/// time it ends at once, and the interpreter is as good as before.
#[test]
fn a_script_may_be_stopped_at_every_instruction() {
    let machine = Machine::new(Kind::Scripts, Settings { bytes_max: 8 << 20, instructions_between: 1 });
    let scripts = [
        "local t = {} for i = 1, 5 do t[i] = redis.call('echo', i) end return t",
        "local ok, err = pcall(function() local ok = pcall(error, 'x') redis.call('nosuch') end) return err",
        "local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) return co() + co()",
        "return {string.gsub('a b c', '%w', function(c) return c .. c end), cjson.encode(cjson.decode('[1,2]'))}",
        "local t = {3, 1, 2} table.sort(t, function(a, b) return a < b end) return t",
        "return xpcall(function() error({err='x'}) end, function(e) return e.err end)",
    ];
    for script in scripts {
        let whole = run_in(&machine, script.as_bytes(), Protocol::Resp2, &mut Toy::default());
        assert_eq!(whole.0, Outcome::Done, "{script}");
        for at in 1.. {
            let mut host = Toy { stop_at: Some(at), ..Toy::default() };
            let (outcome, reply) = run_in(&machine, script.as_bytes(), Protocol::Resp2, &mut host);
            if outcome == Outcome::Done {
                assert_eq!(reply, whole.1);
                break;
            }
            assert_eq!(outcome, Outcome::Stopped, "{script} at {at}");
            assert_eq!(host.interrupts, at, "{script} went on");
            assert!(reply.starts_with(format!("-{KILLED}").as_bytes()));
        }
    }
}

/// Cycles of the collector that began while a script had its words leave these where they are.
#[test]
fn what_a_script_leaves_goes_whenever_it_comes_in_the_collection_of_what_another_has_left() {
    let machine = Machine::new(Kind::Scripts, Settings::default());
    let script = machine.compile(b"for _ = 1, 300 * #ARGV[2] do local t = {} end return #ARGV[1]").unwrap();
    let mut random = base::random::Random::new(1);
    let run = |random: &mut base::random::Random| {
        let words =
            [vec![b'x'; 2_000_000 + random.below(3_000_000) as usize], vec![b'x'; random.below(60) as usize]];
        let words = words.iter().map(Vec::as_slice);
        machine.run(&script, [].into_iter(), words, &mut Toy::default(), &mut Reply::new(Protocol::Resp2));
        machine.tidy();
    };
    for round in 0..150 {
        for _ in 0..3 {
            run(&mut random);
            let steps = random.below(12);
            (0..steps).take_while(|_| machine.has_garbage()).for_each(|_| machine.collect_some());
        }
        while machine.has_garbage() {
            machine.collect_some();
        }
        assert!(machine.used_bytes() < 1_500_000, "round {round}: {} bytes", machine.used_bytes());
    }
}
