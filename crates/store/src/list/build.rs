//! A list made of many elements at once, for values that are loaded: an image is written in one pass, a tree
//! leaf by leaf ([`Seq::of_items`]).
use super::api::ListMut;
use super::listpack::{self, Encoding};
use super::tree::{INSIDE, ListTree};
use crate::inside::FEW_BYTES_MAX;
use base::Item;
use base::text::I64Text;
use pack::seq::{Limits, Seq};

impl ListMut<'_> {
    /// Adds elements behind all others. The name is that which they give the list one by one. Texts that read
    /// as integers are integers ([`Item::classify`]). Only those of an image come one by one.
    pub fn append(&mut self, items: &[Item<'_>]) {
        if self.is_new_and_empty() {
            return self.build(items);
        }
        let limits = self.edit.rules;
        if let Some(tree) = self.edit.tree_mut() {
            return tree.append(items, limits);
        }
        let mut digits = I64Text::new();
        items.iter().for_each(|item| self.push(crate::End::Tail, item.text(&mut digits)));
    }

    fn build(&mut self, items: &[Item<'_>]) {
        if items.is_empty() {
            return;
        }
        let limits = self.edit.rules;
        let bytes =
            listpack::EMPTY_BYTES + items.iter().map(|item| listpack::entry_bytes(*item)).sum::<u64>();
        let encoding = encoding_of(items, bytes, limits);
        if may_be_image(items) {
            let draft = &mut self.edit.buffers_mut().draft;
            draft.fill(items);
            if INSIDE.holds(draft.image_len(), || draft.len()) {
                return self.edit.fill_draft(encoding);
            }
            draft.open(&[]);
        }
        let tree = ListTree { seq: Seq::of_items(items, limits), listpack_bytes: Some(bytes), encoding };
        self.edit.put_tree(Box::new(tree));
    }
}

/// Whether the elements are so few and short that their image is worth a look. That of integers may be short
/// whatever they are.
fn may_be_image(items: &[Item<'_>]) -> bool {
    let is_short = |item: &Item<'_>| match item {
        Item::Int(_) => true,
        Item::Bytes(text) => text.len() <= FEW_BYTES_MAX,
    };
    items.len() as u64 <= INSIDE.len_max() && items.iter().all(is_short)
}

/// "quicklist", if some element was too much when it came. `bytes` is the size of the listpack of all.
fn encoding_of(items: &[Item<'_>], bytes: u64, limits: &Limits) -> Encoding {
    let text_bytes = |item: &Item<'_>| match item {
        Item::Int(_) => I64_TEXT_MAX,
        Item::Bytes(text) => text.len() as u64,
    };
    let longest = items.iter().map(text_bytes).max().unwrap_or(0);
    if !listpack::exceeds(limits.fill, bytes + longest, items.len() as u64) {
        return Encoding::Listpack;
    }
    let (mut sum, mut len) = (listpack::EMPTY_BYTES, 0);
    let mut is_too_much = |item: &Item<'_>| {
        len += 1;
        let is_so = listpack::exceeds(limits.fill, sum + item.len() as u64, len);
        sum += listpack::entry_bytes(*item);
        is_so
    };
    if items.iter().any(&mut is_too_much) { Encoding::Quicklist } else { Encoding::Listpack }
}

/// How long the text of an integer is at most.
const I64_TEXT_MAX: u64 = 20;
