//! A hash made of all its fields at once, for values that are loaded and commands that bring many: an image
//! is written in one pass, a tree leaf by leaf ([`HashTree::of_fields`]).
use super::api::HashMut;
use super::field::Kept;
use super::field::Mark;
use super::image::INSIDE;
use super::name::HashName;
use super::tree::{At, HashTree, Lifetime};
use crate::at_once::count_at_once;
use crate::distinct::{are_distinct, arrange};
use crate::expiry::deadline::Deadline;
use base::Item;
use base::hash::Hash;
use base::text::I64Text;
use pack::fields::{Field, Fields};
use pack::int_map::IntMap;
use pack::map::build::{Fill, MapBuilder};
use pack::pairs;

/// A field of a hash that is built, its value and its deadline. Texts that read as integers are integers
/// ([`Item::classify`]).
#[derive(Clone, Copy, Debug)]
pub struct NewField<'f> {
    pub field: Item<'f>,
    pub value: Item<'f>,
    pub deadline: Deadline,
}

impl HashMut<'_> {
    /// Makes a hash of the first of a command's fields and values, if it brings many and there is none yet.
    /// `words` has a field and its value by turns. Returns how many fields it took, which all are new; 0
    /// where one is there twice.
    pub fn build_new<'f>(&mut self, mut words: impl ExactSizeIterator<Item = &'f [u8]>) -> usize {
        let count = count_at_once(words.len() / 2, self.is_new() && self.len() == 0);
        let mut fields = Vec::with_capacity(count);
        while fields.len() < count
            && let (Some(field), Some(value)) = (words.next(), words.next())
        {
            let (field, value) = (Item::classify(field), Item::classify(value));
            fields.push(NewField { field, value, deadline: Deadline::Never });
        }
        if count > 0 && self.build(&fields) { count } else { 0 }
    }

    /// Makes a hash of these fields, in the order in which they would have come, where there is none yet. The
    /// name is that which they would have given it one by one. Returns false, and the hash is still empty,
    /// where a field is there twice.
    pub fn build(&mut self, fields: &[NewField<'_>]) -> bool {
        let name = self.name_of(fields).max(self.edit.state.name);
        if self.write_image(fields) {
            if !are_distinct(fields.len(), |index| fields[index].field) {
                self.edit.buffers_mut().text.clear();
                return false;
            }
            self.edit.state.name = name;
            self.edit.state.may_be_timed = fields.iter().any(NewField::is_timed);
            self.edit.fill_draft(self.edit.state);
            return true;
        }
        let Some(tree) = HashTree::of_fields(fields, name, self.edit.rules.at) else {
            self.edit.buffers_mut().text.clear();
            return false;
        };
        self.edit.put_tree(Box::new(tree));
        true
    }

    fn name_of(&self, fields: &[NewField<'_>]) -> HashName {
        let limits = &self.edit.rules.limits;
        let is_long = |item: &Item<'_>| item.len() as u64 > limits.value;
        if fields.len() as u64 > limits.entries
            || fields.iter().any(|new| is_long(&new.field) || is_long(&new.value))
        {
            return HashName::Hashtable;
        }
        match fields.iter().any(|new| new.deadline != Deadline::Never) {
            true => HashName::ListpackEx,
            false => HashName::Listpack,
        }
    }

    /// Writes the image of the fields into the buffer of drafts; false where they do not fit one.
    fn write_image(&mut self, fields: &[NewField<'_>]) -> bool {
        if fields.len() as u64 > INSIDE.len_max() {
            return false;
        }
        let bytes = |new: &NewField<'_>| pairs::item_len(new.field) + pairs::item_len(new.value);
        let fits = fields.iter().all(|new| pairs::fits(new.field, new.value))
            && INSIDE.holds(fields.iter().map(bytes).sum(), || fields.len() as u64);
        if !fits {
            return false;
        }
        let image = &mut self.edit.buffers_mut().text;
        image.clear();
        for new in fields {
            pairs::append(image, new.field, new.value, Mark::new(new.deadline).bytes());
        }
        pairs::len_of_kept(image);
        // Deadlines and a count may have made it too long.
        INSIDE.holds(image.len(), || fields.len() as u64)
    }
}

impl NewField<'_> {
    fn kept(&self) -> Kept<'_> {
        Kept { value: self.value, deadline: self.deadline }
    }

    fn is_timed(&self) -> bool {
        self.deadline != Deadline::Never
    }

    /// Key and value, if it goes to the map of integers of a grown hash.
    fn ints(&self) -> Option<(i64, i64)> {
        match (self.field, self.value) {
            (Item::Int(key), Item::Int(value)) if !self.is_timed() => Some((key, value)),
            _ => None,
        }
    }

    fn entry_bytes(&self) -> usize {
        let kept = self.kept();
        let payload_bytes = kept.lay_out(|_, inline| inline.len());
        let field = Field::of(self.field);
        MapBuilder::<Vec<u8>, Fields>::entry_bytes(field.name(), payload_bytes, kept.is_outside())
    }
}

