//! The first edits of a command at the ends of a list that lies apart from its neighbours: made where the
//! image lies (`pack::at_ends`). A queue of a few jobs is pushed and popped so, one element a command. What
//! does not fit, and what a command does after that, is an edit of the draft.
use super::api::ListMut;
use super::image::STILL_BYTES_MAX;
use super::tree::INSIDE;
use crate::End;
use pack::at_ends::{Addition, Cut};
use pack::image;

impl ListMut<'_> {
    /// Adds an element; whether it could be added where the image lies.
    pub(super) fn push_in_place(&mut self, end: End, value: &[u8]) -> bool {
        let is_far = self.is_far_from_quicklist(1, value.len() as u64);
        let Some(image) = self.edit.image_apart().filter(|_| is_far) else { return false };
        let len = image::len(image) + 1;
        let addition = Addition::of(image, end, value);
        let Some(addition) = addition.filter(|it| INSIDE.holds(image.len() + it.bytes(), || len)) else {
            return false;
        };
        self.edit.site.edit_apart(|image| addition.add(image));
        true
    }

    /// The last `count` elements at an end, if they can be removed where the image lies.
    pub(super) fn cut_in_place(&mut self, end: End, count: u64) -> Option<Cut> {
        let image = self.edit.image_apart()?;
        let cut = Cut::of(image, end, count)?;
        // A shorter one goes back among its neighbours.
        (image.len() - cut.bytes() > STILL_BYTES_MAX).then_some(cut)
    }

    /// Removes elements from `index` on; whether they could be removed where the image lies.
    pub(super) fn remove_in_place(&mut self, index: u64, count: u64) -> bool {
        let Some(image) = self.image() else { return false };
        let len = image::len(image);
        let end = match index {
            0 => End::Head,
            _ if index + count == len => End::Tail,
            _ => return false,
        };
        let cut = self.cut_in_place(end, count);
        cut.map(|cut| self.edit.site.edit_apart(|image| cut.remove(image))).is_some()
    }
}
