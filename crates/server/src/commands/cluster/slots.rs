//! The subcommands of CLUSTER about slots: which node has them, and which keys are in them.
use super::{ABOUT, ANY, CHANGE, OF_THIS_NODE};
use crate::core::call::ServerCommand;
use command::{Arg, Arity, Deprecated, Doc, Flags};

const PER_SLOT: &str = "O(N) where N is the number of slots named.";
const SLOTS_NAMED: &[Arg] = &[Arg::int("slot").many()];
const RANGES: &[Arg] = &[Arg::block("range", &[Arg::int("start-slot"), Arg::int("end-slot")]).many()];

pub(super) const ADDSLOTS: ServerCommand = ServerCommand {
    name: "ADDSLOTS",
    arity: Arity::AtLeast(3),
    doc: Doc { summary: "Gives slots to this node.", complexity: PER_SLOT, args: SLOTS_NAMED, ..ABOUT },
    ..CHANGE
};

pub(super) const ADDSLOTSRANGE: ServerCommand = ServerCommand {
    name: "ADDSLOTSRANGE",
    arity: Arity::AtLeast(4),
    doc: Doc { since: "7.0.0", summary: "Gives ranges of slots to this node.", args: RANGES, ..ADDSLOTS.doc },
    ..CHANGE
};

pub(super) const DELSLOTS: ServerCommand = ServerCommand {
    name: "DELSLOTS",
    arity: Arity::AtLeast(3),
    doc: Doc { summary: "Takes slots from this node.", ..ADDSLOTS.doc },
    ..CHANGE
};

pub(super) const DELSLOTSRANGE: ServerCommand = ServerCommand {
    name: "DELSLOTSRANGE",
    arity: Arity::AtLeast(4),
    doc: Doc { summary: "Takes ranges of slots from this node.", ..ADDSLOTSRANGE.doc },
    ..CHANGE
};

pub(super) const FLUSHSLOTS: ServerCommand = ServerCommand {
    name: "FLUSHSLOTS",
    doc: Doc { summary: "Takes all slots from this node.", ..ABOUT },
    ..CHANGE
};

pub(super) const SETSLOT: ServerCommand = ServerCommand {
    name: "SETSLOT",
    arity: Arity::AtLeast(4),
    doc: Doc {
        summary: "Says which node has a slot, or where it comes from or goes to.",
        args: &[
            Arg::int("slot"),
            Arg::one_of(
                "subcommand",
                &[
                    Arg::str("importing").after("IMPORTING").shown_as("node-id"),
                    Arg::str("migrating").after("MIGRATING").shown_as("node-id"),
                    Arg::str("node").after("NODE").shown_as("node-id"),
                    Arg::word("stable", "STABLE"),
                ],
            ),
        ],
        ..ABOUT
    },
    ..CHANGE
};

pub(super) const COUNTKEYSINSLOT: ServerCommand = ServerCommand {
    name: "COUNTKEYSINSLOT",
    arity: Arity::Exactly(3),
    doc: Doc { summary: "Counts the keys of a slot.", args: &[Arg::int("slot")], ..ABOUT },
    ..ANY
};

pub(super) const GETKEYSINSLOT: ServerCommand = ServerCommand {
    name: "GETKEYSINSLOT",
    arity: Arity::Exactly(4),
    doc: Doc {
        summary: "Answers keys of a slot.",
        complexity: "O(N) where N is the number of keys asked for.",
        args: &[Arg::int("slot"), Arg::int("count")],
        tips: OF_THIS_NODE,
        ..ABOUT
    },
    ..ANY
};

pub(super) const KEYSLOT: ServerCommand = ServerCommand {
    name: "KEYSLOT",
    arity: Arity::Exactly(3),
    doc: Doc {
        summary: "Answers the slot of a key.",
        complexity: "O(N) where N is the length of the key.",
        args: &[Arg::str("key")],
        ..ABOUT
    },
    ..ANY
};

pub(super) const SLOTS: ServerCommand = ServerCommand {
    name: "SLOTS",
    flags: Flags::LOADING.or(Flags::STALE),
    doc: Doc {
        summary: "Answers which nodes have which slots.",
        complexity: super::nodes::PER_NODE,
        history: &[("4.0.0", "Nodes have ids."), ("7.0.0", "Nodes have further data on the network.")],
        deprecated: Some(Deprecated { since: "7.0.0", replaced_by: "`CLUSTER SHARDS`" }),
        tips: OF_THIS_NODE,
        ..ABOUT
    },
    ..ANY
};
