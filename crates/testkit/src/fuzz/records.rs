//! Records by id against an ordered map: each four bytes of the input are an edit. A clone is held and
//! compared in the end.
use pack::log::Id;
use pack::records::Records;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

type Twin = BTreeMap<Id, [u8; 12]>;

pub(super) fn run(data: &[u8]) {
    let (mut records, mut twin) = (Records::<12>::new(), Twin::new());
    let mut held = (records.clone(), twin.clone());
    for edit in data.chunks_exact(4) {
        let word = u16::from_le_bytes([edit[2], edit[3]]);
        let id = match edit[0] & 3 {
            0 => {
                twin.last_key_value().map_or(Id { ms: 1, seq: 0 }, |(last, _)| Id { ms: last.ms + 1, seq: 0 })
            }
            _ => Id { ms: u64::from(word % 600), seq: u64::from(edit[0] & 4) },
        };
        match edit[0] >> 3 {
            0 => held = (records.clone(), twin.clone()),
            1..16 => assert_eq!(records.insert(id, [edit[1]; 12]), twin.insert(id, [edit[1]; 12])),
            16..28 => {
                let id = twin.range(id..).next().map_or(id, |(id, _)| *id);
                assert_eq!(records.remove(id), twin.remove(&id));
            }
            _ => assert_eq!(records.get(id), twin.get(&id).copied()),
        }
        assert_eq!(records.len(), twin.len() as u64);
    }
    compare(&records, &twin);
    compare(&held.0, &held.1);
}

fn compare(records: &Records<12>, twin: &Twin) {
    let mut all = Twin::new();
    records.visit(Id::MIN, &mut |id, payload| {
        assert!(all.insert(id, payload).is_none(), "a record is there twice");
        ControlFlow::Continue(())
    });
    assert!(all == *twin, "the records and their twin differ");
    let ends = |(id, payload): (&Id, &[u8; 12])| (*id, *payload);
    assert_eq!(records.first(), twin.first_key_value().map(ends));
    assert_eq!(records.last(), twin.last_key_value().map(ends));
}
