//! DEBUG: what only tests and people who look inside need. Who may use it says `enable-debug-command`.
//!
//! DEBUG runs with every worker's gate taken, because its SLEEP is there to stop the whole server.
use crate::call::{ADMIN, ROW, ServerCall, ServerCommand, ServerRun};
use crate::help;
use command::{Arity, Doc, Done, Error, Group};
use resp::Protocol;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&DEBUG]);

const DEBUG: ServerCommand = ServerCommand {
    name: "DEBUG",
    arity: Arity::AtLeast(2),
    flags: ADMIN,
    doc: Doc {
        group: Group::Server,
        since: "1.0.0",
        summary: "Holds what tests of the server itself need.",
        complexity: "Depends on subcommand.",
        is_system: true,
        ..Doc::NEW
    },
    run: ServerRun::Exclusive(debug),
    ..ROW
};

/// One word after DEBUG. To the table of commands they are one command, so they have a table of their own.
struct Sub {
    name: &'static str,
    /// Arguments, DEBUG and the word included.
    args: Arity,
    run: fn(&mut ServerCall<'_>) -> Done,
}

const SUBS: &[Sub] = &[
    Sub { name: "CHANGE-REPL-ID", args: Arity::Exactly(2), run: change_replication_id },
    Sub { name: "ERROR", args: Arity::Exactly(3), run: error },
    Sub { name: "HELP", args: Arity::Exactly(2), run: help },
    Sub { name: "LOG", args: Arity::Exactly(3), run: log },
    Sub { name: "OBJECT", args: Arity::Exactly(3), run: object },
    Sub { name: "PROTOCOL", args: Arity::Exactly(3), run: protocol },
    Sub { name: "SET-ACTIVE-EXPIRE", args: Arity::Exactly(3), run: set_active_expire },
    Sub { name: "SLEEP", args: Arity::Exactly(3), run: sleep },
];

fn debug(call: &mut ServerCall<'_>) -> Done {
    let is_local = call.session.card.is_local();
    if !call.shared.config().enable_debug_command.allows(is_local) {
        return Err(Error::custom(NOT_ALLOWED));
    }
    let word = call.args.at(1);
    let sub = SUBS.iter().find(|s| s.name.as_bytes().eq_ignore_ascii_case(word));
    match sub.filter(|s| s.args.accepts(call.args.len())) {
        Some(sub) => (sub.run)(call),
        None => {
            let word = String::from_utf8_lossy(word);
            Err(Error::custom(format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try DEBUG HELP."
            )))
        }
    }
}

const NOT_ALLOWED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can \
                           run it from a local connection, otherwise you need to set this option in the configuration \
                           file, and then restart the server.";

/// Redis's words for our layout: values move, so there is no address and nothing refers to them twice; a list's leaves
/// are its nodes.
fn object(call: &mut ServerCall<'_>) -> Done {
    let config = call.shared.config();
    let (mut view, key) =
        call.shared.keyspace.lock_one(call.session.db, call.now, &config.store, call.args.at(2));
    let info = view.info(&key).ok_or_else(|| Error::custom("ERR no such key"))?;
    let mut text = format!(
        "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:0",
        info.encoding,
        info.serialized_bytes,
        (call.now.0 / 1000) & 0xFF_FFFF,
    );
    if info.encoding == "quicklist" {
        let leaves = info.nodes.leaves.max(1);
        text += &format!(
            " ql_nodes:{leaves} ql_avg_node:{:.2} ql_listpack_max:{} ql_compressed:{} ql_uncompressed_size:{}",
            info.len as f64 / leaves as f64,
            config.list_max_listpack_size.clamp(-5, 32_767),
            info.nodes.compressed,
            info.nodes.uncompressed_bytes,
        );
    }
    drop(view);
    call.reply.simple(&text);
    Ok(())
}

/// Stops every worker, as a server that hangs would.
fn sleep(call: &mut ServerCall<'_>) -> Done {
    let seconds = std::str::from_utf8(call.args.at(2)).ok().and_then(|s| s.parse::<f64>().ok());
    let time = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()).unwrap_or_default();
    std::thread::sleep(time);
    call.reply.ok();
    Ok(())
}

fn set_active_expire(call: &mut ServerCall<'_>) -> Done {
    let is_on = base::text::parse_i64(call.args.at(2)).unwrap_or(0) != 0;
    call.shared.expires.store(is_on, Relaxed);
    // Workers that sleep until they are asked have to plan for the next key again.
    call.shared.posts.iter().for_each(crate::shared::Post::wake);
    call.reply.ok();
    Ok(())
}

fn error(call: &mut ServerCall<'_>) -> Done {
    Err(Error::custom(String::from_utf8_lossy(call.args.at(2)).into_owned()))
}

fn log(call: &mut ServerCall<'_>) -> Done {
    call.shared.log.warning(&format!("DEBUG LOG: {}", String::from_utf8_lossy(call.args.at(2))));
    call.reply.ok();
    Ok(())
}

fn change_replication_id(call: &mut ServerCall<'_>) -> Done {
    call.shared.log.notice("Changing replication IDs after receiving DEBUG change-repl-id");
    call.shared.replication_id.change();
    call.reply.ok();
    Ok(())
}

/// One reply of each type, for the tests of clients.
#[allow(clippy::approx_constant, reason = "it is the number that the peer sends")]
fn protocol(call: &mut ServerCall<'_>) -> Done {
    let is_resp2 = call.reply.protocol == Protocol::Resp2;
    let reply = &mut *call.reply;
    match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.int(12_345),
        b"double" => reply.double(3.141),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|n| reply.int(n));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|n| reply.int(n));
        }
        b"map" => {
            reply.map(3);
            for n in 0..3 {
                reply.int(n);
                reply.boolean(n == 1);
            }
        }
        b"push" if is_resp2 => {
            return Err(Error::custom("ERR RESP2 is not supported by this command"));
        }
        b"attrib" => attribute(reply),
        b"push" => push(reply),
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        _ => return Err(Error::custom(PROTOCOL_TYPES)),
    }
    Ok(())
}

const PROTOCOL_TYPES: &str = "ERR Wrong protocol type name. Please use one of the following: \
                              string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false";

fn attribute(reply: &mut resp::Reply) {
    if reply.attribute(1) {
        reply.bulk(b"key-popularity");
        reply.array(2);
        reply.bulk(b"key:123");
        reply.int(90);
    }
    reply.bulk(b"Some real reply following the attribute");
}

fn push(reply: &mut resp::Reply) {
    reply.bulk(b"Some real reply following the push reply");
    reply.push(2);
    reply.bulk(b"server-cpu-usage");
    reply.int(42);
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(
        call.reply,
        "DEBUG",
        &[
            "CHANGE-REPL-ID",
            "    Give the server a new replication id.",
            "ERROR <string>",
            "    Answer with <string> as an error.",
            "LOG <message>",
            "    Write <message> to the log.",
            "OBJECT <key>",
            "    Show how the value at <key> is stored.",
            "PROTOCOL <type>",
            "    Answer with a value of this type: string, integer, double, bignum, null,",
            "    array, set, map, attrib, push, verbatim, true or false.",
            "SET-ACTIVE-EXPIRE <0|1>",
            "    Whether keys past their time go by themselves (1) or when looked at (0).",
            "SLEEP <seconds>",
            "    Stop the whole server for so long; decimals are allowed.",
        ],
    );
    Ok(())
}
