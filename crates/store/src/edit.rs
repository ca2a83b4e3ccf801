//! The life cycle of a collection that is edited, the same for lists, hashes, sets, sorted sets and streams:
//! where the collection is while it is edited, and the only code that writes it back.
//!
//! ```text
//!                       open_draft            grow
//!   Image, in its entry ----------->  Draft  ----->  Grown        Stored, outside
//!                                       ^              |              |
//!                                       +--------------+--------------+   shrink, after a removal
//!   when the edit ends:
//!   nothing to do             put_image          put_outside       nothing to do
//!                       a collection that has become empty takes its key with it
//! ```
//!
//! What is particular to a type is in its implementation of [`Collection`]. A collection outside is edited
//! where it lies. A draft is made in the buffers of the shard, and the entry keeps its old image until the
//! edit ends. So a command that returns early leaves what it has done so far, and one that panics leaves the
//! entry as it was. Not so where an image is edited where it lies, without a draft: a value of a hash that
//! takes the place of one as long, and the first edits of an image in a block of its own
//! ([`Edit::image_apart`]).
//!
//! On the path of every request that edits a collection: nothing here allocates, but when a collection leaves
//! its entry.
use crate::entry::Shape;
use crate::keyspace::garbage::Garbage;
use crate::keyspace::shard::Buffers;
use crate::kind::WrongType;
use crate::outside::Outside;
use crate::site::Site;
use crate::value::Variant;

/// What a type tells [`Edit`] about its collections. The implementing type is the collection outside its
/// entry.
pub(crate) trait Collection: Outside + Variant {
    /// What an edit goes by: limits, the seed of hashes, the time.
    type Rules<'v>: Copy;
    /// What is known of a draft beside its bytes: the name that OBJECT ENCODING gives it.
    type State: Copy;
    /// The shape of an entry whose collection lies outside.
    const OUTSIDE: Shape;
    /// An image of more bytes lies apart from its neighbours once it has changed its length.
    const STILL_BYTES_MAX: usize = usize::MAX;

    /// What an image's shape tells of it; for a new collection (no shape) the state that it begins with. None
    /// where the shape is another type's.
    fn state(shape: Option<Shape>) -> Option<Self::State>;
    /// The shape of an entry that holds the draft.
    fn shape(state: Self::State, buffers: &Buffers) -> Shape;

    /// Copies an image to where it is edited. The empty image is that of a collection without elements.
    #[inline]
    fn open_draft(image: &[u8], buffers: &mut Buffers) {
        buffers.text.clear();
        buffers.text.extend_from_slice(image);
    }

    /// The image of the draft.
    fn close_draft(state: Self::State, buffers: &mut Buffers) -> &[u8] {
        let _ = state;
        &buffers.text
    }

    fn is_draft_empty(buffers: &Buffers) -> bool {
        buffers.text.is_empty()
    }

    fn is_tree_empty(&self) -> bool {
        self.len() == 0
    }

