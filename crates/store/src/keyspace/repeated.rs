//! Keys that a command names more than once (`SINTER a b a`): what is found out about the first of them need
//! not be found out again.
use crate::Key;
use base::hash::Map;

/// Up to so many keys each is compared with those before it.
const FEW: usize = 16;

/// For each key the place of the first one with its name; its own, where no such key comes before it.
pub fn first_places(keys: &[Key<'_>]) -> Vec<usize> {
    if keys.len() <= FEW {
        let is_same = |a: &Key<'_>, b: &Key<'_>| a.hash == b.hash && a.bytes() == b.bytes();
        let first = |at: usize| keys[..at].iter().position(|key| is_same(key, &keys[at])).unwrap_or(at);
        return (0..keys.len()).map(first).collect();
    }
    let mut places: Map<&[u8], usize> = Map::default();
    keys.iter().enumerate().map(|(at, key)| *places.entry(key.bytes()).or_insert(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::tests::keyspace;

    #[test]
    fn a_name_is_where_it_comes_first() {
        let keyspace = keyspace(2);
        let keys = |names: &[&'static str]| -> Vec<Key<'static>> {
            names.iter().map(|name| Key::new(name.as_bytes(), keyspace.hash(name.as_bytes()), 0, 0)).collect()
        };
        assert_eq!(first_places(&keys(&[])), [] as [usize; 0]);
        assert_eq!(first_places(&keys(&["a", "b", "a", "c", "b", "a"])), [0, 1, 0, 3, 1, 0]);
        let many = ["x", "y", "x"].repeat(20);
        let expected: Vec<usize> = (0..60).map(|at| usize::from(at % 3 == 1)).collect();
        assert_eq!(first_places(&keys(&many)), expected);
    }
}
