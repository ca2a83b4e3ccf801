//! Logs against an ordered map: each four bytes of the input are an edit. A clone is held and compared in the
//! end.
use base::Item;
use pack::log::{Direction, Id, Limits, Log, Pairs, Precision, Trim};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

#[derive(Clone, PartialEq, Debug)]
struct Fields(Vec<(Vec<u8>, Vec<u8>)>);
type Twin = BTreeMap<Id, Fields>;

impl Pairs for Fields {
    fn count(&self) -> usize {
        self.0.len()
    }
    fn name(&self, index: usize) -> &[u8] {
        &self.0[index].0
    }
    fn value(&self, index: usize) -> Item<'_> {
        Item::classify(&self.0[index].1)
    }
    fn text_bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

pub(super) fn run(data: &[u8]) {
    let (mut log, mut twin, mut last) = (Log::new(), Twin::new(), Id::MIN);
    let mut held = (log.clone(), twin.clone());
    for edit in data.chunks_exact(4) {
        let limits = [(0, 5), (300, 0), (4096, 100)][usize::from(edit[0]) % 3];
        let limits = Limits { bytes: limits.0, entries: limits.1 };
        let word = u16::from_le_bytes([edit[2], edit[3]]);
        match edit[0] / 16 {
            0 => held = (log.clone(), twin.clone()),
            1..=9 => {
                let ms = last.ms + u64::from(edit[1] & 3).pow(20);
                last = if ms == last.ms {
                    last.next().expect("ids do not end here")
                } else {
                    Id { ms, seq: u64::from(word & 1) }
                };
                let fields = fields(edit[1], word);
                log.append(last, &fields, &limits);
                twin.insert(last, fields);
            }
            10..=13 => {
                let from = Id { ms: u64::from(word), seq: 0 };
                let id = twin.range(from..).next().map_or(from, |(id, _)| *id);
                assert_eq!(log.remove(id), twin.remove(&id).is_some());
            }
            _ => {
                let precision = match edit[0] & 1 {
                    0 => Precision::Exact,
                    _ => Precision::Leaves { entries_max: u64::from(edit[1]) },
                };
                let max = twin.len() as u64 * u64::from(edit[1]) / 256;
                let gone = log.trim(Trim::MaxLen(max), precision);
                (0..gone).for_each(|_| drop(twin.pop_first()));
            }
        }
        assert_eq!(log.len(), twin.len() as u64);
    }
    compare(&log, &twin);
    compare(&held.0, &held.1);
}

fn fields(kind: u8, word: u16) -> Fields {
    let value = match kind & 3 {
        0 => word.to_string().into_bytes(),
        1 => (i64::from(word as i16) << 47).to_string().into_bytes(),
        2 => vec![kind; usize::from(word % 700)],
        _ => vec![b'a' + kind % 26; usize::from(word & 7)],
    };
    Fields((0..1 + kind % 4).map(|field| (vec![b'f', field, kind & 0x30], value.clone())).collect())
}

fn compare(log: &Log, twin: &Twin) {
    let mut all = Vec::new();
    log.visit(Id::MIN, Direction::Up, &mut |row| {
        let mut fields = Vec::new();
        row.for_each(&mut |name, value| {
            let mut text = Vec::new();
            value.append_to(&mut text);
            fields.push((name.to_vec(), text));
        });
        all.push((row.id, Fields(fields)));
        ControlFlow::Continue(())
    });
    assert!(all.iter().map(|(id, fields)| (id, fields)).eq(twin.iter()), "the log and its twin differ");
}
