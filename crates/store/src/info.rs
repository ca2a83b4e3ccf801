//! What OBJECT, DEBUG OBJECT, MEMORY USAGE and MEMORY LAYOUT report about one key.
//!
//! The only file beside the value APIs that looks at how a value is kept. Sizes are of what is allocated, room included, so
//! that they add up to about what the process takes.
use crate::entry::{Meta, Shape, Value, encoding, string_value};
use crate::set::image::Image;
use crate::{Key, Kind, View};
use base::Item;
use base::text::parse_i64;
use pack::map::Found;
use pack::pairs;
use pack::seq::{End, Nodes, Seq, image};
use pack::stats::Stats;
use std::ops::ControlFlow;

#[derive(Clone, Debug)]
pub struct KeyInfo {
    pub kind: Kind,
    /// OBJECT ENCODING's name under the thresholds.
    pub encoding: &'static str,
    /// Whether the value lies inside its keyspace entry.
    pub is_inline: bool,
    /// Elements, or bytes of a string.
    pub len: u64,
    /// The integer that a string reads as.
    pub int: Option<i64>,
    /// All bytes that the key costs: its entry with its share of the leaf's overhead, and what lies outside.
    pub memory_bytes: u64,
    /// The size that Redis would serialize it to, uncompressed.
    pub serialized_bytes: u64,
    pub stats: Stats,
    pub nodes: Nodes,
}

/// What OBJECT asks of a key: nothing that takes time in its size.
#[derive(Clone, Copy, Debug)]
pub struct Brief {
    /// As in [`KeyInfo`].
    pub encoding: &'static str,
    pub int: Option<i64>,
}

impl View<'_> {
    /// None if the key is not there.
    pub fn brief(&mut self, key: &Key<'_>) -> Option<Brief> {
        let found = self.look(key)?;
        let meta = Meta(found.meta);
        let int = match string_value(meta, found.inline, found.outside) {
            Ok(Item::Int(n)) => Some(n),
            _ => None,
        };
        Some(Brief { encoding: encoding(meta, found.inline, found.outside), int })
    }

    /// None if the key is not there. Goes over all leaves of the value.
    pub fn info(&mut self, key: &Key<'_>) -> Option<KeyInfo> {
        let mut info = describe(&self.look(key)?);
        let entry_bytes = self.map(key).and_then(|map| map.entry_bytes(key.hash, key.bytes()));
        info.memory_bytes += entry_bytes.unwrap_or(0);
        Some(info)
    }
}

/// All but the bytes of the entry itself.
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
            if let Some(Value::Str(bytes)) = outside {
                info.add_outside(bytes.len() as u64, bytes.capacity() as u64);
            }
        }
    }
    info
}

impl KeyInfo {
    /// What lies behind the entry's pointer: the value's head and so many bytes.
    pub(crate) fn add_outside(&mut self, used_bytes: u64, allocated_bytes: u64) {
        let header_bytes = size_of::<Value>() as u64;
        self.stats.outside.nodes += 1;
        self.stats.outside.entries += 1;
        self.stats.outside.used_bytes += header_bytes + used_bytes;
        self.stats.outside.allocated_bytes += header_bytes + allocated_bytes;
        self.memory_bytes += header_bytes + allocated_bytes;
    }

    /// An image is one leaf by itself, whatever else its keyspace leaf holds.
    fn add_image(&mut self, bytes: &[u8]) {
        self.len = image::len(bytes);
        self.nodes = Nodes { leaves: 1, compressed: 0, uncompressed_bytes: bytes.len() as u64 };
        let mut sum = LIST_DUMP_BYTES;
        image::visit(bytes, 0, End::Tail, &mut |_, item| {
            sum += string_dump_bytes(item);
            ControlFlow::Continue(())
        });
        self.serialized_bytes = sum;
    }

    fn add_set(&mut self, image: &Image<'_>) {
        self.len = image.len();
        self.serialized_bytes = image.bytes.len() as u64;
    }

    fn add_pairs(&mut self, image: &[u8]) {
        self.len = pairs::len(image);
        self.nodes = Nodes { leaves: 1, compressed: 0, uncompressed_bytes: image.len() as u64 };
        self.serialized_bytes = LIST_DUMP_BYTES
            + pairs::iter(image)
                .map(|pair| string_dump_bytes(pair.field) + string_dump_bytes(pair.value))
                .sum::<u64>();
    }

    /// A hash outside, of which all fields and values dump to so many bytes.
    pub(crate) fn add_fields(&mut self, len: u64, stats: Stats, dump_bytes: u64) {
        self.len = len;
        self.stats = stats;
        self.nodes = Nodes {
            leaves: stats.tagged.nodes + stats.ints.nodes,
            compressed: 0,
            uncompressed_bytes: stats.tagged.allocated_bytes + stats.ints.allocated_bytes,
        };
        self.memory_bytes += stats.allocated_bytes();
        self.add_outside(0, 0);
        self.serialized_bytes = LIST_DUMP_BYTES + dump_bytes;
    }

    /// Redis writes the nodes of a list as they are, so their opened size tells what a dump of it takes, about.
    pub(crate) fn add_tree(&mut self, seq: &Seq) {
        self.len = seq.len();
        self.stats = seq.stats();
        self.nodes = seq.nodes();
        self.add_outside(0, 0);
        self.memory_bytes += seq.allocated_bytes();
        self.serialized_bytes = LIST_DUMP_BYTES + self.nodes.uncompressed_bytes;
    }
}

/// The head of a list in a dump file, about.
const LIST_DUMP_BYTES: u64 = 9;

/// A string in a dump file: its length in 1, 2, 5 or 9 bytes and the bytes, or an integer of up to 32 bits in 2, 3 or 5.
pub(crate) fn string_dump_bytes(item: Item<'_>) -> u64 {
    let number = match item {
        Item::Int(n) => Some(n),
        Item::Bytes(bytes) => parse_i64(bytes),
    };
    if let Some(n) = number.and_then(|n| i32::try_from(n).ok()) {
        return match n {
            -0x80..=0x7F => 2,
            -0x8000..=0x7FFF => 3,
            _ => 5,
        };
    }
    let len = item.len() as u64;
    let head = match len {
        0..64 => 1,
        64..16_384 => 2,
        16_384..0x1_0000_0000 => 5,
        _ => 9,
    };
    head + len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_in_a_dump_are_as_long_as_redis_makes_them() {
        let cases: [(&[u8], u64); 8] = [
            (b"", 1),
            (b"127", 2),
            (b"-129", 3),
            (b"100000", 5),
            (b"10000000000", 12),
            (b"hello", 6),
            (&[b'x'; 64], 66),
            (&[b'x'; 16_384], 16_389),
        ];
        for (text, bytes) in cases {
            assert_eq!(string_dump_bytes(Item::classify(text)), bytes);
        }
    }
}
