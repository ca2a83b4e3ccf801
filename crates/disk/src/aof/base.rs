//! The base of an append-only file as commands that make all data (`aof-use-rdb-preamble no`), from frozen
//! data. As in Redis:
//!
//! ```text
//! #TS:1795408961                                    where the file is to tell times
//! FUNCTION LOAD code                                for each library
//! SELECT db
//! SET key value                                     a string
//! RPUSH | SADD key element ...                      lists and sets, 64 elements at most in a command
//! ZADD key score member ...                         likewise
//! HMSET key field value ...                         likewise; then, for each field that has a deadline,
//! HPEXPIREAT key ms FIELDS 1 field
//! XADD key id field value ...                       each entry of a stream, then its counters and groups
//! PEXPIREAT key ms                                  behind any value, if the key has a deadline
//! ```
//!
//! A dump file is smaller and loads faster. This is for programs that read commands.
use crate::rdb::{Disk, GoOn, Output, SaveError, Sink, visit};
use base::double::F64Text;
use base::text::I64Text;
use base::{Item, Millis};
use std::ops::ControlFlow;
use std::sync::Arc;
use store::{Deadline, Direction, End, Frozen, FrozenDb, FrozenEntry, Group, Hash, Id, List, Pending};
use store::{Set, Stream, ZSet};

/// So many elements a command has at most.
const BATCH_ELEMENTS: usize = 64;
/// A command takes no more elements when they are so long together; and so much is gathered for a write.
const GATHERED_BYTES: usize = 128 << 10;

/// What else a file has.
#[derive(Clone, Copy, Debug)]
pub struct BaseForm<'f> {
    /// The codes of libraries of functions.
    pub functions: &'f [Arc<[u8]>],
    /// When this is written, in seconds of the Unix time, if the file is to say so.
    pub time: Option<i64>,
    /// Whether it is synced every few megabytes (`aof-rewrite-incremental-fsync`).
    pub syncs: bool,
}

/// Writes the file, and waits until it is on the disk. Returns how many bytes it has. `go_on` is called for
/// every key, and while what is written is let go of.
pub fn save_commands(
    frozen: Frozen,
    output: &mut dyn Output,
    form: BaseForm<'_>,
    go_on: GoOn<'_>,
) -> Result<u64, SaveError> {
    let mut disk = Disk::new(output, form.syncs);
    let mut commands = Commands { out: Vec::new(), sink: &mut disk, is_broken: false };
    if let Some(time) = form.time {
        commands.out.extend_from_slice(format!("#TS:{time}\r\n").as_bytes());
    }
    form.functions.iter().for_each(|code| commands.put(&[b"FUNCTION", b"LOAD", code]));
    let done = frozen.into_dbs().try_for_each(|db| save_db(&mut commands, db, go_on));
    commands.drain();
    disk.finish(done)
}

