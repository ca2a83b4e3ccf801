//! The rows against what Redis 8.0.2 says of the same commands, and against themselves.
use crate::{
    Access, Acl, Arg, ArgKind, Arity, Begin, Command, DataRun, FAMILIES, Find, FixedKeys, Flags, KeySpec,
    KeyUse, key_positions, key_uses,
};
use resp::{Args, Span};
use std::collections::BTreeMap;

/// One command a line, recorded from the peer.
const PEER: &str = include_str!("facts/redis_8_0_2.txt");

/// Rows by their full names.
fn rows() -> BTreeMap<String, &'static Command> {
    let mut rows = BTreeMap::new();
    for command in FAMILIES.iter().copied().flatten() {
        let name = command.name.to_ascii_lowercase();
        for sub in command.subcommands {
            rows.insert(format!("{name}|{}", sub.name.to_ascii_lowercase()), *sub);
        }
        rows.insert(name, command);
    }
    rows
}

fn line(name: &str, row: &Command) -> String {
    let mut acl = names(Acl::NAMES, |c| row.acl.with_implied(row.flags).has(c));
    acl.sort_unstable();
    let acl: Vec<String> = acl.iter().map(|name| format!("@{name}")).collect();
    let deprecated = row.doc.deprecated.map_or(String::new(), |d| format!("{} {}", d.since, d.replaced_by));
    let history: Vec<&str> = row.doc.history.iter().map(|(version, _)| *version).collect();
    [
        name.to_owned(),
        row.arity.number().to_string(),
        names(Flags::NAMES, |f| row.flags.has(f)).join(","),
        acl.join(","),
        row.doc.tips.join(","),
        row.keys.iter().map(spec).collect::<Vec<_>>().join(" "),
        row.doc.since.to_owned(),
        row.doc.group.name().to_owned(),
        history.join(","),
        deprecated,
        row.doc.args.iter().map(argument).collect::<Vec<_>>().join(" "),
    ]
    .join(" ; ")
}

