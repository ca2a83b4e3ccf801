//! CLIENT and its subcommands: who is connected, under which name, and how to be rid of them.
//!
//! Every connection's card is in `Shared::clients`; LIST reads the cards of all workers, KILL marks one and tells its
//! worker.
use crate::call::{ADMIN, ON_ALL_NODES, ROW, ServerCall, ServerCommand, ServerRun};
use crate::connection::DEFAULT_USER;
use crate::help;
use crate::registry::Registry;
use crate::session::Card;
use command::{Acl, Arg, Arity, Doc, Done, Error, Flags, Group};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&CLIENT]);

const ANYBODY: Flags = Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE);
const ABOUT: Doc = Doc { group: Group::Connection, complexity: "O(1)", ..Doc::NEW };
const PER_CLIENT: &str = "O(N) where N is the number of client connections";
const ON_OFF: &[Arg] = &[Arg::word("on", "ON"), Arg::word("off", "OFF")];
const ENABLED: &[Arg] = &[Arg::one_of("enabled", ON_OFF)];

/// A subcommand's row without its own words.
const SUB: ServerCommand =
    ServerCommand { acl: Acl::CONNECTION, flags: ANYBODY, arity: Arity::Exactly(2), ..ROW };

const CLIENT: ServerCommand = ServerCommand {
    name: "CLIENT",
    arity: Arity::AtLeast(2),
    doc: Doc {
        since: "2.4.0",
        summary: "Holds the commands about connections.",
        complexity: "Depends on subcommand.",
        ..ABOUT
    },
    subcommands: &[
        &GETNAME, &HELP, &ID, &INFO, &KILL, &LIST, &NO_EVICT, &NO_TOUCH, &REPLY, &SETINFO, &SETNAME,
    ],
    run: ServerRun::Container,
    ..ROW
};

const ID: ServerCommand = ServerCommand {
    name: "ID",
    doc: Doc { since: "5.0.0", summary: "Shows the number of this connection, never used twice.", ..ABOUT },
    run: ServerRun::Shared(id),
    ..SUB
};

const GETNAME: ServerCommand = ServerCommand {
    name: "GETNAME",
    doc: Doc { since: "2.6.9", summary: "Shows the name of this connection.", ..ABOUT },
    run: ServerRun::Shared(name),
    ..SUB
};

const SETNAME: ServerCommand = ServerCommand {
    name: "SETNAME",
    arity: Arity::Exactly(3),
    doc: Doc {
        since: "2.6.9",
        summary: "Names this connection.",
        args: &[Arg::str("connection-name")],
        tips: ON_ALL_NODES,
        ..ABOUT
    },
    run: ServerRun::Shared(set_name),
    ..SUB
};

const SETINFO: ServerCommand = ServerCommand {
    name: "SETINFO",
    arity: Arity::Exactly(4),
    doc: Doc {
        since: "7.2.0",
        summary: "Says which client library this connection uses.",
        args: &[Arg::one_of(
            "attr",
            &[Arg::str("libname").after("LIB-NAME"), Arg::str("libver").after("LIB-VER")],
        )],
        tips: ON_ALL_NODES,
        ..ABOUT
    },
    run: ServerRun::Shared(set_info),
    ..SUB
};

