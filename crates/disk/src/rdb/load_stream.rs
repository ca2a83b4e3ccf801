//! Streams that are read.
//!
//! ```text
//! | nodes | node ... | entries | last id |
//! | first id | greatest deleted id | entries ever added |           since Redis 7.0
//! | groups | group ... |
//! node  = | id of its first entry: a string of 16 bytes | listpack |
//! group = | name | last id | entries read (since 7.0) | pending | consumers |
//! pending  = | number | id: 16 bytes | when: i64 | deliveries | ...
//! consumer = | name | seen: i64 | active: i64 (since 7.2) | number | id: 16 bytes | ... |
//!
//! listpack = entries, deleted, fields, names ..., 0, then for each entry
//!            flags, milliseconds and sequence behind the first's, fields and names where they differ,
//!            values, how many entries of the listpack it takes
//! ```
//!
//! An id is two lengths, except where the picture says 16 bytes: those have the highest byte first.
use super::kind::Type;
use super::load::{Loaded, in_block};
use super::read::Reader;
use crate::source::Broken;
use crate::source::Source;
use base::{Item, Millis};
use pack::classic;
use pack::classic::listpack::Listpack;
use std::collections::BTreeMap;
use store::{ConsumerId, Group, Id, Key, NODE_BYTES_MAX, NodeSize, Pairs, Pending, Sheet, Stream, View};

/// The flag of an entry that was deleted.
pub(super) const DELETED: i64 = 1;
/// The flag of an entry that has the field names of its node's first entry.
pub(super) const SAME_FIELDS: i64 = 2;
/// Stands for the number of entries that a group has read, where that is not known.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// The pending entries of a group that belong to no consumer yet: when each was delivered, and how often.
type Orphans = BTreeMap<Id, (Millis, u64)>;

pub(super) fn load(
    view: &mut View<'_>,
    key: &Key<'_>,
    kind: Type,
    reader: &mut Reader<impl Source>,
) -> Result<Loaded, Broken> {
    let settings = view.settings();
    let mut stream = view.stream_or_new(key).expect("the key holds nothing");
    let mut nodes = reader.length()?;
    while nodes > 0 {
        nodes -= 1;
        load_node(&mut stream, settings, reader, nodes == 0)?;
    }
    stream.fit();
    let (len, last_id) = (reader.length()?, id(reader)?);
    if len != stream.len() || stream.last_entry_id().is_some_and(|last| last > last_id) {
        return reader.broken("a stream has other entries than it is said to have");
    }
    stream.set_last_id(last_id);
    if kind == Type::Stream {
        stream.set_entries_added(len);
    } else {
        // The first id is skipped: the first entry has it.
        id(reader)?;
        let (deleted, added) = (id(reader)?, reader.length()?);
        stream.set_max_deleted_id(deleted);
        stream.set_entries_added(added);
    }
    for _ in 0..reader.length()? {
        load_group(&mut stream, kind, reader)?;
    }
    Ok(Loaded::Value)
}

fn id(reader: &mut Reader<impl Source>) -> Result<Id, Broken> {
    Ok(Id { ms: reader.length()?, seq: reader.length()? })
}

/// An id of 16 bytes.
fn raw_id(bytes: [u8; 16]) -> Id {
    let number = u128::from_be_bytes(bytes);
    Id { ms: (number >> 64) as u64, seq: number as u64 }
}

fn load_node(
    stream: &mut Stream,
    settings: &store::Settings,
    reader: &mut Reader<impl Source>,
    is_last: bool,
) -> Result<(), Broken> {
    let first = reader.element()?.try_into().map(raw_id);
    let Ok(first) = first else { return reader.broken("an id has not 16 bytes") };
    let at = reader.source.at();
    let bytes = reader.string()?;
    let mut listpack = Listpack::new(bytes).map_err(|broken| in_block(broken, at))?;
    let sheet = (bytes.len() as u64 <= NODE_BYTES_MAX).then(Sheet::default);
    let size = NodeSize { bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX), added: 0 };
    let last = stream.last_entry_id();
    let names = Vec::new();
    let mut node = Node { stream, settings, first, last, size, count: 0, sheet, names, values: Vec::new() };
    node.load(&mut listpack, is_last).map_err(|broken| in_block(broken, at))
}

fn broken<R>(what: &'static str) -> Result<R, classic::Broken> {
    Err(classic::Broken { what, at: 0 })
}

