//! One command, one value: name, arity, flags, key specs, argument grammar, documentation, handler.
//!
//! A command is a constant beside the function it names, so that everything about it stands on one screen,
//! and nothing about it stands anywhere else. Being a constant it is checked while it compiles (`checked`),
//! and costs nothing to start. Whoever runs commands decides by `run` alone what a handler may see: its keys,
//! the whole keyspace, or (in the server's own tables, which have another `R`) the session and everything
//! shared.
use crate::work::{STEP_BYTES, STEPS_AN_EDIT};
use crate::{Acl, Call, FixedKeys, Flags, Group, KeySpec, WholeCall};

pub use crate::call::Done;

/// How many arguments, the name included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    Exactly(u8),
    AtLeast(u8),
}

impl Arity {
    #[inline]
    /// Whether a request of `count` arguments, the name included, may run.
    pub const fn accepts(self, count: usize) -> bool {
        match self {
            Arity::Exactly(n) => count == n as usize,
            Arity::AtLeast(n) => count >= n as usize,
        }
    }
    /// The fewest arguments that it accepts.
    pub const fn fewest(self) -> usize {
        match self {
            Arity::Exactly(n) | Arity::AtLeast(n) => n as usize,
        }
    }
    /// COMMAND INFO's number: negative for "at least".
    pub const fn number(self) -> i64 {
        match self {
            Arity::Exactly(n) => n as i64,
            Arity::AtLeast(n) => -(n as i64),
        }
    }
}

/// One row of a table. `R` is what runs it: data commands and the server's differ in what they see.
pub struct Command<R: 'static = DataRun> {
    /// Upper case. A subcommand's is the word after its container's ("ENCODING" under "OBJECT").
    pub name: &'static str,
    pub arity: Arity,
    pub flags: Flags,
    /// Explicit ACL categories; those that the flags imply are added.
    pub acl: Acl,
    pub keys: &'static [KeySpec],
    pub doc: Doc,
    pub subcommands: &'static [&'static Command<R>],
    /// How a request of very many keys runs.
    pub parts: Parts,
    /// How long it takes where the reply of another stands behind its own (EXEC), so that nothing is left to
    /// be written as the client reads; None where that makes no difference.
    pub at_once: Option<&'static Long>,
    pub run: R,
}

/// How a request of very many keys may run in parts, each of which is a request of some of its keys. Nobody
/// may see or change its keys between two of them.
#[derive(Clone, Copy)]
pub enum Parts {
    /// Not at all: as a whole.
    Never,
    /// A part answers a number, and the request the sum.
    Added,
    /// A part answers an array of what is under its keys, and the request one of all, in their order.
    Listed,
    /// Each key has its value behind it. A part answers OK, and so does the request.
    Pairs,
    /// The same, and parts are run by this function: if none of the keys is there. The request answers
    /// whether that was so.
    PairsIfNone(fn(&mut Call<'_, '_>) -> Done),
}

impl<R> Command<R> {
    /// Where its keys are, as far as this row tells. Registries keep it beside the row: dispatch asks it of
    /// every request.
    pub fn fixed_keys(&self) -> FixedKeys {
        FixedKeys::of(self.keys, self.flags, self.arity)
    }
}

/// What a row leaves out: a family adds what its own rows have in common, and each row what is particular to
/// it. It has no name and no summary, so that a row which forgets them does not build ([`checked`]).
pub(crate) const ROW: Command = Command {
    name: "",
    arity: Arity::AtLeast(1),
    flags: Flags::NONE,
    acl: Acl::NONE,
    keys: &[],
    doc: Doc::NEW,
    subcommands: &[],
    parts: Parts::Never,
    at_once: None,
    run: DataRun::Container,
};