const INFO: ServerCommand = ServerCommand {
    name: "INFO",
    doc: Doc {
        since: "6.2.0",
        summary: "Describes this connection, as a line of CLIENT LIST.",
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: ServerRun::Shared(info),
    ..SUB
};

const LIST: ServerCommand = ServerCommand {
    name: "LIST",
    arity: Arity::AtLeast(2),
    flags: ADMIN,
    doc: Doc {
        since: "2.4.0",
        summary: "Describes the connections, a line each.",
        complexity: PER_CLIENT,
        args: &[
            Arg::one_of("client-type", LIST_TYPES).after("TYPE").since("5.0.0").optional(),
            Arg::int("client-id").after("ID").since("6.2.0").optional().many(),
        ],
        history: &[
            ("2.8.12", "The field `id`."),
            ("5.0.0", "The filter `TYPE`."),
            ("6.0.0", "The field `user`."),
            ("6.2.0", "The fields `argv-mem`, `tot-mem`, `laddr`, `redir` and the filter `ID`."),
            ("7.0.0", "The fields `resp`, `multi-mem`, `rbs`, `rbp`."),
            ("7.0.3", "The field `ssub`."),
            ("7.2.0", "The fields `lib-name`, `lib-ver`."),
            ("7.4.0", "The field `watch`."),
            ("8.0.0", "The field `io-thread`."),
        ],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: ServerRun::Shared(list),
    ..SUB
};

const LIST_TYPES: &[Arg] = &[
    Arg::word("normal", "NORMAL"),
    Arg::word("master", "MASTER"),
    Arg::word("replica", "REPLICA"),
    Arg::word("pubsub", "PUBSUB"),
];

const KILL: ServerCommand = ServerCommand {
    name: "KILL",
    arity: Arity::AtLeast(3),
    flags: ADMIN,
    doc: Doc {
        since: "2.4.0",
        summary: "Closes connections.",
        complexity: PER_CLIENT,
        args: &[Arg::one_of(
            "filter",
            &[
                Arg::str("old-format").shown_as("ip:port").deprecated("2.8.12"),
                Arg::one_of("new-format", KILL_FILTERS).many(),
            ],
        )],
        history: &[
            ("2.8.12", "Takes filters."),
            ("2.8.12", "The filter `ID`."),
            ("3.2.0", "The type `master`."),
            ("5.0.0", "The type `replica`, once `slave`, which still works."),
            ("6.2.0", "The filter `LADDR`."),
            ("7.4.0", "The filter `MAXAGE`."),
        ],
        ..ABOUT
    },
    run: ServerRun::Shared(kill),
    ..SUB
};

const KILL_FILTERS: &[Arg] = &[
    Arg::int("client-id").after("ID").since("2.8.12").optional(),
    Arg::one_of("client-type", KILL_TYPES).after("TYPE").since("2.8.12").optional(),
    Arg::str("username").after("USER").optional(),
    Arg::str("addr").shown_as("ip:port").after("ADDR").optional(),
    Arg::str("laddr").shown_as("ip:port").after("LADDR").since("6.2.0").optional(),
    Arg::one_of("skipme", &[Arg::word("yes", "YES"), Arg::word("no", "NO")]).after("SKIPME").optional(),
    Arg::int("maxage").after("MAXAGE").since("7.4.0").optional(),
];

const KILL_TYPES: &[Arg] = &[
    Arg::word("normal", "NORMAL"),
    Arg::word("master", "MASTER").since("3.2.0"),
    Arg::word("slave", "SLAVE"),
    Arg::word("replica", "REPLICA").since("5.0.0"),
    Arg::word("pubsub", "PUBSUB"),
];

const NO_EVICT: ServerCommand = ServerCommand {
    name: "NO-EVICT",
    arity: Arity::Exactly(3),
    flags: ADMIN,
    doc: Doc {
        since: "7.0.0",
        summary: "Spares this connection when connections are closed to save memory.",
        args: ENABLED,
        ..ABOUT
    },
    run: ServerRun::Shared(no_evict),
    ..SUB
};

const NO_TOUCH: ServerCommand = ServerCommand {
    name: "NO-TOUCH",
    arity: Arity::Exactly(3),
    doc: Doc {
        since: "7.2.0",
        summary: "Keeps this connection's reads from counting as uses of a key.",
        args: ENABLED,
        ..ABOUT
    },
    run: ServerRun::Shared(no_touch),
    ..SUB
};

const REPLY: ServerCommand = ServerCommand {
    name: "REPLY",
    arity: Arity::Exactly(3),
    doc: Doc {
        since: "3.2.0",
        summary: "Chooses whether this connection is answered at all.",
        args: &[Arg::one_of(
            "action",
            &[Arg::word("on", "ON"), Arg::word("off", "OFF"), Arg::word("skip", "SKIP")],
        )],
        ..ABOUT
    },
    run: ServerRun::Shared(reply_mode),
    ..SUB
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Connection, "5.0.0"),
    run: ServerRun::Shared(help),
    ..SUB
};

/// CLIENT REPLY: which replies the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    /// All but this command's and the next one's.
    SkipNext,
    /// All but this command's.
    Skip,
}

impl ReplyMode {
    /// Whether the command that just ran is answered.
    pub(crate) fn answers(self) -> bool {
        self == ReplyMode::On
    }

    /// The mode for the next command.
    pub(crate) fn next(self) -> ReplyMode {
        match self {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip => ReplyMode::On,
            same => same,
        }
    }
}

fn id(call: &mut ServerCall<'_>) -> Done {
    call.reply.int(call.session.card.id as i64);
    Ok(())
}

