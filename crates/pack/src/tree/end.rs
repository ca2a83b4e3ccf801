//! The two ends of an order: the side that a list is pushed at, popped from or gone through towards, and the
//! side of the least or the greatest score of a sorted set.

/// An end of a list or a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where element 0 is; the least score.
    Head,
    /// Where the last element is; the greatest score.
    Tail,
}