    /// The draft as a collection outside its entry: O(its length), which is short.
    fn grow(state: Self::State, rules: Self::Rules<'_>, buffers: &Buffers) -> Self;
    /// Makes the draft of a collection that may be small enough to lie in its entry, and returns whether it
    /// is. If not, the draft's buffer holds nothing of use.
    fn shrink(&self, state: &mut Self::State, rules: Self::Rules<'_>, buffers: &mut Buffers) -> bool;

    /// Called at the end of an edit, before anything is written, for what else follows from it (names,
    /// deadlines). It is called too where a stored collection has become empty and will be removed. Returns
    /// whether a tree may have become small enough to lie in the entry, as an empty one has. O(1).
    fn settle(edit: &mut Edit<'_, Self>) -> bool;
}

/// Where a collection is while it is edited.
enum Body<T> {
    /// In its entry, not opened. A new collection has nothing there yet.
    Image,
    /// In a buffer of the shard.
    Draft,
    /// Outside, where it was before.
    Stored,
    /// Outside, but not yet in the keyspace.
    Grown(Box<T>),
}

/// So many edits of an image a command makes where it lies: LMOVE from one end of a list to the other makes
/// two. Where there are more, the draft is cheaper.
const EDITS_APART_MAX: u8 = 3;

/// A collection that is edited. It holds the entry, so that an edit is one descent of the keyspace, and
/// writes the collection back when it is dropped.
pub(crate) struct Edit<'v, T: Collection> {
    pub(crate) site: Site<'v>,
    body: Body<T>,
    pub(crate) rules: T::Rules<'v>,
    /// The state of a draft. A tree keeps its own, and this one then means nothing.
    pub(crate) state: T::State,
    /// Whether something has to be written back or settled. An edit of a tree need not set it.
    pub(crate) is_changed: bool,
    /// Whether elements were removed, so that the collection may be empty or small. Counts only if
    /// `is_changed` is set too.
    pub(crate) has_lost: bool,
    /// How many more edits may be made where the image lies.
    edits_apart: u8,
}

/// The first part of an [`Edit`], made while the command may still be refused. The edit itself is built when
/// nothing can fail any more, which saves moving it.
pub(crate) struct Start<T: Collection> {
    body: Body<T>,
    pub(crate) state: T::State,
}

impl<T: Collection> Start<T> {
    /// Begins the edit of an entry of this shape; None is a key that does not exist. Fails where the shape is
    /// another type's.
    #[inline(always)]
    pub(crate) fn of(shape: Option<Shape>) -> Result<Start<T>, WrongType> {
        let (body, state) = match shape == Some(T::OUTSIDE) {
            true => (Body::Stored, T::state(None)),
            false => (Body::Image, T::state(shape)),
        };
        Ok(Start { body, state: state.ok_or(WrongType)? })
    }

    /// Copies an image to the buffer where it can be edited. Most types do so at the beginning of every edit.
    #[inline(always)]
    pub(crate) fn with_draft(mut self, site: &mut Site<'_>) -> Start<T> {
        open_draft(&mut self.body, site);
        self
    }
}

#[inline(always)]
fn open_draft<T: Collection>(body: &mut Body<T>, site: &mut Site<'_>) {
    if let Body::Image = body {
        let (image, buffers) = site.image_and_buffers();
        T::open_draft(image, buffers);
        *body = Body::Draft;
    }
}

impl<'v, T: Collection> Edit<'v, T> {
    #[inline(always)]
    pub(crate) fn new(site: Site<'v>, rules: T::Rules<'v>, start: Start<T>) -> Edit<'v, T> {
        let Start { body, state } = start;
        Edit { site, body, rules, state, is_changed: false, has_lost: false, edits_apart: EDITS_APART_MAX }
    }

    /// Whether there was no such key.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.site.shape().is_none()
    }

    /// Whether the collection lies in its entry and has not been opened.
    #[inline]
    pub(crate) fn is_untouched(&self) -> bool {
        matches!(self.body, Body::Image)
    }

