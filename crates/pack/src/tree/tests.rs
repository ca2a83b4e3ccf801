//! The tree against a plain vector of leaves, in both orders, with clones held and checked.
use super::order::{ByHash, ByRank, OrderRange};
use super::*;
use crate::memory::refs::REFS_MAX;
use base::random::Random;
use std::sync::Arc;

/// A leaf that counts itself through its `Arc`.
#[derive(Clone)]
struct Number(Arc<u64>);
impl Leaf for Number {
    fn is_sole(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn allocated_bytes(&self) -> usize {
        *self.0 as usize
    }
}

fn number(n: u64) -> Number {
    Number(Arc::new(n))
}

fn numbers<O: Order>(tree: &Tree<O, Number>) -> Vec<u64> {
    let mut all = Vec::new();
    tree.for_each_leaf(&mut |leaf| all.push(*leaf.0));
    all
}

/// Every node's marks add up, and no node is empty; returns the number of elements.
fn check_counts(tree: &Tree<ByRank, Number>, model: &[(u64, u64)]) {
    tree.for_each_node(&mut |node| {
        if let Node::Inner(inner) = node {
            assert!(inner.count() > 0 && inner.count() <= FANOUT);
            if inner.level() > 1 {
                for (mark, child) in inner.marks().iter().zip(inner.children()) {
                    // SAFETY: children of a level above 1 are inner nodes.
                    let below = unsafe { child.inner() };
                    assert_eq!((*mark, below.level()), (ByRank::fold(below.marks()), inner.level() - 1));
                }
            }
        }
    });
    assert_eq!(tree.total(), model.iter().map(|(_, count)| count).sum::<u64>());
}

fn nth(tree: &Tree<ByRank, Number>, index: usize) -> Path {
    let mut path = tree.first().unwrap();
    (0..index).for_each(|_| assert!(tree.next(&mut path)));
    path
}

#[test]
fn by_rank_random_edits_agree_with_a_vector_and_clones_stay() {
    let mut random = Random::new(11);
    let mut tree: Tree<ByRank, Number> = Tree::new();
    let mut model: Vec<(u64, u64)> = Vec::new();
    let mut held = Vec::new();
    for step in 0..6000u64 {
        let grows = (step / 1500) % 2 == 0;
        let mark = random.below(9) + 1;
        let at = random.below(model.len().max(1) as u64) as usize;
        match (model.is_empty(), random.below(10)) {
            (true, _) => {
                tree.plant(mark, number(step));
                model.push((step, mark));
            }
            (_, 0) => {
                let path = nth(&tree, at);
                tree.set_mark(&path, mark);
                model[at].1 = mark;
            }
            (_, die) if (die < 8) == grows => {
                let mut path = nth(&tree, at);
                tree.insert_after(&mut path, mark, number(step));
                assert_eq!(*tree.leaf(&path).0, model[at].0, "the path still names its leaf");
                model.insert(at + 1, (step, mark));
                assert!(tree.next(&mut path));
                assert_eq!(*tree.leaf(&path).0, step);
            }
            _ => {
                let path = nth(&tree, at);
                assert_eq!((*tree.remove(&path).0, tree.height()), (model.remove(at).0, tree.height()));
            }
        }
        if step % 61 == 0 {
            check_counts(&tree, &model);
            assert_eq!(numbers(&tree), model.iter().map(|(n, _)| *n).collect::<Vec<_>>(), "step {step}");
            held.push((tree.clone(), numbers(&tree)));
        }
        if held.len() > 8 {
            let (old, then) = held.swap_remove(random.below(8) as usize);
            assert_eq!(numbers(&old), then, "a held clone changed");
        }
    }
}

#[test]
fn what_nobody_else_holds_is_told_by_some_leaves_to_a_few_hundredths() {
    const LEAVES: u64 = 5_000;
    let mut tree: Tree<ByRank, Number> = Tree::new();
    let mut path = tree.plant(1, number(0));
    (1..LEAVES).for_each(|n| tree.insert_after(&mut path, 1, number(n)));
    assert_eq!(tree.count_sole(SOLE_SAMPLES), SOLE_SAMPLES, "all of it");
    let held = tree.clone();
    assert_eq!((tree.count_sole(SOLE_SAMPLES), held.count_sole(SOLE_SAMPLES)), (0, 0), "none of it");
    // An edit copies what lies on its way, so the clone is left alone with that.
    let mut random = Random::new(1);
    for n in (0..LEAVES).filter(|_| random.below(10) < 3) {
        *tree.leaf_mut(&nth(&tree, n as usize)) = number(n);
    }
    let tenths = held.count_sole(SOLE_SAMPLES) as f64 * 10.0 / SOLE_SAMPLES as f64;
    assert!((2.5..3.5).contains(&tenths), "{tenths} tenths, not 3");
    drop(tree);
    assert_eq!(held.count_sole(SOLE_SAMPLES), SOLE_SAMPLES);
}

#[test]
fn one_owner_more_of_a_tree_than_can_be_counted_gets_a_root_of_its_own() {
    let mut tree: Tree<ByRank, Number> = Tree::new();
    let mut path = tree.plant(1, number(0));
    (1..9).for_each(|n| tree.insert_after(&mut path, 1, number(n)));
    let pretend = |more| {
        tree.for_each_node(&mut |node| {
            if let Node::Inner(inner) = node {
                inner.pretend_owners(more);
            }
        });
    };
    pretend(REFS_MAX - 1);
    let mut copy = tree.clone();
    pretend(0_u32.wrapping_sub(REFS_MAX - 1));
    let before = numbers(&tree);
    assert_eq!(numbers(&copy), before);
    let path = nth(&copy, 3);
    copy.remove(&path);
    assert_eq!((numbers(&tree), numbers(&copy).len()), (before, 8));
    let leaf = &tree.leaf(&nth(&tree, 0)).0;
    assert_eq!(Arc::strong_count(leaf), 2, "leaves are those of both");
    drop(copy);
    assert_eq!(Arc::strong_count(&tree.leaf(&nth(&tree, 0)).0), 1);
}

#[test]
fn by_rank_seek_finds_every_element() {
    let mut tree: Tree<ByRank, Number> = Tree::new();
    let mut path = tree.plant(3, number(0));
    for n in 1..40_000 {
        tree.insert_after(&mut path, n % 4 + 1, number(n));
        tree.next(&mut path);
    }
    assert_eq!(tree.height(), 4);
    let mut index = 0;
    for n in 0..40_000u64 {
        let count = if n == 0 { 3 } else { n % 4 + 1 };
        let (path, rest) = tree.seek(index + count - 1).unwrap();
        assert_eq!((*tree.leaf(&path).0, rest), (n, count - 1));
        index += count;
    }
    let (end, rest) = tree.seek(tree.total()).unwrap();
    assert_eq!((Some(end), rest), (tree.last(), 39_999 % 4 + 1));
    let mut back = end;
    let mut seen = 1;
    while tree.prev(&mut back) {
        seen += 1;
    }
    assert_eq!((seen, Some(back)), (40_000, tree.first()));
}

#[test]
fn by_hash_ranges_partition_all_places_under_random_splits_and_removals() {
    let mut random = Random::new(5);
    let mut tree: Tree<ByHash, Number> = Tree::new();
    let mut model: Vec<(u32, u64)> = vec![(0, 0)];
    tree.plant(0, number(0));
    for step in 1..8000u64 {
        let place = random.next_u64() as u32;
        let (mut path, bounds) = tree.seek(place).unwrap();
        let at = model.partition_point(|(first, _)| *first <= place) - 1;
        let last = model.get(at + 1).map_or(u32::MAX, |next| next.0 - 1);
        assert_eq!((bounds.first, bounds.last), (model[at].0, last), "step {step}");
        assert_eq!(*tree.leaf(&path).0, model[at].1);
        assert!(std::ptr::eq(tree.leaf(&path), tree.leaf_at(place).unwrap()));
        let shrinks = (step / 2000) % 2 == 1;
        if (random.below(10) < 8) != shrinks && bounds.first < place {
            tree.insert_after(&mut path, place, number(step));
            model.insert(at + 1, (place, step));
        } else if model.len() > 1 {
            assert_eq!(*tree.remove(&path).0, model[at].1);
            let (first, _) = model.remove(at);
            let heir = *tree.leaf_at(first).unwrap().0;
            let left = at > 0 && model[at - 1].1 == heir;
            assert!(left || model[at].1 == heir, "a neighbour inherits the range");
            if !left {
                model[at].0 = first;
            }
        }
    }
    while model.len() > 1 {
        let (path, _) = tree.seek(random.next_u64() as u32).unwrap();
        let gone = *tree.remove(&path).0;
        model.retain(|(_, n)| *n != gone);
    }
    assert_eq!(tree.height(), 1, "a tree of one leaf has no inner node");
}

#[test]
fn no_leaf_leaks_and_none_is_dropped_twice() {
    let witness = number(1);
    let mut tree: Tree<ByRank, Number> = Tree::new();
    let mut path = tree.plant(1, witness.clone());
    for _ in 0..999 {
        tree.insert_after(&mut path, 1, witness.clone());
    }
    assert_eq!(Arc::strong_count(&witness.0), 1001);
    let clone = tree.clone();
    assert_eq!(Arc::strong_count(&witness.0), 1001, "a clone shares whole nodes");
    for index in (0..1000).rev() {
        let (path, _) = tree.seek(index).unwrap();
        tree.remove(&path);
    }
    assert!(tree.is_empty());
    assert_eq!(Arc::strong_count(&witness.0), 1001);
    drop(clone);
    assert_eq!(Arc::strong_count(&witness.0), 1);
}

/// Joins a leaf, which is there, with a neighbour: the greater number goes to the left.
fn join_at<O: Order>(tree: &mut Tree<O, Number>, path: &Path) -> Option<(u64, u64)> {
    let mut told_of = None;
    let is_joined = tree.join_neighbour(
        path,
        |both| Some((*both.left.0, *both.right.0)),
        |left, right, told| {
            assert_eq!((*left.0, *right.0), told);
            told_of = Some(told);
            *left = number(told.0.max(told.1));
        },
    );
    assert_eq!(is_joined, told_of.is_some());
    told_of
}

#[test]
fn joined_leaves_hold_the_elements_of_both_and_clones_keep_the_two() {
    let mut random = Random::new(3);
    let mut tree: Tree<ByRank, Number> = Tree::new();
    let mut model: Vec<(u64, u64)> = vec![(0, 1)];
    let mut path = tree.plant(1, number(0));
    for n in 1..3000 {
        tree.insert_after(&mut path, n % 4 + 1, number(n));
        assert!(tree.next(&mut path));
        model.push((n, n % 4 + 1));
    }
    let (held, then) = (tree.clone(), numbers(&tree));
    while tree.height() > 1 {
        let at = random.below(model.len() as u64) as usize;
        let path = nth(&tree, at);
        let Some((left, right)) = join_at(&mut tree, &path) else {
            // The only child of its parent has no neighbour there.
            tree.remove(&path);
            model.remove(at);
            continue;
        };
        let first = if at > 0 && (model[at - 1].0, model[at].0) == (left, right) { at - 1 } else { at };
        assert_eq!((model[first].0, model[first + 1].0), (left, right), "neighbours");
        let (_, count) = model.remove(first + 1);
        model[first] = (left.max(right), model[first].1 + count);
        if model.len().is_multiple_of(50) {
            check_counts(&tree, &model);
            assert_eq!(numbers(&tree), model.iter().map(|(n, _)| *n).collect::<Vec<_>>());
        }
    }
    assert_eq!((numbers(&tree), tree.total()), (vec![model[0].0], model[0].1));
    assert!(join_at(&mut tree, &Path::FIRST).is_none(), "one leaf has no neighbour");
    assert_eq!(numbers(&held), then, "the clone changed");
}

#[test]
fn joined_leaves_cover_the_places_of_both() {
    let mut random = Random::new(8);
    let mut tree: Tree<ByHash, Number> = Tree::new();
    tree.plant(0, number(0));
    for n in 1..3000 {
        let place = random.next_u64() as u32;
        let (mut path, range) = tree.seek(place).unwrap();
        assert_eq!(tree.range(&path), range);
        if range.first < place {
            tree.insert_after(&mut path, place, number(n));
        }
    }
    while tree.height() > 1 {
        let place = random.next_u64() as u32;
        let (path, own) = tree.seek(place).unwrap();
        let mut told = OrderRange::ALL;
        let join = |left: &mut Number, _: Number, range| {
            *left = number(1);
            told = range;
        };
        if tree.join_neighbour(&path, |both| Some(both.range()), join) {
            let (_, range) = tree.seek(place).unwrap();
            assert_eq!(range, told);
            assert!(range.first == own.first || range.last == own.last);
            assert!(range.first < own.first || range.last > own.last);
        } else {
            tree.remove(&path);
        }
    }
    assert_eq!(tree.seek(7).unwrap().1, OrderRange::ALL);
}

/// Trees in values that are kept while they are edited, and gone or back afterwards, as scripts do it.
mod kept {
    use super::*;
    use crate::memory::shared::Shared;
    use crate::memory::twins::end_keeping;

