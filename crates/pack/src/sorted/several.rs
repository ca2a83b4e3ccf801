//! The scores of several members at once.
//!
//! A lookup is a chain of searches, each of which waits for the one before: for memory where the set is
//! large, for its own comparisons where it is not. Lookups of different members do not wait for one
//! another, so they go side by side: the first search of all of them, then the second of all of them.
//! GEODIST, which looks two members up, takes about 0.92 of the server's time that it took with one lookup
//! after the other (`cargo xtask bench ops geodist`).
use super::placed::{Candidate, Placed};
use super::scored::Scored;
use super::{Bound, MemberEdge, Sorted};
use base::hash::Seed;
use std::array;

impl Sorted {
    /// The score of each member, None of one that is not there.
    pub fn scores<const N: usize>(&self, seed: &Seed, members: [&[u8]; N]) -> [Option<f64>; N] {
        let (Some(index), None) = (&self.index, &self.long_runs) else {
            return members.map(|member| self.score(seed, member));
        };
        let places = members.map(|member| seed.hash(member).order());
        let leaves = places.map(|place| index.leaf_at(place));
        let candidates: [Candidate; N] = array::from_fn(|at| match leaves[at] {
            Some(leaf) => Placed::open(leaf).candidate(places[at]),
            None => Candidate::None,
        });
        let leaves: [_; N] = array::from_fn(|at| match candidates[at] {
            Candidate::One(score) => self.seek(&Bound { score, edge: MemberEdge::After(members[at]) }),
            Candidate::None | Candidate::Several => None,
        });
        array::from_fn(|at| match (candidates[at], leaves[at]) {
            // The two zeros are equal, and are two scores: the lookup of one member tells which it is.
            (Candidate::One(score), Some((_, leaf))) if score != 0.0 => {
                Scored::open(leaf).find(score, members[at]).map(|_| score)
            }
            (Candidate::None, _) => None,
            _ => self.score(seed, members[at]),
        })
    }
}