    /// Whether the collection is an image or a draft by now.
    #[inline]
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self.body, Body::Image | Body::Draft)
    }

    /// Whether the collection lies outside, where it was before.
    #[inline]
    fn is_stored(&self) -> bool {
        matches!(self.body, Body::Stored)
    }

    /// The image, if it has a block of its own and the next edit, which is counted, may be made there
    /// ([`Site::edit_apart`]): a copy to the buffer and back would be longer. Nothing is written back or
    /// settled after it.
    #[inline]
    pub(crate) fn image_apart(&mut self) -> Option<&[u8]> {
        if !self.is_untouched() || self.edits_apart == 0 || !self.site.is_apart() {
            return None;
        }
        self.edits_apart -= 1;
        Some(self.site.image())
    }

    /// The command is about to make so many edits. If they are many, none of them is made where the image
    /// lies.
    pub(crate) fn expect(&mut self, edits: u64) {
        if edits > u64::from(EDITS_APART_MAX) {
            self.edits_apart = 0;
        }
    }

    /// Copies the image to the buffer where it can be edited, if it is still in its entry.
    #[inline(always)]
    pub(crate) fn open_draft(&mut self) {
        open_draft(&mut self.body, &mut self.site);
    }

    /// The collection as a tree, if it lies outside or has left its entry.
    #[inline(always)]
    pub(crate) fn tree(&self) -> Option<&T> {
        match &self.body {
            Body::Image | Body::Draft => None,
            Body::Grown(tree) => Some(tree),
            Body::Stored => match self.site.outside().and_then(T::of) {
                None => unreachable!("the shape said that a collection of this type lies outside"),
                tree => tree,
            },
        }
    }

    #[inline(always)]
    pub(crate) fn tree_mut(&mut self) -> Option<&mut T> {
        self.tree_and_garbage().map(|(tree, _)| tree)
    }

    /// The same to be edited, and the list that takes what the edit frees.
    #[inline(always)]
    pub(crate) fn tree_and_garbage(&mut self) -> Option<(&mut T, &mut Vec<Garbage>)> {
        match &mut self.body {
            Body::Image | Body::Draft => None,
            Body::Grown(tree) => Some((tree, &mut self.site.context.aside.garbage)),
            Body::Stored => {
                let (outside, context) = self.site.outside_and_context();
                match outside.and_then(T::of_mut) {
                    None => unreachable!("the shape said that a collection of this type lies outside"),
                    Some(tree) => Some((tree, &mut context.aside.garbage)),
                }
            }
        }
    }

    /// The buffers in which the draft is.
    #[inline]
    pub(crate) fn buffers(&self) -> &Buffers {
        self.site.context.buffers
    }

    #[inline]
    pub(crate) fn buffers_mut(&mut self) -> &mut Buffers {
        self.site.context.buffers
    }

    /// Makes a tree of the draft. A collection that is a tree already stays as it is.
    pub(crate) fn grow(&mut self) {
        self.open_draft();
        if let Body::Draft = self.body {
            let tree = T::grow(self.state, self.rules, self.buffers());
            self.put_tree(Box::new(tree));
        }
    }

    /// Replaces the collection by the draft that was written into the buffer.
    pub(crate) fn put_draft(&mut self, state: T::State) {
        (self.body, self.state) = (Body::Draft, state);
        (self.is_changed, self.has_lost) = (true, true);
    }

    /// Makes a new collection of the draft that was written into the buffer.
    #[inline]
    pub(crate) fn fill_draft(&mut self, state: T::State) {
        debug_assert!(self.is_new() && self.is_inside(), "only a new collection is filled");
        (self.body, self.state, self.is_changed) = (Body::Draft, state, true);
    }

    /// Replaces the collection by a tree, which becomes an image at the end of the edit if it is small
    /// enough.
    pub(crate) fn put_tree(&mut self, tree: Box<T>) {
        self.body = Body::Grown(tree);
        self.is_changed = true;
    }

    /// Removes all elements. What lies outside is freed at the end of the edit, as any large value is.
    pub(crate) fn clear(&mut self) {
        T::open_draft(&[], self.site.context.buffers);
        self.put_draft(self.state);
    }

    /// The site has lost its value by itself: from here on this is the edit of a new collection.
    pub(crate) fn begin_anew(&mut self) {
        debug_assert!(self.is_new(), "the site has no value");
        T::open_draft(&[], self.site.context.buffers);
        (self.body, self.is_changed, self.has_lost) = (Body::Draft, false, false);
        self.state = T::state(None).unwrap_or(self.state);
    }

    /// Ends the edit of a new collection without creating its key.
    pub(crate) fn give_up(&mut self) {
        (self.body, self.is_changed) = (Body::Image, false);
    }

    fn is_empty(&self) -> bool {
        debug_assert!(!self.is_untouched(), "an edit that changed something opened the image first");
        self.tree().map_or_else(|| T::is_draft_empty(self.buffers()), T::is_tree_empty)
    }

    /// Makes a draft of a tree that has become small enough.
    #[cold]
    fn shrink(&mut self) {
        let (state, rules) = (&mut self.state, self.rules);
        let (tree, buffers) = match &self.body {
            Body::Image | Body::Draft => return,
            Body::Grown(tree) => (Some(&**tree), &mut *self.site.context.buffers),
            Body::Stored => {
                let (outside, buffers) = self.site.outside_and_buffers();
                (outside.and_then(T::of), buffers)
            }
        };
        if tree.is_some_and(|tree| tree.shrink(state, rules, buffers)) {
            self.body = Body::Draft;
        }
    }

    fn finish(&mut self) {
        // An empty draft needs no settling: either nothing was added to a new collection, or the image that
        // still lies in the entry is what the sums over deadlines go by when it is removed.
        if !self.is_stored() && self.is_empty() {
            return self.site.remove();
        }
        // A stored collection can only be empty after a removal, and is small then.
        if T::settle(self) {
            if self.is_empty() {
                return self.site.remove();
            }
            self.shrink();
        }
        debug_assert!(!self.has_lost || !self.is_empty(), "what is empty is small, and went");
        match std::mem::replace(&mut self.body, Body::Stored) {
            Body::Image | Body::Stored => {}
            Body::Grown(tree) => self.site.put_outside(T::OUTSIDE, T::into_value(tree)),
            Body::Draft => {
                let state = self.state;
                let shape = T::shape(state, self.site.context.buffers);
                self.site.put_image(shape, T::STILL_BYTES_MAX, |buffers| T::close_draft(state, buffers));
            }
        }
    }

    /// Ends an edit whose command panicked. What was edited where it lies has been changed already; a draft
    /// that was not written back is dropped.
    #[cold]
    fn abandon(&mut self) {
        if self.is_stored() {
            T::settle(self);
        }
        if self.is_new() || self.is_stored() && self.has_lost && self.is_empty() {
            self.site.remove();
        }
    }
}

/// The one place where an edited collection becomes an entry again. A command that fails half-way writes back
/// what it has done so far, as if it had stopped there; one that changed nothing writes nothing.
impl<T: Collection> Drop for Edit<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_changed {
            // Nothing unwinds in a server, where a panic ends the process.
            match cfg!(panic = "unwind") && std::thread::panicking() {
                true => self.abandon(),
                false => self.finish(),
            }
        } else if self.is_new() {
            // The entry may still be that of a key past its deadline: what is left in it must not be read.
            self.site.remove();
        }
        self.site.context.buffers.shrink();
    }
}
