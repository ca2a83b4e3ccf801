//! A map that has one entry most often: the listeners of a channel, the patterns of a bucket. A tree of one
//! takes the room of eleven, so one stands alone; of ten thousand each can leave quickly.
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) enum Few<K, V> {
    #[default]
    Empty,
    One(K, V),
    Many(BTreeMap<K, V>),
}

impl<K: Ord + Copy, V> Few<K, V> {
    pub(super) fn len(&self) -> usize {
        match self {
            Few::Empty => 0,
            Few::One(..) => 1,
            Few::Many(all) => all.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        match self {
            Few::One(only, value) if *only == key => Some(value),
            Few::Many(all) => all.get_mut(&key),
            _ => None,
        }
    }

    /// Adds an entry, or replaces the one of this key.
    pub(super) fn insert(&mut self, key: K, value: V) {
        if let Few::Many(all) = self {
            all.insert(key, value);
            return;
        }
        *self = match std::mem::take(self) {
            Few::One(first, one) if first != key => Few::Many(BTreeMap::from([(first, one), (key, value)])),
            _ => Few::One(key, value),
        };
    }

    pub(super) fn remove(&mut self, key: K) {
        match self {
            Few::One(only, _) if *only == key => *self = Few::Empty,
            Few::Many(all) => drop(all.remove(&key)),
            _ => {}
        }
    }

    /// All entries, by their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let (one, many) = match self {
            Few::Empty => (None, None),
            Few::One(key, value) => (Some((*key, value)), None),
            Few::Many(all) => (None, Some(all)),
        };
        one.into_iter().chain(many.into_iter().flatten().map(|(key, value)| (*key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn it_holds_what_a_tree_holds() {
        let mut random = Random::new(8);
        let (mut few, mut tree) = (Few::Empty, BTreeMap::new());
        for _ in 0..20_000 {
            let key = random.below(4);
            match random.below(5) {
                0 | 1 => {
                    let value = random.below(9);
                    few.insert(key, value);
                    tree.insert(key, value);
                }
                _ => {
                    few.remove(key);
                    tree.remove(&key);
                }
            }
            assert_eq!((few.len(), few.is_empty()), (tree.len(), tree.is_empty()));
            assert!(few.iter().eq(tree.iter().map(|(key, value)| (*key, value))));
            assert_eq!(few.get_mut(key), tree.get_mut(&key));
            if tree.is_empty() {
                few = Few::Empty;
            }
        }
    }
}
