//! A sorted set made of all its entries at once, for values that are loaded and commands that bring many:
//! an image is written in one pass, a tree leaf by leaf ([`Sorted::of_entries`]).
use super::api::ZSetMut;
use super::image::INSIDE;
use super::name::Encoding;
use super::tree::ZSetTree;
use crate::at_once::count_at_once;
use crate::distinct::are_distinct;
use crate::inside::FEW_BYTES_MAX;
use base::Item;
use pack::sorted::{Entry, Member, Sorted, image};

impl ZSetMut<'_> {
    /// Makes a sorted set of the first of a command's scores and members, if it brings many and there is none
    /// yet. Returns how many it took, which all are new; 0 where a member is there twice.
    pub fn build_new<'m>(&mut self, pairs: impl ExactSizeIterator<Item = (f64, &'m [u8])>) -> usize {
        let count = count_at_once(pairs.len(), self.edit.is_new() && self.len() == 0);
        if count == 0 {
            return 0;
        }
        let entry = |(score, member)| Entry { score, member: Member::of_item(Item::classify(member)) };
        let mut entries: Vec<Entry<'_>> = pairs.take(count).map(entry).collect();
        if self.build(&mut entries) { count } else { 0 }
    }

    /// Makes a sorted set of these entries where there is none yet; they may come in any order. No score is
    /// NaN, and members that read as integers are integers ([`Member::of_item`]). The name is that which they
    /// would have given it one by one. Returns false, and the set is still empty, where a member is there
    /// twice.
    pub fn build(&mut self, entries: &mut [Entry<'_>]) -> bool {
        let encoding = self.encoding_of(entries);
        for entry in entries.iter_mut() {
            debug_assert!(!entry.score.is_nan(), "no member has the score NaN");
            entry.score = encoding.kept(entry.score);
        }
        if !entries.is_sorted_by(|a, b| is_in_order(a, b)) {
            sort(entries);
        }
        // An image, or the only leaf of a tree.
        let is_small = entries.len() as u64 <= INSIDE.len_max()
            && entries.iter().map(|entry| entry.member.len()).max().unwrap_or(0) <= FEW_BYTES_MAX;
        if is_small {
            // Their members lie together, so the rest behind the prefix is all of a member.
            if !are_distinct(entries.len(), |index| entries[index].member.parts().1) {
                return false;
            }
            let draft = &mut self.edit.buffers_mut().text;
            image::build(draft, entries);
            if INSIDE.holds(draft.len(), || entries.len() as u64) {
                self.edit.fill_draft(encoding);
                return true;
            }
            let set = Sorted::of_whole_image(draft);
            draft.clear();
            if let Some(set) = set {
                self.edit.put_tree(Box::new(ZSetTree { set, encoding }));
                return true;
            }
        }
        let Some(set) = Sorted::of_entries(self.edit.rules.seed, entries) else { return false };
        self.edit.put_tree(Box::new(ZSetTree { set, encoding }));
        true
    }

    fn encoding_of(&self, entries: &[Entry<'_>]) -> Encoding {
        let limits = self.edit.rules.limits;
        let is_long = |entry: &Entry<'_>| entry.member.len() as u64 > limits.listpack_value_bytes;
        match entries.len() as u64 > limits.listpack_entries || entries.iter().any(is_long) {
            true => Encoding::Skiplist,
            false => self.edit.state,
        }
    }
}

/// Whether the first comes before the second, or is the same.
fn is_in_order(first: &Entry<'_>, second: &Entry<'_>) -> bool {
    first.score < second.score || first.score == second.score && first.member.order(&second.member).is_le()
}

/// Dump files have the entries of a large set from the greatest down, commands in any order.
#[cold]
fn sort(entries: &mut [Entry<'_>]) {
    if entries.is_sorted_by(|a, b| is_in_order(b, a)) {
        entries.reverse();
    } else {
        // The two zeros are equal, and members decide between them.
        entries.sort_unstable_by(|a, b| {
            (a.score + 0.0).total_cmp(&(b.score + 0.0)).then_with(|| a.member.order(&b.member))
        });
    }
}
