//! CLUSTER, ASKING, READONLY and READWRITE: one server among several that share the keys by slots. There is
//! no cluster mode yet, so all of them answer what Redis answers outside of it. Clients that ask whether
//! there is a cluster (CLUSTER SLOTS; READONLY on a new connection) know that answer and go on with one
//! server; an unknown command they take for a fault.
mod nodes;
mod slots;

use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use command::{Acl, Arity, Doc, Done, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&ASKING, &CLUSTER, &READONLY, &READWRITE]);

const CLUSTER: ServerCommand = ServerCommand {
    name: "CLUSTER",
    arity: Arity::AtLeast(2),
    doc: Doc { summary: "Holds the commands of a cluster.", complexity: "See each subcommand.", ..ABOUT },
    subcommands: &[
        &slots::ADDSLOTS,
        &slots::ADDSLOTSRANGE,
        &nodes::BUMPEPOCH,
        &nodes::COUNT_FAILURE_REPORTS,
        &slots::COUNTKEYSINSLOT,
        &slots::DELSLOTS,
        &slots::DELSLOTSRANGE,
        &nodes::FAILOVER,
        &slots::FLUSHSLOTS,
        &nodes::FORGET,
        &slots::GETKEYSINSLOT,
        &HELP,
        &nodes::INFO,
        &slots::KEYSLOT,
        &nodes::LINKS,
        &nodes::MEET,
        &nodes::MYID,
        &nodes::MYSHARDID,
        &nodes::NODES,
        &nodes::REPLICAS,
        &nodes::REPLICATE,
        &nodes::RESET,
        &nodes::SAVECONFIG,
        &nodes::SET_CONFIG_EPOCH,
        &slots::SETSLOT,
        &nodes::SHARDS,
        &nodes::SLAVES,
        &slots::SLOTS,
    ],
    ..ROW
};

const ABOUT: Doc = Doc { group: Group::Cluster, since: "3.0.0", complexity: "O(1)", ..Doc::NEW };
/// The tips of commands whose answers are not those of another node.
const OF_THIS_NODE: &[&str] = &["nondeterministic_output"];

/// Any of them: a subcommand that asks for something.
const ANY: ServerCommand = ServerCommand {
    arity: Arity::Exactly(2),
    flags: Flags::STALE,
    doc: ABOUT,
    run: ServerRun::Anywhere(disabled),
    ..ROW
};

/// A subcommand that changes the cluster.
const CHANGE: ServerCommand =
    ServerCommand { flags: Flags::ADMIN.or(Flags::STALE).or(Flags::NO_ASYNC_LOADING), ..ANY };

/// What a client says for the requests that it sends next.
const ON_CONNECTION: ServerCommand = ServerCommand {
    arity: Arity::Exactly(1),
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST),
    acl: Acl::CONNECTION,
    ..ANY
};

const ASKING: ServerCommand = ServerCommand {
    name: "ASKING",
    flags: Flags::FAST,
    doc: Doc { summary: "Has the next request run although its slot is still on its way here.", ..ABOUT },
    ..ON_CONNECTION
};

const READONLY: ServerCommand = ServerCommand {
    name: "READONLY",
    doc: Doc { summary: "Lets the client read from a replica in a cluster.", ..ABOUT },
    ..ON_CONNECTION
};

const READWRITE: ServerCommand = ServerCommand {
    name: "READWRITE",
    doc: Doc { summary: "Takes READONLY back.", ..ABOUT },
    ..ON_CONNECTION
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    flags: Flags::LOADING.or(Flags::STALE),
    doc: super::help::doc(Group::Cluster, "5.0.0"),
    ..ANY
};

/// All of them, CLUSTER HELP too.
fn disabled(_: &mut ServerCall<'_>) -> Done {
    Err(error::no_cluster())
}
