//! What OBJECT, DEBUG OBJECT, MEMORY USAGE and MEMORY LAYOUT report about one key.
//!
//! The only file beside the value APIs that looks at how a value is kept. Sizes are of what is allocated,
//! room included, so that they add up to about what the process takes.
use crate::entry::{Meta, Shape};
use crate::key_info::{KeyInfo, VALUE_BYTES, string_dump_bytes};
use crate::set::image::Image;
use crate::value::{Value, encoding, string_value};
use crate::{Key, View};
use base::Item;
use pack::map::Found;
use pack::seq::Nodes;
use pack::stats::Stats;

/// What OBJECT asks about a key. All of it is O(1).
#[derive(Clone, Copy, Debug)]
pub struct Brief {
    /// As in [`KeyInfo`].
    pub encoding: &'static str,
    pub int: Option<i64>,
}

impl View<'_> {
    /// What OBJECT ENCODING and the like say; None if the key is not there. O(1).
    pub fn brief(&mut self, key: &Key<'_>) -> Option<Brief> {
        let found = self.look(key)?;
        let meta = Meta(found.meta);
        let int = match string_value(meta, found.inline, found.outside) {
            Ok(Item::Int(n)) => Some(n),
            _ => None,
        };
        Some(Brief { encoding: encoding(meta, found.inline, found.outside), int })
    }

    /// How many bytes the key costs, as [`View::info`] tells it, but of a collection of more than some
    /// hundred elements as far as some of its leaves tell. None if the key is not there. What it costs does
    /// not grow with the value but for [`View::parts`].
    pub fn memory_bytes(&mut self, key: &Key<'_>) -> Option<u64> {
        let value_bytes = match self.look(key)?.outside {
            None => 0,
            Some(value) => {
                let collection = value.collection().map(|collection| collection.allocated_bytes());
                VALUE_BYTES
                    + collection.or_else(|| value.text_room_bytes().map(|room| room as u64)).unwrap_or(0)
            }
        };
        let entry_bytes = self.map(key).and_then(|map| map.entry_bytes(key.hash, key.bytes()));
        Some(value_bytes + entry_bytes.unwrap_or(0))
    }

    /// How many groups a stream has, and consumers of them: 0 of any other value. It counts as no lookup.
    pub fn parts(&self, key: &Key<'_>) -> u64 {
        match self.peek(key).and_then(|found| found.outside) {
            Some(Value::Stream(stream)) => stream.parts(),
            _ => 0,
        }
    }

    /// All that is known of the value; None if the key is not there. Visits all leaves of the value.
    pub fn info(&mut self, key: &Key<'_>) -> Option<KeyInfo> {
        let mut info = describe(&self.look(key)?);
        let entry_bytes = self.map(key).and_then(|map| map.entry_bytes(key.hash, key.bytes()));
        info.memory_bytes += entry_bytes.unwrap_or(0);
        Some(info)
    }
}

/// What is known of a value, without the bytes of its keyspace entry.
pub(crate) fn describe(found: &Found<'_, Value>) -> KeyInfo {
    let meta = Meta(found.meta);
    let mut info = KeyInfo {
        kind: meta.shape().kind(),
        encoding: encoding(meta, found.inline, found.outside),
        is_inline: !meta.shape().is_outside(),
        len: 0,
        int: None,
        memory_bytes: 0,
        serialized_bytes: 0,
        stats: Stats::default(),
        nodes: Nodes::default(),
    };
    match (meta.shape(), found.outside) {
        (Shape::Listpack | Shape::Quicklist, _) => info.add_image(meta.value(found.inline)),
        (shape, _) if let Some(image) = Image::of(shape, meta.value(found.inline)) => info.add_set(&image),
        (Shape::Hash | Shape::TimedHash, _) => info.add_pairs(meta.value(found.inline)),
        (shape @ (Shape::ZSetListpack | Shape::ZSetSkiplist), _) => {
            info.add_zset_image(meta.value(found.inline), shape);
        }
        (_, Some(outside)) if let Some(collection) = outside.collection() => collection.describe(&mut info),
        (_, outside) => {
            if let Ok(item) = string_value(meta, found.inline, outside) {
                info.len = item.len() as u64;
                info.int = if let Item::Int(n) = item { Some(n) } else { None };
                info.serialized_bytes = string_dump_bytes(item);
            }
            if let Some((text, room_bytes)) =
                outside.and_then(|value| value.text().zip(value.text_room_bytes()))
            {
                info.add_outside(text.len() as u64, room_bytes as u64);
            }
        }
    }
    info
}
