//! Streams, written in the layout that `load_stream.rs` shows.
use super::kind::Type;
use super::load_stream::{SAME_FIELDS, UNKNOWN};
use super::save::NODE_BYTES_MAX;
use super::write::Writer;
use base::Item;
use pack::classic::listpack::ListpackWriter;
use std::ops::ControlFlow;
use store::{Consumer, ConsumerId, Direction, Group, Id, Pending, Row, Stream};

/// The first version in which consumers have two times: last seen, and last active.
const VERSION_ACTIVE_TIMES: u16 = 11;
const NODE_ENTRIES_MAX: usize = 100;

pub(super) fn save(writer: &mut Writer<'_>, stream: &Stream) {
    let has_active = writer.form.version >= VERSION_ACTIVE_TIMES;
    writer.put_type(if has_active { Type::Stream3 } else { Type::Stream2 });
    save_entries(writer, stream);
    writer.length(stream.len());
    save_id(writer, stream.last_id());
    save_id(writer, stream.first_id());
    save_id(writer, stream.max_deleted_id());
    writer.length(stream.entries_added());
    writer.length(stream.groups().len() as u64);
    stream.groups().for_each(|group| save_group(writer, group, has_active));
}

fn save_id(writer: &mut Writer<'_>, id: Id) {
    writer.length(id.ms);
    writer.length(id.seq);
}

fn raw_id(id: Id) -> [u8; 16] {
    (u128::from(id.ms) << 64 | u128::from(id.seq)).to_be_bytes()
}

/// Cuts a stream into nodes.
#[derive(Default)]
struct Nodes {
    entries: usize,
    bytes: u64,
    count: u64,
}

impl Nodes {
    /// Whether this entry begins a node.
    fn begins(&mut self, row: &Row<'_>) -> bool {
        let mut bytes = 0;
        row.for_each(&mut |name, value| bytes += (name.len() + value.len()) as u64);
        let begins = self.entries == 0
            || self.entries == NODE_ENTRIES_MAX
            || self.bytes.saturating_add(bytes) > NODE_BYTES_MAX;
        if begins {
            *self = Nodes { count: self.count + 1, ..Nodes::default() };
        }
        self.entries += 1;
        self.bytes += bytes;
        begins
    }
}

fn save_entries(writer: &mut Writer<'_>, stream: &Stream) {
    writer.counted(&mut |writer| save_nodes(writer, stream), &mut || {
        let mut nodes = Nodes::default();
        stream.visit(Id::MIN, Direction::Up, &mut |row| {
            nodes.begins(row);
            ControlFlow::Continue(())
        });
        nodes.count
    });
}

/// Writes the entries of a stream in nodes, and returns how many these are.
fn save_nodes(writer: &mut Writer<'_>, stream: &Stream) -> u64 {
    let (mut nodes, mut node) = (Nodes::default(), Node::default());
    stream.visit(Id::MIN, Direction::Up, &mut |row| {
        if nodes.begins(row) {
            if !writer.may_gather(node.entries.bytes()) {
                return ControlFlow::Break(());
            }
            node.close(writer);
            node.open(row);
        }
        node.push(row);
        ControlFlow::Continue(())
    });
    if writer.may_gather(node.entries.bytes()) {
        node.close(writer);
    }
    nodes.count
}

/// A node that is being written.
#[derive(Default)]
struct Node {
    first: Id,
    names: Vec<Vec<u8>>,
    count: i64,
    entries: ListpackWriter,
}

impl Node {
    fn open(&mut self, row: &Row<'_>) {
        (self.first, self.count) = (row.id, 0);
        self.names.clear();
        row.for_each(&mut |name, _| self.names.push(name.to_vec()));
    }

    fn push(&mut self, row: &Row<'_>) {
        let (mut index, mut has_same) = (0, row.fields() == self.names.len());
        row.for_each(&mut |name, _| {
            has_same = has_same && self.names[index] == name;
            index += 1;
        });
        let entries = &mut self.entries;
        entries.push_int(if has_same { SAME_FIELDS } else { 0 });
        entries.push_int(row.id.ms.wrapping_sub(self.first.ms) as i64);
        entries.push_int(row.id.seq.wrapping_sub(self.first.seq) as i64);
        let fields = row.fields() as i64;
        if !has_same {
            entries.push_int(fields);
        }
        row.for_each(&mut |name, value| {
            if !has_same {
                entries.push(Item::Bytes(name));
            }
            entries.push(value);
        });
        entries.push_int(if has_same { fields + 3 } else { 2 * fields + 4 });
        self.count += 1;
    }

    fn close(&mut self, writer: &mut Writer<'_>) {
        if self.count == 0 {
            return;
        }
        let mut block = ListpackWriter::default();
        block.push_int(self.count);
        block.push_int(0);
        block.push_int(self.names.len() as i64);
        self.names.iter().for_each(|name| block.push(Item::Bytes(name)));
        block.push_int(0);
        block.append(&mut self.entries);
        writer.plain(&raw_id(self.first));
        writer.string(block.finish());
        self.count = 0;
    }
}

fn save_group(writer: &mut Writer<'_>, group: &Group, has_active: bool) {
    writer.string(group.name());
    save_id(writer, group.last_id());
    writer.length(group.entries_read().unwrap_or(UNKNOWN));
    writer.length(group.pending_len());
    group.visit_pending(Id::MIN, &mut |Pending { id, delivered, count, .. }| {
        writer.bytes(&raw_id(id));
        writer.millis(delivered.0);
        writer.length(count);
        ControlFlow::Continue(())
    });
    writer.length(group.consumers().len() as u64);
    for consumer in group.consumers() {
        let number = group.find_consumer(consumer.name()).expect("a consumer is found by its own name");
        save_consumer(writer, group, (consumer, number), has_active);
    }
}

fn save_consumer(
    writer: &mut Writer<'_>,
    group: &Group,
    (consumer, number): (&Consumer, ConsumerId),
    has_active: bool,
) {
    writer.string(consumer.name());
    writer.millis(consumer.seen.0);
    if has_active {
        writer.millis(consumer.active.map_or(-1, |active| active.0));
    }
    writer.length(consumer.pending_len());
    group.visit_pending_of(number, Id::MIN, &mut |pending| {
        writer.bytes(&raw_id(pending.id));
        ControlFlow::Continue(())
    });
}
