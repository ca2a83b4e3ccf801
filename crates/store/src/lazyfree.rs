//! What `lazyfreed_objects` counts. Here whatever is large is freed in the background, whoever removed it;
//! but the figure is counted as Redis counts it, for the sake of monitoring tools: all keys that were
//! flushed, and of those that were unlinked the ones that Redis would free in its background thread.
use crate::info::describe;
use crate::value::Value;
use crate::{Key, View};
use pack::map::Found;

/// Redis frees a value of more allocations than this in its background thread.
const EFFORT_MAX: u64 = 64;

impl View<'_> {
    /// [`View::remove`] for UNLINK and its like. The key counts in `lazyfreed_objects` if Redis would free
    /// its value in the background.
    pub fn unlink(&mut self, key: &Key<'_>) -> bool {
        let counts = self.look(key).is_some_and(|found| is_freed_lazily(&found));
        self.stats(key).lazyfreed += u64::from(counts);
        self.remove(key)
    }
}

/// Whether Redis would free the value in its background thread. It counts allocations: one for each element
/// of a table, one for each node of a list, and one for any other value but a stream.
fn is_freed_lazily(found: &Found<'_, Value>) -> bool {
    let is_long_table =
        |encoding: &str, len: u64| matches!(encoding, "hashtable" | "skiplist") && len > EFFORT_MAX;
    match found.outside {
        None => {
            let info = describe(found);
            is_long_table(info.encoding, info.len)
        }
        Some(Value::List(tree)) => tree.seq.has_more_leaves_than(EFFORT_MAX as usize),
        Some(Value::Stream(stream)) => stream.freeing_effort(EFFORT_MAX) > EFFORT_MAX,
        Some(other) => other
            .collection()
            .is_some_and(|collection| is_long_table(collection.encoding(), collection.len())),
    }
}
