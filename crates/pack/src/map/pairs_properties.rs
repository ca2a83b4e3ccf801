//! Images of small hashes against a vector of pairs.
use super::*;
use crate::memory::apart::Apart;
use crate::memory::block::Block;
use base::random::Random;

type Twin = Vec<(Vec<u8>, Vec<u8>, Option<Vec<u8>>)>;

fn text(random: &mut Random) -> Vec<u8> {
    match random.below(6) {
        0 => random.below(70).to_string().into_bytes(),
        1 => (random.next_u64() as i64 >> random.below(64)).to_string().into_bytes(),
        2 => vec![b'x'; random.below(FIELD_MAX as u64 + 1) as usize],
        3 => b"007".to_vec(),
        _ => format!("f{}", random.below(12)).into_bytes(),
    }
}

fn value(random: &mut Random) -> Vec<u8> {
    match random.below(4) {
        0 => vec![b'v'; random.below(VALUE_MAX as u64 + 1) as usize],
        1 => vec![b'w'; FIELD_MAX + random.below(3) as usize],
        _ => text(random),
    }
}

fn mark(random: &mut Random) -> Option<Vec<u8>> {
    let len = *MARK_BYTES.get(random.below(4) as usize)?;
    Some((0..len).map(|_| random.next_u64() as u8).collect())
}

fn content(image: &[u8]) -> Twin {
    let owned = |item: Item<'_>| {
        let mut text = Vec::new();
        item.append_to(&mut text);
        text
    };
    iter(image).map(|pair| (owned(pair.field), owned(pair.value), pair.mark.map(<[u8]>::to_vec))).collect()
}

/// An image in a buffer, and the same in a block, behind some other bytes.
struct Both {
    image: Vec<u8>,
    block: Block,
}

const BEFORE: &[u8] = b"stamp";

impl Both {
    fn new() -> Both {
        Both { image: Vec::new(), block: Block::from_slice(BEFORE) }
    }
}

/// Makes the same edit in both, and looks whether they agree.
fn edit(both: &mut Both, edit: impl Fn(&mut dyn Pliable)) {
    edit(&mut both.image);
    edit(&mut Apart::new(&mut both.block, BEFORE.len()));
    assert_eq!(both.block[..BEFORE.len()], *BEFORE);
    assert_eq!(both.block[BEFORE.len()..], both.image);
}

#[test]
fn random_edits_agree_with_the_twin_and_keep_the_order() {
    let mut overwritten = 0;
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (mut both, mut twin): (Both, Twin) = (Both::new(), Vec::new());
        for turn in 0..2000 {
            let (field, value, mark) = (text(&mut random), value(&mut random), mark(&mut random));
            let at = twin.iter().position(|pair| pair.0 == field);
            let spot = find(&both.image, Item::classify(&field));
            assert_eq!(spot.is_some(), at.is_some(), "seed {seed} turn {turn}");
            match (at, spot, random.below(4)) {
                (Some(at), Some(spot), 0) => {
                    edit(&mut both, |image| remove(image, spot));
                    twin.remove(at);
                }
                (Some(at), Some(spot), 1) => {
                    edit(&mut both, |image| set_mark(image, spot, mark.as_deref()));
                    twin[at].2 = mark;
                }
                (Some(at), Some(spot), 2) => {
                    let other: Vec<u8> = twin[at].1.iter().map(|byte| byte ^ (turn % 2) as u8).collect();
                    let value = if spot.takes(Item::classify(&value)) { value } else { other };
                    if spot.takes(Item::classify(&value)) {
                        edit(&mut both, |image| overwrite(image.bytes_mut(), spot, Item::classify(&value)));
                        twin[at].1 = value;
                        overwritten += 1;
                    }
                }
                (Some(at), Some(spot), _) => {
                    edit(&mut both, |image| {
                        set(image, spot, Item::classify(&value), mark.as_deref());
                    });
                    (twin[at].1, twin[at].2) = (value, mark);
                }
                _ if twin.len() < 40 => {
                    edit(&mut both, |image| {
                        push(image, Item::classify(&field), Item::classify(&value), mark.as_deref());
                    });
                    twin.push((field, value, mark));
                }
                _ => edit(&mut both, |image| flag(image)),
            }
            if random.below(4) == 0 {
                edit(&mut both, |image| {
                    len_of_kept(image);
                });
            }
            assert_eq!(content(&both.image), twin, "seed {seed} turn {turn}");
            assert_eq!(len(&both.image), twin.len() as u64);
        }
    }
    assert!(overwritten > 1_000, "{overwritten} values were written over");
}

#[test]
fn the_example_in_the_opener_is_true() {
    let mut image = Vec::new();
    push(&mut image, Item::Bytes(b"id"), Item::Int(7), None);
    push(&mut image, Item::Bytes(b"name"), Item::Bytes(b"ab"), None);
    assert_eq!(image, b"\x02id\xC7\x04name\x02ab");
    assert_eq!(item_len(Item::Int(64)), 2);
    assert_eq!(item_len(Item::Bytes(&[0; FIELD_MAX + 1])), FIELD_MAX + 4);
    let (field, value) = ([0; FIELD_MAX + 1], [0; VALUE_MAX + 1]);
    let fits = |field, value| fits(Item::Bytes(field), Item::Bytes(value));
    assert!(fits(&field[1..], &value[1..]) && !fits(&field, b"") && !fits(b"", &value));
}

#[test]
fn pairs_are_counted_from_the_sixteenth_on_and_not_beyond_what_a_byte_can_say() {
    let mut image = Vec::new();
    for n in 0..300 {
        push(&mut image, Item::Int(n), Item::Int(0), None);
        assert_eq!(len_of_kept(&mut image), n as u64 + 1);
        let is_counted = front(&image).0.is_some();
        assert_eq!(is_counted, (COUNTED_LEN_MIN..=COUNT_MAX).contains(&(n as u64 + 1)));
    }
    flag(&mut image);
    for n in 0..300 {
        let spot = find(&image, Item::Int(n)).expect("it was pushed");
        remove(&mut image, spot);
        assert_eq!((len_of_kept(&mut image), is_flagged(&image)), (299 - n as u64, true));
    }
    assert_eq!(spots(&image).count(), 0);
}

#[test]
fn a_search_finds_the_same_behind_any_pair() {
    let mut random = Random::new(11);
    let mut image = Vec::new();
    for turn in 0..60 {
        let (field, mark) = (text(&mut random), mark(&mut random));
        if find(&image, Item::classify(&field)).is_none() {
            let value = value(&mut random);
            let value = if turn % 2 == 0 { Item::Int(turn) } else { Item::classify(&value) };
            push(&mut image, Item::classify(&field), value, mark.as_deref());
            len_of_kept(&mut image);
        }
        let field = text(&mut random);
        let found = find(&image, Item::classify(&field));
        for spot in spots(&image).collect::<Vec<_>>() {
            assert_eq!(find_behind(&image, Item::classify(&field), spot.end()), found);
        }
        for spot in spots(&image).collect::<Vec<_>>() {
            let end = set(&mut image.clone(), spot, Item::classify(&field), None);
            let mut edited = image.clone();
            set(&mut edited, spot, Item::classify(&field), None);
            assert_eq!(spot_at(&edited, spot.start).end(), end);
        }
    }
}
