//! The collections, how they are filled, and the operations on one element. Every request is drawn from a
//! seed, so all servers get the same.
use base::random::Random;
use std::ops::Range;

pub(super) type Request = Vec<Vec<u8>>;

pub(super) struct Subject {
    pub(super) name: &'static str,
    /// What a server must know.
    pub(super) command: &'static str,
    /// Whether Redis keeps it in one packed block where it may.
    pub(super) has_compact_form: bool,
    pub(super) fill: fn(&mut Draw, Range<u64>) -> Vec<Request>,
    pub(super) operations: &'static [Operation],
    /// The charts that the picture shows: the collection's bytes and some of its operations.
    pictured: &'static [&'static str],
}

pub(super) struct Operation {
    pub(super) name: &'static str,
    pub(super) request: fn(&mut Draw) -> Request,
    /// Takes back what the request has added, so that the size stays.
    pub(super) undo: Option<fn(&mut Draw) -> Request>,
}

/// What requests are drawn from.
pub(super) struct Draw {
    pub(super) key: String,
    /// How many elements the key holds.
    pub(super) size: u64,
    pub(super) random: Random,
    /// Rises with each request.
    pub(super) count: u64,
}

impl Subject {
    pub(super) fn key(&self, number: u64) -> String {
        format!("{}:{number}", self.name)
    }

    pub(super) fn is_pictured(&self, chart: &str) -> bool {
        self.pictured.contains(&chart)
    }
}

impl Draw {
    /// An element that is there.
    fn any(&mut self) -> u64 {
        self.random.below(self.size)
    }

    fn request(&self, command: &str, words: Vec<String>) -> Request {
        let words = words.into_iter().map(String::into_bytes);
        [command, &self.key].map(|word| word.as_bytes().to_vec()).into_iter().chain(words).collect()
    }
}

const fn operation(name: &'static str, request: fn(&mut Draw) -> Request) -> Operation {
    Operation { name, request, undo: None }
}

/// Fields and members have 13 bytes, values up to 13.
fn field(element: u64) -> String {
    format!("field:{element:07}")
}

fn value(number: u64) -> String {
    format!("value:{number}")
}

pub(super) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "hash",
        command: "HSET",
        has_compact_form: true,
        fill: |draw, elements| {
            let words = elements.flat_map(|element| [field(element), value(element)]).collect();
            vec![draw.request("HSET", words)]
        },
        operations: &[
            operation("HGET", |draw| {
                let element = draw.any();
                draw.request("HGET", vec![field(element)])
            }),
            operation("HSET", |draw| {
                let (element, number) = (draw.any(), draw.any());
                draw.request("HSET", vec![field(element), value(number)])
            }),
        ],
        pictured: &["hash", "HGET", "HSET"],
    },
    Subject {
        name: "set",
        command: "SADD",
        has_compact_form: true,
        fill: |draw, elements| vec![draw.request("SADD", elements.map(field).collect())],
        operations: &[
            operation("SISMEMBER", |draw| {
                let element = draw.any();
                draw.request("SISMEMBER", vec![field(element)])
            }),
            Operation {
                name: "SADD",
                request: |draw| draw.request("SADD", vec![added(draw.count)]),
                undo: Some(|draw| draw.request("SREM", vec![added(draw.count)])),
            },
        ],
        pictured: &["set", "SISMEMBER", "SADD"],
    },
    Subject {
        name: "sorted set",
        command: "ZADD",
        has_compact_form: true,
        fill: |draw, elements| {
            let pair = |element| [score(&mut draw.random), field(element)];
            let words = elements.flat_map(pair).collect();
            vec![draw.request("ZADD", words)]
        },
        operations: &[
            operation("ZSCORE", |draw| {
                let element = draw.any();
                draw.request("ZSCORE", vec![field(element)])
            }),
            operation("ZADD, random scores", |draw| {
                let element = draw.any();
                let score = score(&mut draw.random);
                draw.request("ZADD", vec![score, field(element)])
            }),
            operation("ZADD, rising scores", |draw| {
                let element = draw.any();
                draw.request("ZADD", vec![(SCORE_MAX + draw.count).to_string(), field(element)])
            }),
            operation("ZADD, falling scores", |draw| {
                let element = draw.any();
                draw.request("ZADD", vec![format!("-{}", draw.count), field(element)])
            }),
            operation("ZRANK", |draw| {
                let element = draw.any();
                draw.request("ZRANK", vec![field(element)])
            }),
            operation("ZRANGE of 10", |draw| {
                let start = draw.any();
                draw.request("ZRANGE", vec![start.to_string(), (start + 9).to_string()])
            }),
        ],
        pictured: &["sorted set", "ZSCORE", "ZADD, random scores"],
    },
    Subject {
        name: "stream",
        command: "XADD",
        has_compact_form: false,
        fill: |draw, elements| elements.map(|element| entry(draw, element)).collect(),
        operations: &[Operation {
            name: "XADD",
            request: |draw| {
                let count = draw.count;
                entry(draw, count)
            },
            undo: Some(|draw| draw.request("XTRIM", vec!["MAXLEN".into(), draw.size.to_string()])),
        }],
        pictured: &[],
    },
];

/// A member that is not among those that a set was filled with.
fn added(count: u64) -> String {
    format!("added:{count:07}")
}

const SCORE_MAX: u64 = 10_000_000;

fn score(random: &mut Random) -> String {
    random.below(SCORE_MAX).to_string()
}

/// An entry of five short fields.
pub(crate) fn entry(draw: &mut Draw, element: u64) -> Request {
    let (host, path) = (draw.random.below(20), draw.random.below(1_000));
    let (status, bytes) = (200 + draw.random.below(5) * 100, draw.random.below(100_000));
    let words = [
        ["host", &format!("web-{host}")],
        ["path", &format!("/item/{path}")],
        ["status", &status.to_string()],
        ["bytes", &bytes.to_string()],
        ["request", &element.to_string()],
    ];
    let words = words.concat().into_iter().map(String::from);
    draw.request("XADD", std::iter::once("*".to_string()).chain(words).collect())
}
