//! Values that are read and put under a key.
//!
//! The key holds nothing yet, and its shard is locked. The elements of a collection are gathered
//! (`gather.rs`), and the collection is built of them in one step. The steps notice an element that is there
//! twice. No memory is taken because a header announces elements. Where a value cannot be read to its end,
//! what was built of it is removed.
use super::gather::{Copies, Packed};
use super::kind::Type;
use super::load_stream;
use super::read::Reader;
use crate::source::Broken;
use crate::source::Source;
use base::{Item, Millis, double};
use pack::classic;
use pack::classic::int_set::IntSet;
use pack::classic::listpack::Listpack;
use pack::classic::ziplist::Ziplist;
use pack::classic::zipmap::Zipmap;
use store::{
    Deadline, Expiry, Form, HashMut, Key, Lifetime, ListMut, NewField, SetMut, View, ZEntry, ZMember, ZSetMut,
};

/// The latest deadline that a field may have: 46 bits, as in Redis.
const DEADLINE_MAX: u64 = (1 << 46) - 1;

/// What was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    Value,
    /// A collection without elements, which leaves no key. Only a stream may be empty.
    Nothing,
}

/// Puts a value of this type under `key`, where there is none.
pub(crate) fn load(
    view: &mut View<'_>,
    key: &Key<'_>,
    kind: Type,
    reader: &mut Reader<impl Source>,
) -> Result<Loaded, Broken> {
    let loaded = match kind {
        Type::String => load_string(view, key, reader),
        Type::Stream | Type::Stream2 | Type::Stream3 => load_stream::load(view, key, kind, reader),
        _ => load_collection(view, key, kind, reader),
    };
    if loaded.is_err() {
        view.remove(key);
    }
    loaded
}

/// What a collection of so many elements is.
fn loaded(len: u64) -> Loaded {
    if len == 0 { Loaded::Nothing } else { Loaded::Value }
}

fn load_string(
    view: &mut View<'_>,
    key: &Key<'_>,
    reader: &mut Reader<impl Source>,
) -> Result<Loaded, Broken> {
    let text = reader.string()?;
    view.put_string(key, text, Form::Auto, Expiry::Clear);
    Ok(Loaded::Value)
}

fn load_collection(
    view: &mut View<'_>,
    key: &Key<'_>,
    kind: Type,
    reader: &mut Reader<impl Source>,
) -> Result<Loaded, Broken> {
    const VACANT: &str = "the key holds nothing";
    match kind {
        Type::List | Type::ListZiplist | Type::ListZiplists | Type::ListListpacks => {
            let mut list = view.list_or_new(key).expect(VACANT);
            load_list(&mut list, kind, reader).map(|()| loaded(list.len()))
        }
        Type::Set | Type::SetInts | Type::SetListpack => {
            let mut set = view.set_or_new(key).expect(VACANT);
            load_set(&mut set, kind, reader).map(|()| loaded(set.len()))
        }
        Type::ZSet | Type::ZSetText | Type::ZSetZiplist | Type::ZSetListpack => {
            let mut zset = view.zset_or_new(key).expect(VACANT);
            load_zset(&mut zset, kind, reader).map(|()| loaded(zset.len()))
        }
        _ => {
            let mut hash = view.hash_or_new(key).expect(VACANT);
            load_hash(&mut hash, kind, reader).map(|()| loaded(hash.len()))
        }
    }
}

/// How a block of entries is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Listpack,
    Ziplist,
}

