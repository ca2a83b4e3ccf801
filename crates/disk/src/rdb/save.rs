//! Values of snapshots, written in the types that a version of the format has. A value that Redis would keep
//! in one block (a listpack or an intset) is written as one, because that is shorter once it is compressed,
//! and Redis loads it more quickly.
use super::save_stream;
use super::version::VERSION_TIMED_FIELDS;
use super::write::Writer;
use crate::rdb::kind::Type;
use base::double::{self, F64Text};
use base::text::I64Text;
use base::{Item, Millis};
use pack::classic::int_set;
use pack::classic::listpack::{ListpackWriter, entry_bytes};
use std::ops::ControlFlow;
use store::{Deadline, End, Hash, List, Set, Settings, ValueRef, ZSet};

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The version of the format. A hash with deadlines is written in one that has them, whatever this says.
    pub version: u16,
    /// Whether strings are compressed (`rdbcompression`).
    pub compresses: bool,
}

/// The first version in which small sets of texts are one block.
const VERSION_SET_LISTPACK: u16 = 11;
/// About how many bytes a node of a list or of a stream may have, if it holds more than one entry.
pub(crate) const NODE_BYTES_MAX: u64 = 8192;
/// About how many bytes a collection takes that is written as one block, whatever the settings allow: the
/// block is in memory while it is written and when it is read.
const BLOCK_BYTES_MAX: u64 = if cfg!(test) { 32 << 10 } else { 16 << 20 };
/// An element takes at most so many bytes beside its text, a score among them.
const BESIDE_BYTES_MAX: u64 = 40;

/// Writes the type and the value. Returns the version that has to be known to read it.
pub(crate) fn save(writer: &mut Writer<'_>, value: ValueRef<'_>, settings: &Settings) -> u16 {
    let version = writer.form.version;
    if let Some(text) = value.string() {
        writer.put_type(Type::String);
        writer.item(text);
    } else if let Some(list) = value.list() {
        save_list(writer, &list);
    } else if let Some(set) = value.set() {
        save_set(writer, &set, settings);
    } else if let Some(zset) = value.zset() {
        save_zset(writer, &zset, settings);
    } else if let Some(hash) = value.hash() {
        return save_hash(writer, &hash, settings).max(version);
    } else if let Some(stream) = value.stream() {
        save_stream::save(writer, stream);
    }
    version
}

/// Cuts a list into nodes.
#[derive(Default)]
struct Nodes {
    bytes: u64,
    count: u64,
}

/// Into which node an element goes.
#[derive(PartialEq, Eq)]
enum Step {
    /// Into the node that was begun last.
    Joins,
    /// Into a new one, which others may join.
    Begins,
    /// Into one of its own, because it is longer than a node may be.
    Alone,
}

impl Nodes {
    #[inline]
    fn step(&mut self, item: Item<'_>) -> Step {
        let bytes = entry_bytes(item);
        if self.bytes > 0 && self.bytes + bytes <= NODE_BYTES_MAX {
            self.bytes += bytes;
            return Step::Joins;
        }
        self.count += 1;
        let is_alone = bytes > NODE_BYTES_MAX;
        self.bytes = if is_alone { 0 } else { bytes };
        if is_alone { Step::Alone } else { Step::Begins }
    }
}

fn save_list(writer: &mut Writer<'_>, list: &List<'_>) {
    writer.put_type(Type::ListListpacks);
    let mut node = writer.block();
    let mut write = |writer: &mut Writer<'_>| save_nodes(writer, list, &mut node);
    writer.counted(&mut write, &mut || {
        let mut nodes = Nodes::default();
        list.visit(0, End::Tail, &mut |_, item| {
            nodes.step(item);
            ControlFlow::Continue(())
        });
        nodes.count
    });
    writer.keep_room(node);
}