    type Value = Shared<Tree<ByRank, Number>>;
    /// Each leaf's number and how many elements it stands for.
    type Model = Vec<(u64, u64)>;

    fn edit(value: &mut Value, model: &mut Model, random: &mut Random, step: u64) {
        let tree = value.make_mut();
        let (at, mark) = (random.below(model.len() as u64) as usize, random.below(9) + 1);
        let mut path = nth(tree, at);
        match random.below(10) {
            // A leaf is replaced, which is what most edits do.
            0..6 => {
                *tree.leaf_mut(&path) = number(step);
                model[at].0 = step;
            }
            6 | 7 => {
                tree.set_mark(&path, mark);
                model[at].1 = mark;
            }
            8 => {
                tree.insert_after(&mut path, mark, number(step));
                model.insert(at + 1, (step, mark));
            }
            _ if model.len() > 1 => {
                tree.remove(&path);
                model.remove(at);
            }
            _ => {}
        }
    }

    #[track_caller]
    fn check(value: &Value, model: &Model) {
        assert_eq!(numbers(value), model.iter().map(|(n, _)| *n).collect::<Vec<_>>());
        check_counts(value, model);
    }

    fn planted(leaves: u64) -> (Value, Model) {
        let mut tree = Tree::new();
        let mut path = tree.plant(1, number(0));
        for n in 1..leaves {
            tree.insert_after(&mut path, 1, number(n));
            tree.next(&mut path);
        }
        (Shared::new(tree), (0..leaves).map(|n| (n, 1)).collect())
    }

