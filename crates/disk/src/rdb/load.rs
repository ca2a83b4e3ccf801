//! Values that are read and put under a key.
//!
//! The key holds nothing yet, and its shard is locked. A value is built as a command would build it, element
//! by element: so nothing depends on what its header announces, and an element that is there twice is
//! noticed. Where a value cannot be read to its end, what was built of it is removed.
use super::kind::Type;
use super::load_stream;
use super::read::Reader;
use crate::source::Broken;
use crate::source::Source;
use base::text::I64Text;
use base::{Item, Millis, double};
use pack::classic;
use pack::classic::int_set::IntSet;
use pack::classic::listpack::Listpack;
use pack::classic::ziplist::Ziplist;
use pack::classic::zipmap::Zipmap;
use store::{End, Expiry, Form, HashMut, Key, Lifetime, ListMut, SetMut, View, ZSetMut};

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

/// A block of entries that is being read.
pub(crate) enum Packed<'b> {
    Listpack(Listpack<'b>),
    Ziplist(Ziplist<'b>),
}

impl<'b> Packed<'b> {
    fn next_entry(&mut self) -> Result<Option<Item<'b>>, classic::Broken> {
        match self {
            Packed::Listpack(listpack) => listpack.next_entry(),
            Packed::Ziplist(ziplist) => ziplist.next_entry(),
        }
    }

    /// The next entry, where there has to be one.
    fn entry(&mut self) -> Result<Item<'b>, classic::Broken> {
        match self {
            Packed::Listpack(listpack) => listpack.entry(),
            Packed::Ziplist(ziplist) => ziplist.entry(),
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
    let at = reader.source.at();
    let text = reader.element()?;
    let packed = match layout {
        Layout::Listpack => Listpack::new(text).map(Packed::Listpack),
        Layout::Ziplist => Ziplist::new(text).map(Packed::Ziplist),
    };
    packed.and_then(|mut packed| visit(&mut packed)).map_err(|broken| in_block(broken, at))
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
    for _ in 0..reader.length()? {
        match kind {
            Type::List => list.push(End::Tail, reader.element()?),
            Type::ListZiplists => load_node(list, Layout::Ziplist, reader)?,
            _ => match reader.length()? {
                PLAIN => list.push(End::Tail, reader.element()?),
                PACKED => load_node(list, Layout::Listpack, reader)?,
                _ => return reader.broken("a node of a list is of no kind"),
            },
        }
    }
    Ok(())
}

fn load_node(list: &mut ListMut<'_>, layout: Layout, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    read_packed(reader, layout, |packed| {
        let mut digits = I64Text::new();
        while let Some(item) = packed.next_entry()? {
            list.push(End::Tail, item.text(&mut digits));
        }
        Ok(())
    })
}

fn load_set(set: &mut SetMut<'_>, kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    const TWICE: &str = "a set has a member twice";
    match kind {
        Type::SetInts => {
            let at = reader.source.at();
            let mut ints = IntSet::new(reader.element()?).map_err(|broken| in_block(broken, at))?;
            let mut digits = I64Text::new();
            // The integers ascend, so none is there twice.
            while let Some(value) = ints.next_int().map_err(|broken| in_block(broken, at))? {
                set.insert(digits.format(value));
            }
            Ok(())
        }
        Type::SetListpack => read_packed(reader, Layout::Listpack, |packed| {
            let mut digits = I64Text::new();
            while let Some(item) = packed.next_entry()? {
                if !set.insert(item.text(&mut digits)) {
                    return Err(twice(TWICE));
                }
            }
            Ok(())
        }),
        _ => {
            for _ in 0..reader.length()? {
                if !set.insert(reader.element()?) {
                    return reader.broken(TWICE);
                }
            }
            Ok(())
        }
    }
}

fn load_zset(zset: &mut ZSetMut<'_>, kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    const WRONG: &str = "a sorted set has a member twice, or a score that is no number";
    let mut add = |member: &[u8], score: Option<f64>| {
        let score = score.filter(|score| !score.is_nan());
        score.is_some_and(|score| zset.update(member, |_| Some(score)).is_none())
    };
    let layout = match kind {
        Type::ZSetListpack => Layout::Listpack,
        Type::ZSetZiplist => Layout::Ziplist,
        _ => {
            let mut member = Vec::new();
            for _ in 0..reader.length()? {
                reader.element_into(&mut member)?;
                let score = match kind {
                    Type::ZSet => Some(reader.double()?),
                    _ => reader.double_text()?,
                };
                if !add(&member, score) {
                    return reader.broken(WRONG);
                }
            }
            return Ok(());
        }
    };
    read_packed(reader, layout, |packed| {
        let mut digits = I64Text::new();
        while let Some(member) = packed.next_entry()? {
            let score = match packed.entry()? {
                Item::Int(score) => Some(score as f64),
                Item::Bytes(text) => double::parse_f64(text),
            };
            if !add(member.text(&mut digits), score) {
                return Err(twice(WRONG));
            }
        }
        Ok(())
    })
}