fn save_db(commands: &mut Commands<'_>, db: FrozenDb, go_on: GoOn<'_>) -> ControlFlow<()> {
    commands.put(&[b"SELECT", db.number.to_string().as_bytes()]);
    visit(db, go_on, &mut |entry| {
        save_entry(commands, entry);
        if commands.is_broken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// Writes commands.
struct Commands<'o> {
    out: Vec<u8>,
    sink: &'o mut dyn Sink,
    /// The sink takes no more.
    is_broken: bool,
}

impl Commands<'_> {
    fn put(&mut self, words: &[&[u8]]) {
        self.begin(words.len());
        words.iter().for_each(|word| self.word(word));
    }

    /// A command of so many words.
    fn begin(&mut self, words: usize) {
        append_head(&mut self.out, b'*', words);
    }

    fn word(&mut self, word: &[u8]) {
        append_word(&mut self.out, word);
        self.drain_if_full();
    }

    fn drain_if_full(&mut self) {
        if self.out.len() >= GATHERED_BYTES {
            self.drain();
        }
    }

    fn drain(&mut self) {
        self.is_broken |= self.sink.take(&self.out).is_break();
        self.out.clear();
    }
}

fn append_head(out: &mut Vec<u8>, mark: u8, count: usize) {
    out.push(mark);
    out.extend_from_slice(I64Text::new().format(count as i64));
    out.extend_from_slice(b"\r\n");
}

fn append_word(out: &mut Vec<u8>, word: &[u8]) {
    append_head(out, b'$', word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// A command that takes many elements.
struct Batch<'k> {
    verb: &'static [u8],
    key: &'k [u8],
    elements: usize,
    words: usize,
    bytes: Vec<u8>,
}

impl<'k> Batch<'k> {
    fn new(verb: &'static [u8], key: &'k [u8]) -> Batch<'k> {
        Batch { verb, key, elements: 0, words: 0, bytes: Vec::new() }
    }

    /// An element, which is so many words.
    fn add<const WORDS: usize>(&mut self, commands: &mut Commands<'_>, words: [&[u8]; WORDS]) {
        words.iter().for_each(|word| append_word(&mut self.bytes, word));
        self.elements += 1;
        self.words += WORDS;
        if self.elements == BATCH_ELEMENTS || self.bytes.len() >= GATHERED_BYTES {
            self.close(commands);
        }
    }

    fn close(&mut self, commands: &mut Commands<'_>) {
        if self.elements == 0 {
            return;
        }
        commands.begin(2 + self.words);
        commands.word(self.verb);
        commands.word(self.key);
        commands.out.append(&mut self.bytes);
        commands.drain_if_full();
        (self.elements, self.words) = (0, 0);
    }
}

fn save_entry(commands: &mut Commands<'_>, entry: &FrozenEntry<'_>) {
    let FrozenEntry { key, value, .. } = *entry;
    if let Some(text) = value.string() {
        commands.put(&[b"SET", key, text.text(&mut I64Text::new())]);
    } else if let Some(list) = value.list() {
        save_list(commands, key, &list);
    } else if let Some(set) = value.set() {
        save_set(commands, key, &set);
    } else if let Some(zset) = value.zset() {
        save_zset(commands, key, &zset);
    } else if let Some(hash) = value.hash() {
        // A hash whose fields are all past their deadline is as good as gone.
        if hash.live_len() == 0 {
            return;
        }
        save_hash(commands, key, &hash);
    } else if let Some(stream) = value.stream() {
        save_stream(commands, key, stream);
    }
    if let Deadline::At(at) = entry.deadline {
        commands.put(&[b"PEXPIREAT", key, number(at).as_bytes()]);
    }
}

fn number(Millis(at): Millis) -> String {
    at.to_string()
}

fn save_list(commands: &mut Commands<'_>, key: &[u8], list: &List<'_>) {
    let mut batch = Batch::new(b"RPUSH", key);
    list.visit(0, End::Tail, &mut |_, item| {
        batch.add(commands, [item.text(&mut I64Text::new())]);
        ControlFlow::Continue(())
    });
    batch.close(commands);
}

fn save_set(commands: &mut Commands<'_>, key: &[u8], set: &Set<'_>) {
    let mut batch = Batch::new(b"SADD", key);
    set.for_each(&mut |member| batch.add(commands, [member.text(&mut I64Text::new())]));
    batch.close(commands);
}

fn save_zset(commands: &mut Commands<'_>, key: &[u8], zset: &ZSet<'_>) {
    let (mut batch, mut member) = (Batch::new(b"ZADD", key), Vec::new());
    zset.visit(0, End::Tail, &mut |entry| {
        member.clear();
        entry.member.append_to(&mut member);
        batch.add(commands, [F64Text::new().format(entry.score), &member]);
        ControlFlow::Continue(())
    });
    batch.close(commands);
}

fn save_hash(commands: &mut Commands<'_>, key: &[u8], hash: &Hash<'_>) {
    let mut batch = Batch::new(b"HMSET", key);
    let mut has_deadlines = false;
    hash.for_each_timed(&mut |field, value, deadline| {
        has_deadlines |= deadline != Deadline::Never;
        batch.add(commands, [field.text(&mut I64Text::new()), value.text(&mut I64Text::new())]);
    });
    batch.close(commands);
    if !has_deadlines {
        return;
    }
    hash.for_each_timed(&mut |field, _: Item<'_>, deadline| {
        if let Deadline::At(at) = deadline {
            let field = field.text(&mut I64Text::new()).to_vec();
            commands.put(&[b"HPEXPIREAT", key, number(at).as_bytes(), b"FIELDS", b"1", &field]);
        }
    });
}

fn save_stream(commands: &mut Commands<'_>, key: &[u8], stream: &Stream) {
    stream.visit(Id::MIN, Direction::Up, &mut |row| {
        commands.begin(3 + 2 * row.fields());
        commands.word(b"XADD");
        commands.word(key);
        commands.word(id(row.id).as_bytes());
        row.for_each(&mut |name, value| {
            commands.word(name);
            commands.word(value.text(&mut I64Text::new()));
        });
        ControlFlow::Continue(())
    });
    if stream.len() == 0 {
        // An entry that goes at once makes an empty stream.
        commands.put(&[b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"]);
    }
    let (last, deleted) = (id(stream.last_id()), id(stream.max_deleted_id()));
    let added = stream.entries_added().to_string();
    let (last, added, deleted) = (last.as_bytes(), added.as_bytes(), deleted.as_bytes());
    commands.put(&[b"XSETID", key, last, b"ENTRIESADDED", added, b"MAXDELETEDID", deleted]);
    stream.groups().for_each(|group| save_group(commands, key, group));
}

fn id(Id { ms, seq }: Id) -> String {
    format!("{ms}-{seq}")
}

fn save_group(commands: &mut Commands<'_>, key: &[u8], group: &Group) {
    let name = group.name();
    let last = id(group.last_id());
    let read = group.entries_read().map_or("-1".into(), |read| read.to_string());
    commands.put(&[b"XGROUP", b"CREATE", key, name, last.as_bytes(), b"ENTRIESREAD", read.as_bytes()]);
    for consumer in group.consumers() {
        if consumer.pending_len() == 0 {
            commands.put(&[b"XGROUP", b"CREATECONSUMER", key, name, consumer.name()]);
            continue;
        }
        let of = group.find_consumer(consumer.name()).expect("a consumer is found by its own name");
        group.visit_pending_of(of, Id::MIN, &mut |pending| {
            save_pending(commands, (key, name, consumer.name()), &pending);
            ControlFlow::Continue(())
        });
    }
}

/// What a consumer was given and has not acknowledged.
fn save_pending(
    commands: &mut Commands<'_>,
    (key, group, consumer): (&[u8], &[u8], &[u8]),
    pending: &Pending,
) {
    let (id, time, count) = (id(pending.id), number(pending.delivered), pending.count.to_string());
    let (id, time, count) = (id.as_bytes(), time.as_bytes(), count.as_bytes());
    let (name, idle) = (b"XCLAIM", b"0");
    let words: [&[u8]; 12] =
        [name, key, group, consumer, idle, id, b"TIME", time, b"RETRYCOUNT", count, b"JUSTID", b"FORCE"];
    commands.put(&words);
}