fn name(call: &mut ServerCall<'_>) -> Done {
    let face = call.session.card.face();
    if face.name.is_empty() {
        call.reply.null();
    } else {
        call.reply.bulk(&face.name);
    }
    Ok(())
}

fn set_name(call: &mut ServerCall<'_>) -> Done {
    let name = call.args.at(2);
    check_word(name, "Client names")?;
    call.session.card.face().name = name.to_vec();
    call.reply.ok();
    Ok(())
}

fn set_info(call: &mut ServerCall<'_>) -> Done {
    let (option, value) = (call.args.at(2), call.args.at(3));
    let mut face = call.session.card.face();
    if option.eq_ignore_ascii_case(b"lib-name") {
        check_word(value, "lib-name")?;
        face.lib_name = value.to_vec();
    } else if option.eq_ignore_ascii_case(b"lib-ver") {
        check_word(value, "lib-ver")?;
        face.lib_ver = value.to_vec();
    } else {
        let option = String::from_utf8_lossy(option);
        return Err(Error::custom(format!("ERR Unrecognized option '{option}'")));
    }
    call.reply.ok();
    Ok(())
}

/// Names stand in CLIENT LIST between spaces, so they hold none.
pub(crate) fn check_word(value: &[u8], what: &str) -> Done {
    if value.iter().all(u8::is_ascii_graphic) {
        return Ok(());
    }
    Err(Error::custom(format!("ERR {what} cannot contain spaces, newlines or special characters.")))
}

fn no_evict(call: &mut ServerCall<'_>) -> Done {
    let on = on_or_off(call.args.at(2))?;
    call.session.card.face().is_spared = on;
    call.reply.ok();
    Ok(())
}

fn no_touch(call: &mut ServerCall<'_>) -> Done {
    let on = on_or_off(call.args.at(2))?;
    call.session.card.face().is_touchless = on;
    call.reply.ok();
    Ok(())
}

fn on_or_off(word: &[u8]) -> Result<bool, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(Error::syntax()),
    }
}

fn reply_mode(call: &mut ServerCall<'_>) -> Done {
    call.session.reply_mode = match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"on" => ReplyMode::On,
        b"off" => ReplyMode::Off,
        // Off stays off: it needs ON to end.
        b"skip" if call.session.reply_mode == ReplyMode::Off => ReplyMode::Off,
        b"skip" => ReplyMode::SkipNext,
        _ => return Err(Error::syntax()),
    };
    call.reply.ok();
    Ok(())
}

/// TYPE's values. Only normal clients exist so far; the others are names for nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientType {
    Normal,
    Other,
}

fn client_type(word: &[u8]) -> Result<ClientType, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(ClientType::Normal),
        b"master" | b"replica" | b"slave" | b"pubsub" => Ok(ClientType::Other),
        _ => {
            let word = String::from_utf8_lossy(word);
            Err(Error::custom(format!("ERR Unknown client type '{word}'")))
        }
    }
}

fn info(call: &mut ServerCall<'_>) -> Done {
    let mut out = Vec::new();
    describe(&call.session.card, &call.shared.registry, call.now.0, &mut out);
    call.reply.verbatim("txt", &out);
    Ok(())
}

fn list(call: &mut ServerCall<'_>) -> Done {
    let chosen = chosen_cards(call)?;
    let mut out = Vec::new();
    for card in chosen {
        describe(&card, &call.shared.registry, call.now.0, &mut out);
    }
    call.reply.verbatim("txt", &out);
    Ok(())
}

fn chosen_cards(call: &ServerCall<'_>) -> Result<Vec<Arc<Card>>, Error> {
    let all = || call.shared.clients().values().cloned().collect();
    let option = call.args.get(2).map(<[u8]>::to_ascii_lowercase);
    match (option.as_deref(), call.args.len()) {
        (None, _) => Ok(all()),
        (Some(b"type"), 4) => match client_type(call.args.at(3))? {
            ClientType::Normal => Ok(all()),
            ClientType::Other => Ok(Vec::new()),
        },
        (Some(b"id"), 4..) => {
            let invalid = || Error::custom("ERR Invalid client ID");
            let ids = call.args.iter_from(3).map(|a| base::text::parse_i64(a).ok_or_else(invalid));
            let ids = ids.collect::<Result<Vec<i64>, Error>>()?;
            let clients = call.shared.clients();
            Ok(ids.iter().filter_map(|id| clients.get(&u64::try_from(*id).ok()?).cloned()).collect())
        }
        _ => Err(Error::syntax()),
    }
}