/// Writes the elements of a list in nodes, and returns how many these are. `node` is the room of one.
fn save_nodes(writer: &mut Writer<'_>, list: &List<'_>, node: &mut ListpackWriter) -> u64 {
    const PLAIN: u64 = 1;
    let mut nodes = Nodes::default();
    list.visit(0, End::Tail, &mut |_, item| {
        let step = nodes.step(item);
        if step != Step::Joins {
            close_node(writer, node);
            if !writer.may_gather(0) {
                return ControlFlow::Break(());
            }
        }
        if step == Step::Alone {
            let mut text = I64Text::new();
            let text = item.text(&mut text);
            if !writer.may_gather(text.len() as u64) {
                return ControlFlow::Break(());
            }
            writer.length(PLAIN);
            writer.string(text);
        } else {
            node.push(item);
        }
        ControlFlow::Continue(())
    });
    close_node(writer, node);
    nodes.count
}

/// Writes what a node has come to, and empties it.
fn close_node(writer: &mut Writer<'_>, node: &mut ListpackWriter) {
    const PACKED: u64 = 2;
    if node.count() > 0 {
        writer.length(PACKED);
        writer.string(node.finish());
        node.clear();
    }
}

/// Whether a collection has so few elements, all of them so short and no more together than a block may have,
/// that it is written as one block.
struct Small {
    value_bytes_max: u64,
    /// What the block may still take.
    bytes_left: u64,
    is_small: bool,
}

impl Small {
    fn of(count: u64, count_max: u64, value_bytes_max: u64) -> Small {
        Small { value_bytes_max, bytes_left: BLOCK_BYTES_MAX, is_small: count <= count_max }
    }