/// A node that is read, and the stream to which its entries are added.
struct Node<'s, 'b> {
    stream: &'s mut Stream,
    settings: &'s store::Settings,
    /// The id of its first entry.
    first: Id,
    /// The last id of the stream so far.
    last: Option<Id>,
    size: NodeSize,
    /// How many entries were added.
    count: u32,
    /// Entries that have the names of the first and were not added yet. None of a node in which another
    /// entry has its own, or which is very long: its entries are added one by one.
    sheet: Option<Sheet<'b>>,
    /// The names of the entry that is being read, where they are not those of the first; its values.
    names: Vec<Vec<u8>>,
    values: Vec<Item<'b>>,
}

/// Reads how many field names there are, and the names.
fn names(listpack: &mut Listpack<'_>) -> Result<Vec<Vec<u8>>, classic::Broken> {
    let mut names = Vec::new();
    for _ in 0..listpack.int()? {
        names.push(text(listpack)?);
    }
    Ok(names)
}

fn text(listpack: &mut Listpack<'_>) -> Result<Vec<u8>, classic::Broken> {
    let mut text = Vec::new();
    listpack.entry()?.append_to(&mut text);
    Ok(text)
}

/// The fields of an entry.
struct Row<'r> {
    names: &'r [Vec<u8>],
    values: &'r [Item<'r>],
    text_bytes: usize,
}

impl Pairs for Row<'_> {
    fn count(&self) -> usize {
        self.values.len()
    }

    fn name(&self, index: usize) -> &[u8] {
        &self.names[index]
    }

    fn value(&self, index: usize) -> Item<'_> {
        self.values[index]
    }

    fn text_bytes(&self) -> usize {
        self.text_bytes
    }
}

