//! Where a command's keys are among its arguments: what sharding, ACL, cluster routing and COMMAND GETKEYS
//! read. Three forms cover Redis's own; a command that none fits is `MOVABLEKEYS` with a rule of its own
//! ([`Find::Unknown`]).
//!
//! Dispatch locks the shards of exactly the keys that these find, before the command runs: a spec that misses
//! a key would leave its command without that key's shard, and it could not name it. So a wrong spec shows at
//! the first use, not as a race.
use resp::Args;

/// What the command does with the keys (COMMAND INFO's key-spec flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u16);

impl Access {
    pub const RO: Access = Access(1);
    pub const RW: Access = Access(1 << 1);
    pub const OW: Access = Access(1 << 2);
    pub const RM: Access = Access(1 << 3);
    pub const ACCESS: Access = Access(1 << 4);
    pub const UPDATE: Access = Access(1 << 5);
    pub const INSERT: Access = Access(1 << 6);
    pub const DELETE: Access = Access(1 << 7);
    pub const NOT_KEY: Access = Access(1 << 8);
    /// By what clients are told they do not find the keys of every request.
    pub const INCOMPLETE: Access = Access(1 << 9);
    /// What is done with the keys depends on the request ([`KeySpec::access_in`]).
    pub const VARIABLE_FLAGS: Access = Access(1 << 10);