    fn look(&mut self, len: usize) -> ControlFlow<()> {
        let left = self.bytes_left.checked_sub(len as u64 + BESIDE_BYTES_MAX);
        self.is_small &= left.is_some() && len as u64 <= self.value_bytes_max;
        self.bytes_left = left.unwrap_or(0);
        if self.is_small { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

fn save_set(writer: &mut Writer<'_>, set: &Set<'_>, settings: &Settings) {
    let limits = settings.set;
    if let Some(ints) = ints(set, limits.intset_entries.min(BLOCK_BYTES_MAX / 8)) {
        writer.put_type(Type::SetInts);
        return writer.string(&int_set::written(&ints));
    }
    let mut small = Small::of(set.len(), limits.listpack_entries, limits.listpack_value_bytes);
    if small.is_small && writer.form.version >= VERSION_SET_LISTPACK {
        let _ = set.visit(&mut |member| small.look(member.len()));
        if small.is_small {
            let mut block = writer.block();
            set.for_each(&mut |member| block.push(member));
            writer.put_type(Type::SetListpack);
            return writer.packed(block);
        }
    }
    writer.put_type(Type::Set);
    writer.length(set.len());
    set.for_each(&mut |member| writer.item(member));
}

/// The members in ascending order, if all are integers and there are no more than `count_max`.
fn ints(set: &Set<'_>, count_max: u64) -> Option<Vec<i64>> {
    if set.len() > count_max {
        return None;
    }
    let (mut ints, mut has_text) = (Vec::new(), false);
    let _ = set.visit(&mut |member| match member {
        Item::Int(value) => {
            ints.push(value);
            ControlFlow::Continue(())
        }
        Item::Bytes(_) => {
            has_text = true;
            ControlFlow::Break(())
        }
    });
    ints.sort_unstable();
    (!has_text).then_some(ints)
}

fn save_zset(writer: &mut Writer<'_>, zset: &ZSet<'_>, settings: &Settings) {
    let limits = &settings.zset;
    let mut small = Small::of(zset.len(), limits.listpack_entries, limits.listpack_value_bytes);
    let (mut member, mut digits) = (Vec::new(), F64Text::new());
    if small.is_small {
        // The block is written while the members are looked at, and dropped where one is too long.
        let mut block = writer.block();
        zset.visit(0, End::Tail, &mut |entry| {
            small.look(entry.member.len())?;
            member.clear();
            entry.member.append_to(&mut member);
            block.push(Item::Bytes(&member));
            match double::whole_number(entry.score) {
                Some(score) => block.push_int(score),
                None => block.push(Item::Bytes(digits.format(entry.score))),
            }
            ControlFlow::Continue(())
        });
        if small.is_small {
            writer.put_type(Type::ZSetListpack);
            return writer.packed(block);
        }
        writer.keep_room(block);
    }
    writer.put_type(Type::ZSet);
    writer.length(zset.len());
    // From the highest score on: Redis puts what it loads into a skiplist, fastest in this order.
    zset.visit(zset.len() - 1, End::Head, &mut |entry| {
        member.clear();
        entry.member.append_to(&mut member);
        writer.string(&member);
        writer.double(entry.score);
        ControlFlow::Continue(())
    });
}

/// Returns the version that has to be known to read the hash; 0 if it has no deadlines.
fn save_hash(writer: &mut Writer<'_>, hash: &Hash<'_>, settings: &Settings) -> u16 {
    let limits = settings.hash;
    let mut small = Small::of(hash.live_len(), limits.entries, limits.value);
    let mut least = None;
    let mut len = 0;
    // The block is written while the fields are looked at, and dropped where that is not what they want.
    let mut block = writer.block();
    hash.for_each_timed(&mut |field, value, deadline| {
        len += 1;
        let _ = small.look(field.len());
        let _ = small.look(value.len());
        if small.is_small {
            block.push(field);
            block.push(value);
        }
        if let Deadline::At(at) = deadline {
            least = Some(least.map_or(at, |least: Millis| least.min(at)));
        }
    });
    if small.is_small && least.is_none() {
        writer.put_type(Type::HashListpack);
        writer.packed(block);
        return 0;
    }
    writer.keep_room(block);
    if let Some(least) = least {
        save_timed(writer, hash, (len, small.is_small, least));
        return VERSION_TIMED_FIELDS;
    }
    writer.put_type(Type::Hash);
    writer.length(len);
    hash.for_each(&mut |field, value| {
        writer.item(field);
        writer.item(value);
    });
    0
}

/// Writes a hash with deadlines: `len` fields, as one block if `is_small`; `least` is the earliest deadline.
fn save_timed(writer: &mut Writer<'_>, hash: &Hash<'_>, (len, is_small, least): (u64, bool, Millis)) {
    if is_small {
        writer.put_type(Type::TimedHashListpack);
        writer.millis(least.0);
        let block = timed_block(hash);
        return writer.string(&block);
    }
    writer.put_type(Type::TimedHash);
    writer.millis(least.0);
    writer.length(len);
    hash.for_each_timed(&mut |field, value, deadline| {
        writer.length(match deadline {
            Deadline::Never => 0,
            Deadline::At(at) => (at.0 - least.0) as u64 + 1,
        });
        writer.item(field);
        writer.item(value);
    });
}

/// Fields, values and deadlines as one block. Redis relies on their order: by deadline, fields without one at
/// the end.
fn timed_block(hash: &Hash<'_>) -> Vec<u8> {
    let mut fields: Vec<(i64, Vec<u8>, Vec<u8>)> = Vec::new();
    hash.for_each_timed(&mut |field, value, deadline| {
        let due = match deadline {
            Deadline::Never => i64::MAX,
            Deadline::At(at) => at.0,
        };
        let text = |item: Item<'_>| {
            let mut text = Vec::new();
            item.append_to(&mut text);
            text
        };
        fields.push((due, text(field), text(value)));
    });
    fields.sort_by_key(|(due, ..)| *due);
    let mut block = ListpackWriter::default();
    for (due, field, value) in &fields {
        block.push(Item::Bytes(field));
        block.push(Item::Bytes(value));
        block.push_int(if *due == i64::MAX { 0 } else { *due });
    }
    block.finish().to_vec()
}