/// Reads a string that is a block of entries, and hands it to `visit`.
fn read_packed<S: Source>(
    reader: &mut Reader<S>,
    layout: Layout,
    visit: impl FnOnce(&mut Packed<'_>) -> Result<(), classic::Broken>,
) -> Result<(), Broken> {
    let (at, element_bytes_max) = (reader.source.at(), reader.element_bytes_max());
    let text = reader.string()?;
    let open = || match layout {
        Layout::Listpack => Listpack::new(text).map(Packed::Listpack),
        Layout::Ziplist => Ziplist::new(text).map(Packed::Ziplist),
    };
    let read = || {
        if text.len() > element_bytes_max {
            open()?.check_lengths(element_bytes_max)?;
        }
        visit(&mut open()?)
    };
    read().map_err(|broken| in_block(broken, at))
}

/// An error inside a block as an error of the value, in whose bytes the block begins at `at`.
pub(crate) fn in_block(broken: classic::Broken, at: u64) -> Broken {
    Broken { what: broken.what, at: at + broken.at as u64 }
}

fn twice(what: &'static str) -> classic::Broken {
    classic::Broken { what, at: 0 }
}

fn load_list(list: &mut ListMut<'_>, kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    const PLAIN: u64 = 1;
    const PACKED: u64 = 2;
    if kind == Type::ListZiplist {
        return load_node(list, Layout::Ziplist, reader);
    }
    let mut left = reader.length()?;
    if kind == Type::List {
        let mut copies = Copies::default();
        while left > 0 {
            copies.take(reader)?;
            left -= 1;
            if copies.is_full() || left == 0 {
                list.append(&std::mem::take(&mut copies).items());
            }
        }
        return Ok(());
    }
    for _ in 0..left {
        match kind {
            Type::ListZiplists => load_node(list, Layout::Ziplist, reader)?,
            _ => match reader.length()? {
                PLAIN => list.append(&[reader.item()?]),
                PACKED => load_node(list, Layout::Listpack, reader)?,
                _ => return reader.broken("a node of a list is of no kind"),
            },
        }
    }
    Ok(())
}

fn load_node(list: &mut ListMut<'_>, layout: Layout, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    read_packed(reader, layout, |packed| packed.items().map(|items| list.append(&items)))
}

fn load_set(set: &mut SetMut<'_>, kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    const TWICE: &str = "a set has a member twice";
    match kind {
        Type::SetInts => {
            let at = reader.source.at();
            let values = IntSet::new(reader.string()?).and_then(IntSet::values);
            // The integers ascend, so none is there twice.
            set.build_ints(values.map_err(|broken| in_block(broken, at))?);
            Ok(())
        }
        Type::SetListpack => read_packed(reader, Layout::Listpack, |packed| {
            if set.build(&packed.items()?) { Ok(()) } else { Err(twice(TWICE)) }
        }),
        _ => {
            let (mut left, mut copies) = (reader.length()?, Copies::default());
            while left > 0 && !copies.is_full() {
                copies.take(reader)?;
                left -= 1;
            }
            let mut is_right = set.build(&copies.items());
            drop(copies);
            while left > 0 && is_right {
                is_right = set.insert(reader.element()?);
                left -= 1;
            }
            if is_right { Ok(()) } else { reader.broken(TWICE) }
        }
    }
}

const BAD_ENTRY: &str = "a sorted set has a member twice, or a score that is no number";

fn load_zset(zset: &mut ZSetMut<'_>, kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    match kind {
        Type::ZSetListpack => load_packed_zset(zset, Layout::Listpack, reader),
        Type::ZSetZiplist => load_packed_zset(zset, Layout::Ziplist, reader),
        _ => load_long_zset(zset, kind, reader),
    }
}

fn load_packed_zset(
    zset: &mut ZSetMut<'_>,
    layout: Layout,
    reader: &mut Reader<impl Source>,
) -> Result<(), Broken> {
    read_packed(reader, layout, |packed| {
        let mut entries = packed.vector(2);
        while let Some(member) = packed.next_item()? {
            let score = match packed.entry()? {
                Item::Int(score) => Some(score as f64),
                Item::Bytes(text) => double::parse_f64(text),
            };
            let Some(score) = score.filter(|score| !score.is_nan()) else { return Err(twice(BAD_ENTRY)) };
            entries.push(ZEntry { score, member: ZMember::of_item(member) });
        }
        if zset.build(&mut entries) { Ok(()) } else { Err(twice(BAD_ENTRY)) }
    })
}

