//! Command flags, ACL categories and groups, by which dispatch, COMMAND and ACL treat a command.
//!
//! A flag is a statement of the row that others act on. `READONLY` makes dispatch count hits and misses;
//! `WRITE` and `MAY_REPLICATE` (which is
//! told to nobody) let CLIENT PAUSE hold a command back; `DENYOOM` makes it wait for room, or be
//! refused, where memory has a limit; `FAST` decides under which event LATENCY counts it; `NO_AUTH` lets it
//! pass before AUTH; `MOVABLEKEYS` says that its keys are found by the specs alone. The others are only told
//! to clients.

/// COMMAND INFO's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    pub const NONE: Flags = Flags(0);
    pub const WRITE: Flags = Flags(1);
    pub const READONLY: Flags = Flags(1 << 1);
    pub const DENYOOM: Flags = Flags(1 << 2);
    pub const ADMIN: Flags = Flags(1 << 3);
    pub const PUBSUB: Flags = Flags(1 << 4);
    pub const NOSCRIPT: Flags = Flags(1 << 5);
    pub const BLOCKING: Flags = Flags(1 << 6);
    pub const LOADING: Flags = Flags(1 << 7);
    pub const STALE: Flags = Flags(1 << 8);
    pub const SKIP_MONITOR: Flags = Flags(1 << 9);
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 10);
    pub const ASKING: Flags = Flags(1 << 11);
    pub const FAST: Flags = Flags(1 << 12);
    pub const NO_AUTH: Flags = Flags(1 << 13);
    pub const MAY_REPLICATE: Flags = Flags(1 << 14);
    pub const NO_MULTI: Flags = Flags(1 << 15);
    pub const MOVABLEKEYS: Flags = Flags(1 << 16);
    pub const ALLOW_BUSY: Flags = Flags(1 << 17);
    pub const NO_ASYNC_LOADING: Flags = Flags(1 << 18);
    pub const NO_MANDATORY_KEYS: Flags = Flags(1 << 19);
    /// It runs at once where others are queued after MULTI. Clients are not told.
    pub const NEVER_QUEUED: Flags = Flags(1 << 20);

    /// It is refused as writes are while the data cannot be saved, so that those who watch the server notice.
    /// Clients are not told.
    pub const TELLS_HEALTH: Flags = Flags(1 << 21);

    /// `enable-debug-command` decides who may call it. Clients are not told.
    pub const LOOKS_INSIDE: Flags = Flags(1 << 22);

    /// `enable-module-command` decides who may call it. Clients are not told.
    pub const LOADS_CODE: Flags = Flags(1 << 23);

    /// It empties all databases: the dump file is to be empty too. Clients are not told.
    pub const EMPTIES_ALL: Flags = Flags(1 << 24);

    /// It may run a script, or compile one, on the thread of scripts. Clients are not told.
    pub const RUNS_SCRIPT: Flags = Flags(1 << 25);

    /// It may write to another database than that which its client has selected. Clients are not told.
    pub const OTHER_DATABASES: Flags = Flags(1 << 26);

    /// It changes what its client listens to. Clients are not told.
    pub const SUBSCRIBES: Flags = Flags(1 << 27);

    /// It tells how a key was used, which is known where the key is and nowhere else. Clients are not told.
    pub const TELLS_USE: Flags = Flags(1 << 28);

    /// Its client may hear less behind it: what the client has been told before is sent first. Clients are
    /// not told.
    pub const HEARS_LESS: Flags = Flags(1 << 29);

    /// Names as COMMAND INFO sends them, in its order.
    pub const NAMES: &[(Flags, &'static str)] = &[
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_MONITOR, "skip_monitor"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::ASKING, "asking"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Flags::NO_MULTI, "no_multi"),
        (Flags::MOVABLEKEYS, "movablekeys"),
        (Flags::ALLOW_BUSY, "allow_busy"),
        (Flags::NO_ASYNC_LOADING, "no_async_loading"),
    ];

    /// The flags of both.
    pub const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// The flags but for those of `other`.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
    /// Whether all of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of these is among them.
    pub const fn has_any(self, others: Flags) -> bool {
        self.0 & others.0 != 0
    }
}

/// ACL categories beyond those that flags imply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acl(u32);

