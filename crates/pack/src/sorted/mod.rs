//! The sorted set: members with a score each, ordered by both, in a packed tree of scored leaves
//! (`scored.rs`) with counts; beside it, from the second leaf on until there is again one that is not nearly
//! full, the member index (`index.rs`), which says the score of a member.
//!
//! ```text
//! member --hash--> index: place, score --(score, member)--> tree: leaf, entry; counts passed are its rank
//! ```
//!
//! A range lies between two [`Bound`]s. Everything that asks for ranges turns bounds into ranks
//! ([`Sorted::rank_at`]), and ranks into a walk ([`Sorted::visit`]) or a removal, so counting a range is two
//! descents whatever lies between.
//!
//! A leaf that is full is cut in two; but where entries come in rising order (times, ids) full leaves stay
//! behind, and the new entry begins a leaf of its own; likewise at the lower end where they fall.
//!
//! Whoever goes through the members by hash (ZSCAN) finds each by its score and the place of its hash. Where
//! many members share one score that would be a walk over all of them; the members of such runs are kept by
//! hash too ([`long_runs`]), the one case in which a member is stored twice. The score of such a member is
//! found without a search among the leaves of its run.
//!
//! Cloning costs an increment for each of the trees. On the path of every request: no allocation but a leaf's
//! own, no formatting, no clock.
mod build;
pub(crate) mod index;
mod long_runs;
mod member;
pub(crate) mod placed;
mod scored;
mod several;

use crate::memory::arena::Moves;
use crate::memory::block::{self, Block};
use crate::tree::order::{ByScore, ScoreMark};
use crate::tree::stats::Stats;
use crate::tree::{Path, Tree};
use base::hash::{Hash, Seed};
use index::{COARSE_MAX, Index, Spot};
use long_runs::{LONG_MAX, LongRuns};
use member::Edge;
pub use member::{Bound, Edge as MemberEdge, Entry, Member};
use placed::Grain;
use scored::{BYTES_MAX, COUNT_MAX, Scored};
use std::ops::ControlFlow;

pub use crate::tree::end::End;

#[derive(Clone)]
pub struct Sorted {
    tree: Tree<ByScore, Block>,
    /// The member index; None where there was only one leaf so far.
    index: Option<Index>,
    /// Members of long runs of one score, by hash ([`long_runs`]).
    long_runs: Option<Box<LongRuns>>,
}

/// Where an entry is, until the next edit.
#[derive(Clone, Copy, Debug)]
struct Found {
    path: Path,
    at: usize,
    score: f64,
    /// Where the entry is in the index; None without an index.
    spot: Option<Spot>,
}

/// What a lookup finds out about a member that is there.
#[derive(Clone, Copy, Debug)]
enum Known {
    Found(Found),
    /// Its score alone: it is in a long run of that score, so its leaf was not searched.
    InLongRun(f64),
}

impl Known {
    #[inline]
    fn score(&self) -> f64 {
        match self {
            Known::Found(found) => found.score,
            Known::InLongRun(score) => *score,
        }
    }
}

/// How far the run of a score goes from one of its entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Within,
    /// It may go on in other leaves.
    Beyond,
    /// The run is long, and its members are kept by hash.
    LongRun,
}

impl Default for Sorted {
    fn default() -> Sorted {
        Sorted::new()
    }
}

impl Sorted {
    /// An empty set allocates nothing.
    pub fn new() -> Sorted {
        Sorted { tree: Tree::new(), index: None, long_runs: None }
    }

    /// The set that an image holds (see [`image`]).
    pub fn of_image(image: &[u8]) -> Sorted {
        match Scored::open(image).count() {
            0 => Sorted::new(),
            _ => Sorted::of_leaf(Block::from_slice(image)),
        }
    }

    /// The set of one leaf, which is not empty.
    fn of_leaf(block: Block) -> Sorted {
        let (mut set, leaf) = (Sorted::new(), Scored::open(&block));
        let mark = ScoreMark { count: leaf.count() as u64, least: leaf.score(0) };
        set.tree.plant(mark, block);
        set
    }

    /// The same without room, for a set that is loaded; None where the image is too large for a leaf.
    pub fn of_whole_image(image: &[u8]) -> Option<Sorted> {
        let count = Scored::open(image).count();
        let fits = (1..=COUNT_MAX).contains(&count) && image.len() <= BYTES_MAX;
        fits.then(|| Sorted::of_leaf(Block::fitting(image)))
    }