const FIELD_TWICE: &str = "a hash has a field twice";

fn load_hash(hash: &mut HashMut<'_>, kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    match kind {
        Type::HashListpack => load_pairs(hash, Layout::Listpack, reader),
        Type::HashZiplist => load_pairs(hash, Layout::Ziplist, reader),
        Type::HashZipmap => load_zipmap(hash, reader),
        Type::TimedHash | Type::TimedHashValkey => load_timed(hash, kind, reader),
        Type::TimedHashListpack => load_timed_listpack(hash, reader),
        _ => {
            let mut field = Vec::new();
            for _ in 0..reader.length()? {
                reader.element_into(&mut field)?;
                if !hash.set(&field, reader.element()?, Lifetime::Endless) {
                    return reader.broken(FIELD_TWICE);
                }
            }
            Ok(())
        }
    }
}

fn load_pairs(
    hash: &mut HashMut<'_>,
    layout: Layout,
    reader: &mut Reader<impl Source>,
) -> Result<(), Broken> {
    read_packed(reader, layout, |packed| {
        let (mut field_digits, mut value_digits) = (I64Text::new(), I64Text::new());
        while let Some(field) = packed.next_entry()? {
            let value = packed.entry()?;
            let (field, value) = (field.text(&mut field_digits), value.text(&mut value_digits));
            if !hash.set(field, value, Lifetime::Endless) {
                return Err(twice(FIELD_TWICE));
            }
        }
        Ok(())
    })
}

fn load_zipmap(hash: &mut HashMut<'_>, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    let at = reader.source.at();
    let mut zipmap = Zipmap::new(reader.element()?).map_err(|broken| in_block(broken, at))?;
    while let Some((field, value)) = zipmap.next_pair().map_err(|broken| in_block(broken, at))? {
        if !hash.set(field, value, Lifetime::Endless) {
            return Err(Broken { what: FIELD_TWICE, at });
        }
    }
    Ok(())
}

/// When a field with this deadline expires: never, if it is 0. None for a deadline that is out of range.
fn lifetime(deadline: u64) -> Option<Lifetime> {
    match deadline {
        0 => Some(Lifetime::Endless),
        1..=DEADLINE_MAX => Some(Lifetime::Until(Millis(deadline as i64))),
        _ => None,
    }
}

const BAD_DEADLINE: &str = "the deadline of a field is out of range";

/// A hash with deadlines. Redis writes each as its distance from the least, so that it is short, in front of
/// the field; Valkey writes the deadline itself, behind the value.
fn load_timed(hash: &mut HashMut<'_>, kind: Type, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    let is_valkey = kind == Type::TimedHashValkey;
    let least = if is_valkey { 0 } else { reader.millis()? as u64 };
    let (mut field, mut value) = (Vec::new(), Vec::new());
    hash.expect_deadlines();
    for _ in 0..reader.length()? {
        let behind_least = if is_valkey { 0 } else { reader.length()? };
        reader.element_into(&mut field)?;
        reader.element_into(&mut value)?;
        let deadline = match behind_least {
            0 if is_valkey => reader.millis()?.max(0) as u64,
            0 => 0,
            behind => least.saturating_add(behind - 1),
        };
        let Some(lifetime) = lifetime(deadline) else { return reader.broken(BAD_DEADLINE) };
        if !hash.set(&field, &value, lifetime) {
            return reader.broken(FIELD_TWICE);
        }
    }
    Ok(())
}

fn load_timed_listpack(hash: &mut HashMut<'_>, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
    // The least deadline is skipped: every field has its own.
    reader.millis()?;
    hash.expect_deadlines();
    read_packed(reader, Layout::Listpack, |packed| {
        let (mut field_digits, mut value_digits) = (I64Text::new(), I64Text::new());
        while let Some(field) = packed.next_entry()? {
            let (value, deadline) = (packed.entry()?, packed.entry()?);
            let (field, value) = (field.text(&mut field_digits), value.text(&mut value_digits));
            let deadline = match deadline {
                Item::Int(deadline) => u64::try_from(deadline).ok().and_then(lifetime),
                Item::Bytes(_) => None,
            };
            let Some(lifetime) = deadline else { return Err(twice(BAD_DEADLINE)) };
            if !hash.set(field, value, lifetime) {
                return Err(twice(FIELD_TWICE));
            }
        }
        Ok(())
    })
}
