//! A sorted set inside its entry: how large it may be, how it is edited, and how it leaves and returns.
use super::name::{Encoding, ZSetLimits};
use super::tree::ZSetTree;
use crate::edit::{Collection, Edit};
use crate::entry::Shape;
use crate::inside::{FEW_BYTES_MAX, Inside, Step};
use crate::keyspace::shard::Buffers;
use base::hash::Seed;
use pack::sorted::{Sorted, image};

/// The limits of a sorted set inside its entry.
pub(super) const INSIDE: Inside<2> =
    Inside([Step { bytes: 192, len: 128 }, Step { bytes: FEW_BYTES_MAX, len: 32 }]);
/// What an edit of a sorted set goes by.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'v> {
    pub(super) seed: &'v Seed,
    pub(super) limits: &'v ZSetLimits,
}

impl Collection for ZSetTree {
    type Rules<'v> = Rules<'v>;
    type State = Encoding;
    const OUTSIDE: Shape = Shape::ZSetTree;

    #[inline]
    fn state(shape: Option<Shape>) -> Option<Encoding> {
        match shape {
            None | Some(Shape::ZSetListpack) => Some(Encoding::Listpack),
            Some(Shape::ZSetSkiplist) => Some(Encoding::Skiplist),
            Some(_) => None,
        }
    }

    fn shape(encoding: Encoding, _: &Buffers) -> Shape {
        encoding.shape()
    }

    fn is_draft_empty(buffers: &Buffers) -> bool {
        image::len(&buffers.text) == 0
    }

    /// The image becomes the first leaf of the tree as it is.
    fn grow(encoding: Encoding, _: Rules<'_>, buffers: &Buffers) -> ZSetTree {
        ZSetTree { set: Sorted::of_image(&buffers.text), encoding }
    }

    fn shrink(&self, encoding: &mut Encoding, _: Rules<'_>, buffers: &mut Buffers) -> bool {
        let image = self.set.as_image();
        if let Some(image) = image {
            *encoding = self.encoding;
            Self::open_draft(image, buffers);
        }
        image.is_some()
    }

    /// Only a tree of one leaf can be small, and that leaf is the image that it would have.
    #[inline]
    fn settle(edit: &mut Edit<'_, ZSetTree>) -> bool {
        let is_small = |tree: &ZSetTree| match tree.set.as_image() {
            Some(image) => INSIDE.takes_back(image.len(), tree.set.len()),
            None => tree.set.is_empty(),
        };
        edit.has_lost && edit.tree().is_some_and(is_small)
    }
}
