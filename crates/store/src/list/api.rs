//! Lists: an image inside the keyspace entry while they are short (`pack::image`), a packed tree behind the entry's pointer from
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
use crate::entry::{Meta, Shape};
use crate::keyspace::shard::Buffers;
use crate::kind::WrongType;
use crate::list::listpack::{self, Encoding};
use crate::list::tree::{ListTree, RETURN_BYTES_MAX};
use crate::site::Site;
use crate::value::Value;
use crate::{End, Key, View};
use base::Item;
use pack::image::{self, Draft};
use pack::seq::{Limits, Seq};
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
    pub(crate) fn of(
        meta: Meta,
        payload: &'v [u8],
        outside: Option<&'v Value>,
    ) -> Result<List<'v>, WrongType> {
        match (meta.shape(), outside) {
            (Shape::Listpack | Shape::Quicklist, _) => Ok(List(Source::Image(meta.value(payload)))),
            (Shape::ListTree, Some(Value::List(tree))) => Ok(List(Source::Tree(&tree.seq))),
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

    /// Visits, of `span` elements from `index` on towards the tail (or the head), those equal to `needle`, until told to stop.
    pub fn visit_equal(
        &self,
        span: (u64, u64),
        towards: End,
        needle: Item<'_>,
        visit: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) {
        if span.0 >= self.len() {
            return;
        }
        match self.0 {
            Source::Image(image) => image::visit_equal(image, span, towards, needle, visit),
            Source::Tree(seq) => seq.visit_equal(span, towards, needle, visit),
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
    Grown(Box<ListTree>),
}

/// A list, to edit. Dropping it puts it back; an empty list takes its key with it.
pub struct ListMut<'v> {
    site: Site<'v>,
    limits: &'v Limits,
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
    /// An image is unpacked into the draft, a tree stays where it is; where there is no value, the list is new.
    #[inline(always)]
    fn open(mut site: Site<'v>, limits: &'v Limits) -> Result<ListMut<'v>, WrongType> {
        let (encoding, body) = match site.shape() {
            Some(Shape::ListTree) => (Encoding::Listpack, Body::Stored),
            None | Some(Shape::Listpack) => (Encoding::Listpack, Body::Draft),
            Some(Shape::Quicklist) => (Encoding::Quicklist, Body::Draft),
            _ => return Err(WrongType),
        };
        if matches!(body, Body::Draft) {
            let (image, buffers) = site.image();
            buffers.draft.open(image);
        }
        Ok(ListMut { site, limits, body, encoding, edits: Edits::default() })
    }

    /// The tree, if that is what the list is by now.
    #[inline(always)]
    fn tree(&self) -> Option<&ListTree> {
        match &self.body {
            Body::Draft => None,
            Body::Grown(tree) => Some(tree),
            Body::Stored => match self.site.outside() {
                Some(Value::List(tree)) => Some(tree),
                _ => unreachable!("the shape said that a list lies outside"),
            },
        }
    }

    #[inline(always)]
    fn tree_mut(&mut self) -> Option<&mut ListTree> {
        match &mut self.body {
            Body::Draft => None,
            Body::Grown(tree) => Some(tree),
            Body::Stored => match self.site.outside_mut() {
                Some(Value::List(tree)) => Some(tree),
                _ => unreachable!("the shape said that a list lies outside"),
            },
        }
    }

    #[inline]
    fn draft(&self) -> &Draft {
        &self.site.context.buffers.draft
    }

    #[inline]
    fn draft_mut(&mut self) -> &mut Draft {
        &mut self.site.context.buffers.draft
    }

    #[allow(clippy::len_without_is_empty, reason = "no list in the keyspace is empty")]
    #[inline]
    pub fn len(&self) -> u64 {
        self.tree().map_or_else(|| self.draft().len(), |tree| tree.seq.len())
    }

    pub fn get<R>(&self, index: u64, look: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        match self.tree() {
            None => self.draft().get(index).map(look),
            Some(tree) => tree.seq.get(index, look),
        }
    }

    /// Visits all elements from `index` on towards the tail (or the head) that equal `needle`, until told to stop.
    pub fn visit_equal(
        &self,
        index: u64,
        towards: End,
        needle: Item<'_>,
        visit: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) {
        if index >= self.len() {
            return;
        }
        let span = (index, u64::MAX);
        match self.tree() {
            None => self.draft().visit_equal(span, towards, needle, visit),
            Some(tree) => tree.seq.visit_equal(span, towards, needle, visit),
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
        let (fill, len) = (limits.fill, self.draft().len() + elements);
        let is_far = !listpack::exceeds(fill, IMAGE_LISTPACK_BYTES_MAX + text_bytes, len);
        if !is_far && listpack::exceeds(fill, self.draft_listpack_bytes() + text_bytes, len) {
            self.encoding = Encoding::Quicklist;
            self.edits.changed = true;
        }
    }

    /// The size of the draft as a listpack: O(elements), so asked only near a limit and when the list leaves.
    fn draft_listpack_bytes(&self) -> u64 {
        let mut sum = listpack::EMPTY_BYTES;
        if !self.draft().is_empty() {
            self.draft().visit(0, End::Tail, &mut |_, item| {
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
            self.body = Body::Grown(Box::new(ListTree {
                seq: self.draft().to_seq(self.limits),
                listpack_bytes: Some(self.draft_listpack_bytes()),
                encoding: self.encoding,
            }));
        }
    }

    /// The draft has grown; it may have to leave.
    fn check_draft(&mut self) {
        let draft = self.draft();
        if draft.image_len() > IMAGE_BYTES_MAX || draft.len() > IMAGE_LEN_MAX {
            self.leave();
        }
    }

    #[inline]
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

    #[inline(never)]
    fn push_in_draft(&mut self, end: End, value: &[u8]) {
        self.prepare_one(value);
        let limits = self.limits;
        match self.tree_mut() {
            Some(tree) => tree.push(end, value, limits),
            None => {
                self.draft_mut().push(end, value);
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
            None => self.draft_mut().pop(end, take),
        }
    }

    pub fn set(&mut self, index: u64, value: &[u8]) {
        self.prepare_one(value);
        self.edits.removed = true;
        let limits = self.limits;
        match self.tree_mut() {
            Some(tree) => tree.set(index, value, limits),
            None => {
                self.draft_mut().set(index, value);
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
                self.draft_mut().insert(index, value);
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
            None => self.draft_mut().remove(index, count),
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
        let draft = self.draft_mut();
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

    /// A stored tree was edited where it lies: nothing is left to write.
    fn write_back(&mut self) {
        match std::mem::replace(&mut self.body, Body::Stored) {
            Body::Stored => {}
            Body::Grown(tree) => self.site.put_outside(Shape::ListTree, Value::List(*tree)),
            Body::Draft => {
                let shape = match self.encoding {
                    Encoding::Listpack => Shape::Listpack,
                    Encoding::Quicklist => Shape::Quicklist,
                };
                self.site.put_image(shape, |buffers: &mut Buffers| buffers.draft.close());
            }
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
        if is_empty {
            self.site.remove();
        } else if self.edits.changed {
            self.write_back();
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
        self.site(key).map(|site| ListMut::open(site, limits)).transpose()
    }

    /// Created empty where missing.
    #[inline]
    pub fn list_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<ListMut<'v>, WrongType> {
        let limits = &self.settings().list;
        ListMut::open(self.site_or_new(key), limits)
    }
}