fn load_long_zset(
    zset: &mut ZSetMut<'_>,
    kind: Type,
    reader: &mut Reader<impl Source>,
) -> Result<(), Broken> {
    let len = reader.length()?;
    let gathered = build_long_zset(zset, kind, len, reader)?;
    let mut member = Vec::new();
    for _ in gathered..len {
        reader.element_into(&mut member)?;
        let score = score(kind, reader)?;
        if zset.update(&member, |_| Some(score)).is_some() {
            return reader.broken(BAD_ENTRY);
        }
    }
    Ok(())
}

/// Builds the set of as many entries as are gathered at once, and returns how many.
fn build_long_zset(
    zset: &mut ZSetMut<'_>,
    kind: Type,
    len: u64,
    reader: &mut Reader<impl Source>,
) -> Result<u64, Broken> {
    let (mut copies, mut scores) = (Copies::default(), Vec::new());
    while (scores.len() as u64) < len && !copies.is_full() {
        copies.take(reader)?;
        scores.push(score(kind, reader)?);
    }
    let gathered = scores.len() as u64;
    let entry = |(member, score)| ZEntry { score, member: ZMember::of_item(member) };
    let mut entries: Vec<ZEntry<'_>> = copies.items().into_iter().zip(scores).map(entry).collect();
    if zset.build(&mut entries) { Ok(gathered) } else { reader.broken(BAD_ENTRY) }
}

fn score(kind: Type, reader: &mut Reader<impl Source>) -> Result<f64, Broken> {
    let score = match kind {
        Type::ZSet => Some(reader.double()?),
        _ => reader.double_text()?,
    };
    match score.filter(|score| !score.is_nan()) {
        Some(score) => Ok(score),
        None => reader.broken(BAD_ENTRY),
    }
}

const FIELD_TWICE: &str = "a hash has a field twice";

fn load_hash(hash: &mut HashMut<'_>, kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    match kind {
        Type::HashListpack => load_pairs(hash, Layout::Listpack, reader),
        Type::HashZiplist => load_pairs(hash, Layout::Ziplist, reader),
        Type::HashZipmap => load_zipmap(hash, reader),
        Type::TimedHashListpack => load_timed_listpack(hash, reader),
        _ => load_long_hash(hash, kind, reader),
    }
}

fn load_pairs(
    hash: &mut HashMut<'_>,
    layout: Layout,
    reader: &mut Reader<impl Source>,
) -> Result<(), Broken> {
    read_packed(reader, layout, |packed| {
        let mut fields = packed.vector(2);
        while let Some(field) = packed.next_item()? {
            fields.push(NewField { field, value: packed.item()?, deadline: Deadline::Never });
        }
        build_hash(hash, &fields)
    })
}

fn build_hash(hash: &mut HashMut<'_>, fields: &[NewField<'_>]) -> Result<(), classic::Broken> {
    if hash.build(fields) { Ok(()) } else { Err(twice(FIELD_TWICE)) }
}

fn load_zipmap(hash: &mut HashMut<'_>, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    let at = reader.source.at();
    let text = reader.element()?;
    let mut build = |text| {
        let (mut zipmap, mut fields) = (Zipmap::new(text)?, Vec::new());
        while let Some((field, value)) = zipmap.next_pair()? {
            let (field, value) = (Item::classify(field), Item::classify(value));
            fields.push(NewField { field, value, deadline: Deadline::Never });
        }
        build_hash(hash, &fields)
    };
    build(text).map_err(|broken| in_block(broken, at))
}

/// When a field with this deadline expires: never, if it is 0. None for a deadline that is out of range.
fn due(deadline: u64) -> Option<Deadline> {
    match deadline {
        0 => Some(Deadline::Never),
        1..=DEADLINE_MAX => Some(Deadline::At(Millis(deadline as i64))),
        _ => None,
    }
}

const BAD_DEADLINE: &str = "the deadline of a field is out of range";