fn names<T: Copy>(all: &[(T, &'static str)], has: impl Fn(T) -> bool) -> Vec<&'static str> {
    all.iter().filter(|(flag, _)| has(*flag)).map(|(_, name)| *name).collect()
}

fn spec(spec: &KeySpec) -> String {
    let begin = match spec.begin {
        Begin::Index(index) => index.to_string(),
        Begin::Unknown => "unknown".to_owned(),
        Begin::Keyword { word, start } => format!("keyword({word},{start})"),
    };
    let keys = match spec.find {
        Find::Range { last, step, limit } => format!("range({last},{step},{limit})"),
        Find::Count { index, first, step } => format!("keynum({index},{first},{step})"),
        Find::Unknown(_) => "unknown".to_owned(),
    };
    let access = names(Access::NAMES, |a| spec.access.has(a)).join(",");
    format!("{begin}:{keys}:{access}{}", if spec.notes.is_empty() { "" } else { "!" })
}

fn argument(arg: &Arg) -> String {
    let kind = match arg.kind {
        ArgKind::Key(spec) => format!("key#{spec}"),
        ArgKind::String => "string".to_owned(),
        ArgKind::Integer => "integer".to_owned(),
        ArgKind::Double => "double".to_owned(),
        ArgKind::Pattern => "pattern".to_owned(),
        ArgKind::UnixTime => "unix-time".to_owned(),
        ArgKind::PureToken => "pure-token".to_owned(),
        ArgKind::OneOf => "oneof".to_owned(),
        ArgKind::Block => "block".to_owned(),
    };
    let mut text = format!("{}:{kind}", arg.name);
    text.extend(arg.token.map(|token| format!("={token}")));
    text.push_str(if arg.optional { "?" } else { "" });
    text.push_str(if arg.multiple { "*" } else { "" });
    text.push_str(if arg.multiple_token { "+" } else { "" });
    text.extend(arg.since.map(|version| format!("@{version}")));
    if !arg.args.is_empty() {
        let inner: Vec<String> = arg.args.iter().map(argument).collect();
        text.push_str(&format!("[{}]", inner.join(" ")));
    }
    text
}

/// What Sardine adds to rows of Redis 8.0: SET's IFEQ is Valkey's, the further operations of BITOP are Redis
/// 8.2's, and so is what becomes of references when entries of a stream go.
fn without_our_own(line: &str) -> String {
    let later =
        ["diff:pure-token=DIFF", "diff1:pure-token=DIFF1", "andor:pure-token=ANDOR", "one:pure-token=ONE"];
    let line = later.iter().fold(line.to_owned(), |line, arg| line.replace(&format!(" {arg}@8.2.0"), ""));
    let references = "[keepref:pure-token=KEEPREF delref:pure-token=DELREF acked:pure-token=ACKED]";
    let line = line.replace(&format!(" condition:oneof?@8.2.0{references}"), "");
    line.replace(" comparison-value:string=IFEQ@8.1.0", "")
        .replace("7.0.0,8.1.0", "7.0.0")
        .replace("; 8.2.0 ;", ";  ;")
}

#[test]
fn rows_say_what_redis_says() {
    let rows = rows();
    for expected in PEER.lines().filter(|line| !line.starts_with('#')) {
        let name = expected.split(' ').next().unwrap();
        let row = rows.get(name).unwrap_or_else(|| panic!("no row for {name}"));
        assert_eq!(without_our_own(&line(name, row)).trim_end(), expected.trim_end());
    }
}

#[test]
fn only_our_own_commands_are_unknown_to_redis() {
    let known: Vec<&str> = PEER.lines().filter_map(|line| line.split(' ').next()).collect();
    let ours: Vec<String> = rows().into_keys().filter(|name| !known.contains(&name.as_str())).collect();
    assert_eq!(ours, ["memory|layout", "xackdel", "xdelex"]);
}

#[test]
fn families_list_their_commands_in_order_and_once() {
    for family in FAMILIES {
        assert!(family.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
    let all: usize = FAMILIES.iter().map(|family| family.len()).sum();
    let subcommands: usize = FAMILIES.iter().copied().flatten().map(|c| c.subcommands.len()).sum();
    assert_eq!(rows().len(), all + subcommands, "no name stands in two families");
}

/// How many arguments the grammar asks for at least, and whether it can take more.
fn grammar_len(args: &[Arg]) -> (usize, bool) {
    let mut sum = (0, false);
    for arg in args {
        sum.0 += if arg.optional { 0 } else { least(arg) };
        sum.1 |= arg.optional || arg.multiple || grammar_len(arg.args).1;
    }
    sum
}

/// The words of one such argument at least.
fn least(arg: &Arg) -> usize {
    let token = usize::from(arg.token.is_some());
    match arg.kind {
        ArgKind::PureToken => 1,
        ArgKind::OneOf => token + arg.args.iter().map(least).min().unwrap_or(0),
        ArgKind::Block => token + grammar_len(arg.args).0,
        _ => token + 1,
    }
}

#[test]
fn arities_are_what_the_grammars_ask_for() {
    for (name, row) in rows() {
        if matches!(row.run, DataRun::Container) {
            assert_eq!(row.arity, Arity::AtLeast(2), "{name}: a container wants a subcommand");
            continue;
        }
        let words = name.split('|').count();
        let (len, is_open) = grammar_len(row.doc.args);
        let expected = if is_open { Arity::AtLeast as fn(u8) -> Arity } else { Arity::Exactly };
        assert_eq!(row.arity, expected((words + len) as u8), "{name}");
    }
}

#[test]
fn flags_fit_each_other_and_the_keys() {
    for (name, row) in rows() {
        assert!(
            row.flags.has(Flags::WRITE) || !row.flags.has(Flags::DENYOOM),
            "{name}: only writes take memory"
        );
        let writes = row.keys.iter().any(|spec| !spec.access.has(Access::RO));
        // PFCOUNT leaves its estimate in what it reads, XREADGROUP tells the group; each counts in Redis as
        // it does here.
        if !row.keys.is_empty() && !["pfcount", "xreadgroup"].contains(&name.as_str()) {
            assert_eq!(writes, row.flags.has(Flags::WRITE), "{name}: keys are written by writes alone");
        }
        let is_keyed = matches!(
            row.run,
            DataRun::Keys(_) | DataRun::Long(_) | DataRun::Blocking(_) | DataRun::KeysOrAll(_)
        );
        assert_eq!(is_keyed, !row.keys.is_empty(), "{name}: who has keys runs on them");
    }
}

fn with_args<R>(words: &[&str], look: impl FnOnce(&Args<'_>) -> R) -> R {
    let (mut buffer, mut spans) = (Vec::new(), Vec::new());
    for word in words {
        spans.push(Span { start: buffer.len(), len: word.len() });
        buffer.extend_from_slice(word.as_bytes());
    }
    look(&Args::new(&buffer, &spans))
}

fn positions(spec: KeySpec, words: &[&str]) -> Vec<u32> {
    let mut positions = Vec::new();
    with_args(words, |args| key_positions(&[spec], args, &mut positions));
    positions
}

#[test]
fn a_range_of_keys_ends_where_the_arguments_do() {
    let every_second = KeySpec::range(1, -1, 2, Access::OW);
    assert_eq!(positions(every_second, &["MSET", "a", "1", "b", "2"]), [1, 3]);
    assert_eq!(positions(every_second, &["MSET", "a", "1", "b"]), [1, 3]);
    assert_eq!(positions(every_second, &["MSET"]), []);
    let all_but_the_last = KeySpec::range(1, -2, 1, Access::RW);
    assert_eq!(positions(all_but_the_last, &["BLPOP", "a", "b", "0"]), [1, 2]);
    assert_eq!(positions(all_but_the_last, &["BLPOP", "0"]), []);
    let two = KeySpec::range(1, 1, 1, Access::RO);
    assert_eq!(positions(two, &["LCS", "a", "b", "LEN"]), [1, 2]);
    assert_eq!(positions(two, &["LCS", "a"]), [1]);
}

#[test]
fn a_limit_takes_the_first_part_of_the_rest() {
    let half = KeySpec {
        begin: Begin::Keyword { word: "STREAMS", start: 1 },
        find: Find::Range { last: -1, step: 1, limit: 2 },
        access: Access::RO,
        ..KeySpec::NEW
    };
    assert_eq!(positions(half, &["XREAD", "COUNT", "1", "streams", "a", "b", "0", "0"]), [4, 5]);
    assert_eq!(positions(half, &["XREAD", "COUNT", "1"]), []);
    assert_eq!(positions(half, &["XREAD", "STREAMS"]), []);
}

#[test]
fn every_key_behind_a_word_counts() {
    let destination = KeySpec {
        begin: Begin::Keyword { word: "STORE", start: 3 },
        find: Find::Range { last: 0, step: 1, limit: 0 },
        access: Access::OW,
        ..KeySpec::NEW
    };
    assert_eq!(positions(destination, &["X", "store", "a", "store", "b", "ASC", "STORE", "c"]), [4, 7]);
    assert_eq!(positions(destination, &["X", "a", "b", "store"]), []);
    assert_eq!(positions(destination, &["X"]), []);
}

#[test]
fn counted_keys_are_those_that_are_there() {
    let counted = KeySpec::count(1, Access::RW);
    assert_eq!(positions(counted, &["LMPOP", "2", "a", "b", "LEFT"]), [2, 3]);
    for count in ["0", "-1", "x", "5", "9223372036854775807"] {
        assert_eq!(positions(counted, &["LMPOP", count, "a", "b", "LEFT"]), [], "{count}");
    }
}

#[test]
fn the_only_key_is_known_without_looking() {
    let rows = rows();
    for (name, fixed) in [
        ("get", FixedKeys::One(1)),
        ("object|encoding", FixedKeys::One(2)),
        ("mget", FixedKeys::From { first: 1, step: 1 }),
        ("lcs", FixedKeys::First(1)),
        ("lmove", FixedKeys::First(1)),
        ("lmpop", FixedKeys::First(2)),
        ("sort", FixedKeys::First(1)),
        ("xread", FixedKeys::Many),
        ("dbsize", FixedKeys::None),
        ("object", FixedKeys::None),
    ] {
        assert_eq!(rows[name].fixed_keys(), fixed, "{name}");
    }
}

#[test]
fn what_a_request_does_with_a_key_is_told_by_its_row() {
    let rows = rows();
    let reads_and_writes = Access::RW.or(Access::ACCESS).or(Access::UPDATE);
    for (request, access) in [
        ("SET k v", Access::OW.or(Access::UPDATE)),
        ("SET k GET", Access::OW.or(Access::UPDATE)),
        ("SET k v EX 5 get", reads_and_writes),
        ("BITFIELD k", Access::RO.or(Access::ACCESS)),
        ("BITFIELD k GET u8 0 overflow SAT", Access::RO.or(Access::ACCESS)),
        ("BITFIELD k GET u8", reads_and_writes),
        ("BITFIELD k GET u8 0 SET u8 0 1", reads_and_writes),
        ("STRLEN k", Access::RO),
    ] {
        let words: Vec<&str> = request.split(' ').collect();
        let keys = rows[&words[0].to_ascii_lowercase()].keys;
        let uses = with_args(&words, |args| key_uses(keys, args));
        assert_eq!(uses.found, [KeyUse { position: 1, access }], "{request}");
    }
    for (name, row) in rows {
        for spec in row.keys {
            assert_eq!(spec.access_by.is_some(), spec.access.has(Access::VARIABLE_FLAGS), "{name}");
        }
    }
}