/// How a data command runs.
#[derive(Clone, Copy)]
pub enum DataRun {
    /// On its keys, their shards locked.
    Keys(fn(&mut Call<'_, '_>) -> Done),
    /// The same, of a command that may take long.
    Long(&'static Long),
    /// The same; it may leave a [`crate::Wait`] instead of a reply.
    Blocking(&'static Long),
    /// On the whole keyspace.
    Whole(Scope, fn(&mut WholeCall<'_>) -> Done),
    /// The same, of a command that only reads and may take long.
    LongWhole(Scope, &'static LongWhole),
    /// On its keys, unless only the data tells which keys it needs.
    KeysOrAll(&'static KeysOrAll),
    /// Not at all: it only holds subcommands.
    Container,
}

/// The two ways of a command some of whose requests name all their keys, and some of whose do not (SORT ...
/// BY).
pub struct KeysOrAll {
    /// Whether this request is one of the latter, which run alone on the whole keyspace.
    pub needs_all: fn(&resp::Args<'_>) -> bool,
    /// The option that lets this request read keys which it does not name, if it has one: whoever sends it
    /// must be allowed to read every key.
    pub reaches_further: fn(&resp::Args<'_>) -> Option<&'static str>,
    pub keys: Long,
    pub all: LongWhole,
}

/// A command that may take long on its keys. A request that takes [`LONG_STEPS`](crate::LONG_STEPS) or more
/// may be run elsewhere, on the data as it was when it came.
#[derive(Clone, Copy)]
pub struct Long {
    /// How many steps the request takes, about (`work.rs`); None if it has to run where its keys are. It is
    /// asked with the keys locked, and counts no lookup.
    pub work: fn(&mut Call<'_, '_>) -> Option<u64>,
    /// Whether this request may write.
    pub writes: fn(&resp::Args<'_>) -> bool,
    /// A request of fewer words, the name included, never takes long, and runs as one of [`DataRun::Keys`].
    pub words_min: u8,
    /// Tells of a request of more words, if it can by a glance, that it takes no longer.
    pub is_quick: Option<fn(&resp::Args<'_>) -> bool>,
    pub run: fn(&mut Call<'_, '_>) -> Done,
}

impl Long {
    /// Of a command that never takes long.
    pub const fn quick(run: fn(&mut Call<'_, '_>) -> Done) -> Long {
        Long { work: |_| None, writes: |_| false, words_min: 0, is_quick: None, run }
    }

    /// Of a command that only reads.
    pub const fn reading(
        work: fn(&mut Call<'_, '_>) -> Option<u64>,
        run: fn(&mut Call<'_, '_>) -> Done,
    ) -> Long {
        Long { work, writes: |_| false, words_min: 0, is_quick: None, run }
    }

    /// Of a command that writes.
    pub const fn writing(
        work: fn(&mut Call<'_, '_>) -> Option<u64>,
        run: fn(&mut Call<'_, '_>) -> Done,
    ) -> Long {
        Long { work, writes: |_| true, words_min: 0, is_quick: None, run }
    }

    /// Of a command that takes long only where its request has very many words, each an element that is
    /// looked for, removed or stored.
    pub const fn of_words(writes: fn(&resp::Args<'_>) -> bool, run: fn(&mut Call<'_, '_>) -> Done) -> Long {
        Long {
            work: |call| {
                let bytes = call.args.framed_bytes_from(0) as u64;
                Some(call.args.len() as u64 * STEPS_AN_EDIT + bytes / STEP_BYTES)
            },
            writes,
            words_min: 0,
            is_quick: None,
            run,
        }
    }

    /// The same where a request of fewer words never takes long.
    pub const fn with_words(self, words_min: u8) -> Long {
        Long { words_min, ..self }
    }

    /// The same where a request of which this is true never takes long.
    pub const fn unless(self, is_quick: fn(&resp::Args<'_>) -> bool) -> Long {
        Long { is_quick: Some(is_quick), ..self }
    }

    /// Whether a request never takes long, as far as it tells by itself.
    #[inline(always)]
    pub fn is_surely_quick(&self, args: &resp::Args<'_>) -> bool {
        args.len() < usize::from(self.words_min) || self.is_quick.is_some_and(|is_quick| is_quick(args))
    }
}

/// A command on the whole keyspace that may take long. It may run elsewhere where it only reads.
pub struct LongWhole {
    pub work: fn(&WholeCall<'_>) -> Option<u64>,
    pub run: fn(&mut WholeCall<'_>) -> Done,
}

/// What else may run meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Anything: the command locks one shard at a time (SCAN).
    Shared,
    /// Nothing: every worker's lock is taken (FLUSHALL, KEYS).
    Exclusive,
}

/// The documentation of a command: COMMAND DOCS and docs/commands.md. Build it with `..Doc::NEW`.
pub struct Doc {
    pub group: Group,
    pub since: &'static str,
    pub summary: &'static str,
    pub complexity: &'static str,
    pub args: &'static [Arg],
    /// (version, what changed)
    pub history: &'static [(&'static str, &'static str)],
    /// COMMAND INFO's tips ("nondeterministic_output", "request_policy:all_shards").
    pub tips: &'static [&'static str],
    pub deprecated: Option<Deprecated>,
    /// For administrators, not applications (COMMAND DOCS's flag `syscmd`).
    pub is_system: bool,
}

impl Doc {
    pub const NEW: Doc = Doc {
        group: Group::Generic,
        since: "",
        summary: "",
        complexity: "",
        args: &[],
        history: &[],
        tips: &[],
        deprecated: None,
        is_system: false,
    };
}

#[derive(Clone, Copy)]
pub struct Deprecated {
    pub since: &'static str,
    pub replaced_by: &'static str,
}

/// COMMAND DOCS's argument types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// The index of its key spec.
    Key(u8),
    String,
    Integer,
    Double,
    Pattern,
    UnixTime,
    PureToken,
    OneOf,
    Block,
}

/// One argument of the grammar.
pub struct Arg {
    pub name: &'static str,
    pub kind: ArgKind,
    /// The word before the value; of a pure token the word itself.
    pub token: Option<&'static str>,
    pub optional: bool,
    pub multiple: bool,
    /// The token is repeated with each value.
    pub multiple_token: bool,
    pub since: Option<&'static str>,
    pub deprecated_since: Option<&'static str>,
    /// What to show for the value where that is not the name ("ip:port").
    pub display: Option<&'static str>,
    /// For a pattern that keys are made from: the index of the spec of these keys.
    pub key_spec: Option<u8>,
    /// The arguments of a one-of or a block.
    pub args: &'static [Arg],
    pub secret: Secret,
}

/// Whether nobody but its sender may read a value (see [`crate::secrets`]).
#[derive(Clone, Copy)]
pub enum Secret {
    Never,
    Always,
    /// It depends on the value before it, which is the name of something. The function tells whether what has
    /// that name is secret, and None if nothing has it.
    ByName(fn(&[u8]) -> Option<bool>),
}

impl Arg {
    const fn new(name: &'static str, kind: ArgKind) -> Arg {
        Arg {
            name,
            kind,
            token: None,
            optional: false,
            multiple: false,
            multiple_token: false,
            since: None,
            deprecated_since: None,
            display: None,
            key_spec: None,
            args: &[],
            secret: Secret::Never,
        }
    }
    /// A pattern that leads to keys of spec number `spec`.
    pub const fn key_pattern(name: &'static str, spec: u8) -> Arg {
        let mut arg = Arg::pattern(name);
        arg.key_spec = Some(spec);
        arg
    }
    /// A key, which spec number `spec` finds.
    pub const fn key(name: &'static str, spec: u8) -> Arg {
        Arg::new(name, ArgKind::Key(spec))
    }
    /// Any text.
    pub const fn str(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::String)
    }
    /// A signed integer.
    pub const fn int(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Integer)
    }
    /// A floating point number.
    pub const fn double(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Double)
    }
    /// A glob.
    pub const fn pattern(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::Pattern)
    }
    /// A time since 1970, in the unit that its name says.
    pub const fn unix_time(name: &'static str) -> Arg {
        Arg::new(name, ArgKind::UnixTime)
    }
    /// A word that says something by being there; `name` is what COMMAND DOCS calls it.
    pub const fn word(name: &'static str, token: &'static str) -> Arg {
        Arg::new(name, ArgKind::PureToken).after(token)
    }
    /// One of several that exclude each other.
    pub const fn one_of(name: &'static str, args: &'static [Arg]) -> Arg {
        let mut arg = Arg::new(name, ArgKind::OneOf);
        arg.args = args;
        arg
    }
    /// Several that belong together, in this order.
    pub const fn block(name: &'static str, args: &'static [Arg]) -> Arg {
        let mut arg = Arg::new(name, ArgKind::Block);
        arg.args = args;
        arg
    }
    /// The value stands behind this word.
    pub const fn after(mut self, token: &'static str) -> Arg {
        self.token = Some(token);
        self
    }
    /// It may be left out.
    pub const fn optional(mut self) -> Arg {
        self.optional = true;
        self
    }
    /// The value may be repeated, once at least.
    pub const fn many(mut self) -> Arg {
        self.multiple = true;
        self
    }
    /// The word may be repeated with its value.
    pub const fn many_with_token(mut self) -> Arg {
        self.multiple = true;
        self.multiple_token = true;
        self
    }
    /// The version of Redis that took it first.
    pub const fn since(mut self, version: &'static str) -> Arg {
        self.since = Some(version);
        self
    }
    /// The version of Redis since which something else is to be used.
    pub const fn deprecated(mut self, version: &'static str) -> Arg {
        self.deprecated_since = Some(version);
        self
    }
    /// Nobody but its sender may read it.
    pub const fn secret(mut self) -> Arg {
        self.secret = Secret::Always;
        self
    }
    /// Whether others may read it depends on the value before it (see [`Secret::ByName`]).
    pub const fn secret_by_name(mut self, is_secret: fn(&[u8]) -> Option<bool>) -> Arg {
        self.secret = Secret::ByName(is_secret);
        self
    }
    /// COMMAND DOCS shows this for the value, instead of its name.
    pub const fn shown_as(mut self, text: &'static str) -> Arg {
        self.display = Some(text);
        self
    }
}

/// Returns a family's table after checking its rows while compiling: a wrong row does not build.
pub const fn checked<R>(table: &'static [&'static Command<R>]) -> &'static [&'static Command<R>] {
    let mut i = 0;
    while i < table.len() {
        check(table[i]);
        i += 1;
    }
    table
}

/// Checks what lookup, arity and COMMAND rely on in a row. It uses loops, because iterators are not `const`.
const fn check<R>(command: &Command<R>) {
    let name = command.name.as_bytes();
    assert!(!name.is_empty(), "a command needs a name");
    let mut i = 0;
    while i < name.len() {
        assert!(!name[i].is_ascii_lowercase(), "names are upper case");
        i += 1;
    }
    assert!(!command.doc.summary.is_empty() && !command.doc.since.is_empty(), "a command is documented");
    assert!(
        !(command.flags.has(Flags::WRITE) && command.flags.has(Flags::READONLY)),
        "a command either writes or only reads"
    );
    assert!(command.arity.fewest() >= 1, "the name is an argument");
    let mut i = 0;
    while i < command.subcommands.len() {
        check(command.subcommands[i]);
        i += 1;
    }
}
