//! Lists: an image inside the keyspace entry while they are short (`pack::seq::image`), a packed tree behind the entry's pointer from
//! then on.
//!
//! ```text
//!           image beyond 192 bytes or 128 elements
//!   image  ---------------------------------------->  tree
//!          <----------------------------------------
//!           at most 64 bytes as a listpack and 32 elements, after a removal
//! ```
//!
//! [`ListMut`] holds the place of the entry while the list is edited and writes it back when it is dropped, so an edit is one
//! descent of the keyspace; a tree is edited where it is. An image is edited in the shard's draft buffer.
use crate::entry::{Large, Meta, Shape, Stamp};
use crate::expire::Timer;
use crate::listpack::{self, Encoding};
use crate::tree::{RETURN_BYTES_MAX, Tree};
use crate::view::Desk;
use crate::{Deadline, End, Key, View, WrongType};
use base::Item;
use pack::map::{Entry, Shared};
use pack::seq::{Limits, Seq, image};
use std::ops::ControlFlow;

/// A list leaves its entry when its image outgrows either.
const IMAGE_BYTES_MAX: usize = 192;
const IMAGE_LEN_MAX: u64 = 128;
/// No image is a larger listpack than this: so many integers of 10 bytes, or its bytes of text and 3 for each.
const IMAGE_LISTPACK_BYTES_MAX: u64 = 2048;

/// A list, to read.
pub struct List<'v>(Source<'v>);

enum Source<'v> {
    Image(&'v [u8]),
    Tree(&'v Seq),
}

impl<'v> List<'v> {
    fn of(meta: Meta, payload: &'v [u8], outside: Option<&'v Large>) -> Result<List<'v>, WrongType> {
        match (meta.shape(), outside) {
            (Shape::Listpack | Shape::Quicklist, _) => Ok(List(Source::Image(meta.value(payload)))),
            (Shape::Tree, Some(Large::List(tree))) => Ok(List(Source::Tree(&tree.seq))),
            _ => Err(WrongType),
        }
    }

    #[allow(clippy::len_without_is_empty, reason = "no list in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        match self.0 {
            Source::Image(image) => image::len(image),
            Source::Tree(seq) => seq.len(),
        }
    }

    pub fn get<R>(&self, index: u64, look: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        match self.0 {
            Source::Image(image) => image::get(image, index).map(look),
            Source::Tree(seq) => seq.get(index, look),
        }
    }

    /// Visits from element `index` towards the tail (or the head) until told to stop.
    pub fn visit(&self, index: u64, towards: End, visit: &mut dyn FnMut(u64, Item<'_>) -> ControlFlow<()>) {
        if index >= self.len() {
            return;
        }
        match self.0 {
            Source::Image(image) => image::visit(image, index, towards, visit),
            Source::Tree(seq) => seq.visit(index, towards, visit),
        }
    }
}

/// Where the list is while it is edited.
enum Body {
    /// In the shard's draft buffer.
    Draft,
    /// Outside, where it was before.
    Stored,
    /// Outside, but not yet in the keyspace.
    Grown(Box<Tree>),
}

/// A list, to edit. Dropping it puts it back; an empty list takes its key with it.
pub struct ListMut<'v> {
    /// Taken by the drop.
    place: Option<Entry<'v, Large>>,
    desk: Desk<'v>,
    limits: &'v Limits,
    deadline: Deadline,
    body: Body,
    /// The name, but for a stored tree, which keeps its own.
    encoding: Encoding,
    edits: Edits,
}

/// What happened to the list.
#[derive(Default)]
struct Edits {
    changed: bool,
    /// Something was removed or replaced: the name may change back.
    removed: bool,
    /// The command announced all that it adds: see [`ListMut::announce`].
    announced: bool,
}

