//! Random input for the libraries that read bytes: they answer or fail, and never panic; and what they have
//! written they read back.
use crate::host::Toy;
use crate::run_in;
use proptest::prelude::*;
use resp::{Protocol, Reply};
use script::{Kind, Machine, Outcome, Settings};
use std::fmt::Write;

thread_local! {
    static MACHINE: Machine = Machine::new(Kind::Scripts, Settings { bytes_max: 64 << 20, ..Settings::default() });
}

/// Runs a script with arguments.
fn run(body: &str, argv: &[&[u8]]) -> (Outcome, String) {
    MACHINE.with(|machine| {
        let script = machine.compile(body.as_bytes()).unwrap();
        let mut reply = Reply::new(Protocol::Resp2);
        let argv = argv.iter().copied();
        let outcome = machine.run(&script, [].into_iter(), argv, &mut Toy::default(), &mut reply);
        machine.tidy();
        (outcome, String::from_utf8_lossy(&reply.out).into_owned())
    })
}

/// A Lua expression of a value that both formats can hold, not nested deeper than either allows.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|n| n.to_string()),
        (-1_000_000_000_i64..1_000_000_000).prop_map(|n| format!("({n}*1024)")),
        any::<bool>().prop_map(|b| b.to_string()),
        (-1000..1000).prop_map(|n| format!("({n}/8)")),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| {
            let mut text = String::from("'");
            bytes.iter().for_each(|b| write!(text, "\\{b:03}").unwrap());
            text + "'"
        }),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(|v| format!("{{{}}}", v.join(","))),
            proptest::collection::btree_map("[a-z]{1,8}", inner, 1..6).prop_map(|map| {
                let pairs: Vec<String> = map.iter().map(|(k, v)| format!("['{k}']={v}")).collect();
                format!("{{{}}}", pairs.join(","))
            }),
        ]
    })
}

/// Whether two values are the same, in Lua.
const SAME: &str = "local function same(a, b) \
    if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end \
    for k, v in pairs(a) do if not same(v, b[k]) then return false end end \
    for k in pairs(b) do if a[k] == nil then return false end end return true end ";

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_cmsgpack_packs_it_unpacks(value in value()) {
        let body = format!("{SAME} local v = {value} return same(v, (cmsgpack.unpack(cmsgpack.pack(v)))) and 1");
        prop_assert_eq!(run(&body, &[]), (Outcome::Done, ":1\r\n".to_string()));
    }

    #[test]
    fn what_cjson_encodes_it_decodes(value in value()) {
        let body = format!("{SAME} local v = {value} return same(v, cjson.decode(cjson.encode(v))) and 1");
        prop_assert_eq!(run(&body, &[]), (Outcome::Done, ":1\r\n".to_string()));
    }

    #[test]
    fn cmsgpack_survives_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (outcome, reply) = run("local t = {pcall(cmsgpack.unpack, ARGV[1])} return #t", &[&bytes]);
        prop_assert!(outcome == Outcome::Done, "{}", reply);
    }

    #[test]
    fn cmsgpack_survives_cut_and_changed_input(
        value in value(), cut in 0_usize..200, at in 0_usize..200, b in any::<u8>()
    ) {
        let body = format!(
            "local s = cmsgpack.pack({value}) s = s:sub(1, {at}) .. string.char({b}) .. s:sub({at} + 2, {cut}) \
             pcall(cmsgpack.unpack, s) pcall(cmsgpack.unpack_one, s, {at}) \
             pcall(cmsgpack.unpack_limit, s, 3, {cut}) return 1"
        );
        prop_assert_eq!(run(&body, &[]), (Outcome::Done, ":1\r\n".to_string()));
    }

    #[test]
    fn cjson_survives_any_text(text in "[\\[\\]{}:,\"\\\\untrfalse0-9eE.+\\-x \\x00-\\xff]{0,60}") {
        let (outcome, reply) = run("pcall(cjson.decode, ARGV[1]) return 1", &[text.as_bytes()]);
        prop_assert!(outcome == Outcome::Done, "{}", reply);
    }

    #[test]
    fn struct_survives_any_format(
        format in "[<>! xbBhHlLTfdsciI0-9]{0,12}",
        data in proptest::collection::vec(any::<u8>(), 0..64),
        offset in any::<i64>(),
    ) {
        let body = "pcall(struct.size, ARGV[1]) pcall(struct.unpack, ARGV[1], ARGV[2]) \
                    pcall(struct.unpack, ARGV[1], ARGV[2], tonumber(ARGV[3])) \
                    pcall(struct.pack, ARGV[1], 1, 'abc', 2.5, ARGV[2], -7) return 1";
        let (outcome, reply) = run(body, &[format.as_bytes(), &data, offset.to_string().as_bytes()]);
        // A format may announce more bytes than there is memory for.
        prop_assert!(outcome != (Outcome::Failed { is_counted: false }), "{}", reply);
    }

    #[test]
    fn patterns_survive_any_text(pattern in "[%a-d.*+?\\-\\[\\]()^$1-3bfz]{0,12}", subject in "[a-d()]{0,20}") {
        let body = "pcall(string.find, ARGV[2], ARGV[1]) pcall(string.match, ARGV[2], ARGV[1], -3) \
                    pcall(string.gsub, ARGV[2], ARGV[1], '%0%1') pcall(string.gsub, ARGV[2], ARGV[1], {a = 'b'}) \
                    pcall(function() for a in string.gmatch(ARGV[2], ARGV[1]) do end end) return 1";
        let (outcome, reply) = run(body, &[pattern.as_bytes(), subject.as_bytes()]);
        prop_assert!(outcome == Outcome::Done, "{}", reply);
    }

    #[test]
    fn replies_of_any_bytes_are_read_or_refused(bytes in "[*$:+\\-_,#(=%~>|0-9tfa\\r\\n]{0,60}") {
        let machine = Machine::new(Kind::Scripts, Settings::default());
        let escaped: String = bytes.bytes().map(|b| format!("\\{b:03}")).collect();
        let body = format!("pcall(redis.call, 'reply', '{escaped}') return 1");
        let (outcome, reply) = run_in(&machine, body.as_bytes(), Protocol::Resp2, &mut Toy::default());
        prop_assert!(outcome == Outcome::Done, "{}", String::from_utf8_lossy(&reply));
    }
}