    /// Names as COMMAND INFO sends them, in its order.
    pub const NAMES: &[(Access, &'static str)] = &[
        (Access::RO, "RO"),
        (Access::RW, "RW"),
        (Access::OW, "OW"),
        (Access::RM, "RM"),
        (Access::ACCESS, "access"),
        (Access::UPDATE, "update"),
        (Access::INSERT, "insert"),
        (Access::DELETE, "delete"),
        (Access::NOT_KEY, "not_key"),
        (Access::INCOMPLETE, "incomplete"),
        (Access::VARIABLE_FLAGS, "variable_flags"),
    ];

    /// Both together.
    pub const fn or(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
    /// These but for all of `other`.
    pub const fn without(self, other: Access) -> Access {
        Access(self.0 & !other.0)
    }
    /// Whether all of `other` are set.
    pub const fn has(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Where the search begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    Index(usize),
    /// The argument after this word, looked for from `start` on (negative: from the end, backwards).
    Keyword {
        word: &'static str,
        start: i32,
    },
    /// Clients are not told where the search begins; see [`Find::Unknown`].
    Unknown,
}

/// Which arguments from there are keys.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// Up to `last` (relative to the beginning; negative: from the last argument), every `step`; `limit` as
    /// in Redis: 0 and 1 no limit, n: only the first n-th part of the rest.
    Range { last: i32, step: usize, limit: usize },
    /// A count stands at `index`, the first key at `first`, both relative to the beginning.
    Count { index: usize, first: usize, step: usize },
    /// The one that the command's own rule finds; clients are told that it is unknown. A rule that never
    /// finds any stands for keys that are no arguments.
    Unknown(fn(&Args<'_>) -> Option<usize>),
}

#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    pub begin: Begin,
    pub find: Find,
    /// What some request of the command may do with the keys.
    pub access: Access,
    pub notes: &'static str,
    /// What a request does with them, where its arguments decide.
    pub access_by: Option<fn(&Args<'_>) -> Access>,
    /// A rule that finds the keys in the place of what clients are told, where that is not exact. It belongs
    /// to commands with `MOVABLEKEYS`.
    pub rule: Option<fn(&Args<'_>, &mut Vec<u32>)>,
}

impl KeySpec {
    /// The fields of a spec that is written with `..KeySpec::NEW`.
    pub const NEW: KeySpec = KeySpec {
        begin: Begin::Unknown,
        find: Find::Unknown(|_| None),
        access: Access::RO,
        notes: "",
        access_by: None,
        rule: None,
    };
    /// One key at `index`.
    pub const fn one(index: usize, access: Access) -> KeySpec {
        KeySpec::range(index, 0, 1, access)
    }
    /// Keys from `index` up to `last` (see [`Find::Range`]), every `step`.
    pub const fn range(index: usize, last: i32, step: usize, access: Access) -> KeySpec {
        let find = Find::Range { last, step, limit: 0 };
        KeySpec { begin: Begin::Index(index), find, access, ..KeySpec::NEW }
    }
    /// A count at `index`, the keys after it.
    pub const fn count(index: usize, access: Access) -> KeySpec {
        KeySpec {
            begin: Begin::Index(index),
            find: Find::Count { index: 0, first: 1, step: 1 },
            access,
            ..KeySpec::NEW
        }
    }

    /// Adds the text that COMMAND INFO shows as the `notes` of the spec.
    pub const fn note(mut self, notes: &'static str) -> KeySpec {
        self.notes = notes;
        self
    }

    /// What a request does with the keys is decided by its arguments: `access_by` says how.
    pub const fn access_by(mut self, access_by: fn(&Args<'_>) -> Access) -> KeySpec {
        self.access = self.access.or(Access::VARIABLE_FLAGS);
        self.access_by = Some(access_by);
        self
    }

    /// What this request does with the keys that the spec finds in it.
    pub fn access_in(&self, args: &Args<'_>) -> Access {
        self.access_by.map_or(self.access, |access_by| access_by(args))
    }

    /// Whether what it finds are keys; a spec may also stand for what only looks like one (a channel).
    pub const fn is_of_keys(&self) -> bool {
        !self.access.has(Access::NOT_KEY)
    }

    /// Appends the positions of the keys that `args` holds. Positions beyond the arguments, and counts that
    /// are no numbers, give none: the command itself reports those.
    pub fn extract(&self, args: &Args<'_>, positions: &mut Vec<u32>) {
        if let Some(rule) = self.rule {
            return rule(args, positions);
        }
        if let (Begin::Keyword { .. }, Find::Range { limit: 2, .. }) = (self.begin, self.find) {
            return extract_streams(args, positions);
        }
        if let (Begin::Keyword { word, start: start @ 0.. }, Find::Range { last: 0, .. }) =
            (self.begin, self.find)
        {
            return extract_behind(word, start as usize, args, positions);
        }
        let Some(first) = self.begin_at(args) else { return };
        match self.find {
            Find::Range { last, step, limit } => {
                let end = match (last, limit) {
                    (n, _) if n >= 0 => first + n as usize,
                    (n, 0 | 1) => match args.len().checked_sub(n.unsigned_abs() as usize) {
                        Some(end) => end,
                        None => return,
                    },
                    // The range is empty if the rest is shorter than `limit`.
                    (_, limit) => match (first + (args.len() - first) / limit).checked_sub(1) {
                        Some(end) => end,
                        None => return,
                    },
                };
                positions.extend((first..=end.min(args.len() - 1)).step_by(step).map(|p| p as u32));
            }
            Find::Count { index, first: offset, step } => {
                let Some(count) = args.get(first + index).and_then(base::text::parse_i64) else { return };
                let start = first + offset;
                let room = args.len().saturating_sub(start).div_ceil(step) as i64;
                if count > 0 && count <= room {
                    positions.extend((0..count as usize).map(|i| (start + i * step) as u32));
                }
            }
            Find::Unknown(rule) => positions.extend(rule(args).map(|p| p as u32)),
        }
    }

    /// The argument where the search begins, if the request has it.
    fn begin_at(&self, args: &Args<'_>) -> Option<usize> {
        match self.begin {
            Begin::Index(i) => (i < args.len()).then_some(i),
            Begin::Unknown => Some(0),
            Begin::Keyword { word, start } => {
                let matches = |i: &usize| args.at(*i).eq_ignore_ascii_case(word.as_bytes());
                let found = if start >= 0 {
                    (start as usize..args.len()).find(matches)
                } else {
                    (1..=args.len().checked_sub(start.unsigned_abs() as usize)?).rev().find(matches)
                };
                found.map(|i| i + 1).filter(|i| *i < args.len())
            }
        }
    }
}

/// The keys behind a word, wherever it stands: of several destinations the last one counts, but whoever locks
/// them cannot know.
fn extract_behind(word: &str, start: usize, args: &Args<'_>, positions: &mut Vec<u32>) {
    let is_word = |at: &usize| args.at(*at).eq_ignore_ascii_case(word.as_bytes());
    positions.extend((start..args.len().saturating_sub(1)).filter(is_word).map(|at| at as u32 + 1));
}

/// The first half of what stands behind STREAMS, which follows options. Where there is anything else before
/// it, or behind it no id for each key, the request cannot be right, and has no keys.
fn extract_streams(args: &Args<'_>, positions: &mut Vec<u32>) {
    let mut at = 1;
    while at < args.len() {
        let is = |word: &str| args.at(at).eq_ignore_ascii_case(word.as_bytes());
        if is("STREAMS") {
            let count = args.len() - at - 1;
            if count.is_multiple_of(2) {
                positions.extend((at + 1..=at + count / 2).map(|position| position as u32));
            }
            return;
        }
        at += match () {
            () if is("BLOCK") || is("COUNT") => 2,
            () if is("GROUP") => 3,
            () if is("NOACK") => 1,
            () => return,
        };
    }
}
