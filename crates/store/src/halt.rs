//! Where a walk over a value that does not change, such as a [`crate::Snapshot`], has stopped.
use pack::map::Stop;
use std::ops::ControlFlow;

/// Between two elements of a set or two fields of a hash: integers come first, in ascending order, then texts
/// in the order in which they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt(pub(crate) Stage);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the first integer that is not less than this one.
    Int(i64),
    Text(Stop),
    /// In an image, behind so many elements.
    Image(u64),
}

impl Halt {
    pub const START: Halt = Halt(Stage::Int(i64::MIN));

    /// Behind this integer.
    pub(crate) fn behind(n: i64) -> Halt {
        Halt(n.checked_add(1).map_or(Stage::Text(Stop::default()), Stage::Int))
    }

    /// Visits the elements of an image from this halt on. Returns the halt behind the last one visited; None
    /// at the end.
    pub(crate) fn go_on<T>(
        self,
        elements: impl Iterator<Item = T>,
        mut visit: impl FnMut(T) -> ControlFlow<()>,
    ) -> Option<Halt> {
        let before = if let Stage::Image(before) = self.0 { before } else { 0 };
        let mut elements = elements.zip(1..).skip(before as usize);
        let last = elements.find_map(|(element, count)| visit(element).is_break().then_some(count));
        last.map(|before| Halt(Stage::Image(before)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_the_greatest_integer_come_the_texts() {
        assert_eq!(Halt::behind(i64::MAX - 1), Halt(Stage::Int(i64::MAX)));
        assert_eq!(Halt::behind(i64::MAX), Halt(Stage::Text(Stop::default())));
    }
}
