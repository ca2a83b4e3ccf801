//! What `lazyfreed_objects` counts. Here whatever is large is freed in the background, whoever removed it;
//! the figure is Redis's, which monitoring tools know: keys that were unlinked or flushed, of the former
//! those that Redis takes to be worth its background thread.
use crate::info::describe;
use crate::value::Value;
use crate::{Key, View};
use pack::map::Found;

/// Redis frees a value of more allocations than this in its background thread.
const EFFORT_MAX: u64 = 64;

impl View<'_> {
    /// [`View::remove`] for UNLINK and its like, which Redis counts in `lazyfreed_objects` if the value is
    /// worth its background thread.
    pub fn unlink(&mut self, key: &Key<'_>) -> bool {
        let counts = self.look(key).is_some_and(|found| is_freed_lazily(&found));
        self.stats(key).lazyfreed += u64::from(counts);
        self.remove(key)
    }
}

/// A table has one allocation an element, a list one a node; a block or a string is one.
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
