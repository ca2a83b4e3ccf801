//! Whether the elements that are to make a small collection are all different. What a dump file holds may
//! have one twice; a collection may not.
//!
//! Each element is first looked at as a number of 32 bits, its sketch; two that are equal have the same one.
//! All pairs of sketches are compared, which for a few dozen takes a few nanoseconds each; elements
//! themselves only where sketches are equal. Large collections are checked when they are sorted by hash.
use base::Item;
use base::hash::Hash;

/// How many elements may be compared in this way at most.
pub(crate) const FEW_MAX: usize = 128;

/// Whether no two of `count` elements are equal. Each is an integer where its text reads as one.
pub(crate) fn are_distinct<'i>(count: usize, item: impl Fn(usize) -> Item<'i>) -> bool {
    assert!(count <= FEW_MAX, "{count} elements are too many to compare each with each");
    let mut sketches = [0; FEW_MAX];
    for index in 0..count {
        let sketch = sketch_of(item(index));
        let before = &sketches[..index];
        // No early end: so several are compared at once.
        let is_like_another = before.iter().fold(false, |is_like, other| is_like | (*other == sketch));
        if is_like_another && (0..index).any(|other| item(other) == item(index)) {
            return false;
        }
        sketches[index] = sketch;
    }
    true
}

/// Made of an element's length, its beginning and its end.
fn sketch_of(item: Item<'_>) -> u32 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let wide = match item {
        Item::Int(n) => n as u64,
        Item::Bytes(text) => {
            let ends = match (text.first_chunk(), text.last_chunk()) {
                (Some(first), Some(last)) => {
                    u64::from_le_bytes(*first).rotate_left(29) ^ u64::from_le_bytes(*last)
                }
                _ => ends_of_short(text),
            };
            ends ^ (text.len() as u64) << 56
        }
    };
    (wide.wrapping_mul(MIX) >> 32) as u32
}

/// The ends of a text of less than eight bytes.
fn ends_of_short(text: &[u8]) -> u64 {
    match (text.first_chunk(), text.last_chunk(), text) {
        (Some(first), Some(last), _) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        (.., [first, .., last]) => {
            u64::from(*first) | u64::from(text[text.len() / 2]) << 8 | u64::from(*last) << 16
        }
        (.., [only]) => u64::from(*only),
        (.., []) => 0,
    }
}

/// Brings the hashes of elements, each with the number of its element, into the order of their places; those
/// of one leaf stay in the order in which they came. Returns whether no two elements are equal.
pub(crate) fn arrange<'i>(
    hashes: &mut [(Hash, u32)],
    is_one_leaf: bool,
    item: impl Fn(u32) -> Item<'i>,
) -> bool {
    if !is_one_leaf {
        sort_by_place(hashes);
        return are_all_different(hashes, item);
    }
    if hashes.len() <= FEW_MAX {
        return are_distinct(hashes.len(), |index| item(hashes[index].1));
    }
    let mut sorted = hashes.to_vec();
    sort_by_place(&mut sorted);
    are_all_different(&sorted, item)
}

fn sort_by_place(hashes: &mut [(Hash, u32)]) {
    hashes.sort_unstable_by_key(|(hash, _)| hash.by_place());
}

/// Whether no two elements are equal, whose hashes were brought into order: equal ones stand side by side.
fn are_all_different<'i>(hashes: &[(Hash, u32)], item: impl Fn(u32) -> Item<'i>) -> bool {
    let has_twin = |(_, one): &(Hash, u32), others: &[(Hash, u32)]| {
        others.iter().any(|(_, other)| item(*one) == item(*other))
    };
    let mut runs = hashes.chunk_by(|one, other| one.0 == other.0);
    runs.all(|run| (1..run.len()).all(|behind| !has_twin(&run[behind - 1], &run[behind..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn an_element_that_is_there_twice_is_found_wherever_it_is() {
        let mut random = Random::new(4);
        let mut twice = 0;
        for _ in 0..20_000 {
            let texts: Vec<Vec<u8>> = (0..random.below(20)).map(|_| text(&mut random)).collect();
            let items: Vec<Item<'_>> = texts.iter().map(|text| Item::classify(text)).collect();
            let is_so = texts.iter().collect::<BTreeSet<_>>().len() == texts.len();
            assert_eq!(are_distinct(items.len(), |index| items[index]), is_so, "{texts:?}");
            twice += u32::from(!is_so);
        }
        assert!((2_000..18_000).contains(&twice), "{twice}");
    }

    /// Few different ones of each length; some have the same sketch.
    fn text(random: &mut Random) -> Vec<u8> {
        let mut text = vec![b'a'; random.below(24) as usize];
        for _ in 0..random.below(3) {
            let at = random.below(text.len().max(1) as u64) as usize;
            text.get_mut(at..at + 1).into_iter().flatten().for_each(|byte| *byte = b'0');
        }
        if random.below(3) == 0 { random.below(60).to_string().into_bytes() } else { text }
    }

    #[test]
    fn texts_of_one_sketch_are_different_all_the_same() {
        let (one, other) = (b"beginnin....the end.".to_vec(), b"beginnin::::the end.".to_vec());
        let items = [Item::Bytes(&one), Item::Bytes(&other)];
        assert_eq!(sketch_of(items[0]), sketch_of(items[1]));
        assert!(are_distinct(2, |index| items[index]));
        assert!(!are_distinct(2, |_| items[0]));
    }
}