impl<'v> ListMut<'v> {
    /// A list that is there: an image is unpacked into the draft, a tree stays where it is.
    #[inline]
    fn open(
        place: Entry<'v, Large>,
        desk: Desk<'v>,
        deadline: Deadline,
        limits: &'v Limits,
    ) -> Result<ListMut<'v>, WrongType> {
        let (mut encoding, mut body) = (Encoding::Listpack, Body::Draft);
        desk.buffers.draft.open(&[]);
        if let Entry::Occupied(entry) = &place {
            let meta = Meta(entry.meta());
            match meta.shape() {
                Shape::Listpack => desk.buffers.draft.open(meta.value(entry.inline())),
                Shape::Quicklist => {
                    encoding = Encoding::Quicklist;
                    desk.buffers.draft.open(meta.value(entry.inline()));
                }
                Shape::Tree => body = Body::Stored,
                _ => return Err(WrongType),
            }
        }
        Ok(ListMut { place: Some(place), desk, limits, deadline, body, encoding, edits: Edits::default() })
    }

    /// A new list where there was none; an entry in its place is overdue and will be overwritten.
    fn create(place: Entry<'v, Large>, desk: Desk<'v>, limits: &'v Limits) -> ListMut<'v> {
        desk.buffers.draft.open(&[]);
        ListMut {
            place: Some(place),
            desk,
            limits,
            deadline: Deadline::Never,
            body: Body::Draft,
            encoding: Encoding::Listpack,
            edits: Edits::default(),
        }
    }

    /// The tree, if that is what the list is by now.
    fn tree(&self) -> Option<&Tree> {
        match (&self.body, &self.place) {
            (Body::Draft, _) => None,
            (Body::Grown(tree), _) => Some(tree),
            (Body::Stored, Some(Entry::Occupied(entry))) => match entry.outside() {
                Some(Large::List(tree)) => Some(tree),
                _ => unreachable!("the shape said that a list lies outside"),
            },
            (Body::Stored, _) => unreachable!("a stored list has its entry until the drop"),
        }
    }

    fn tree_mut(&mut self) -> Option<&mut Tree> {
        match (&mut self.body, &mut self.place) {
            (Body::Draft, _) => None,
            (Body::Grown(tree), _) => Some(tree),
            (Body::Stored, Some(Entry::Occupied(entry))) => match entry.outside_mut() {
                Some(Large::List(tree)) => Some(tree),
                _ => unreachable!("the shape said that a list lies outside"),
            },
            (Body::Stored, _) => unreachable!("a stored list has its entry until the drop"),
        }
    }

    #[allow(clippy::len_without_is_empty, reason = "no list in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        self.tree().map_or_else(|| self.desk.buffers.draft.len(), |tree| tree.seq.len())
    }

    pub fn get<R>(&self, index: u64, look: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        match self.tree() {
            None => self.desk.buffers.draft.get(index).map(look),
            Some(tree) => tree.seq.get(index, look),
        }
    }

    pub fn visit(&self, index: u64, towards: End, visit: &mut dyn FnMut(u64, Item<'_>) -> ControlFlow<()>) {
        if index >= self.len() {
            return;
        }
        match self.tree() {
            None => self.desk.buffers.draft.visit(index, towards, visit),
            Some(tree) => tree.seq.visit(index, towards, visit),
        }
    }

    /// Tells how much the command is about to add, so that the list's name changes as in Redis, which looks at all of it at once and
    /// before adding any. Without it each element counts when it comes.
    pub fn announce(&mut self, elements: u64, text_bytes: u64) {
        self.prepare(elements, text_bytes);
        self.edits.announced = true;
    }

    /// The name may change to "quicklist", by the sizes before the addition and the plain text of what comes. Summing up a draft costs
    /// a walk, so it is done only where a draft could be large enough to matter.
    fn prepare(&mut self, elements: u64, text_bytes: u64) {
        let limits = self.limits;
        if let Some(tree) = self.tree_mut() {
            return tree.announce(elements, text_bytes, limits);
        }
        let (fill, len) = (limits.fill, self.desk.buffers.draft.len() + elements);
        let is_far = !listpack::exceeds(fill, IMAGE_LISTPACK_BYTES_MAX + text_bytes, len);
        if !is_far && listpack::exceeds(fill, self.draft_listpack_bytes() + text_bytes, len) {
            self.encoding = Encoding::Quicklist;
        }
    }

    /// The size of the draft as a listpack: O(elements), so asked only near a limit and when the list leaves.
    fn draft_listpack_bytes(&self) -> u64 {
        let mut sum = listpack::EMPTY_BYTES;
        if !self.desk.buffers.draft.is_empty() {
            self.desk.buffers.draft.visit(0, End::Tail, &mut |_, item| {
                sum += listpack::entry_bytes(item);
                ControlFlow::Continue(())
            });
        }
        sum
    }

    /// One element is about to be added.
    fn prepare_one(&mut self, value: &[u8]) {
        if !self.edits.announced {
            self.prepare(1, value.len() as u64);
        }
        self.edits.changed = true;
        if value.len() > IMAGE_BYTES_MAX {
            self.leave();
        }
    }

    /// The draft becomes a tree.
    fn leave(&mut self) {
        if matches!(self.body, Body::Draft) {
            self.body = Body::Grown(Box::new(Tree {
                seq: self.desk.buffers.draft.to_seq(self.limits),
                listpack_bytes: Some(self.draft_listpack_bytes()),
                encoding: self.encoding,
            }));
        }
    }

    /// The draft has grown; it may have to leave.
    fn check_draft(&mut self) {
        let draft = &self.desk.buffers.draft;
        if draft.image_len() > IMAGE_BYTES_MAX || draft.len() > IMAGE_LEN_MAX {
            self.leave();
        }
    }

    pub fn push(&mut self, end: End, value: &[u8]) {
        let (limits, is_announced) = (self.limits, self.edits.announced);
        self.edits.changed = true;
        if let Some(tree) = self.tree_mut() {
            if !is_announced {
                tree.announce(1, value.len() as u64, limits);
            }
            return tree.push(end, value, limits);
        }
        self.push_in_draft(end, value);
    }

    fn push_in_draft(&mut self, end: End, value: &[u8]) {
        self.prepare_one(value);
        let limits = self.limits;
        match self.tree_mut() {
            Some(tree) => tree.push(end, value, limits),
            None => {
                self.desk.buffers.draft.push(end, value);
                self.check_draft();
            }
        }
    }

    pub fn pop<R>(&mut self, end: End, take: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        self.edits.changed = true;
        self.edits.removed = true;
        let limits = self.limits;
        match self.tree_mut() {
            Some(tree) => tree.pop(end, limits, take),
            None => self.desk.buffers.draft.pop(end, take),
        }
    }

    pub fn set(&mut self, index: u64, value: &[u8]) {
        self.prepare_one(value);
        self.edits.removed = true;
        let limits = self.limits;
        match self.tree_mut() {
            Some(tree) => tree.set(index, value, limits),
            None => {
                self.desk.buffers.draft.set(index, value);
                self.check_draft();
            }
        }
    }

    pub fn insert(&mut self, index: u64, value: &[u8]) {
        self.prepare_one(value);
        let limits = self.limits;
        match self.tree_mut() {
            Some(tree) => {
                tree.grow(listpack::entry_bytes(Item::classify(value)));
                tree.seq.insert(index, value, limits);
            }
            None => {
                self.desk.buffers.draft.insert(index, value);
                self.check_draft();
            }
        }
    }

    pub fn remove(&mut self, index: u64, count: u64) {
        self.edits.changed = true;
        self.edits.removed = true;
        let limits = self.limits;
        match self.tree_mut() {
            Some(tree) => tree.remove(index, count, limits),
            None => self.desk.buffers.draft.remove(index, count),
        }
    }

    /// After removals: name and place may change back.
    fn settle(&mut self) {
        let (fill, limits) = (self.limits.fill, self.limits);
        let Some(tree) = self.tree_mut() else {
            // An image is below half of any limit in bytes, so only a limit in elements can forbid it.
            if listpack::fits_half(fill, IMAGE_LISTPACK_BYTES_MAX, self.len()) {
                self.encoding = Encoding::Listpack;
            }
            return;
        };
        tree.settle(limits);
        if !tree.is_small() {
            return;
        }
        self.return_to_draft();
    }

    /// A stored tree has become so short that it fits its entry.
    fn return_to_draft(&mut self) {
        let Some(tree) = self.tree() else { return };
        // A clone of at most 32 elements' tree, one increment: the draft and the tree cannot be borrowed at once.
        let (encoding, seq) = (tree.encoding, tree.seq.clone());
        let draft = &mut self.desk.buffers.draft;
        draft.open(&[]);
        let mut text = Vec::with_capacity(RETURN_BYTES_MAX as usize);
        seq.visit(0, End::Tail, &mut |_, item| {
            text.clear();
            item.append_to(&mut text);
            draft.push(End::Tail, &text);
            ControlFlow::Continue(())
        });
        self.encoding = encoding;
        self.body = Body::Draft;
    }

    /// A stored tree was edited where it lies: nothing is left to write. The others replace the entry's payload, and what lay outside
    /// before, if anything, is given to whoever frees.
    fn write_back(&mut self, place: Entry<'v, Large>) {
        let stamp = Stamp::new(self.deadline);
        match std::mem::replace(&mut self.body, Body::Draft) {
            Body::Stored => {}
            Body::Grown(tree) => {
                let meta = Meta::new(Shape::Tree, &stamp);
                self.put(place, meta, stamp.as_bytes(), Some(Shared::new(Large::List(*tree))));
            }
            Body::Draft => {
                let shape = match self.encoding {
                    Encoding::Listpack => Shape::Listpack,
                    Encoding::Quicklist => Shape::Quicklist,
                };
                // Its room goes back to the shard below.
                let mut payload = std::mem::take(&mut self.desk.buffers.payload);
                let image = self.desk.buffers.draft.close();
                let bytes = stamp.payload(image, &mut payload);
                // The image is lent by the draft, so the entry is written without the desk's other parts.
                let meta = Meta::new(shape, &stamp);
                let old = put_entry(place, meta, bytes, None, &mut self.desk.timer);
                self.desk.buffers.payload = payload;
                self.desk.discard(old);
            }
        }
    }

    fn put(&mut self, place: Entry<'v, Large>, meta: Meta, payload: &[u8], outside: Option<Shared<Large>>) {
        let old = put_entry(place, meta, payload, outside, &mut self.desk.timer);
        self.desk.discard(old);
    }
}

