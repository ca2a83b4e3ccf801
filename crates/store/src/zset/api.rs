//! Sorted sets: an image inside the keyspace entry while they are small (`pack::sorted::image`), a packed
//! tree with a member index behind the entry's pointer from then on.
//!
//! ```text
//!           image beyond 192 bytes or 128 members
//!   image  ---------------------------------------->  tree
//!          <----------------------------------------
//!           one leaf of at most 96 bytes, after a removal
//! ```
//!
//! OBJECT ENCODING's name changes as in Redis: from "listpack" to "skiplist" when a member is added beyond
//! `zset-max-listpack-entries`, or one longer than `zset-max-listpack-value`; never back. The name says
//! nothing about where the set is.
//!
//! A range of scores or members becomes a range of ranks first (two descents), and everything else is done
//! with ranks. An image is edited in one of the shard's buffers and written back when [`ZSetMut`] is dropped.
use super::image::{INSIDE, Rules};
use super::name::Encoding;
use super::tree::ZSetTree;
use crate::edit::{Edit, Start};
use crate::entry::{Meta, Shape};
use crate::inside::FEW_BYTES_MAX;
use crate::kind::WrongType;
use crate::site::Site;
use crate::value::Parts;
use crate::value::Value;
use crate::{End, Key, View};
use base::hash::Seed;
use pack::sorted::{Bound, Entry, MemberEdge, Sorted, image};
use std::ops::ControlFlow;

/// A range of members makes sense only where all scores are equal. In sets of at most so many members with
/// other scores it is found as Redis finds it, by a walk.
const MIXED_LEN_MAX: u64 = 1024;

/// One end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// `-`
    Least,
    /// `+`
    Greatest,
    Including(&'a [u8]),
    Excluding(&'a [u8]),
}

impl<'a> LexBound<'a> {
    /// The lower end of a range that begins at this bound.
    fn start(self) -> MemberEdge<'a> {
        match self {
            LexBound::Least => MemberEdge::Least,
            LexBound::Greatest => MemberEdge::Greatest,
            LexBound::Including(member) => MemberEdge::Before(member),
            LexBound::Excluding(member) => MemberEdge::After(member),
        }
    }

    /// The upper end of a range that ends at this bound.
    fn end(self) -> MemberEdge<'a> {
        match self {
            LexBound::Least => MemberEdge::Least,
            LexBound::Greatest => MemberEdge::Greatest,
            LexBound::Including(member) => MemberEdge::After(member),
            LexBound::Excluding(member) => MemberEdge::Before(member),
        }
    }
}

/// A range of ranks: `count` entries from a rank on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankSpan {
    pub first: u64,
    pub count: u64,
}

#[derive(Clone, Copy)]
enum Source<'v> {
    Image(&'v [u8]),
    Tree(&'v Sorted),
}

/// A sorted set, to read. Ranks count from the least score.
#[derive(Clone, Copy)]
pub struct ZSet<'v> {
    source: Source<'v>,
    seed: &'v Seed,
    encoding: Encoding,
}