/// The addresses as CLIENT LIST shows them and KILL compares them: the client's and ours.
fn addresses(card: &Card) -> (String, String) {
    match &card.peer {
        net::Peer::Tcp { peer, local } => (peer.to_string(), local.to_string()),
        net::Peer::Unix { path } => {
            let text = format!("{}:0", path.display());
            (text.clone(), text)
        }
    }
}

/// One line of CLIENT LIST. Fields of mechanisms that a client cannot be using have the value of a client that does not
/// use them.
fn describe(card: &Card, registry: &Registry, now_ms: i64, out: &mut Vec<u8>) {
    let (addr, laddr) = addresses(card);
    let seconds_since = |then_ms: i64| (now_ms - then_ms).max(0) / 1000;
    let face = card.face().clone();
    let (query, output) = (card.query_buffer_bytes.load(Relaxed), card.output_buffer_bytes.load(Relaxed));
    let command = match card.last_row.load(Relaxed) {
        Card::NO_COMMAND => "NULL",
        number => &registry.row(number as usize).full_name,
    };
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut line = format!(
        "id={} addr={addr} laddr={laddr} fd={} name={} age={} idle={} flags={} db={}",
        card.id,
        card.fd,
        lossy(&face.name),
        seconds_since(card.created_ms),
        seconds_since(card.last_active_ms.load(Relaxed)),
        flags(card),
        face.db,
    );
    let _ = write!(
        line,
        " sub=0 psub=0 ssub=0 multi=-1 watch=0 qbuf={query} qbuf-free=0 argv-mem=0 multi-mem=0 rbs={output} \
         rbp={output} obl={output} oll=0 omem=0 tot-mem={} events=r cmd={command} user={} redir=-1 resp={} \
         lib-name={} lib-ver={} io-thread={}",
        query + output + size_of::<Card>() as u64,
        face.user,
        if face.is_resp3 { 3 } else { 2 },
        lossy(&face.lib_name),
        lossy(&face.lib_ver),
        card.worker,
    );
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// Redis's letters.
fn flags(card: &Card) -> String {
    let face = card.face();
    let marks = [
        (matches!(card.peer, net::Peer::Unix { .. }), 'U'),
        (card.is_killed.load(Relaxed), 'A'),
        (face.is_spared, 'e'),
        (face.is_touchless, 'T'),
    ];
    let flags: String = marks.iter().filter(|(is, _)| *is).map(|(_, letter)| *letter).collect();
    if flags.is_empty() { "N".into() } else { flags }
}

/// Which connections KILL means.
#[derive(Default)]
struct Filter<'a> {
    id: Option<u64>,
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    kind: Option<ClientType>,
    user: Option<&'a [u8]>,
    maxage_s: Option<i64>,
    spares: Spares,
}

/// SKIPME
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Spares {
    #[default]
    Myself,
    Nobody,
}

impl Filter<'_> {
    fn matches(&self, card: &Card, now_ms: i64) -> bool {
        let (addr, laddr) = addresses(card);
        self.id.is_none_or(|id| id == card.id)
            && self.addr.is_none_or(|a| a == addr.as_bytes())
            && self.laddr.is_none_or(|a| a == laddr.as_bytes())
            && self.kind.is_none_or(|kind| kind == ClientType::Normal)
            && self.user.is_none_or(|user| user == card.face().user.as_bytes())
            && self.maxage_s.is_none_or(|s| (now_ms - card.created_ms) / 1000 >= s)
    }
}

fn kill(call: &mut ServerCall<'_>) -> Done {
    if call.args.len() == 3 {
        let filter = Filter { addr: Some(call.args.at(2)), spares: Spares::Nobody, ..Filter::default() };
        return match kill_all(call, &filter) {
            0 => Err(Error::custom("ERR No such client")),
            _ => {
                call.reply.ok();
                Ok(())
            }
        };
    }
    let filter = kill_filter(&call.args)?;
    let killed = kill_all(call, &filter);
    call.reply.int(killed);
    Ok(())
}