/// Writes an entry; what lay outside before is returned.
fn put_entry(
    place: Entry<'_, Large>,
    meta: Meta,
    payload: &[u8],
    outside: Option<Shared<Large>>,
    timer: &mut Timer<'_>,
) -> Option<Shared<Large>> {
    match place {
        Entry::Vacant(entry) => {
            entry.insert(meta.0, payload, outside, timer);
            None
        }
        Entry::Occupied(mut entry) => {
            let is_in_place =
                outside.is_none() && entry.outside().is_none() && entry.inline().len() == payload.len();
            if !is_in_place {
                return entry.replace(meta.0, payload, outside, timer);
            }
            entry.inline_mut().copy_from_slice(payload);
            entry.set_meta(meta.0);
            None
        }
    }
}

/// The one place where an edited list becomes an entry again. A command that fails half-way writes back what it has done so far, as if it
/// had stopped there; one that changed nothing writes nothing.
impl Drop for ListMut<'_> {
    fn drop(&mut self) {
        // Only a removal empties a list, and nothing is written back of one that stays where it is.
        if matches!(self.body, Body::Stored) && !self.edits.removed {
            return;
        }
        let is_empty = self.len() == 0;
        if self.edits.removed && !is_empty {
            self.settle();
        }
        let Some(place) = self.place.take() else { return };
        match place {
            Entry::Occupied(entry) if is_empty => self.desk.remove(entry),
            Entry::Vacant(_) if is_empty => {}
            place if self.edits.changed => self.write_back(place),
            _ => {}
        }
    }
}