    /// The only leaf of a set that has no other, which is an image.
    pub fn as_image(&self) -> Option<&[u8]> {
        let path = self.tree.first().filter(|_| self.tree.height() == 1)?;
        Some(self.tree.leaf(&path))
    }

    /// How many members there are. O(1).
    #[inline]
    pub fn len(&self) -> u64 {
        self.tree.total().count
    }

    /// Whether there are none. O(1).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The score of a member; None where it is not there. One way down the index, and one down the tree.
    pub fn score(&self, seed: &Seed, member: &[u8]) -> Option<f64> {
        self.look_up(seed.hash(member), member).map(|known| known.score())
    }

    /// How many entries come before the member, and its score.
    pub fn rank(&self, seed: &Seed, member: &[u8]) -> Option<(u64, f64)> {
        let found = self.find(seed, member)?;
        Some((self.tree.rank(&found.path) + found.at as u64, found.score))
    }

    /// How many entries come before this bound.
    pub fn rank_at(&self, bound: &Bound<'_>) -> u64 {
        let Some((path, leaf)) = self.seek(bound) else { return 0 };
        self.tree.rank(&path) + Scored::open(leaf).position(bound.score, bound.edge) as u64
    }

    /// Entry `rank`, if there are so many.
    pub fn get<R>(&self, rank: u64, look: impl FnOnce(Entry<'_>) -> R) -> Option<R> {
        if rank >= self.len() {
            return None;
        }
        let (leaf, at) = self.tree.leaf_at_rank(rank)?;
        Some(look(Scored::open(leaf).entry(at as usize)))
    }

    /// Visits from entry `rank` upwards (`End::Tail`) or downwards until told to stop.
    pub fn visit(&self, rank: u64, towards: End, visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>) {
        if rank >= self.len() {
            return;
        }
        if let Some((path, at)) = self.tree.seek_rank(rank) {
            self.visit_at(path, at as usize, towards, visit);
        }
    }

    /// Visits from the first entry behind a bound upwards until told to stop.
    fn visit_behind(&self, bound: &Bound<'_>, visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>) {
        if let Some((path, leaf)) = self.seek(bound) {
            self.visit_at(path, Scored::open(leaf).position(bound.score, bound.edge), End::Tail, visit);
        }
    }

    fn visit_at(
        &self,
        mut path: Path,
        at: usize,
        towards: End,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) {
        let mut from = Some(at);
        loop {
            let leaf = self.leaf(&path);
            let done = match towards {
                End::Tail => leaf.entries(from.unwrap_or(0)).try_for_each(&mut *visit),
                End::Head => {
                    leaf.entries_down(from.unwrap_or_else(|| leaf.count() - 1)).try_for_each(&mut *visit)
                }
            };
            from = None;
            let has_more = match towards {
                End::Tail => self.tree.next(&mut path),
                End::Head => self.tree.prev(&mut path),
            };
            if done.is_break() || !has_more {
                return;
            }
        }
    }

    /// Gives a member the score that `decide` makes of its old one (None: it is not there); None leaves all
    /// as it is. The score is no NaN. Returns the old score.
    pub fn update(
        &mut self,
        seed: &Seed,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) -> Option<f64> {
        let hash = seed.hash(member);
        let known = self.look_up(hash, member);
        let old = known.map(|known| known.score());
        let Some(new) = decide(old) else { return old };
        debug_assert!(!new.is_nan(), "no member has the score NaN");
        match known {
            None => self.insert(seed, member, hash.order(), new),
            Some(known) if known.score().to_bits() == new.to_bits() => {}
            Some(Known::Found(found)) => self.rescore(seed, found, member, new),
            Some(Known::InLongRun(_)) => {
                let found = self.find(seed, member).expect("what is in a long run is a member");
                self.rescore(seed, found, member, new);
            }
        }
        old
    }

    /// Removes a member; the score that it had.
    pub fn remove(&mut self, seed: &Seed, member: &[u8]) -> Option<f64> {
        let found = self.find(seed, member)?;
        if let (Some(index), Some(spot)) = (&mut self.index, &found.spot) {
            index.remove_at(spot);
        }
        self.take(&found);
        self.leave_run(seed, member, found.score);
        self.settle_index();
        Some(found.score)
    }

    /// Removes `count` entries from `rank` on (within the length), whole leaves at a time.
    pub fn remove_range(&mut self, seed: &Seed, rank: u64, count: u64) {
        assert!(rank + count <= self.len(), "remove of {count} at {rank} of {}", self.len());
        if count == self.len() {
            *self = Sorted::new();
            return;
        }
        // If few entries stay, making a new index of these is less work.
        let remakes_index = self.index.is_some() && count > self.len() / 2;
        if remakes_index {
            self.index = None;
        }
        let ends = [rank, rank + count.saturating_sub(1)].map(|rank| self.get(rank, |entry| entry.score));
        let mut left = count;
        while left > 0 {
            left -= self.remove_in_leaf(seed, rank, left);
        }
        if count > 0 {
            ends.into_iter().flatten().for_each(|score| self.check_run(seed, score));
            self.join_at(rank);
            self.join_at(rank.saturating_sub(1));
        }
        if remakes_index {
            self.make_index(seed);
        }
        self.settle_index();
    }

    /// Removes up to `count` entries of one leaf from `rank` on, and returns how many.
    fn remove_in_leaf(&mut self, seed: &Seed, rank: u64, count: u64) -> u64 {
        let (path, at) = self.tree.seek_rank(rank).expect("within the length");
        let (at, leaf) = (at as usize, Scored::open(self.tree.leaf(&path)));
        let here = (leaf.count() - at).min(usize::try_from(count).unwrap_or(usize::MAX));
        if self.index.is_some() || self.long_runs.is_some() {
            let mut text = Vec::new();
            for entry in leaf.entries(at).take(here) {
                let place = place_of(seed, entry.member, &mut text);
                if let Some(index) = &mut self.index {
                    index.remove(placed::Entry { place, score: entry.score });
                }
                if let Some(long_runs) = &mut self.long_runs {
                    long_runs.remove(seed, &text);
                }
            }
        }
        if here == leaf.count() {
            self.tree.remove(&path);
        } else {
            scored::remove(self.tree.leaf_with(&path, -(here as i64)), at..at + here);
        }
        here as u64
    }

    /// Goes through the members by hash: visits some `count` of those at or after the place `from`, and
    /// returns the place to go on from, None at the end. A member that stays is visited by a walk from 0 to
    /// None at least once, whatever its score does between the calls.
    pub fn scan(&self, seed: &Seed, from: u32, count: u64, visit: &mut dyn FnMut(Entry<'_>)) -> Option<u32> {
        let Some(index) = &self.index else {
            self.visit(0, End::Tail, &mut |entry| {
                visit(entry);
                ControlFlow::Continue(())
            });
            return None;
        };
        let (mut entries, next) = index.scan(from, usize::try_from(count).unwrap_or(usize::MAX))?;
        entries.sort_by(|a, b| a.score.total_cmp(&b.score));
        let mut has_long = false;
        for run in entries.chunk_by_mut(|a, b| a.score == b.score) {
            if self.long_runs.is_some() && self.run_len(run[0].score) > LONG_MAX {
                has_long = true;
                continue;
            }
            run.sort_unstable_by_key(|entry| entry.place);
            self.resolve(seed, run, index.grain(), visit);
        }
        if has_long {
            self.scan_long_runs(seed, from, next, visit);
        }
        next
    }

    /// Visits the members of long runs at the places from `from` to `next`.
    fn scan_long_runs(&self, seed: &Seed, from: u32, next: Option<u32>, visit: &mut dyn FnMut(Entry<'_>)) {
        let shift = self.index.as_ref().map_or(0, |index| index.grain().shift());
        let (from, last) = (from >> shift << shift, next.map_or(u32::MAX, |next| next - 1));
        let Some(long_runs) = &self.long_runs else { return };
        long_runs.for_each_in(seed, from, last, &mut |member| {
            let score = self.score(seed, member).expect("what is in a long run is a member");
            if self.run_len(score) > LONG_MAX {
                visit(Entry { score, member: Member::of(member) });
            }
        });
    }

    /// Visits the members of one score that stand at the places of `wanted`, which rise.
    fn resolve(&self, seed: &Seed, wanted: &[placed::Entry], grain: Grain, visit: &mut dyn FnMut(Entry<'_>)) {
        let (score, shift) = (wanted[0].score, grain.shift());
        let (mut left, mut text) = (wanted.len(), Vec::new());
        self.visit_behind(&Bound::least(score), &mut |entry| {
            if entry.score != score {
                return ControlFlow::Break(());
            }
            let place = place_of(seed, entry.member, &mut text) >> shift << shift;
            if wanted.binary_search_by_key(&place, |entry| entry.place).is_ok() {
                visit(entry);
                left -= 1;
            }
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// How many members have this score.
    fn run_len(&self, score: f64) -> u64 {
        self.rank_at(&Bound::greatest(score)) - self.rank_at(&Bound::least(score))
    }

    /// A member got this score: enters it among the long runs, if its run is one, or has become one.
    fn join_run(&mut self, reach: Reach, seed: &Seed, member: &[u8], score: f64) {
        let is_known = match (reach, &self.long_runs) {
            (Reach::Within, _) => return,
            (Reach::LongRun, _) => true,
            (Reach::Beyond, Some(long_runs)) => {
                self.other_of_run(member, score).is_some_and(|other| long_runs.has(seed.hash(&other), &other))
            }
            (Reach::Beyond, None) => false,
        };
        if is_known {
            self.long_runs.get_or_insert_default().insert(seed, member);
            return;
        }
        let len = self.run_len(score);
        if len > LONG_MAX {
            self.add_run(seed, score, len);
        }
    }

    /// Another member of this score, if there is one. It tells whether the run is kept by hash, because
    /// either all members of a run are or none.
    fn other_of_run(&self, member: &[u8], score: f64) -> Option<Vec<u8>> {
        let bound = Bound { score, edge: Edge::Before(member) };
        let leaf = Scored::open(self.seek(&bound)?.1);
        let at = leaf.position(score, bound.edge);
        // Nearly always a neighbour in the leaf has the same score.
        let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let mut beside = beside.filter(|at| *at < leaf.count() && leaf.score(*at) == score);
        if let Some(other) = beside.next() {
            return Some(leaf.member(other).to_vec());
        }
        let first = self.rank_at(&Bound::least(score));
        [first, first + 1].iter().find_map(|rank| {
            let other = self.get(*rank, |entry| (entry.score == score).then(|| entry.member.to_vec()))?;
            other.filter(|other| other != member)
        })
    }

    /// Keeps all members of a run by hash, because it has become long.
    fn add_run(&mut self, seed: &Seed, score: f64, len: u64) {
        let mut long_runs = self.long_runs.take().unwrap_or_default();
        let (mut left, mut text) = (len, Vec::new());
        self.visit_behind(&Bound::least(score), &mut |entry| {
            text.clear();
            entry.member.append_to(&mut text);
            long_runs.insert(seed, &text);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.long_runs = Some(long_runs);
    }

    /// A member has lost this score: takes it out of the long runs, if it is in one.
    fn leave_run(&mut self, seed: &Seed, member: &[u8], score: f64) {
        if let Some(long_runs) = &mut self.long_runs
            && long_runs.remove(seed, member)
        {
            self.check_run(seed, score);
        }
    }

    /// Checks whether a run that lost members is still long.
    fn check_run(&mut self, seed: &Seed, score: f64) {
        let Some(mut long_runs) = self.long_runs.take() else { return };
        let len = self.run_len(score);
        if len < long_runs::LONG_MIN {
            let (mut left, mut text) = (len, Vec::new());
            self.visit_behind(&Bound::least(score), &mut |entry| {
                if left == 0 {
                    return ControlFlow::Break(());
                }
                text.clear();
                entry.member.append_to(&mut text);
                long_runs.remove(seed, &text);
                left -= 1;
                ControlFlow::Continue(())
            });
        }
        self.long_runs = (!long_runs.is_empty()).then_some(long_runs);
    }

    /// Where a member is.
    fn find(&self, seed: &Seed, member: &[u8]) -> Option<Found> {
        match self.find_unless(seed.hash(member).order(), member, || false)? {
            Known::Found(found) => Some(found),
            Known::InLongRun(_) => unreachable!("nobody was asked whether it is one"),
        }
    }

    /// The score of a member, and where it is, if going there was needed. In a long run of one score the
    /// search for its leaf is one by halves among all the leaves of the run; that it is in a long run is
    /// known by its hash, in one step.
    #[inline(always)]
    fn look_up(&self, hash: Hash, member: &[u8]) -> Option<Known> {
        let is_in_run = || self.long_runs.as_ref().is_some_and(|long_runs| long_runs.has(hash, member));
        self.find_unless(hash.order(), member, is_in_run)
    }

    /// Finds the member whose hash has this place. Where its score does not say which leaf it is in,
    /// `is_in_run` is asked first: a member is in the index, so that where one entry alone is at its place,
    /// that one says its score. A caller that wants the score alone drops the path, which then is not
    /// computed.
    #[inline(always)]
    fn find_unless(&self, place: u32, member: &[u8], is_in_run: impl Fn() -> bool) -> Option<Known> {
        let Some(index) = &self.index else {
            let path = self.tree.first()?;
            let leaf = self.leaf(&path);
            let at = leaf.find_member(member)?;
            return Some(Known::Found(Found { path, at, score: leaf.score(at), spot: None }));
        };
        let (spot, known) = index.find(place, |score, count| {
            // A bound behind a member lies in that member's leaf; one before it may lie at the end of
            // another.
            let bound = Bound { score, edge: Edge::After(member) };
            let (mut may_be_in_run, mut is_settled) = (count == 1, false);
            let sought = self.tree.seek_unless(score, |leaf| {
                is_settled = std::mem::take(&mut may_be_in_run) && is_in_run();
                (!is_settled).then(|| Scored::open(leaf).is_before(0, &bound))
            });
            if is_settled {
                return Some(Known::InLongRun(score));
            }
            let (path, leaf) = sought?;
            let leaf = Scored::open(leaf);
            let at = leaf.find(score, member)?;
            // -0 and 0 are equal, but are two scores: where they differ, the index spoke of another member at
            // this place.
            let is_it = score != 0.0 || leaf.score(at).to_bits() == score.to_bits();
            is_it.then_some(Known::Found(Found { path, at, score, spot: None }))
        })?;
        Some(match known {
            Known::Found(found) => Known::Found(Found { spot: Some(spot), ..found }),
            in_run => in_run,
        })
    }

    /// The leaf in which a bound lies.
    #[inline]
    fn seek(&self, bound: &Bound<'_>) -> Option<(Path, &Block)> {
        self.tree.seek(bound.score, |leaf| Scored::open(leaf).is_before(0, bound))
    }

    #[inline]
    fn leaf(&self, path: &Path) -> Scored<'_> {
        Scored::open(self.tree.leaf(path))
    }

    fn insert(&mut self, seed: &Seed, member: &[u8], place: u32, score: f64) {
        let reach = self.put(seed, member, score);
        match &mut self.index {
            Some(index) => index.insert(placed::Entry { place, score }),
            None if self.tree.height() > 1 => self.make_index(seed),
            None => {}
        }
        let is_too_coarse = |index: &Index| index.grain() == Grain::Coarse && self.len() > COARSE_MAX;
        if self.index.as_ref().is_some_and(is_too_coarse) {
            self.make_index(seed);
        }
        self.join_run(reach, seed, member, score);
    }

    /// Puts an entry into the tree; whether its run reaches beyond its leaf.
    fn put(&mut self, seed: &Seed, member: &[u8], score: f64) -> Reach {
        let bound = Bound { score, edge: Edge::Before(member) };
        let Some((path, block)) = self.seek(&bound) else {
            let leaf = Block::from_slice(&scored::build(&[Entry { score, member: Member::of(member) }]));
            self.tree.plant(ScoreMark { count: 1, least: score }, leaf);
            return Reach::Within;
        };
        let leaf = Scored::open(block);
        let at = leaf.position(score, bound.edge);
        let mut reach = self.reach(&path, leaf, at, score);
        if let (Reach::Beyond, Some(long_runs)) = (reach, &self.long_runs) {
            // Either all members of a run are kept by hash or none. Nearly always the entry before or behind
            // the new one tells which.
            let mut beside = [at.checked_sub(1), Some(at)].into_iter().flatten();
            let other = beside.find(|at| *at < leaf.count() && leaf.score(*at) == score);
            let other = other.map(|other| leaf.member(other).to_vec());
            if other.is_some_and(|other| long_runs.has(seed.hash(&other), &other)) {
                reach = Reach::LongRun;
            }
        }
        let is_full = leaf.count() >= COUNT_MAX || block.len() + member.len() > BYTES_MAX;
        if is_full && self.begin_leaf(&path, at, member, score) {
            return reach;
        }
        let leaf = self.tree.leaf_with(&path, 1);
        scored::insert(leaf, at, score, member);
        if is_over(leaf) {
            self.split(path);
        }
        reach
    }

    /// Whether the run of a score that comes to a leaf at `at` may go on in the leaves beside it. Runs that
    /// do not are short.
    #[inline]
    fn reach(&self, path: &Path, leaf: Scored<'_>, at: usize, score: f64) -> Reach {
        let is_at_end = leaf.score(0) == score
            || leaf.score(leaf.count() - 1) == score
            || (at == 0 && self.tree.first() != Some(*path))
            || (at == leaf.count() && self.tree.last() != Some(*path));
        if is_at_end { Reach::Beyond } else { Reach::Within }
    }

    /// Puts an entry that comes at either end of the order into a new leaf, so that the full leaf stays as it
    /// is. False, and nothing is done, where the entry does not come at an end.
    fn begin_leaf(&mut self, path: &Path, at: usize, member: &[u8], score: f64) -> bool {
        let count = self.leaf(path).count();
        let (is_last, is_first) =
            (at == count && self.tree.last() == Some(*path), at == 0 && self.tree.first() == Some(*path));
        if !is_last && !is_first {
            return false;
        }
        debug_assert!(count > 0, "no leaf is empty");
        let fresh = Block::from_slice(&scored::build(&[Entry { score, member: Member::of(member) }]));
        let (mut path, old) = (*path, self.tree.leaf_mut(path));
        old.shrink_to_fit();
        if is_last {
            self.tree.insert_after(&mut path, ScoreMark { count: 1, least: score }, fresh);
            return true;
        }
        let old = std::mem::replace(old, fresh);
        let least = Scored::open(&old).score(0);
        self.tree.set_mark(&path, ScoreMark { count: 1, least: score });
        self.tree.insert_after(&mut path, ScoreMark { count: count as u64, least }, old);
        true
    }

    /// Cuts a leaf in two of about the same size.
    fn split(&mut self, path: Path) {
        let mut path = path;
        let old = self.tree.leaf(&path).clone();
        let leaf = Scored::open(&old);
        let (cut, count) = (leaf.middle(), leaf.count());
        assert!(0 < cut && cut < count, "a cut at {cut} of {count}");
        let score = self.tree.mark(&path).least;
        *self.tree.leaf_mut(&path) = scored::part_of(leaf, 0..cut);
        self.tree.set_mark(&path, ScoreMark { count: cut as u64, least: score });
        let mark = ScoreMark { count: (count - cut) as u64, least: leaf.score(cut) };
        self.tree.insert_after(&mut path, mark, scored::part_of(leaf, cut..count));
    }

    fn rescore(&mut self, seed: &Seed, found: Found, member: &[u8], score: f64) {
        if let (Some(index), Some(spot)) = (&mut self.index, &found.spot) {
            index.set_score(spot, score);
        }
        let reach = if self.stays_in_place(&found, member, score) {
            debug_assert!(!score.is_nan(), "no member has the score NaN");
            let leaf = self.tree.leaf_mut(&found.path);
            scored::set_score(leaf, found.at, score);
            let is_over = is_over(leaf);
            let reach = self.reach(&found.path, self.leaf(&found.path), found.at, score);
            if is_over {
                self.split(found.path);
            }
            reach
        } else {
            self.take(&found);
            self.put(seed, member, score)
        };
        if found.score != score {
            self.leave_run(seed, member, found.score);
        }
        if found.score != score {
            self.join_run(reach, seed, member, score);
        }
        self.settle_index();
    }

    /// Whether the entry keeps its neighbours under another score, as far as its own leaf shows.
    fn stays_in_place(&self, found: &Found, member: &[u8], score: f64) -> bool {
        let (leaf, at) = (self.leaf(&found.path), found.at);
        let bound = Bound { score, edge: Edge::Before(member) };
        let is_above = match at {
            0 => self.tree.first() == Some(found.path),
            _ => leaf.is_before(at - 1, &bound),
        };
        is_above
            && match at + 1 {
                next if next < leaf.count() => !leaf.is_before(next, &bound),
                _ => self.tree.last() == Some(found.path),
            }
    }

    /// Takes an entry out of the tree.
    fn take(&mut self, found: &Found) {
        debug_assert!(found.at < self.leaf(&found.path).count(), "an entry that was found is there");
        let leaf = self.tree.leaf_with(&found.path, -1);
        scored::remove(leaf, found.at..found.at + 1);
        let count = scored::count(leaf);
        if count == 0 {
            self.tree.remove(&found.path);
        } else if count < COUNT_MAX / 4 {
            self.join_if_under(found.path);
        }
    }

    fn join_at(&mut self, rank: u64) {
        if let Some((path, _)) = self.tree.seek_rank(rank.min(self.len())) {
            self.join_if_under(path);
        }
    }

    /// Joins a leaf with a neighbour under the same parent if both are small.
    fn join_if_under(&mut self, path: Path) {
        let leaf = self.tree.leaf(&path);
        if scored::count(leaf) >= COUNT_MAX / 4 || leaf.len() >= BYTES_MAX / 4 {
            return;
        }
        self.tree.join_neighbour(
            &path,
            |pair| {
                let count = scored::count(pair.left) + scored::count(pair.right);
                let fits = pair.left.len() + pair.right.len() <= BYTES_MAX * 3 / 4;
                (fits && count <= COUNT_MAX * 3 / 4).then_some(())
            },
            |left, right, ()| *left = scored::joined(Scored::open(left), Scored::open(&right)),
        );
    }

    /// Drops the index of a set that has become one leaf, and so needs none. One of a leaf that is nearly
    /// full stays: the next member may begin a second leaf, and the index would have to be made anew.
    fn settle_index(&mut self) {
        let is_full =
            |leaf: &Block| scored::count(leaf) > COUNT_MAX * 3 / 4 || leaf.len() > BYTES_MAX * 3 / 4;
        if self.tree.height() < 2 && !self.tree.first().is_some_and(|path| is_full(self.tree.leaf(&path))) {
            self.index = None;
        }
    }

    fn make_index(&mut self, seed: &Seed) {
        let mut entries = Vec::with_capacity(usize::try_from(self.len()).unwrap_or(0));
        let mut text = Vec::new();
        self.tree.for_each_leaf(&mut |leaf| {
            for entry in Scored::open(leaf).entries(0) {
                let place = place_of(seed, entry.member, &mut text);
                entries.push(placed::Entry { place, score: entry.score });
            }
        });
        self.index = Some(Index::of(entries));
    }

    /// Moves what lies in extents that are being emptied (`arena::is_evacuating`). `from` is 0 at first, then
    /// what the call before returned; None at the end. Stops once `moves` says that `effort` was made.
    pub fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64> {
        if from < self.len() {
            let (path, _) = self.tree.seek_rank(from)?;
            if let Some(next) = self.tree.relocate_from(path, effort, moves, Block::relocate) {
                return Some(self.tree.rank(&next));
            }
        }
        if from < LONG_RUNS_BEGIN
            && let Some(index) = &mut self.index
        {
            let place = from.checked_sub(INDEX_BEGINS).map_or(0, |place| place as u32);
            if let Some(next) = index.relocate(place, effort, moves) {
                return Some(INDEX_BEGINS + u64::from(next));
            }
        }
        let place = from.checked_sub(LONG_RUNS_BEGIN).map_or(0, |place| place as u32);
        let next = self.long_runs.as_mut()?.relocate(place, effort, moves)?;
        Some(LONG_RUNS_BEGIN + u64::from(next))
    }

    /// About how many bytes it takes. Looks at a few leaves.
    pub fn bytes_about(&self) -> u64 {
        self.tree.leaf_bytes_about() + self.index.as_ref().map_or(0, |index| index.bytes_about())
    }

    /// How many of so many leaves, spread evenly, nobody else holds at this moment.
    pub fn count_sole(&self, samples: u64) -> u64 {
        self.tree.count_sole(samples)
    }

    /// About how many bytes its leaves, its index and the nodes above them take. Looks at some of them.
    pub fn allocated_about(&self) -> u64 {
        let weigh = |leaf: &Block| (leaf.allocated_bytes() as i64, scored::count(leaf));
        let scores = self.tree.sample(&mut { weigh }).of_entries(self.len()).unsigned_abs();
        let index = self.index.as_ref().map_or(0, |index| index.allocated_about(self.len()));
        scores + index + self.long_runs.as_ref().map_or(0, |runs| runs.allocated_about())
    }

    /// Where the bytes are, by kind of node. Goes through all leaves.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { height: self.tree.height() as u32, ..Stats::default() };
        self.tree.add_stats(&mut stats, |stats, leaf| {
            let (count, used) = (Scored::open(leaf).count(), block::HEADER_BYTES + leaf.len());
            stats.scored.add(count as u64, used, leaf.allocated_bytes());
        });
        if let Some(index) = &self.index {
            index.add_stats(&mut stats);
        }
        if let Some(long_runs) = &self.long_runs {
            let height = stats.height;
            stats.merge(&long_runs.stats());
            stats.height = height;
        }
        stats
    }
}

/// Positions of a walk that moves memory: from here on it is in the index, and then in the long runs. No rank
/// is so large.
const INDEX_BEGINS: u64 = 1 << 61;
const LONG_RUNS_BEGIN: u64 = 1 << 62;

fn is_over(leaf: &Block) -> bool {
    let count = scored::count(leaf);
    count > COUNT_MAX || (leaf.len() > BYTES_MAX && count > 1)
}

fn place_of(seed: &Seed, member: Member<'_>, text: &mut Vec<u8>) -> u32 {
    text.clear();
    member.append_to(text);
    seed.hash(text).order()
}

/// A small sorted set as one byte string, to live inside its keyspace entry: one scored leaf. The empty set
/// is the empty image. An image is read in place, and edited in any `Vec`, which is an image again at once.
/// At most 255 entries.
pub mod image {
    use super::{Bound, Entry, Scored, scored};

    /// How many members there are. O(1).
    pub fn len(image: &[u8]) -> u64 {
        Scored::open(image).count() as u64
    }

    /// The entry of a member: its rank and its score.
    pub fn find(image: &[u8], member: &[u8]) -> Option<(u64, f64)> {
        let leaf = Scored::open(image);
        leaf.find_member(member).map(|at| (at as u64, leaf.score(at)))
    }

    /// How many entries come before a bound.
    pub fn rank_at(image: &[u8], bound: &Bound<'_>) -> u64 {
        Scored::open(image).position(bound.score, bound.edge) as u64
    }

    /// Entries from `rank` on, upwards.
    pub fn up(image: &[u8], rank: u64) -> impl Iterator<Item = Entry<'_>> {
        Scored::open(image).entries(rank as usize)
    }

    /// Entries from `rank`, which exists, on, downwards.
    pub fn down(image: &[u8], rank: u64) -> impl Iterator<Item = Entry<'_>> {
        Scored::open(image).entries_down(rank as usize)
    }

    /// Adds a member that is not there.
    pub fn insert(image: &mut Vec<u8>, member: &[u8], score: f64) {
        let bound = super::Edge::Before(member);
        let at = Scored::open(image).position(score, bound);
        scored::insert(image, at, score, member);
    }

    /// Makes `image` that of these entries, which are in order, each member once: at most 255.
    pub fn build(image: &mut Vec<u8>, entries: &[Entry<'_>]) {
        scored::build_into(entries, image);
        if entries.is_empty() {
            image.clear();
        }
    }

    /// Gives entry `rank`, which is that of `member`, another score.
    pub fn set_score(image: &mut Vec<u8>, rank: u64, member: &[u8], score: f64) {
        scored::remove(image, rank as usize..rank as usize + 1);
        insert(image, member, score);
    }

    /// Removes `count` entries from `rank` on.
    pub fn remove(image: &mut Vec<u8>, rank: u64, count: u64) {
        scored::remove(image, rank as usize..(rank + count) as usize);
        if Scored::open(image).count() == 0 {
            image.clear();
        }
    }
}

#[cfg(test)]
mod properties;