    /// All leaves that are there have the owners that can be seen.
    fn owners(values: &[&Value]) -> usize {
        let mut all = 0;
        values.iter().for_each(|value| {
            value.for_each_leaf(&mut |leaf| all += Arc::strong_count(&leaf.0));
        });
        all
    }

    #[test]
    fn a_kept_value_goes_or_comes_back_whatever_was_edited() {
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let (mut live, mut model) = planted([3, 100, 140, 400][seed as usize % 4]);
            let mut clones: Vec<(Value, Model)> = Vec::new();
            for step in 0..60 {
                let (kept, before) = (live.clone(), model.clone());
                kept.note_kept();
                for edit_at in 0..random.below(12) {
                    edit(&mut live, &mut model, &mut random, 1_000_000 + step * 100 + edit_at);
                    check(&live, &model);
                    check(&kept, &before);
                    if random.below(12) == 0 {
                        clones.push((live.clone(), model.clone()));
                    }
                    if let Some((clone, its)) = clones.last_mut()
                        && random.below(6) == 0
                    {
                        edit(clone, its, &mut random, 2_000_000 + step * 100 + edit_at);
                    }
                }
                match random.below(5) {
                    0 => {
                        end_keeping();
                        live = kept;
                        model = before;
                    }
                    // It was deleted: the kept one is the last.
                    1 => {
                        live = Shared::new(Tree::clone(&kept));
                        model = before.clone();
                        check(&kept, &before);
                        drop(kept);
                        end_keeping();
                    }
                    2 => {
                        end_keeping();
                        check(&kept, &before);
                        drop(kept);
                    }
                    _ => {
                        drop(kept);
                        end_keeping();
                    }
                }
                check(&live, &model);
                clones.iter().for_each(|(clone, its)| check(clone, its));
                clones.truncate(2);
            }
            clones.clear();
            // Nothing but `live` has any of its leaves.
            assert_eq!(owners(&[&live]), model.len(), "seed {seed}");
        }
    }

    #[test]
    fn a_twin_is_made_where_one_child_is_replaced_and_its_other_children_are_not_counted() {
        let (mut live, _) = planted(100);
        let kept = live.clone();
        kept.note_kept();
        let tree = live.make_mut();
        let path = nth(tree, 50);
        *tree.leaf_mut(&path) = number(7);
        assert_eq!(owners(&[&live]), 100, "the leaves that both have are counted once");
        drop(kept);
        end_keeping();
        assert_eq!(owners(&[&live]), 100);
        let other = live.clone();
        *live.make_mut().leaf_mut(&path) = number(8);
        assert_eq!(owners(&[&live]), 199, "what nobody has announced as kept is copied");
        drop(other);
        assert_eq!(owners(&[&live]), 100);
    }
}
