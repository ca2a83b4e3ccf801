//! A set made of all its members at once, for values that are loaded and commands that bring many: an image
//! is written in one pass, a tree leaf by leaf ([`SetTree::of_members`]).
use super::edit::SetMut;
use super::image::INSIDE;
use super::name::Name;
use super::tree::SetTree;
use crate::at_once::count_at_once;
use crate::distinct::{FEW_MAX, are_distinct};
use base::Item;
use pack::set_image::{TEXT_BYTES_MAX, ints, items};

impl SetMut<'_> {
    /// Makes a set of the first of a command's members, if it brings many and there is none yet. Returns how
    /// many it took, which all are new; 0 where one is there twice.
    pub fn build_new<'m>(&mut self, members: impl ExactSizeIterator<Item = &'m [u8]>) -> usize {
        let count = count_at_once(members.len(), self.edit.is_new() && self.len() == 0);
        if count == 0 {
            return 0;
        }
        let members: Vec<Item<'_>> = members.take(count).map(Item::classify).collect();
        if self.build(&members) { count } else { 0 }
    }

    /// Makes a set of these members, in the order in which they would have come, where there is none yet.
    /// Texts that read as integers are integers ([`Item::classify`]). The name is that which they would have
    /// given it one by one, by a command that brings as many as were announced. Returns false, and the set is
    /// still empty, where a member is there twice.
    pub fn build(&mut self, members: &[Item<'_>]) -> bool {
        if members.is_empty() {
            return true;
        }
        let (name, sorted) = Name::of_members(members, self.expected, self.edit.rules.limits);
        if name == Name::Intset {
            return self.build_ints(members.iter().filter_map(int_of).collect());
        }
        if has_image(members) {
            return are_distinct(members.len(), |index| members[index])
                && self.build_image(name, members.split_at(sorted));
        }
        self.build_tree(name, members)
    }

    /// The same for integers, in any order.
    pub fn build_ints(&mut self, mut values: Vec<i64>) -> bool {
        let limits = self.edit.rules.limits;
        if values.len() as u64 > limits.intset_entries {
            let members: Vec<Item<'_>> = values.into_iter().map(Item::Int).collect();
            return self.build(&members);
        }
        if !values.is_sorted_by(|a, b| a < b) {
            values.sort_unstable();
        }
        let (Some(first), Some(last)) = (values.first(), values.last()) else { return true };
        if values.windows(2).any(|pair| pair[0] == pair[1]) {
            return false;
        }
        if ints::len_bytes_of(values.len(), *first, *last) <= INSIDE.bytes_of_any() {
            ints::build(&mut self.edit.buffers_mut().text, &values);
            self.edit.fill_draft(Name::Intset);
        } else {
            self.edit.put_tree(Box::new(SetTree::of_ints(&values, Name::Intset)));
        }
        true
    }

    /// The first members came while the set was an "intset", and were sorted when it ceased to be one.
    fn build_image(&mut self, name: Name, (ints, others): (&[Item<'_>], &[Item<'_>])) -> bool {
        let image = &mut self.edit.buffers_mut().text;
        image.clear();
        let mut ints: Vec<i64> = ints.iter().filter_map(int_of).collect();
        ints.sort_unstable();
        ints.into_iter().for_each(|n| items::append_new(image, Item::Int(n)));
        others.iter().for_each(|member| items::append_new(image, *member));
        self.edit.fill_draft(name);
        true
    }

    fn build_tree(&mut self, name: Name, members: &[Item<'_>]) -> bool {
        let tree = SetTree::of_members(members, name, self.edit.rules.seed);
        tree.map(|tree| self.edit.put_tree(Box::new(tree))).is_some()
    }
}

fn int_of(member: &Item<'_>) -> Option<i64> {
    match member {
        Item::Int(n) => Some(*n),
        Item::Bytes(_) => None,
    }
}

/// Whether an image can hold these members, in their order.
fn has_image(members: &[Item<'_>]) -> bool {
    let is_short = |member: &Item<'_>| matches!(member, Item::Int(_)) || member.len() <= TEXT_BYTES_MAX;
    members.len() <= FEW_MAX
        && members.iter().all(is_short)
        && INSIDE.holds(items::len_bytes_of(members), || members.len() as u64)
}
