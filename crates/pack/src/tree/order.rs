//! What a tree is ordered by: the mark that an inner node keeps for each child, and how marks add up.
//!
//! | order | mark of a child | mark of a node | use |
//! |---|---|---|---|
//! | [`ByHash`] | the least place it covers, `u32` | that of its first child | keyspace, hashes, sets |
//! | [`ByValue`] | the least integer it covers, `i64` | that of its first child | sets of integers |
//! | [`ByRank`] | the number of elements below it, `u64` | the sum | lists |
//! | [`ByScore`] | elements, the least score they may have | the sum, the first child's score | sorted sets |
//! | [`ById`] | the least id it covers, 128 bits | that of its first child | pending entries of streams |
//! | [`ByEntry`] | elements, the least id it covers | the sum, the first child's id | streams |

/// A range of places in hash order, both ends included. A place is 32 bits of the hash of a name
/// ([`base::hash::Hash::order`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRange {
    pub first: u32,
    pub last: u32,
}

impl OrderRange {
    pub const ALL: OrderRange = OrderRange { first: 0, last: u32::MAX };
}

pub(crate) trait Order: 'static {
    type Mark: Copy + Send + Sync + std::fmt::Debug + PartialEq;

    /// The mark of no child at all.
    const NONE: Self::Mark;

    /// The mark that a parent keeps for a node with these marks.
    fn fold(marks: &[Self::Mark]) -> Self::Mark;

    /// The mark of a parent, one of whose children went from `old` to `new` (`NONE`: it came, or it went).
    fn moved(parent: Self::Mark, old: Self::Mark, new: Self::Mark) -> Self::Mark;

    /// The mark of a node's first child when the node is appended to its left neighbour. `node` is the node's
    /// own mark.
    fn joined(node: Self::Mark, first: Self::Mark) -> Self::Mark;
}

/// Children cover ranges of a 32-bit place: each from its mark to the next one's. The first child's mark is
/// never looked at, since the node's own bound holds for it.
pub(crate) struct ByHash;

impl Order for ByHash {
    type Mark = u32;
    const NONE: u32 = 0;

    fn fold(marks: &[u32]) -> u32 {
        debug_assert!(marks[1..].is_sorted(), "children in the order of their hashes");
        marks[0]
    }

    fn moved(parent: u32, _old: u32, _new: u32) -> u32 {
        parent
    }

    fn joined(node: u32, _first: u32) -> u32 {
        node
    }
}

/// Children hold so many elements each.
pub(crate) struct ByRank;

impl Order for ByRank {
    type Mark = u64;
    const NONE: u64 = 0;

    fn fold(marks: &[u64]) -> u64 {
        marks.iter().sum()
    }

    fn moved(parent: u64, old: u64, new: u64) -> u64 {
        assert!(parent >= old, "a child holds more than its parent: {old} of {parent}");
        parent - old + new
    }

    fn joined(_node: u64, first: u64) -> u64 {
        first
    }
}

/// Children cover ranges of integers: each from its mark to the next one's, as by hash.
pub(crate) struct ByValue;

impl Order for ByValue {
    type Mark = i64;
    const NONE: i64 = 0;

    fn fold(marks: &[i64]) -> i64 {
        debug_assert!(marks[1..].is_sorted(), "children in the order of their values");
        marks[0]
    }

    fn moved(parent: i64, _old: i64, _new: i64) -> i64 {
        parent
    }

    fn joined(node: i64, _first: i64) -> i64 {
        node
    }
}

/// The name of a stream's entry: a time in milliseconds, and a number that tells entries of one millisecond
/// apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    pub ms: u64,
    pub seq: u64,
}

impl Id {
    pub const MIN: Id = Id { ms: 0, seq: 0 };
    pub const MAX: Id = Id { ms: u64::MAX, seq: u64::MAX };

    /// The id right behind this one; None behind the last.
    pub fn next(self) -> Option<Id> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => Some(Id { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The id right before this one; None before the first.
    pub fn prev(self) -> Option<Id> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Id { seq, ..self }),
            None => Some(Id { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }
}

/// Children cover ranges of ids: each from its mark to the next one's. As by hash, nobody looks at the first
/// child's mark.
pub(crate) struct ById;

impl Order for ById {
    type Mark = Id;
    const NONE: Id = Id::MIN;

    fn fold(marks: &[Id]) -> Id {
        debug_assert!(marks[1..].is_sorted(), "children in the order of their ids");
        marks[0]
    }

    fn moved(parent: Id, _old: Id, _new: Id) -> Id {
        parent
    }

    fn joined(node: Id, _first: Id) -> Id {
        node
    }
}

/// The mark of a child that has so many elements below it, none of which comes before `least`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CountMark<K> {
    pub(crate) count: u64,
    pub(crate) least: K,
}

impl<K: Copy + PartialOrd> CountMark<K> {
    fn fold(marks: &[CountMark<K>]) -> CountMark<K> {
        debug_assert!(marks[1..].is_sorted_by_key(|mark| mark.least), "children in their order");
        CountMark { count: marks.iter().map(|mark| mark.count).sum(), least: marks[0].least }
    }

    fn moved(self, old: CountMark<K>, new: CountMark<K>) -> CountMark<K> {
        let (have, gone) = (self.count, old.count);
        assert!(have >= gone, "a child holds more than its parent: {gone} of {have}");
        CountMark { count: have - gone + new.count, ..self }
    }

    fn joined(self, first: CountMark<K>) -> CountMark<K> {
        CountMark { count: first.count, ..self }
    }
}

/// The mark of a child that covers a range of ids.
pub(crate) type EntryMark = CountMark<Id>;

/// Children cover ranges of ids, as by id, and hold so many elements each: so it takes one descent to tell
/// how many come before an id.
pub(crate) struct ByEntry;

impl Order for ByEntry {
    type Mark = EntryMark;
    const NONE: EntryMark = CountMark { count: 0, least: Id::MIN };

    fn fold(marks: &[EntryMark]) -> EntryMark {
        CountMark::fold(marks)
    }

    fn moved(parent: EntryMark, old: EntryMark, new: EntryMark) -> EntryMark {
        parent.moved(old, new)
    }

    fn joined(node: EntryMark, first: EntryMark) -> EntryMark {
        node.joined(first)
    }
}

/// The mark of a child of a tree by score and member. Nothing below the child is of a lesser score, nothing
/// before it of a greater one; among equals the child's first leaf has to be asked. The first child's score
/// is never looked at, since the node's own holds for it.
pub(crate) type ScoreMark = CountMark<f64>;

/// Children hold so many elements each, in the order of their scores.
pub(crate) struct ByScore;

impl Order for ByScore {
    type Mark = ScoreMark;
    const NONE: ScoreMark = CountMark { count: 0, least: 0.0 };

    fn fold(marks: &[ScoreMark]) -> ScoreMark {
        CountMark::fold(marks)
    }

    fn moved(parent: ScoreMark, old: ScoreMark, new: ScoreMark) -> ScoreMark {
        parent.moved(old, new)
    }

    fn joined(node: ScoreMark, first: ScoreMark) -> ScoreMark {
        node.joined(first)
    }
}
