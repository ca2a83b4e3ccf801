//! Streams, written in the layout that `load_stream.rs` shows.
use super::kind::Type;
use super::load_stream::{SAME_FIELDS, UNKNOWN};
use super::write::Writer;
use base::Item;
use pack::classic::listpack::ListpackWriter;
use std::ops::ControlFlow;
use store::{Consumer, ConsumerId, Entries, Group, Id, Pending, Row, Stream};

/// The first version in which consumers have two times: last seen, and last active.
const VERSION_ACTIVE_TIMES: u16 = 11;

pub(super) fn save(writer: &mut Writer<'_>, stream: &Stream) {
    let has_active = writer.form.version >= VERSION_ACTIVE_TIMES;
    writer.put_type(if has_active { Type::Stream3 } else { Type::Stream2 });
    writer.length(stream.nodes());
    let mut node = Node::default();
    let _ = stream.visit_nodes(&mut |entries| {
        node.save(writer, entries);
        ControlFlow::Continue(())
    });
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

/// A node that is being written.
#[derive(Default)]
struct Node {
    first: Id,
    names: Vec<Vec<u8>>,
    count: i64,
    entries: ListpackWriter,
}

impl Node {
    fn save(&mut self, writer: &mut Writer<'_>, entries: &Entries<'_>) {
        let have_same = entries.have_same_names();
        let _ = entries.visit(&mut |row| {
            if self.count == 0 {
                self.open(row);
            }
            self.push(row, have_same || self.has_names_of(row));
            ControlFlow::Continue(())
        });
        self.close(writer);
    }

    fn open(&mut self, row: &Row<'_>) {
        self.first = row.id;
        self.names.clear();
        row.for_each(&mut |name, _| self.names.push(name.to_vec()));
    }

    /// Whether an entry has the names of the first.
    fn has_names_of(&self, row: &Row<'_>) -> bool {
        let (mut index, mut has_same) = (0, row.fields() == self.names.len());
        row.for_each(&mut |name, _| {
            has_same = has_same && self.names[index] == name;
            index += 1;
        });
        has_same
    }

    fn push(&mut self, row: &Row<'_>, has_same: bool) {
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
