//! Lists: an image inside the keyspace entry while they are short (`pack::image`), a packed tree behind the
//! entry's pointer from then on.
//!
//! ```text
//!           neither 192 bytes and 128 elements, nor 512 and 64, nor 2 KB and 32 are enough
//!   image  ---------------------------------------->  tree
//!          <----------------------------------------
//!           by half of that, after a removal
//! ```
//!
//! [`ListMut`] holds the entry while the list is edited and writes the list back when it is dropped, so an
//! edit is one descent of the keyspace; a tree is edited where it lies. An image is edited in the shard's
//! draft buffer.
use crate::edit::{Edit, Start};
use crate::entry::{Meta, Shape};
use crate::inside::FEW_BYTES_MAX;
use crate::kind::WrongType;
use crate::list::image::{IMAGE_LISTPACK_BYTES_MAX, draft_listpack_bytes};
use crate::list::listpack::{self, Encoding};
use crate::list::tree::{INSIDE, ListTree};
use crate::site::Site;
use crate::value::Value;
use crate::{End, Key, View};
use base::Item;
use pack::image::{self, Draft};
use pack::seq::{Limits, Seq};
use std::ops::ControlFlow;

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

    /// How many elements there are: O(1).
    #[allow(clippy::len_without_is_empty, reason = "no list in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        match self.0 {
            Source::Image(image) => image::len(image),
            Source::Tree(seq) => seq.len(),
        }
    }

    /// Lends element `index`, counted from the head; None where there are not so many. O(log N).
    pub fn get<R>(&self, index: u64, look: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        match self.0 {
            Source::Image(image) => image::get(image, index).map(look),
            Source::Tree(seq) => seq.get(index, look),
        }
    }

    /// Visits the elements equal to `needle` among the `span` from `index` on towards the tail (or the head),
    /// until told to stop.
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

/// A list, to edit. Dropping it puts it back; an empty list takes its key with it.
pub struct ListMut<'v> {
    pub(super) edit: Edit<'v, ListTree>,
    /// Whether the command has announced all that it adds: see [`ListMut::announce`].
    is_announced: bool,
}