impl View<'_> {
    pub fn list(&mut self, key: &Key<'_>) -> Result<Option<List<'_>>, WrongType> {
        let found = self.look_used(key);
        found.map(|found| List::of(Meta(found.meta), found.inline, found.outside)).transpose()
    }

    #[inline]
    pub fn list_mut<'v>(&'v mut self, key: &Key<'v>) -> Result<Option<ListMut<'v>>, WrongType> {
        let limits = &self.settings().list;
        let (map, seed, mut desk) = self.open(key);
        let Entry::Occupied(mut entry) = map.entry(seed, key.hash, key.bytes()) else { return Ok(None) };
        match desk.read(&mut entry).live() {
            Some(deadline) => ListMut::open(Entry::Occupied(entry), desk, deadline, limits).map(Some),
            None => {
                desk.remove(entry);
                Ok(None)
            }
        }
    }

    /// Created empty where missing.
    #[inline]
    pub fn list_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<ListMut<'v>, WrongType> {
        let limits = &self.settings().list;
        let (map, seed, mut desk) = self.open(key);
        match map.entry(seed, key.hash, key.bytes()) {
            Entry::Vacant(entry) => Ok(ListMut::create(Entry::Vacant(entry), desk, limits)),
            Entry::Occupied(mut entry) => match desk.read(&mut entry).live() {
                Some(deadline) => ListMut::open(Entry::Occupied(entry), desk, deadline, limits),
                None => {
                    let old = Meta(entry.meta()).deadline(entry.inline());
                    desk.timer.change(&mut entry, old, Deadline::Never);
                    // What is left under this meta is never read: the drop overwrites or removes it.
                    entry.set_meta(Meta::new(Shape::Bytes, &Stamp::new(Deadline::Never)).0);
                    Ok(ListMut::create(Entry::Occupied(entry), desk, limits))
                }
            },
        }
    }
}
