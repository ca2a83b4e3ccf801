//! The subcommands of CLUSTER about nodes: who they are, who follows whom, and the epochs that settle it.
use super::{ABOUT, ANY, CHANGE, OF_THIS_NODE};
use crate::core::call::ServerCommand;
use command::{Arg, Arity, Deprecated, Doc, Flags};

pub(super) const PER_NODE: &str = "O(N) where N is the number of nodes.";
const NODE: &[Arg] = &[Arg::str("node-id")];

/// About another node, which is named.
const LOOK: ServerCommand =
    ServerCommand { arity: Arity::Exactly(3), flags: Flags::ADMIN.or(Flags::STALE), ..ANY };

pub(super) const BUMPEPOCH: ServerCommand = ServerCommand {
    name: "BUMPEPOCH",
    doc: Doc { summary: "Gives this node a newer epoch than all others have.", tips: OF_THIS_NODE, ..ABOUT },
    ..CHANGE
};

pub(super) const COUNT_FAILURE_REPORTS: ServerCommand = ServerCommand {
    name: "COUNT-FAILURE-REPORTS",
    doc: Doc {
        summary: "Counts the nodes that report another one as failed.",
        complexity: "O(N) where N is the number of reports.",
        args: NODE,
        tips: OF_THIS_NODE,
        ..ABOUT
    },
    ..LOOK
};

pub(super) const FAILOVER: ServerCommand = ServerCommand {
    name: "FAILOVER",
    arity: Arity::AtLeast(2),
    doc: Doc {
        summary: "Has a replica take the place of its primary.",
        args: &[Arg::one_of("options", &[Arg::word("force", "FORCE"), Arg::word("takeover", "TAKEOVER")])
            .optional()],
        ..ABOUT
    },
    ..CHANGE
};

pub(super) const FORGET: ServerCommand = ServerCommand {
    name: "FORGET",
    arity: Arity::Exactly(3),
    doc: Doc { summary: "Has this node know another one no longer.", args: NODE, ..ABOUT },
    ..CHANGE
};

pub(super) const INFO: ServerCommand = ServerCommand {
    name: "INFO",
    doc: Doc {
        summary: "Answers the state of the cluster as this node sees it.",
        tips: OF_THIS_NODE,
        ..ABOUT
    },
    ..ANY
};

pub(super) const LINKS: ServerCommand = ServerCommand {
    name: "LINKS",
    doc: Doc {
        since: "7.0.0",
        summary: "Lists the connections between this node and others.",
        complexity: PER_NODE,
        tips: OF_THIS_NODE,
        ..ABOUT
    },
    ..ANY
};

pub(super) const MEET: ServerCommand = ServerCommand {
    name: "MEET",
    arity: Arity::AtLeast(4),
    doc: Doc {
        summary: "Has this node and another one know each other.",
        args: &[Arg::str("ip"), Arg::int("port"), Arg::int("cluster-bus-port").optional().since("4.0.0")],
        history: &[("4.0.0", "The port of the cluster bus may be given.")],
        ..ABOUT
    },
    ..CHANGE
};

pub(super) const MYID: ServerCommand =
    ServerCommand { name: "MYID", doc: Doc { summary: "Answers the id of this node.", ..ABOUT }, ..ANY };

pub(super) const MYSHARDID: ServerCommand = ServerCommand {
    name: "MYSHARDID",
    doc: Doc {
        since: "7.2.0",
        summary: "Answers the id of the primary and replicas that this node is one of.",
        tips: OF_THIS_NODE,
        ..ABOUT
    },
    ..ANY
};

pub(super) const NODES: ServerCommand = ServerCommand {
    name: "NODES",
    doc: Doc {
        summary: "Lists the nodes as this one sees them.",
        complexity: PER_NODE,
        tips: OF_THIS_NODE,
        ..ABOUT
    },
    ..ANY
};

pub(super) const REPLICAS: ServerCommand = ServerCommand {
    name: "REPLICAS",
    doc: Doc {
        since: "5.0.0",
        summary: "Lists the replicas of a primary.",
        complexity: "O(N) where N is the number of replicas.",
        args: NODE,
        tips: OF_THIS_NODE,
        ..ABOUT
    },
    ..LOOK
};

pub(super) const REPLICATE: ServerCommand = ServerCommand {
    name: "REPLICATE",
    arity: Arity::Exactly(3),
    doc: Doc { summary: "Makes this node a replica of a primary.", args: NODE, ..ABOUT },
    ..CHANGE
};

pub(super) const RESET: ServerCommand = ServerCommand {
    name: "RESET",
    arity: Arity::AtLeast(2),
    flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::STALE),
    doc: Doc {
        summary: "Makes this node one that knows no other.",
        complexity: "O(N) where N is the number of nodes that it knows, and of the keys of a replica.",
        args: &[Arg::one_of("reset-type", &[Arg::word("hard", "HARD"), Arg::word("soft", "SOFT")]).optional()],
        ..ABOUT
    },
    ..ANY
};

pub(super) const SAVECONFIG: ServerCommand = ServerCommand {
    name: "SAVECONFIG",
    doc: Doc { summary: "Writes the configuration of the cluster to this node's disk.", ..ABOUT },
    ..CHANGE
};

pub(super) const SET_CONFIG_EPOCH: ServerCommand = ServerCommand {
    name: "SET-CONFIG-EPOCH",
    arity: Arity::Exactly(3),
    doc: Doc { summary: "Sets the epoch of a new node.", args: &[Arg::int("config-epoch")], ..ABOUT },
    ..CHANGE
};

pub(super) const SHARDS: ServerCommand = ServerCommand {
    name: "SHARDS",
    flags: Flags::LOADING.or(Flags::STALE),
    doc: Doc {
        since: "7.0.0",
        summary: "Answers which slots each primary has, with its replicas.",
        complexity: PER_NODE,
        tips: OF_THIS_NODE,
        ..ABOUT
    },
    ..ANY
};

pub(super) const SLAVES: ServerCommand = ServerCommand {
    name: "SLAVES",
    doc: Doc {
        since: "3.0.0",
        deprecated: Some(Deprecated { since: "5.0.0", replaced_by: "`CLUSTER REPLICAS`" }),
        ..REPLICAS.doc
    },
    ..LOOK
};