impl<'r> Row<'r> {
    fn new(names: &'r [Vec<u8>], values: &'r [Item<'r>]) -> Row<'r> {
        let text_bytes = names.iter().map(Vec::len).chain(values.iter().map(Item::len)).sum();
        Row { names, values, text_bytes }
    }
}

impl<'b> Node<'_, 'b> {
    fn load(&mut self, listpack: &mut Listpack<'b>, is_last: bool) -> Result<(), classic::Broken> {
        let (count, deleted) = (listpack.int()?, listpack.int()?);
        let names = names(listpack)?;
        if listpack.int()? != 0 || count < 0 || deleted < 0 {
            return broken("a node of a stream begins as none does");
        }
        let all = count.saturating_add(deleted);
        for _ in 0..all {
            self.load_entry(listpack, &names)?;
        }
        if listpack.next_entry()?.is_some() {
            return broken("a node of a stream has more entries than it is said to have");
        }
        self.size.added = u32::try_from(all).unwrap_or(u32::MAX);
        self.end(&names, is_last);
        Ok(())
    }

    /// Adds what was not added yet. To the last node entries come, if it is not full.
    fn end(&mut self, names: &[Vec<u8>], is_last: bool) {
        if let Some(sheet) = &self.sheet {
            if !sheet.ids.is_empty() {
                let grows = is_last && self.settings.stream.has_room(self.size, 0);
                let first = Row::new(names, &sheet.values[..names.len()]);
                self.stream.add_sheet(&first, sheet, self.size, grows);
            }
        } else if u64::from(self.size.bytes) <= NODE_BYTES_MAX && self.count > 0 {
            // One that is so long that it became several leaves is full anyway.
            self.stream.end_node(self.size);
        }
    }

    /// From here on entries are added one by one; first those that were not added yet.
    fn scatter(&mut self, names: &[Vec<u8>]) -> Result<(), classic::Broken> {
        let Some(sheet) = self.sheet.take() else { return Ok(()) };
        for (id, values) in sheet.ids.iter().zip(sheet.values.chunks(names.len().max(1))) {
            self.add(*id, &Row::new(names, values))?;
        }
        Ok(())
    }

    fn add(&mut self, id: Id, row: &Row<'_>) -> Result<(), classic::Broken> {
        if self.settings.lengths.is_row_too_long(row.text_bytes, row.count()) {
            return broken("an entry of a stream is too long");
        }
        self.stream.add_to_node(id, row, self.count == 0);
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    fn load_entry(
        &mut self,
        listpack: &mut Listpack<'b>,
        names_of_first: &[Vec<u8>],
    ) -> Result<(), classic::Broken> {
        let (flags, ms, seq) = (listpack.int()?, listpack.int()?, listpack.int()?);
        let has_same = flags & SAME_FIELDS != 0;
        let size = self.read_fields(listpack, has_same.then_some(names_of_first.len()))?;
        if listpack.int()? != size as i64 {
            return broken("an entry of a stream is of another size than it is said to be");
        }
        if flags & DELETED != 0 {
            return Ok(());
        }
        let id =
            Id { ms: self.first.ms.wrapping_add(ms as u64), seq: self.first.seq.wrapping_add(seq as u64) };
        if id == Id::MIN || self.last.is_some_and(|last| id <= last) {
            return broken("the ids of a stream do not ascend");
        }
        if self.values.is_empty() {
            return broken("an entry of a stream has no fields");
        }
        self.last = Some(id);
        if let Some(sheet) = self.sheet.as_mut().filter(|_| has_same) {
            sheet.ids.push(id);
            sheet.values.extend_from_slice(&self.values);
            return Ok(());
        }
        self.scatter(names_of_first)?;
        let (names, values) = (std::mem::take(&mut self.names), std::mem::take(&mut self.values));
        let done = self.add(id, &Row::new(if has_same { names_of_first } else { &names }, &values));
        (self.names, self.values) = (names, values);
        done
    }

    /// Reads as many values as the first entry has names, or an entry's own names and its values. Returns how
    /// many elements of the listpack it takes.
    fn read_fields(
        &mut self,
        listpack: &mut Listpack<'b>,
        same: Option<usize>,
    ) -> Result<usize, classic::Broken> {
        self.values.clear();
        if let Some(count) = same {
            for _ in 0..count {
                self.values.push(listpack.entry()?);
            }
            return Ok(3 + count);
        }
        self.names.clear();
        for _ in 0..listpack.int()? {
            self.names.push(text(listpack)?);
            self.values.push(listpack.entry()?);
        }
        Ok(3 + 1 + 2 * self.values.len())
    }
}

fn load_group(stream: &mut Stream, kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    let mut name = Vec::new();
    reader.element_into(&mut name)?;
    let last_id = id(reader)?;
    let entries_read = match kind {
        Type::Stream => stream.entries_up_to(last_id),
        _ => Some(reader.length()?).filter(|read| *read != UNKNOWN),
    };
    if !stream.create_group(&name, last_id, entries_read) {
        return reader.broken("a stream has a group twice");
    }
    let Some(group) = stream.group_mut(&name) else { return reader.broken("a group is not there") };
    let mut orphans = Orphans::new();
    for _ in 0..reader.length()? {
        let id = raw_id(reader.array()?);
        let (delivered, count) = (Millis(reader.millis()?), reader.length()?);
        if orphans.insert(id, (delivered, count)).is_some() {
            return reader.broken("an entry is pending twice");
        }
    }
    for _ in 0..reader.length()? {
        load_consumer(group, kind, reader, &mut orphans)?;
    }
    match orphans.is_empty() {
        true => Ok(()),
        false => reader.broken("an entry is pending for nobody"),
    }
}

fn load_consumer(
    group: &mut Group,
    kind: Type,
    reader: &mut Reader<impl Source>,
    orphans: &mut Orphans,
) -> Result<(), Broken> {
    let mut name = Vec::new();
    reader.element_into(&mut name)?;
    let seen = Millis(reader.millis()?);
    let Some(consumer) = group.create_consumer(&name, seen) else {
        return reader.broken("a group has a consumer twice");
    };
    let active = match kind {
        Type::Stream3 => Some(Millis(reader.millis()?)).filter(|active| active.0 != -1),
        // Older files do not say when a consumer was active last. When it was seen last is the best guess.
        _ => Some(seen),
    };
    group.consumer_mut(consumer).active = active;
    for _ in 0..reader.length()? {
        let id = raw_id(reader.array()?);
        if !adopt(group, consumer, id, orphans) {
            return reader.broken("a consumer has what is not pending, or another has");
        }
    }
    Ok(())
}

fn adopt(group: &mut Group, consumer: ConsumerId, id: Id, orphans: &mut Orphans) -> bool {
    let Some((delivered, count)) = orphans.remove(&id) else { return false };
    group.hold(Pending { id, consumer, delivered, count });
    true
}