impl HashTree {
    /// The tree of these fields; None where one is there twice. If they fit one leaf they keep their order.
    pub(super) fn of_fields(fields: &[NewField<'_>], name: HashName, at: At<'_>) -> Option<HashTree> {
        let mut tree = HashTree::new(name);
        let fill = Fill::of::<Fields>(fields.iter().map(NewField::entry_bytes));
        tree.is_grown = fill != Fill::OneLeaf;
        let mut ints = Vec::new();
        if tree.is_grown {
            ints.extend(fields.iter().filter_map(NewField::ints));
            ints.sort_unstable_by_key(|(key, _)| *key);
        }
        let is_elsewhere = |new: &NewField<'_>| tree.is_grown && new.ints().is_some();
        let mut text = I64Text::new();
        let mut others: Vec<(Hash, u32)> = (0..)
            .zip(fields)
            .filter(|(_, new)| !is_elsewhere(new))
            .map(|(at_index, new)| (at.seed.hash(new.field.text(&mut text)), at_index))
            .collect();
        let entries = others.iter().map(|(_, index)| fields[*index as usize].entry_bytes());
        let fill = if ints.is_empty() { fill } else { Fill::of::<Fields>(entries) };
        let field = |index: u32| fields[index as usize].field;
        if !arrange(&mut others, fill == Fill::OneLeaf, field) || is_key_twice(&ints, &others, field) {
            return None;
        }
        if !ints.is_empty() {
            tree.text_bytes = ints.iter().map(|(key, value)| int_text_bytes(*key, *value)).sum();
            tree.ints = Some(Box::new(IntMap::of_sorted(&ints)));
        }
        tree.fill(fields, &others, fill, at);
        Some(tree)
    }

    /// Fills the first map. Fields with deadlines come one by one, because the leaf of each is noted.
    fn fill(&mut self, fields: &[NewField<'_>], order: &[(Hash, u32)], fill: Fill, at: At<'_>) {
        let field = |(hash, index): &(Hash, u32)| (*hash, &fields[*index as usize]);
        let is_timed = order.iter().map(field).any(|(_, new)| new.is_timed());
        // Those of one leaf stay in their order.
        let one_by_one = is_timed && fill == Fill::OneLeaf;
        let is_built = |new: &NewField<'_>| !one_by_one && !new.is_timed();
        let mut builder = MapBuilder::new(fill);
        for (hash, new) in order.iter().map(field).filter(|(_, new)| is_built(new)) {
            let kept = new.kept();
            self.text_bytes += (new.field.len() + new.value.len()) as u64;
            kept.lay_out(|meta, inline| {
                builder.push(hash, Field::of(new.field).name(), (meta, inline), kept.outside());
            });
        }
        self.map = builder.finish();
        let mut text = I64Text::new();
        for (_, new) in order.iter().map(field).filter(|(_, new)| !is_built(new)) {
            let lifetime = match new.deadline {
                Deadline::Never => Lifetime::Endless,
                Deadline::At(due) => Lifetime::Until(due),
            };
            self.put(at, new.field.text(&mut text), new.value, lifetime, &mut Vec::new());
        }
    }
}

fn int_text_bytes(key: i64, value: i64) -> u64 {
    (Item::Int(key).len() + Item::Int(value).len()) as u64
}

/// Whether a key of the map of integers, which is sorted, is there twice, or also among the others.
fn is_key_twice<'f>(ints: &[(i64, i64)], others: &[(Hash, u32)], field: impl Fn(u32) -> Item<'f>) -> bool {
    let is_among = |(_, index): &(Hash, u32)| match field(*index) {
        Item::Int(key) => ints.binary_search_by_key(&key, |(key, _)| *key).is_ok(),
        Item::Bytes(_) => false,
    };
    ints.windows(2).any(|pair| pair[0].0 == pair[1].0) || !ints.is_empty() && others.iter().any(is_among)
}
