//! A list inside its entry: how large it may be, how it is edited, and how it leaves and returns.
use crate::End;
use crate::edit::{Collection, Edit};
use crate::entry::Shape;
use crate::inside::FEW_BYTES_MAX;
use crate::keyspace::shard::Buffers;
use crate::list::listpack::{self, Encoding};
use crate::list::tree::{FEW, INSIDE, ListTree};
use pack::image::Draft;
use pack::seq::Limits;
use std::ops::ControlFlow;

/// No image would be a longer listpack than this, be it of many integers of 10 bytes each, or of few texts
/// with up to 4 bytes more for each.
pub(super) const IMAGE_LISTPACK_BYTES_MAX: u64 = listpack::EMPTY_BYTES + FEW_BYTES_MAX as u64 + 4 * FEW;
const _: () = assert!(listpack::EMPTY_BYTES + 10 * INSIDE.len_max() < IMAGE_LISTPACK_BYTES_MAX);

/// A longer image lies apart once it has changed its length.
pub(super) const STILL_BYTES_MAX: usize = 192;

impl Collection for ListTree {
    type Rules<'v> = &'v Limits;
    type State = Encoding;
    const OUTSIDE: Shape = Shape::ListTree;
    /// Lists are pushed to and popped from.
    const STILL_BYTES_MAX: usize = STILL_BYTES_MAX;

    #[inline]
    fn state(shape: Option<Shape>) -> Option<Encoding> {
        match shape {
            None | Some(Shape::Listpack) => Some(Encoding::Listpack),
            Some(Shape::Quicklist) => Some(Encoding::Quicklist),
            Some(_) => None,
        }
    }

    /// The draft of a list is no image: it keeps room at both ends, so that pushes do not move what is there.
    #[inline]
    fn open_draft(image: &[u8], buffers: &mut Buffers) {
        buffers.draft.open(image);
    }

    fn shape(encoding: Encoding, _: &Buffers) -> Shape {
        match encoding {
            Encoding::Listpack => Shape::Listpack,
            Encoding::Quicklist => Shape::Quicklist,
        }
    }

    fn close_draft(_: Encoding, buffers: &mut Buffers) -> &[u8] {
        buffers.draft.close()
    }

    fn is_draft_empty(buffers: &Buffers) -> bool {
        buffers.draft.is_empty()
    }

    /// Writes every element anew: some hundred at most, and seldom.
    fn grow(encoding: Encoding, limits: &Limits, buffers: &Buffers) -> ListTree {
        let listpack_bytes = Some(draft_listpack_bytes(&buffers.draft));
        ListTree { seq: buffers.draft.to_seq(limits), listpack_bytes, encoding }
    }

    /// A list for which [`ListTree::is_small`] says yes always fits an image.
    fn shrink(&self, encoding: &mut Encoding, _: &Limits, buffers: &mut Buffers) -> bool {
        *encoding = self.encoding;
        let draft = &mut buffers.draft;
        draft.open(&[]);
        let mut text = Vec::new();
        self.seq.visit(0, End::Tail, &mut |_, item| {
            text.clear();
            item.append_to(&mut text);
            draft.push(End::Tail, &text);
            ControlFlow::Continue(())
        });
        true
    }

    /// After a removal the name may change back to "listpack".
    #[inline]
    fn settle(edit: &mut Edit<'_, ListTree>) -> bool {
        if !edit.has_lost {
            return false;
        }
        let limits = edit.rules;
        if let Some(tree) = edit.tree_mut() {
            tree.settle(limits);
            return tree.is_small();
        }
        let draft = &edit.buffers().draft;
        let fits = |bytes| listpack::fits_half(limits.fill, bytes, draft.len());
        if fits(IMAGE_LISTPACK_BYTES_MAX) || fits(draft_listpack_bytes(draft)) {
            edit.state = Encoding::Listpack;
        }
        false
    }
}

/// The size that a draft would have as a listpack: O(elements), so called only near a limit and when the list
/// becomes a tree.
pub(super) fn draft_listpack_bytes(draft: &Draft) -> u64 {
    let mut sum = listpack::EMPTY_BYTES;
    if !draft.is_empty() {
        draft.visit(0, End::Tail, &mut |_, item| {
            sum += listpack::entry_bytes(item);
            ControlFlow::Continue(())
        });
    }
    sum
}