/// Fields that come one by one. Where they have deadlines, Redis writes each as its distance from the least,
/// so that it is short, in front of the field; Valkey writes the deadline itself, behind the value.
#[derive(Clone, Copy)]
enum Deadlines {
    None,
    Behind(u64),
    Valkey,
}

impl Deadlines {
    /// Reads what stands before a field, which makes its deadline.
    fn before_field(self, reader: &mut Reader<impl Source>) -> Result<u64, Broken> {
        Ok(match self {
            Deadlines::Behind(least) => match reader.length()? {
                0 => 0,
                behind => least.saturating_add(behind - 1),
            },
            _ => 0,
        })
    }

    /// Reads what stands behind a value. Returns the deadline; `before` is what stood before the field.
    fn behind_value(self, before: u64, reader: &mut Reader<impl Source>) -> Result<Deadline, Broken> {
        let deadline = match self {
            Deadlines::Valkey => reader.millis()?.max(0) as u64,
            _ => before,
        };
        match due(deadline) {
            Some(deadline) => Ok(deadline),
            None => reader.broken(BAD_DEADLINE),
        }
    }
}

fn load_long_hash(
    hash: &mut HashMut<'_>,
    kind: Type,
    reader: &mut Reader<impl Source>,
) -> Result<(), Broken> {
    let deadlines = match kind {
        Type::TimedHash => Deadlines::Behind(reader.millis()? as u64),
        Type::TimedHashValkey => Deadlines::Valkey,
        _ => Deadlines::None,
    };
    if !matches!(deadlines, Deadlines::None) {
        hash.expect_deadlines();
    }
    let len = reader.length()?;
    let gathered = build_long_hash(hash, deadlines, len, reader)?;
    let (mut field, mut value) = (Vec::new(), Vec::new());
    for _ in gathered..len {
        let before = deadlines.before_field(reader)?;
        reader.element_into(&mut field)?;
        reader.element_into(&mut value)?;
        let lifetime = match deadlines.behind_value(before, reader)? {
            Deadline::Never => Lifetime::Endless,
            Deadline::At(due) => Lifetime::Until(due),
        };
        if !hash.set(&field, &value, lifetime) {
            return reader.broken(FIELD_TWICE);
        }
    }
    Ok(())
}

/// Builds the hash of as many fields as are gathered at once, and returns how many.
fn build_long_hash(
    hash: &mut HashMut<'_>,
    deadlines: Deadlines,
    len: u64,
    reader: &mut Reader<impl Source>,
) -> Result<u64, Broken> {
    let (mut copies, mut dues) = (Copies::default(), Vec::new());
    while (dues.len() as u64) < len && !copies.is_full() {
        let before = deadlines.before_field(reader)?;
        copies.take(reader)?;
        copies.take(reader)?;
        dues.push(deadlines.behind_value(before, reader)?);
    }
    let gathered = dues.len() as u64;
    let items = copies.items();
    let pairs = items.chunks_exact(2).zip(dues);
    let fields: Vec<NewField<'_>> =
        pairs.map(|(pair, deadline)| NewField { field: pair[0], value: pair[1], deadline }).collect();
    if hash.build(&fields) { Ok(gathered) } else { reader.broken(FIELD_TWICE) }
}

fn load_timed_listpack(hash: &mut HashMut<'_>, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    // The least deadline is skipped: every field has its own.
    reader.millis()?;
    hash.expect_deadlines();
    read_packed(reader, Layout::Listpack, |packed| {
        let mut fields = packed.vector(3);
        while let Some(field) = packed.next_item()? {
            let (value, deadline) = (packed.item()?, packed.entry()?);
            let deadline = match deadline {
                Item::Int(deadline) => u64::try_from(deadline).ok().and_then(due),
                Item::Bytes(_) => None,
            };
            let Some(deadline) = deadline else { return Err(twice(BAD_DEADLINE)) };
            fields.push(NewField { field, value, deadline });
        }
        build_hash(hash, &fields)
    })
}
