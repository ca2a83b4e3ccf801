//! The first edits of a command on a list that lies apart from its neighbours: made where the image lies
//! (`pack::in_place`). A queue of a few jobs is pushed and popped so, one element a command. What does not
//! fit, and what a command does after that, is an edit of the draft.
use super::api::ListMut;
use super::image::STILL_BYTES_MAX;
use super::tree::INSIDE;
use crate::End;
use base::Item;
use pack::image;
use pack::in_place::{Addition, Cut, Replacement};
use std::ops::ControlFlow;

impl ListMut<'_> {
    /// Adds an element before element `index` or behind all; whether it could be added where the image lies.
    pub(super) fn insert_in_place(&mut self, index: u64, value: &[u8]) -> bool {
        if !self.edit.is_untouched() {
            return false;
        }
        let is_far = self.is_far_from_quicklist(1, value.len() as u64);
        let Some(image) = self.edit.image_apart().filter(|_| is_far) else { return false };
        let len = image::len(image) + 1;
        let addition = Addition::of(image, index, value);
        let Some(addition) = addition.filter(|it| INSIDE.holds(image.len() + it.bytes(), || len)) else {
            return false;
        };
        self.edit.site.edit_apart(|image| addition.add(image)).is_some()
    }

    /// Replaces an element; whether it could be replaced where the image lies.
    pub(super) fn set_in_place(&mut self, index: u64, value: &[u8]) -> bool {
        if !self.edit.is_untouched() {
            return false;
        }
        let is_far = self.is_far_from_quicklist(1, value.len() as u64);
        let Some(image) = self.edit.image_apart().filter(|_| is_far) else { return false };
        let fits = |it: &Replacement<'_>| {
            let (more, fewer) = it.bytes();
            let bytes = image.len() + more - fewer;
            bytes > STILL_BYTES_MAX && INSIDE.holds(bytes, || image::len(image))
        };
        let Some(replacement) = Replacement::of(image, index, value).filter(fits) else { return false };
        self.edit.site.edit_apart(|image| replacement.make(image)).is_some()
    }

    /// Lends the `count` outermost elements at an end of an image that was not opened.
    pub(super) fn visit_image(&self, end: End, count: u64, take: &mut dyn FnMut(Item<'_>)) {
        let Some(image) = self.image() else { return };
        let (first, towards) = match end {
            End::Head => (0, End::Tail),
            End::Tail => (image::len(image) - 1, End::Head),
        };
        let mut left = count;
        image::visit(image, first, towards, &mut |_, item| {
            take(item);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// `count` elements from `index` on, if they can be removed where the image lies.
    pub(super) fn cut_in_place(&mut self, index: u64, count: u64) -> Option<Cut> {
        let image = self.edit.image_apart()?;
        let cut = Cut::of(image, index, count)?;
        // A shorter one goes back among its neighbours.
        (image.len() - cut.bytes() > STILL_BYTES_MAX).then_some(cut)
    }

    /// Removes elements from `index` on; whether they could be removed where the image lies.
    pub(super) fn remove_in_place(&mut self, index: u64, count: u64) -> bool {
        let cut = self.cut_in_place(index, count);
        cut.and_then(|cut| self.edit.site.edit_apart(|image| cut.remove(image))).is_some()
    }
}
