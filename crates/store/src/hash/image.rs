//! A small hash inside its entry (`pack::pairs`): what its fields keep, and which of them are due.
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::{NO_DEADLINE, due_of};
use crate::hash::field::{Kept, Mark};
use base::Millis;
use pack::pairs::{self, Pair, Spot};

/// What a pair keeps for its field.
pub(super) fn kept<'i>(pair: &Pair<'i>) -> Kept<'i> {
    let deadline = pair.mark.map_or(Deadline::Never, |mark| Mark::read(mark).0);
    Kept { value: pair.value, deadline }
}

/// When the first field of an image falls due, as a note.
pub(crate) fn image_due(image: &[u8]) -> u64 {
    let due = |pair: Pair<'_>| due_of(kept(&pair).deadline);
    pairs::iter(image).map(due).min().unwrap_or(NO_DEADLINE)
}

/// Takes what is due out of an image; how many fields went.
pub(crate) fn expire_image(image: &mut Vec<u8>, now: Millis) -> u64 {
    let mut removed = 0;
    while let Some(spot) = past_spot(image, now) {
        pairs::remove(image, spot);
        removed += 1;
    }
    removed
}

fn past_spot(image: &[u8], now: Millis) -> Option<Spot> {
    let mut spots = pairs::spots(image);
    spots.find(|spot| kept(&pairs::read(image, *spot)).deadline.is_past(now))
}
