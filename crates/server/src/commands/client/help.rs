//! CLIENT HELP.
use super::SUB;
use crate::commands::help;
use crate::core::call::{ServerCall, ServerCommand, ServerRun};
use command::{Done, Flags, Group};

pub(super) const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Connection, "5.0.0"),
    run: ServerRun::Anywhere(help),
    ..SUB
};

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(call, HELP_LINES)
}

const HELP_LINES: &[&str] = &[
    "CACHING (YES|NO)",
    "    Say whether keys of the next command are tracked, in the modes OPTIN and OPTOUT.",
    "GETNAME",
    "    Show the name of this connection.",
    "GETREDIR",
    "    Show which connection is told of this one's tracked keys (0: itself, -1: none).",
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
    "PAUSE <timeout> [WRITE|ALL]",
    "    Hold back all requests, or those that may change data, for so many milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Choose whether this connection is answered.",
    "SETINFO <option> <value>",
    "    Say which library this connection uses. Options are:",
    "    * LIB-NAME: its name.",
    "    * LIB-VER: its version.",
    "SETNAME <name>",
    "    Name this connection.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Tell this connection, or another, when keys that it has read are changed.",
    "TRACKINGINFO",
    "    Show how this connection tracks keys.",
    "UNBLOCK <client-id> [TIMEOUT|ERROR]",
    "    End the waiting of a connection's command.",
    "UNPAUSE",
    "    Let the clients go on that PAUSE holds back.",
];