fn kill_filter<'a>(args: &resp::Args<'a>) -> Result<Filter<'a>, Error> {
    let mut filter = Filter::default();
    let options: Vec<&[u8]> = args.iter_from(2).collect();
    for pair in options.chunks(2) {
        let [option, value] = *pair else { return Err(Error::syntax()) };
        match option.to_ascii_lowercase().as_slice() {
            b"id" => filter.id = Some(positive(value).ok_or_else(|| Error::custom(ID_RANGE))? as u64),
            b"type" => filter.kind = Some(client_type(value)?),
            b"addr" => filter.addr = Some(value),
            b"laddr" => filter.laddr = Some(value),
            b"user" => filter.user = Some(known_user(value)?),
            b"skipme" => filter.spares = spares(value)?,
            b"maxage" => filter.maxage_s = Some(maxage(value)?),
            _ => return Err(Error::syntax()),
        }
    }
    Ok(filter)
}

const ID_RANGE: &str = "ERR client-id should be greater than 0";

fn positive(value: &[u8]) -> Option<i64> {
    base::text::parse_i64(value).filter(|n| *n > 0)
}

fn maxage(value: &[u8]) -> Result<i64, Error> {
    if base::text::parse_i64(value).is_none() {
        return Err(Error::custom("ERR maxage is not an integer or out of range"));
    }
    positive(value).ok_or_else(|| Error::custom("ERR maxage should be greater than 0"))
}

fn known_user(name: &[u8]) -> Result<&[u8], Error> {
    if name == DEFAULT_USER.as_bytes() {
        return Ok(name);
    }
    let name = String::from_utf8_lossy(name);
    Err(Error::custom(format!("ERR No such user '{name}'")))
}

fn spares(word: &[u8]) -> Result<Spares, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"yes" => Ok(Spares::Myself),
        b"no" => Ok(Spares::Nobody),
        _ => Err(Error::syntax()),
    }
}

/// Kills what the filter means; how many.
fn kill_all(call: &mut ServerCall<'_>, filter: &Filter<'_>) -> i64 {
    let all: Vec<Arc<Card>> = call.shared.clients().values().cloned().collect();
    let mut killed = 0;
    for card in all.iter().filter(|c| filter.matches(c, call.now.0)) {
        if card.id != call.session.card.id {
            call.shared.kill(card);
        } else if filter.spares == Spares::Nobody {
            // It gets its reply first.
            call.session.closes_after_reply = true;
        } else {
            continue;
        }
        killed += 1;
    }
    killed
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(call.reply, "CLIENT", HELP_LINES);
    Ok(())
}

const HELP_LINES: &[&str] = &[
    "GETNAME",
    "    Show the name of this connection.",
    "ID",
    "    Show the number of this connection.",
    "INFO",
    "    Describe this connection.",
    "KILL <ip:port>",
    "    Close the connection from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Close all connections that every option means:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      From this address.",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      To this address of ours.",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Of this type.",
    "    * USER <username>",
    "      Of this user.",
    "    * SKIPME (YES|NO)",
    "      Whether to spare this connection (yes if not given).",
    "    * ID <client-id>",
    "      With this number.",
    "    * MAXAGE <maxage>",
    "      Older than this many seconds.",
    "LIST [options ...]",
    "    Describe the connections. Options are:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Only those of this type.",
    "    * ID <client-id> [<client-id> ...]",
    "      Only those with these numbers.",
    "NO-EVICT (ON|OFF)",
    "    Spare this connection when connections are closed to save memory.",
    "NO-TOUCH (ON|OFF)",
    "    Do not count this connection's reads as uses of a key.",
    "REPLY (ON|OFF|SKIP)",
    "    Choose whether this connection is answered.",
    "SETINFO <option> <value>",
    "    Say which library this connection uses. Options are:",
    "    * LIB-NAME: its name.",
    "    * LIB-VER: its version.",
    "SETNAME <name>",
    "    Name this connection.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_mutes_itself_and_the_next_command() {
        let mut mode = ReplyMode::SkipNext;
        let mut answered = Vec::new();
        for _ in 0..3 {
            answered.push(mode.answers());
            mode = mode.next();
        }
        assert_eq!(answered, [false, false, true]);
        assert_eq!(ReplyMode::Off.next(), ReplyMode::Off);
    }

    #[test]
    fn names_hold_no_spaces_and_nothing_unprintable() {
        assert!(check_word(b"worker-1!~", "Client names").is_ok());
        assert!(check_word(b"", "Client names").is_ok());
        for bad in [&b"a b"[..], b"a\n", b"\xff", b"\x7f"] {
            assert!(check_word(bad, "Client names").is_err());
        }
    }
}