impl<'v> ListMut<'v> {
    /// Begins an edit. A short image is unpacked into the draft, one that may be edited where it lies stays
    /// there for now, and so does a tree; where there is no value, the list is new.
    #[inline(always)]
    fn open(mut site: Site<'v>, limits: &'v Limits) -> Result<ListMut<'v>, WrongType> {
        let mut start = Start::of(site.shape())?;
        if start.state != Encoding::Listpack || !site.is_apart() {
            start = start.with_draft(&mut site);
        }
        Ok(ListMut { edit: Edit::new(site, limits, start), is_announced: false })
    }

    /// The draft, of a list that has been opened.
    #[inline]
    fn draft(&self) -> &Draft {
        debug_assert!(!self.edit.is_untouched(), "the image has been opened");
        &self.edit.buffers().draft
    }

    /// The draft, to be edited; the image is opened first where that is still to be done.
    #[inline]
    fn draft_mut(&mut self) -> &mut Draft {
        self.edit.open_draft();
        &mut self.edit.buffers_mut().draft
    }

    /// The image, where it has not been opened.
    #[inline]
    pub(super) fn image(&self) -> Option<&[u8]> {
        self.edit.is_untouched().then(|| self.edit.site.image())
    }

    /// How many elements there are: O(1).
    #[allow(clippy::len_without_is_empty, reason = "no list in the keyspace is empty")]
    #[inline]
    pub fn len(&self) -> u64 {
        match (self.edit.tree(), self.image()) {
            (Some(tree), _) => tree.seq.len(),
            (None, Some(image)) => image::len(image),
            (None, None) => self.draft().len(),
        }
    }

    /// Before which element one comes that is pushed.
    #[inline]
    fn index_at(&self, end: End) -> u64 {
        if end == End::Head { 0 } else { self.len() }
    }

    /// Lends element `index`, as [`List::get`] does.
    pub fn get<R>(&self, index: u64, look: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        match (self.edit.tree(), self.image()) {
            (Some(tree), _) => tree.seq.get(index, look),
            (None, Some(image)) => image::get(image, index).map(look),
            (None, None) => self.draft().get(index).map(look),
        }
    }

    /// Visits all elements from `index` on towards the tail (or the head) that equal `needle`, until told to
    /// stop.
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
        match (self.edit.tree(), self.image()) {
            (Some(tree), _) => tree.seq.visit_equal(span, towards, needle, visit),
            (None, Some(image)) => image::visit_equal(image, span, towards, needle, visit),
            (None, None) => self.draft().visit_equal(span, towards, needle, visit),
        }
    }

    /// To be called with all that the command is about to add. Redis decides by the sum whether the list
    /// becomes a "quicklist", before it adds the first element. If nothing is announced, each element decides
    /// for itself.
    pub fn announce(&mut self, elements: u64, text_bytes: u64) {
        self.prepare(elements, text_bytes);
        self.is_announced = true;
        self.edit.expect(elements);
    }

    /// Changes the name to "quicklist" if the size before the addition and the text to be added exceed the
    /// limit. The size of a draft takes a walk, so it is added up only where a draft could be large enough to
    /// matter.
    fn prepare(&mut self, elements: u64, text_bytes: u64) {
        let limits = self.edit.rules;
        if let Some(tree) = self.edit.tree_mut() {
            return tree.announce(elements, text_bytes, limits);
        }
        if self.is_far_from_quicklist(elements, text_bytes) {
            return;
        }
        let (fill, len) = (limits.fill, self.len() + elements);
        if listpack::exceeds(fill, draft_listpack_bytes(self.draft_mut()) + text_bytes, len) {
            self.edit.state = Encoding::Quicklist;
            self.edit.is_changed = true;
        }
    }

    /// Whether such additions change no name, whatever there is in an image.
    pub(super) fn is_far_from_quicklist(&self, elements: u64, text_bytes: u64) -> bool {
        let (fill, len) = (self.edit.rules.fill, self.len() + elements);
        !listpack::exceeds(fill, IMAGE_LISTPACK_BYTES_MAX + text_bytes, len)
    }

    /// To be called before one element is added.
    fn prepare_one(&mut self, value: &[u8]) {
        if !self.is_announced {
            self.prepare(1, value.len() as u64);
        }
        self.edit.is_changed = true;
        if value.len() > FEW_BYTES_MAX {
            self.edit.grow();
        }
    }

    /// To be called when the draft has grown: makes a tree of it if it has become too large.
    fn check_draft(&mut self) {
        let draft = self.draft();
        if !INSIDE.holds(draft.image_len(), || draft.len()) {
            self.edit.grow();
        }
    }

    /// Whether nothing is there, neither before nor by this edit.
    pub(super) fn is_new_and_empty(&self) -> bool {
        self.edit.is_new() && self.edit.is_inside() && self.draft().is_empty()
    }

    /// Adds an element at one end: O(1).
    #[inline]
    pub fn push(&mut self, end: End, value: &[u8]) {
        let (limits, is_announced) = (self.edit.rules, self.is_announced);
        if let Some(tree) = self.edit.tree_mut() {
            if !is_announced {
                tree.announce(1, value.len() as u64, limits);
            }
            return tree.push(end, value, limits);
        }
        self.push_in_draft(end, value);
    }

    #[inline(never)]
    fn push_in_draft(&mut self, end: End, value: &[u8]) {
        if self.edit.is_untouched() && self.insert_in_place(self.index_at(end), value) {
            return;
        }
        self.prepare_one(value);
        let limits = self.edit.rules;
        match self.edit.tree_mut() {
            Some(tree) => tree.push(end, value, limits),
            None => {
                self.draft_mut().push(end, value);
                self.check_draft();
            }
        }
    }

    /// Removes the element at one end and lends it; None where the list is empty. O(1).
    pub fn pop<R>(&mut self, end: End, take: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        if self.edit.is_untouched() {
            let index = self.index_at(end).saturating_sub(1);
            if let Some(cut) = self.cut_in_place(index, 1) {
                let taken = self.get(index, take);
                self.edit.site.edit_apart(|image| cut.remove(image));
                return taken;
            }
        }
        self.edit.is_changed = true;
        self.edit.has_lost = true;
        let limits = self.edit.rules;
        match self.edit.tree_mut() {
            Some(tree) => tree.pop(end, limits, take),
            None => self.draft_mut().pop(end, take),
        }
    }

    /// Removes `count` elements at one end, which exist, and lends each, the outermost first.
    pub fn pop_many(&mut self, end: End, count: u64, take: &mut dyn FnMut(Item<'_>)) {
        if count == 0 {
            return;
        }
        let index = if end == End::Head { 0 } else { self.len() - count };
        if let Some(cut) = self.cut_in_place(index, count) {
            self.visit_image(end, count, take);
            self.edit.site.edit_apart(|image| cut.remove(image));
            return;
        }
        self.edit.expect(count);
        for _ in 0..count {
            self.pop(end, &mut *take);
        }
    }

    /// Replaces element `index`, which exists: O(log N).
    pub fn set(&mut self, index: u64, value: &[u8]) {
        if self.set_in_place(index, value) {
            return;
        }
        self.prepare_one(value);
        self.edit.has_lost = true;
        let limits = self.edit.rules;
        match self.edit.tree_mut() {
            Some(tree) => tree.set(index, value, limits),
            None => {
                self.draft_mut().set(index, value);
                self.check_draft();
            }
        }
    }

    /// Inserts an element before element `index`, or at the tail where that is the length: O(log N).
    pub fn insert(&mut self, index: u64, value: &[u8]) {
        if self.insert_in_place(index, value) {
            return;
        }
        self.prepare_one(value);
        let limits = self.edit.rules;
        match self.edit.tree_mut() {
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

    /// Removes `count` elements from `index` on, which exist: O(log N) and the leaves between.
    pub fn remove(&mut self, index: u64, count: u64) {
        // An image that is not opened has the shorter name already: nothing follows from no removal.
        if count == 0 && self.edit.is_untouched() || self.remove_in_place(index, count) {
            return;
        }
        self.edit.is_changed = true;
        self.edit.has_lost = true;
        let limits = self.edit.rules;
        match self.edit.tree_mut() {
            Some(tree) => tree.remove(index, count, limits),
            None => self.draft_mut().remove(index, count),
        }
    }
}

impl View<'_> {
    /// The list under `key`, to read; None where there is no such key.
    pub fn list(&mut self, key: &Key<'_>) -> Result<Option<List<'_>>, WrongType> {
        let found = self.look_used(key);
        found.map(|found| List::of(Meta(found.meta), found.inline, found.outside)).transpose()
    }

    /// The list under `key`, looked at without a trace, for an estimate of what a command will take.
    pub fn peek_list(&self, key: &Key<'_>) -> Option<List<'_>> {
        let found = self.peek(key)?;
        List::of(Meta(found.meta), found.inline, found.outside).ok()
    }

    /// The list under `key`, to edit; None where there is no such key.
    #[inline]
    pub fn list_mut<'v>(&'v mut self, key: &Key<'v>) -> Result<Option<ListMut<'v>>, WrongType> {
        let limits = &self.settings().list;
        self.site(key).map(|site| ListMut::open(site, limits)).transpose()
    }

    /// The list under `key`, to edit; a new one where there is no such key. The key is created only if an
    /// element is added.
    #[inline]
    pub fn list_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<ListMut<'v>, WrongType> {
        let limits = &self.settings().list;
        ListMut::open(self.site_or_new(key), limits)
    }
}