impl Acl {
    pub const NONE: Acl = Acl(0);
    pub const KEYSPACE: Acl = Acl(1);
    pub const READ: Acl = Acl(1 << 1);
    pub const WRITE: Acl = Acl(1 << 2);
    pub const SET: Acl = Acl(1 << 3);
    pub const SORTEDSET: Acl = Acl(1 << 4);
    pub const LIST: Acl = Acl(1 << 5);
    pub const HASH: Acl = Acl(1 << 6);
    pub const STRING: Acl = Acl(1 << 7);
    pub const BITMAP: Acl = Acl(1 << 8);
    pub const HYPERLOGLOG: Acl = Acl(1 << 9);
    pub const GEO: Acl = Acl(1 << 10);
    pub const STREAM: Acl = Acl(1 << 11);
    pub const PUBSUB: Acl = Acl(1 << 12);
    pub const ADMIN: Acl = Acl(1 << 13);
    pub const FAST: Acl = Acl(1 << 14);
    pub const SLOW: Acl = Acl(1 << 15);
    pub const BLOCKING: Acl = Acl(1 << 16);
    pub const DANGEROUS: Acl = Acl(1 << 17);
    pub const CONNECTION: Acl = Acl(1 << 18);
    pub const TRANSACTION: Acl = Acl(1 << 19);
    pub const SCRIPTING: Acl = Acl(1 << 20);

    pub const NAMES: &[(Acl, &'static str)] = &[
        (Acl::KEYSPACE, "keyspace"),
        (Acl::READ, "read"),
        (Acl::WRITE, "write"),
        (Acl::SET, "set"),
        (Acl::SORTEDSET, "sortedset"),
        (Acl::LIST, "list"),
        (Acl::HASH, "hash"),
        (Acl::STRING, "string"),
        (Acl::BITMAP, "bitmap"),
        (Acl::HYPERLOGLOG, "hyperloglog"),
        (Acl::GEO, "geo"),
        (Acl::STREAM, "stream"),
        (Acl::PUBSUB, "pubsub"),
        (Acl::ADMIN, "admin"),
        (Acl::FAST, "fast"),
        (Acl::SLOW, "slow"),
        (Acl::BLOCKING, "blocking"),
        (Acl::DANGEROUS, "dangerous"),
        (Acl::CONNECTION, "connection"),
        (Acl::TRANSACTION, "transaction"),
        (Acl::SCRIPTING, "scripting"),
    ];

    /// The categories of both.
    pub const fn or(self, other: Acl) -> Acl {
        Acl(self.0 | other.0)
    }
    /// Whether all of `other` are set.
    pub const fn has(self, other: Acl) -> bool {
        self.0 & other.0 == other.0
    }
    /// The explicit categories and those that the flags imply, as Redis derives them.
    pub const fn with_implied(self, flags: Flags) -> Acl {
        let mut all = self;
        if flags.has(Flags::WRITE) {
            all = all.or(Acl::WRITE);
        }
        // Read-only scripting commands are not in the category "read" in Redis, unless their row says so.
        if flags.has(Flags::READONLY) && !all.has(Acl::SCRIPTING) {
            all = all.or(Acl::READ);
        }
        if flags.has(Flags::ADMIN) {
            all = all.or(Acl::ADMIN).or(Acl::DANGEROUS);
        }
        if flags.has(Flags::PUBSUB) {
            all = all.or(Acl::PUBSUB);
        }
        if flags.has(Flags::FAST) {
            all = all.or(Acl::FAST);
        }
        if flags.has(Flags::BLOCKING) {
            all = all.or(Acl::BLOCKING);
        }
        if !all.has(Acl::FAST) {
            all = all.or(Acl::SLOW);
        }
        all
    }
}

/// COMMAND DOCS's group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Generic,
    String,
    List,
    Set,
    SortedSet,
    Hash,
    Pubsub,
    Transactions,
    Connection,
    Server,
    Scripting,
    Hyperloglog,
    Cluster,
    Geo,
    Stream,
    Bitmap,
}

impl Group {
    /// As COMMAND DOCS sends it.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Generic => "generic",
            Group::String => "string",
            Group::List => "list",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Hash => "hash",
            Group::Pubsub => "pubsub",
            Group::Transactions => "transactions",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Scripting => "scripting",
            Group::Hyperloglog => "hyperloglog",
            Group::Cluster => "cluster",
            Group::Geo => "geo",
            Group::Stream => "stream",
            Group::Bitmap => "bitmap",
        }
    }
}
