//! A copy of a sorted set or a plain set, to be read while other keys are edited.
use crate::End;
use crate::entry::{Meta, Shape};
use crate::keyspace::seeds::Seeds;
use crate::kind::WrongType;
use crate::outside::Outside;
use crate::set::image::{Image, ImageCopy};
use crate::set::tree::SetTree;
use crate::value::Value;
use crate::{Key, View};
use base::Item;
use base::hash::Seed;
use pack::map::Found;
use pack::sorted::{Entry, Member, Sorted, image};
use std::ops::ControlFlow;

/// A sorted set or a plain set as it was at one moment, whatever is edited afterwards. A tree is shared, an
/// image is copied.
pub struct ZSetCopy {
    body: CopyBody,
    /// The seed that the members are hashed with: plain sets and sorted sets each have their own.
    seed: Seed,
}

enum CopyBody {
    Image(Vec<u8>),
    Tree(Sorted),
    /// A plain set that lay outside its entry or inside. All its members have the score 1.
    Set(SetTree),
    SmallSet(ImageCopy),
}

/// The score of a plain set's members.
const SET_SCORE: f64 = 1.0;

/// The text of a plain set's member; `text` is where an integer is written.
fn text_of<'a>(member: Item<'a>, text: &'a mut Vec<u8>) -> &'a [u8] {
    match member {
        Item::Bytes(bytes) => bytes,
        Item::Int(_) => {
            text.clear();
            member.append_to(text);
            text
        }
    }
}

fn of_set(member: &[u8]) -> Entry<'_> {
    Entry { score: SET_SCORE, member: Member::of(member) }
}

impl ZSetCopy {
    /// How many members there are: O(1).
    pub fn len(&self) -> u64 {
        match &self.body {
            CopyBody::Image(image) => image::len(image),
            CopyBody::Tree(set) => set.len(),
            CopyBody::Set(members) => members.len(),
            CopyBody::SmallSet(set) => set.read().len(),
        }
    }

    /// Whether there are none, which is also so where there was no such key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The score of a member, 1 in a plain set; None where it is none.
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        let is_there = match &self.body {
            CopyBody::Image(image) => return image::find(image, member).map(|(_, score)| score),
            CopyBody::Tree(set) => return set.score(&self.seed, member),
            CopyBody::Set(members) => members.contains(Item::classify(member), &self.seed),
            CopyBody::SmallSet(set) => set.read().contains(Item::classify(member)),
        };
        is_there.then_some(SET_SCORE)
    }

    /// Visits every entry until told to stop; those of a sorted set in its order.
    pub fn for_each(&self, visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>) {
        match &self.body {
            CopyBody::Image(image) => drop(image::up(image, 0).try_for_each(visit)),
            CopyBody::Tree(set) => set.visit(0, End::Tail, visit),
            CopyBody::SmallSet(set) => {
                let mut text = Vec::new();
                let _ = set.read().visit(&mut |member| visit(of_set(text_of(member, &mut text))));
            }
            CopyBody::Set(members) => {
                let mut text = Vec::new();
                let _ = members.visit(&self.seed, &mut |member| visit(of_set(text_of(member, &mut text))));
            }
        }
    }
}

impl View<'_> {
    /// Copies the sorted set or the plain set under `key`, so that it can be kept while other keys of the
    /// view are read and edited. The copy of a missing key is empty. O(1) for a set outside its entry.
    pub fn zset_copy(&mut self, key: &Key<'_>) -> Result<ZSetCopy, WrongType> {
        let seeds = self.seeds();
        match self.look_used(key) {
            Some(found) => ZSetCopy::of(seeds, &found),
            None => Ok(ZSetCopy { body: CopyBody::Image(Vec::new()), seed: seeds.scores }),
        }
    }

    /// The same without a trace, for an estimate of what a command will take; None where there is no such
    /// key.
    pub fn peek_zset_copy(&self, key: &Key<'_>) -> Option<ZSetCopy> {
        ZSetCopy::of(self.seeds(), &self.peek(key)?).ok()
    }
}

impl ZSetCopy {
    fn of(seeds: &Seeds, found: &Found<'_, Value>) -> Result<ZSetCopy, WrongType> {
        let meta = Meta(found.meta);
        let value = meta.value(found.inline);
        let body = match (meta.shape(), found.outside) {
            (Shape::ZSetListpack | Shape::ZSetSkiplist, _) => CopyBody::Image(value.to_vec()),
            (_, Some(Value::ZSet(tree))) => CopyBody::Tree(tree.set.clone()),
            (_, Some(Value::Set(members))) => CopyBody::Set(members.clone()),
            (shape, _) => {
                let image = Image::of(shape, value).ok_or(WrongType)?;
                CopyBody::SmallSet(ImageCopy::of(image))
            }
        };
        let seed = if matches!(body, CopyBody::Set(_)) { seeds.members } else { seeds.scores };
        Ok(ZSetCopy { body, seed })
    }
}
