//! GEORADIUS and GEORADIUSBYMEMBER with their read-only forms: the older searches, by a radius alone.
use super::query::{Grammar, Storing};
use super::row::{ABOUT, ROW};
use super::search::{ORDER, UNIT, members_searched, run};
use crate::{
    Access, Arg, Arity, Begin, Call, Command, DataRun, Deprecated, Doc, Done, Find, Flags, KeySpec, Long,
    work,
};

const SOURCE: KeySpec = KeySpec::one(1, Access::RO.or(Access::ACCESS));
const WITHCOORD: Arg = Arg::word("withcoord", "WITHCOORD").optional();
const WITHDIST: Arg = Arg::word("withdist", "WITHDIST").optional();
const WITHHASH: Arg = Arg::word("withhash", "WITHHASH").optional();
const COUNT: Arg = Arg::block(
    "count-block",
    &[Arg::int("count").after("COUNT"), Arg::word("any", "ANY").optional().since("6.2.0")],
)
.optional();
const COUNT_BY_MEMBER: Arg =
    Arg::block("count-block", &[Arg::int("count").after("COUNT"), Arg::word("any", "ANY").optional()])
        .optional();
const STORE: Arg = Arg::one_of(
    "store",
    &[
        Arg::key("storekey", 1).after("STORE").shown_as("key"),
        Arg::key("storedistkey", 2).after("STOREDIST").shown_as("key"),
    ],
)
.optional();
const HISTORY: &[(&str, &str)] =
    &[("6.2.0", "Takes `ANY` with `COUNT`."), ("7.0.0", "Takes units in upper case.")];
const COMPLEXITY: &str =
    "O(N+log(M)) where N is the number of members in the cells around the circle, M of all.";

/// The key behind a word among the options, which begin at `start`.
const fn destination(word: &'static str, start: i32) -> KeySpec {
    KeySpec {
        begin: Begin::Keyword { word, start },
        find: Find::Range { last: 0, step: 1, limit: 0 },
        access: Access::OW.or(Access::UPDATE).or(Access::INCOMPLETE),
        notes: "The words may stand there more than once, and the last one counts.",
        ..KeySpec::NEW
    }
}

pub(super) const GEORADIUS: Command = Command {
    name: "GEORADIUS",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLEKEYS),
    keys: &[SOURCE, destination("STORE", 6), destination("STOREDIST", 6)],
    doc: Doc {
        since: "3.2.0",
        summary: "Answers, or stores, the members within a radius around a point.",
        complexity: COMPLEXITY,
        args: &[
            Arg::key("key", 0),
            Arg::double("longitude"),
            Arg::double("latitude"),
            Arg::double("radius"),
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT,
            ORDER,
            STORE,
        ],
        history: HISTORY,
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
        }),
        ..ABOUT
    },
    run: DataRun::Long(&Long {
        work: |call| members_searched(call, 0, Grammar::AroundPoint(Storing::Allowed)),
        writes: work::stores,
        words_min: 0,
        is_quick: None,
        run: georadius,
    }),
    ..ROW
};

pub(super) const GEORADIUS_RO: Command = Command {
    name: "GEORADIUS_RO",
    arity: Arity::AtLeast(6),
    flags: Flags::READONLY,
    keys: &[SOURCE],
    doc: Doc {
        since: "3.2.10",
        summary: "Answers the members within a radius around a point.",
        complexity: COMPLEXITY,
        args: &[
            Arg::key("key", 0),
            Arg::double("longitude"),
            Arg::double("latitude"),
            Arg::double("radius"),
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT,
            ORDER,
        ],
        history: HISTORY,
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`GEOSEARCH` with the `BYRADIUS` argument",
        }),
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(
        |call| members_searched(call, 0, Grammar::AroundPoint(Storing::Refused)),
        georadius_ro,
    )),
    ..ROW
};

pub(super) const GEORADIUSBYMEMBER: Command = Command {
    name: "GEORADIUSBYMEMBER",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLEKEYS),
    keys: &[SOURCE, destination("STORE", 5), destination("STOREDIST", 5)],
    doc: Doc {
        since: "3.2.0",
        summary: "Answers, or stores, the members within a radius around a member.",
        complexity: COMPLEXITY,
        args: &[
            Arg::key("key", 0),
            Arg::str("member"),
            Arg::double("radius"),
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT_BY_MEMBER,
            ORDER,
            STORE,
        ],
        history: HISTORY,
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
        }),
        ..ABOUT
    },
    run: DataRun::Long(&Long {
        work: |call| members_searched(call, 0, Grammar::AroundMember(Storing::Allowed)),
        writes: work::stores,
        words_min: 0,
        is_quick: None,
        run: georadiusbymember,
    }),
    ..ROW
};

pub(super) const GEORADIUSBYMEMBER_RO: Command = Command {
    name: "GEORADIUSBYMEMBER_RO",
    arity: Arity::AtLeast(5),
    flags: Flags::READONLY,
    keys: &[SOURCE],
    doc: Doc {
        since: "3.2.10",
        summary: "Answers the members within a radius around a member.",
        complexity: COMPLEXITY,
        args: &[
            Arg::key("key", 0),
            Arg::str("member"),
            Arg::double("radius"),
            UNIT,
            WITHCOORD,
            WITHDIST,
            WITHHASH,
            COUNT_BY_MEMBER,
            ORDER,
        ],
        history: HISTORY,
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
        }),
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(
        |call| members_searched(call, 0, Grammar::AroundMember(Storing::Refused)),
        georadiusbymember_ro,
    )),
    ..ROW
};

fn georadius(call: &mut Call<'_, '_>) -> Done {
    run(call, *call.key(0), Grammar::AroundPoint(Storing::Allowed))
}

fn georadius_ro(call: &mut Call<'_, '_>) -> Done {
    run(call, *call.key(0), Grammar::AroundPoint(Storing::Refused))
}

fn georadiusbymember(call: &mut Call<'_, '_>) -> Done {
    run(call, *call.key(0), Grammar::AroundMember(Storing::Allowed))
}

fn georadiusbymember_ro(call: &mut Call<'_, '_>) -> Done {
    run(call, *call.key(0), Grammar::AroundMember(Storing::Refused))
}
