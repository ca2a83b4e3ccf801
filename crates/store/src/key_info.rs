//! What is known of one key's value: its names and its sizes, which the types add up. Sizes are of what is
//! allocated, room included, so that they add up to about what the process takes.
use crate::kind::Kind;
use crate::set::image::Image;
use base::Item;
use base::text::parse_i64;
use pack::image;
use pack::pairs;
use pack::seq::{End, Nodes, Seq};
use pack::stats::Stats;
use std::ops::ControlFlow;

/// The size of a value outside, whatever its type: that of the largest type. So a type with much to keep has
/// boxes for the rest.
pub(crate) const VALUE_BYTES: u64 = 80;

#[derive(Clone, Debug)]
pub struct KeyInfo {
    pub kind: Kind,
    /// OBJECT ENCODING's name.
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

impl KeyInfo {
    /// Adds what lies behind the entry's pointer: the body of the value, and so many bytes that it has
    /// allocated.
    pub(crate) fn add_outside(&mut self, used_bytes: u64, allocated_bytes: u64) {
        self.stats.outside.nodes += 1;
        self.stats.outside.entries += 1;
        self.stats.outside.used_bytes += VALUE_BYTES + used_bytes;
        self.stats.outside.allocated_bytes += VALUE_BYTES + allocated_bytes;
        self.memory_bytes += VALUE_BYTES + allocated_bytes;
    }

    /// Adds the image of a list, which counts as one leaf.
    pub(crate) fn add_image(&mut self, bytes: &[u8]) {
        self.len = image::len(bytes);
        self.nodes = Nodes { leaves: 1, compressed: 0, uncompressed_bytes: bytes.len() as u64 };
        let mut sum = LIST_DUMP_BYTES;
        image::visit(bytes, 0, End::Tail, &mut |_, item| {
            sum += string_dump_bytes(item);
            ControlFlow::Continue(())
        });
        self.serialized_bytes = sum;
    }

    pub(crate) fn add_set(&mut self, image: &Image<'_>) {
        self.len = image.len();
        self.serialized_bytes = image.bytes.len() as u64;
    }

    pub(crate) fn add_pairs(&mut self, image: &[u8]) {
        self.len = pairs::len(image);
        self.nodes = Nodes { leaves: 1, compressed: 0, uncompressed_bytes: image.len() as u64 };
        self.serialized_bytes = LIST_DUMP_BYTES
            + pairs::iter(image)
                .map(|pair| string_dump_bytes(pair.field) + string_dump_bytes(pair.value))
                .sum::<u64>();
    }

    /// Adds a hash outside its entry, whose fields and values take `dump_bytes` in a dump.
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

    /// Adds a list outside its entry. Redis dumps the nodes of a list as they are, so the size of the opened
    /// leaves is about that of the dump.
    pub(crate) fn add_tree(&mut self, seq: &Seq) {
        self.len = seq.len();
        self.stats = seq.stats();
        self.nodes = seq.nodes();
        self.add_outside(0, 0);
        self.memory_bytes += seq.allocated_bytes();
        self.serialized_bytes = LIST_DUMP_BYTES + self.nodes.uncompressed_bytes;
    }
}

/// About how many bytes the head of a list takes in a dump file.
const LIST_DUMP_BYTES: u64 = 9;

/// A string in a dump file: its length in 1, 2, 5 or 9 bytes and the bytes, or an integer of up to 32 bits in
/// 2, 3 or 5.
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
