//! A sorted set outside its entry: a packed tree with a member index, and its name.
use super::name::{Encoding, ZSetLimits};
use crate::End;
use crate::entry::Shape;
use crate::key_info::{KeyInfo, string_dump_bytes};
use crate::outside::Outside;
use base::Item;
use base::hash::Seed;
use pack::arena::Moves;
use pack::sorted::{Entry, Sorted, image};
use std::ops::ControlFlow;

/// A sorted set outside its entry.
#[derive(Clone)]
pub(crate) struct ZSetTree {
    pub(super) set: Sorted,
    pub(super) encoding: Encoding,
}

impl ZSetTree {
    /// Gives a member another score, as [`ZSetMut::update`](super::api::ZSetMut::update) says.
    pub(super) fn update(
        &mut self,
        seed: &Seed,
        limits: &ZSetLimits,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Option<f64> {
        let (len, mut encoding) = (self.set.len(), self.encoding);
        let old = self.set.update(seed, member, |old| {
            let score = decide(old)?;
            if old.is_none() {
                encoding = encoding.with(member, len, limits);
            }
            Some(encoding.kept(score))
        });
        self.encoding = encoding;
        old
    }
}

impl Outside for ZSetTree {
    fn len(&self) -> u64 {
        self.set.len()
    }

    fn encoding(&self) -> &'static str {
        match self.encoding {
            Encoding::Listpack => "listpack",
            Encoding::Skiplist => "skiplist",
        }
    }

    fn bytes(&self) -> u64 {
        self.set.bytes_about()
    }

    fn allocated_bytes(&self) -> u64 {
        self.set.allocated_about()
    }

    fn count_sole(&self, samples: u64) -> u64 {
        self.set.count_sole(samples)
    }

    fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64> {
        self.set.relocate(from, effort, moves)
    }

    fn describe(&self, info: &mut KeyInfo) {
        info.len = self.set.len();
        info.stats = self.set.stats();
        info.memory_bytes += info.stats.allocated_bytes();
        info.nodes.leaves = info.stats.scored.nodes;
        info.add_outside(0, 0);
        let (mut sum, mut count) = (0, 0);
        self.set.visit(0, End::Tail, &mut |entry| {
            sum += dump_bytes(&entry, self.encoding);
            count += 1;
            if count < SUMMED_LEN_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        info.serialized_bytes = DUMP_HEAD_BYTES + sum * self.set.len() / count.max(1);
    }
}

/// What a dump of a longer set takes is estimated from so many entries at its beginning.
const SUMMED_LEN_MAX: u64 = 1024;
/// The head of a sorted set in a dump file, about.
const DUMP_HEAD_BYTES: u64 = 5;

/// An entry in a dump file: two elements of a listpack, or a string and a double.
fn dump_bytes(entry: &Entry<'_>, encoding: Encoding) -> u64 {
    let text = entry.member.to_vec();
    match encoding {
        Encoding::Skiplist => string_dump_bytes(Item::Bytes(&text)) + 8,
        Encoding::Listpack => {
            let score = base::double::F64Text::new().format(entry.score).to_vec();
            let bytes = |text: &[u8]| pack::listpack::entry_bytes(Item::classify(text));
            bytes(&text) + bytes(&score)
        }
    }
}

impl KeyInfo {
    /// A sorted set inside its entry, which is one leaf by itself.
    pub(crate) fn add_zset_image(&mut self, bytes: &[u8], shape: Shape) {
        self.len = image::len(bytes);
        self.nodes.leaves = 1;
        self.nodes.uncompressed_bytes = bytes.len() as u64;
        let encoding = if shape == Shape::ZSetListpack { Encoding::Listpack } else { Encoding::Skiplist };
        let sum: u64 = image::up(bytes, 0).map(|entry| dump_bytes(&entry, encoding)).sum();
        self.serialized_bytes = DUMP_HEAD_BYTES + sum;
    }
}