impl<'v> ZSet<'v> {
    #[inline(always)]
    pub(crate) fn of((meta, inline, outside): Parts<'v>, seed: &'v Seed) -> Result<ZSet<'v>, WrongType> {
        let image = || Source::Image(meta.value(inline));
        let (source, encoding) = match (meta.shape(), outside) {
            (Shape::ZSetListpack, _) => (image(), Encoding::Listpack),
            (Shape::ZSetSkiplist, _) => (image(), Encoding::Skiplist),
            (Shape::ZSetTree, Some(Value::ZSet(tree))) => (Source::Tree(&tree.set), tree.encoding),
            _ => return Err(WrongType),
        };
        Ok(ZSet { source, seed, encoding })
    }

    /// Whether Redis would keep it as a skiplist: scores as doubles, which a scan shows with all their 17
    /// digits, and ranges with an offset from their end.
    pub fn is_skiplist(&self) -> bool {
        self.encoding == Encoding::Skiplist
    }

    /// How many members there are: O(1).
    #[allow(clippy::len_without_is_empty, reason = "no sorted set in the keyspace is empty")]
    #[inline]
    pub fn len(&self) -> u64 {
        match self.source {
            Source::Image(image) => image::len(image),
            Source::Tree(set) => set.len(),
        }
    }

    /// The score of a member; None where it is none. Inside the entry this walks the image, outside it is one
    /// descent of the member index.
    #[inline]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match self.source {
            Source::Image(image) => image::find(image, member).map(|(_, score)| score),
            Source::Tree(set) => set.score(self.seed, member),
        }
    }

    /// The scores of several members. Cheaper than looking them up one after the other.
    #[inline]
    pub fn scores<const N: usize>(&self, members: [&[u8]; N]) -> [Option<f64>; N] {
        match self.source {
            Source::Image(_) => members.map(|member| self.score(member)),
            Source::Tree(set) => set.scores(self.seed, members),
        }
    }

    /// Visits the scores of these members, in the order in which the members are given.
    pub fn each_score<'m>(
        &self,
        mut members: impl Iterator<Item = &'m [u8]>,
        mut visit: impl FnMut(Option<f64>),
    ) {
        loop {
            let mut some = [&[][..]; 4];
            let count = some.iter_mut().zip(&mut members).map(|(slot, member)| *slot = member).count();
            if count == some.len() {
                self.scores(some).into_iter().for_each(&mut visit);
                continue;
            }
            return some[..count].iter().for_each(|member| visit(self.score(member)));
        }
    }

    /// How many entries come before the member, and its score; None where it is no member.
    pub fn rank(&self, member: &[u8]) -> Option<(u64, f64)> {
        match self.source {
            Source::Image(image) => image::find(image, member),
            Source::Tree(set) => set.rank(self.seed, member),
        }
    }

    /// How many entries come before this bound.
    pub fn rank_at(&self, bound: &Bound<'_>) -> u64 {
        match self.source {
            Source::Image(image) => image::rank_at(image, bound),
            Source::Tree(set) => set.rank_at(bound),
        }
    }

    /// Visits from entry `rank` upwards (`End::Tail`) or downwards until told to stop.
    pub fn visit(&self, rank: u64, towards: End, visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>) {
        if rank >= self.len() {
            return;
        }
        match (self.source, towards) {
            (Source::Tree(set), _) => set.visit(rank, towards, visit),
            (Source::Image(image), End::Tail) => drop(image::up(image, rank).try_for_each(visit)),
            (Source::Image(image), End::Head) => drop(image::down(image, rank).try_for_each(visit)),
        }
    }

    /// Visits `count` entries of a span, after leaving out `skipped`: from its first upwards, or from its
    /// last downwards, until told to stop.
    pub fn visit_span(
        &self,
        span: RankSpan,
        towards: End,
        skipped: u64,
        count: u64,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) {
        let mut left = count.min(span.count.saturating_sub(skipped));
        if left == 0 {
            return;
        }
        let start = match towards {
            End::Tail => span.first + skipped,
            End::Head => span.first + span.count - 1 - skipped,
        };
        self.visit(start, towards, &mut |entry| {
            left -= 1;
            visit(entry)?;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// Lends entry `rank`; None beyond the last.
    pub fn get<R>(&self, rank: u64, look: impl FnOnce(Entry<'_>) -> R) -> Option<R> {
        match self.source {
            Source::Tree(set) => set.get(rank, look),
            Source::Image(image) if rank < image::len(image) => image::up(image, rank).next().map(look),
            Source::Image(_) => None,
        }
    }

    /// The entries between two bounds, as a span of ranks: two descents; one where all begin behind the
    /// second bound, or the first is before all.
    pub fn span(&self, start: &Bound<'_>, end: &Bound<'_>) -> RankSpan {
        let end = self.rank_at(end);
        let is_open = start.score == f64::NEG_INFINITY && matches!(start.edge, MemberEdge::Least);
        let first = if end == 0 || is_open { 0 } else { self.rank_at(start) };
        RankSpan { first, count: end.saturating_sub(first) }
    }

    /// The entries whose members lie between two bounds. Where all scores are equal that is a span. Where
    /// they are not, it is what a walk from the end `from` finds first, up to the first entry that is out of
    /// range, as in a small set of Redis; beyond [`MIXED_LEN_MAX`] members all are taken to have the least
    /// score.
    pub fn lex_span(&self, min: LexBound<'_>, max: LexBound<'_>, from: End) -> RankSpan {
        let none = RankSpan { first: 0, count: 0 };
        let len = self.len();
        let (Some(least), Some(most)) =
            (self.get(0, |entry| entry.score), self.get(len.saturating_sub(1), |entry| entry.score))
        else {
            return none;
        };
        if least == most || len > MIXED_LEN_MAX {
            let bound = |edge| Bound { score: least, edge };
            return self.span(&bound(min.start()), &bound(max.end()));
        }
        let is_above = |entry: &Entry<'_>| is_behind(entry, min.start());
        let is_below = |entry: &Entry<'_>| !is_behind(entry, max.end());
        let last_is_above = self.get(len - 1, |entry| is_above(&entry)) == Some(true);
        let first_is_below = self.get(0, |entry| is_below(&entry)) == Some(true);
        if !last_is_above || !first_is_below {
            return none;
        }
        match from {
            End::Head => {
                let first = self.count_while(0, End::Tail, &mut |entry| !is_above(entry));
                RankSpan { first, count: self.count_while(first, End::Tail, &mut |entry| is_below(entry)) }
            }
            End::Tail => {
                let skipped = self.count_while(len - 1, End::Head, &mut |entry| !is_below(entry));
                if skipped == len {
                    return none;
                }
                let last = len - 1 - skipped;
                let count = self.count_while(last, End::Head, &mut |entry| is_above(entry));
                RankSpan { first: last + 1 - count, count }
            }
        }
    }

    /// How many entries in a row, from `rank` on, satisfy `is_so`.
    fn count_while(&self, rank: u64, towards: End, is_so: &mut dyn FnMut(&Entry<'_>) -> bool) -> u64 {
        let mut count = 0;
        self.visit(rank, towards, &mut |entry| {
            if !is_so(&entry) {
                return ControlFlow::Break(());
            }
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// One step of a walk over all members: visits about `count` from the place `from` in hash order on, and
    /// returns the place to go on from, None at the end. A member that is there all the time is visited by a
    /// walk from 0 to None at least once, whatever its score does meanwhile.
    pub fn scan(&self, from: u32, count: u64, visit: &mut dyn FnMut(Entry<'_>)) -> Option<u32> {
        match self.source {
            Source::Tree(set) => set.scan(self.seed, from, count, visit),
            Source::Image(image) => {
                image::up(image, 0).for_each(visit);
                None
            }
        }
    }
}

/// Whether the entry's member comes behind this edge.
fn is_behind(entry: &Entry<'_>, edge: MemberEdge<'_>) -> bool {
    match edge {
        MemberEdge::Least => true,
        MemberEdge::Greatest => false,
        MemberEdge::Before(member) => entry.member.compare(member).is_ge(),
        MemberEdge::After(member) => entry.member.compare(member).is_gt(),
    }
}

/// A sorted set, to edit. Dropping it puts it back; an empty one takes its key with it.
pub struct ZSetMut<'v> {
    pub(super) edit: Edit<'v, ZSetTree>,
}

impl<'v> ZSetMut<'v> {
    #[inline]
    fn open(mut site: Site<'v>, rules: Rules<'v>) -> Result<ZSetMut<'v>, WrongType> {
        let start = Start::of(site.shape())?.with_draft(&mut site);
        Ok(ZSetMut { edit: Edit::new(site, rules, start) })
    }

    /// The set as it was edited so far, to read.
    #[inline]
    pub fn read(&self) -> ZSet<'_> {
        let (source, encoding) = match self.edit.tree() {
            Some(tree) => (Source::Tree(&tree.set), tree.encoding),
            None => (Source::Image(&self.edit.buffers().text), self.edit.state),
        };
        ZSet { source, seed: self.edit.rules.seed, encoding }
    }

    /// How many members there are: O(1).
    #[allow(clippy::len_without_is_empty, reason = "no sorted set in the keyspace is empty")]
    pub fn len(&self) -> u64 {
        self.read().len()
    }

    #[inline]
    fn draft(&mut self) -> &mut Vec<u8> {
        &mut self.edit.buffers_mut().text
    }

    /// To be called with the number of members that the command is about to add, and the length of the
    /// longest. Redis names a new set by both, and an existing one by the number, before it adds the first
    /// member.
    pub fn announce(&mut self, members: u64, longest: usize) {
        let is_long = longest as u64 > self.edit.rules.limits.listpack_value_bytes;
        if members > self.edit.rules.limits.listpack_entries || is_long && self.len() == 0 {
            self.rename();
        }
    }

    fn rename(&mut self) {
        match self.edit.tree_mut() {
            Some(tree) => tree.encoding = Encoding::Skiplist,
            None => self.edit.state = Encoding::Skiplist,
        }
        // A draft is written back even if only its name has changed.
        self.edit.is_changed = true;
    }

    /// Gives a member the score that `decide` returns when called with the old score, or with None for a new
    /// member. If `decide` returns None nothing changes. The score must not be NaN. Returns the old score.
    #[inline]
    pub fn update(&mut self, member: &[u8], decide: impl FnOnce(Option<f64>) -> Option<f64>) -> Option<f64> {
        let Rules { seed, limits } = self.edit.rules;
        if let Some(tree) = self.edit.tree_mut() {
            return tree.update(seed, limits, member, decide);
        }
        self.update_draft(member, decide)
    }

    fn update_draft(
        &mut self,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Option<f64> {
        let found = image::find(self.draft(), member);
        let old = found.map(|(_, score)| score);
        let Some(score) = decide(old) else { return old };
        self.edit.is_changed = true;
        match found {
            Some((rank, _)) => {
                let score = self.edit.state.kept(score);
                image::set_score(self.draft(), rank, member, score);
            }
            None => self.insert_in_draft(member, score),
        }
        let draft = self.draft();
        if !INSIDE.holds(draft.len(), || image::len(draft)) {
            self.edit.grow();
        }
        old
    }

    fn insert_in_draft(&mut self, member: &[u8], score: f64) {
        let (limits, len) = (*self.edit.rules.limits, image::len(self.draft()));
        self.edit.state = self.edit.state.with(member, len, &limits);
        let score = self.edit.state.kept(score);
        if len < INSIDE.len_max() && member.len() <= FEW_BYTES_MAX {
            return image::insert(self.draft(), member, score);
        }
        self.edit.grow();
        let Rules { seed, limits } = self.edit.rules;
        if let Some(tree) = self.edit.tree_mut() {
            tree.update(seed, limits, member, |_| Some(score));
        }
    }

    /// Removes a member, and returns its score; None where it is no member.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let seed = self.edit.rules.seed;
        let score = match self.edit.tree_mut() {
            Some(tree) => tree.set.remove(seed, member)?,
            None => {
                let (rank, score) = image::find(self.draft(), member)?;
                image::remove(self.draft(), rank, 1);
                score
            }
        };
        (self.edit.is_changed, self.edit.has_lost) = (true, true);
        Some(score)
    }

    /// Removes the entries of a span, which lies within the set.
    pub fn remove_span(&mut self, span: RankSpan) {
        if span.count == 0 {
            return;
        }
        let seed = self.edit.rules.seed;
        (self.edit.is_changed, self.edit.has_lost) = (true, true);
        match self.edit.tree_mut() {
            // Removing all entries here would free the tree at once, whatever its size.
            Some(tree) if span.count == tree.set.len() => self.edit.clear(),
            Some(tree) => tree.set.remove_range(seed, span.first, span.count),
            None => image::remove(self.draft(), span.first, span.count),
        }
    }
}

impl View<'_> {
    /// The sorted set under `key`, to read; None where there is no such key.
    pub fn zset(&mut self, key: &Key<'_>) -> Result<Option<ZSet<'_>>, WrongType> {
        let seed = &self.seeds().scores;
        let Some(found) = self.look_used(key) else { return Ok(None) };
        ZSet::of((Meta(found.meta), found.inline, found.outside), seed).map(Some)
    }

    /// The sorted set under `key`, to edit; None where there is no such key.
    #[inline]
    pub fn zset_mut<'v>(&'v mut self, key: &Key<'v>) -> Result<Option<ZSetMut<'v>>, WrongType> {
        let rules = Rules { seed: &self.seeds().scores, limits: &self.settings().zset };
        let Some(site) = self.site(key) else { return Ok(None) };
        ZSetMut::open(site, rules).map(Some)
    }

    /// The sorted set under `key`, to edit; a new one where there is no such key. The key is created only if
    /// a member is added.
    #[inline]
    pub fn zset_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<ZSetMut<'v>, WrongType> {
        let rules = Rules { seed: &self.seeds().scores, limits: &self.settings().zset };
        ZSetMut::open(self.site_or_new(key), rules)
    }
}
