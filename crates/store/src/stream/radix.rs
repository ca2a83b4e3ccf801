//! How many nodes Redis's radix tree would have for the nodes of a stream: XINFO STREAM shows that number,
//! and UNLINK counts by it. There is no such tree here.
//!
//! Its keys are ids of sixteen bytes, both numbers big endian. It has a node where keys part (a branch), one
//! for each run of bytes that all keys below it share, and one at each key's end; without keys it is its
//! root. Example, of three keys with eight nodes:
//!
//! ```text
//! bytes 0 to 6       byte 7     bytes 8 to 14    byte 15
//! run of seven 00 -> branch -01-> run of seven 00 -> branch -00-> end      1-0
//!                          |                              \-07-> end      1-7
//!                          \-02-> run of eight 00 ------------------> end  2-0
//! ```
//!
//! Keys come in order, so one pass is enough. Where a key first differs from the one before it there is a
//! branch. Whether a run lies above a branch or an end is known when a key comes that shares fewer bytes. The
//! branches for which that is not known yet all lie on the path to the last key, each at another byte, so a
//! set of bits holds them.
use pack::log::Id;

const KEY_BYTES: u32 = 16;

#[derive(Default)]
pub struct RadixTree {
    keys: u64,
    last: u128,
    /// How many bytes the last key shares with the one before it.
    shared: Option<u32>,
    /// The bytes at which there are branches that are not counted yet, as a set of bits.
    waiting: u32,
    /// The number of branches and ends that are counted, and of the runs above them.
    nodes: u64,
}

impl RadixTree {
    /// Adds a key, which is larger than all before it.
    pub fn push(&mut self, id: Id) {
        let key = u128::from(id.ms) << 64 | u128::from(id.seq);
        if self.keys > 0 {
            debug_assert!(key > self.last, "keys come in order");
            let shared = (self.last ^ key).leading_zeros() / 8;
            self.end_key(self.shared.map_or(shared, |before| before.max(shared)));
            while let Some(branch) = self.deepest().filter(|branch| *branch > shared) {
                self.waiting &= !(1 << branch);
                let above = self.deepest().map_or(shared, |above| above.max(shared));
                self.end_branch(branch, above + 1);
            }
            self.waiting |= 1 << shared;
            self.shared = Some(shared);
        }
        (self.keys, self.last) = (self.keys + 1, key);
    }

    /// How many keys were pushed.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// How many nodes Redis would have allocated for them.
    pub fn nodes(mut self) -> u64 {
        let Some(shared) = self.shared else {
            // Without keys the root; with one key a run and an end.
            return if self.keys == 0 { 1 } else { 2 };
        };
        self.end_key(shared);
        while let Some(branch) = self.deepest() {
            self.waiting &= !(1 << branch);
            self.end_branch(branch, self.deepest().map_or(0, |above| above + 1));
        }
        self.nodes
    }

    fn deepest(&self) -> Option<u32> {
        self.waiting.checked_ilog2()
    }

    /// Counts the end of the last key, which differs from all others from the byte `branch` on.
    fn end_key(&mut self, branch: u32) {
        self.nodes += 1 + u64::from(branch + 1 < KEY_BYTES);
    }

    /// Counts the branch at this byte, where what lies above it ends before the byte `start`.
    fn end_branch(&mut self, branch: u32, start: u32) {
        self.nodes += 1 + u64::from(branch > start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    /// The naive twin: counts nodes by their definition.
    fn twin(keys: &[[u8; 16]]) -> u64 {
        if keys.is_empty() { 1 } else { twin_below(keys, 0) }
    }

    fn twin_below(keys: &[[u8; 16]], depth: usize) -> u64 {
        let (first, last) = (&keys[0], &keys[keys.len() - 1]);
        // Keys are in order, so all keys share what the first and the last share.
        let shared = (depth..16).take_while(|at| first[*at] == last[*at]).count();
        let run = u64::from(shared > 0);
        if keys.len() == 1 {
            return run + 1;
        }
        let at = depth + shared;
        let parts = keys.chunk_by(|left, right| left[at] == right[at]);
        run + 1 + parts.map(|part| twin_below(part, at + 1)).sum::<u64>()
    }

    #[track_caller]
    fn check(ids: &[Id]) -> u64 {
        let mut tree = RadixTree::default();
        ids.iter().for_each(|id| tree.push(*id));
        assert_eq!(tree.keys(), ids.len() as u64);
        let key = |id: &Id| (u128::from(id.ms) << 64 | u128::from(id.seq)).to_be_bytes();
        let (nodes, keys) = (tree.nodes(), ids.iter().map(key).collect::<Vec<_>>());
        assert_eq!(nodes, twin(&keys), "{ids:?}");
        nodes
    }

    #[test]
    fn the_example_in_the_opener_has_eight_nodes() {
        let ids = [(1, 0), (1, 7), (2, 0)].map(|(ms, seq)| Id { ms, seq });
        assert_eq!([0, 1, 2, 3].map(|count| check(&ids[..count])), [1, 2, 4, 8]);
    }

    #[test]
    fn nodes_are_those_of_the_definition_whatever_the_keys() {
        for seed in 0..400 {
            let mut random = Random::new(seed);
            let count = random.below(40);
            // Few bits, so that keys share bytes, at any place of each number.
            let mut number =
                || (random.next_u64() & random.next_u64() & 0x0303_0303_0303_0303) >> (8 * random.below(8));
            let mut ids: Vec<Id> = (0..count).map(|_| Id { ms: number(), seq: number() }).collect();
            ids.sort_unstable();
            ids.dedup();
            check(&ids);
        }
    }
}
