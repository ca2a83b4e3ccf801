//! A hash inside its entry (`pack::pairs`): how large it may be, what its fields keep, which of them are due,
//! and how it leaves and returns.
use crate::entry::Shape;
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::{NO_DEADLINE, due_of, note_of};
use crate::field_names::Names;
use crate::hash::field::{Kept, Mark};
use crate::hash::name::HashName;
use crate::hash::tree::{At, HashTree, Lifetime};
use crate::inside::{FEW_BYTES_MAX, Inside, Step};
use base::Millis;
use pack::pairs::{self, Pair, Spot};
use std::ops::ControlFlow;

/// A hash leaves its entry when its image outgrows them. A look for a field that is not there goes over all
/// fields and values: 64 of them take as long as the way to a tree.
pub(super) const INSIDE: Inside<2> =
    Inside([Step { bytes: 640, len: 64 }, Step { bytes: FEW_BYTES_MAX, len: 32 }]);

/// What a pair keeps for its field.
pub(super) fn kept<'i>(pair: &Pair<'i>) -> Kept<'i> {
    let deadline = pair.mark.map_or(Deadline::Never, |mark| Mark::read(mark).0);
    Kept { value: pair.value, deadline }
}

/// When the first field of an image falls due, as a note.
pub(crate) fn image_due(image: &[u8]) -> u64 {
    pairs::marks(image).map(|mark| due_of(Mark::read(mark).0)).min().unwrap_or(NO_DEADLINE)
}

/// How many fields of an image are not past their deadline.
pub(super) fn live_len(image: &[u8], now: Millis) -> u64 {
    let past = pairs::marks(image).filter(|mark| Mark::read(mark).0.is_past(now));
    pairs::len(image) - past.count() as u64
}

/// Removes the fields of an image that are due, and returns how many. Their names are added to `names`, if
/// these are wanted.
pub(crate) fn expire_image(image: &mut Vec<u8>, now: Millis, names: &mut Names) -> u64 {
    let mut removed = 0;
    while let Some(spot) = past_spot(image, now) {
        if let Some(names) = names {
            let mut name = Vec::new();
            pairs::read(image, spot).field.append_to(&mut name);
            names.push(name.into());
        }
        pairs::remove(image, spot);
        removed += 1;
    }
    removed
}

fn past_spot(image: &[u8], now: Millis) -> Option<Spot> {
    if image_due(image) > note_of(now) {
        return None;
    }
    let mut spots = pairs::spots(image);
    spots.find(|spot| kept(&pairs::read(image, *spot)).deadline.is_past(now))
}

/// The shape of an entry that holds the image of a hash of this name. Only where some field may have a
/// deadline is the image walked.
pub(super) fn shape(name: HashName, may_be_timed: bool, image: &[u8]) -> Shape {
    let is_timed = match name {
        HashName::Listpack => false,
        HashName::ListpackEx => true,
        HashName::Hashtable => may_be_timed && pairs::has_mark(image),
    };
    if is_timed { Shape::TimedHash } else { Shape::Hash }
}

/// The tree of the fields of an image: O(fields), of which there are at most some dozen.
pub(super) fn to_tree(image: &[u8], name: HashName, at: At<'_>) -> HashTree {
    let mut tree = HashTree::new(name);
    let mut field = Vec::new();
    for pair in pairs::iter(image) {
        field.clear();
        pair.field.append_to(&mut field);
        let kept = kept(&pair);
        let lifetime = match kept.deadline {
            Deadline::Never => Lifetime::Endless,
            Deadline::At(at) => Lifetime::Until(at),
        };
        // A new field frees nothing.
        tree.put(at, &field, kept.value, lifetime, &mut Vec::new());
    }
    tree
}

/// Writes the image of a tree of a few short fields; false where some text is too long for one.
pub(super) fn write(image: &mut Vec<u8>, tree: &HashTree) -> bool {
    image.clear();
    let written = tree.visit(&mut |field, kept| {
        if !pairs::fits(field, kept.value) {
            return ControlFlow::Break(());
        }
        pairs::push(image, field, kept.value, Mark::new(kept.deadline).bytes());
        ControlFlow::Continue(())
    });
    written.is_continue()
}
