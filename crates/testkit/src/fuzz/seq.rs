//! Lists against a deque: each four bytes of the input are an edit. Limits change on the way, a clone is held
//! and compared in the end.
use base::Item;
use pack::seq::{Codec, End, Fill, Limits, Seq};
use std::collections::VecDeque;
use std::ops::ControlFlow;

type List = VecDeque<Vec<u8>>;

pub(super) fn run(data: &[u8]) {
    let (mut seq, mut model, mut limits) = (Seq::new(), List::new(), limits(0));
    let mut held = (seq.clone(), model.clone());
    for edit in data.chunks_exact(4) {
        match edit[0] {
            byte @ 0..=15 => limits = self::limits(byte),
            16..=23 => held = (seq.clone(), model.clone()),
            _ => apply(edit, &mut seq, &mut model, &limits),
        }
        assert_eq!(seq.len(), model.len() as u64);
    }
    compare(&seq, &model);
    compare(&held.0, &held.1);
}

fn limits(byte: u8) -> Limits {
    Limits {
        fill: [Fill::Entries(1), Fill::Entries(5), Fill::Bytes(4096), Fill::Bytes(8192)]
            [usize::from(byte & 3)],
        depth: u32::from(byte >> 2 & 3),
        codec: [Codec::Lzf, Codec::Lz4, Codec::Zstd][usize::from(byte) % 3],
    }
}

/// An integer, a short string, or a long one.
fn value(kind: u8, word: u16) -> Vec<u8> {
    match kind & 7 {
        0..=2 => word.to_string().into_bytes(),
        3 => (i64::from(word as i16) << 47).to_string().into_bytes(),
        4 => vec![kind; usize::from(word)],
        5 => word.to_le_bytes().repeat(usize::from(word & 63)),
        _ => vec![b'a' + kind % 26; usize::from(word & 31)],
    }
}

fn apply(edit: &[u8], seq: &mut Seq, model: &mut List, limits: &Limits) {
    let word = u16::from_le_bytes([edit[2], edit[3]]);
    let value = value(edit[1], word);
    let at = if model.is_empty() { 0 } else { usize::from(word) % model.len() };
    match edit[0] % 8 {
        0 | 1 => (0..1 + edit[1] / 8).for_each(|_| {
            seq.push(End::Tail, &value, limits);
            model.push_back(value.clone());
        }),
        2 => {
            seq.push(End::Head, &value, limits);
            model.push_front(value);
        }
        3 => {
            seq.insert(at as u64, &value, limits);
            model.insert(at, value);
        }
        4 if !model.is_empty() => {
            seq.set(at as u64, &value, limits);
            model[at] = value;
        }
        5 => assert_eq!(seq.pop(End::Head, limits, text), model.pop_front()),
        6 => assert_eq!(seq.pop(End::Tail, limits, text), model.pop_back()),
        _ => {
            let count = usize::from(edit[1]).min(model.len() - at);
            seq.remove(at as u64, count as u64, limits);
            model.drain(at..at + count);
        }
    }
}

fn text(item: Item<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    item.append_to(&mut text);
    text
}

fn compare(seq: &Seq, model: &List) {
    let mut all = Vec::new();
    seq.visit(0, End::Tail, &mut |_, item| {
        all.push(text(item));
        ControlFlow::Continue(())
    });
    assert!(all.iter().eq(model), "the list and its twin differ");
}
