//! The image of a small hash against a vector of pairs: each four bytes of the input are an edit of one of
//! two dozen fields, of which some are integers. A field keeps its place until it goes.
use base::Item;
use pack::pairs::{self, FIELD_MAX, MARK_BYTES, VALUE_MAX};

type Twin = Vec<(Vec<u8>, Vec<u8>, Option<Vec<u8>>)>;

pub(super) fn run(data: &[u8]) {
    let (mut image, mut twin) = (Vec::new(), Twin::new());
    for edit in data.chunks_exact(4) {
        let field = text(edit[1] % 24, edit[1]);
        let value = match edit[0] & 0x10 {
            0 => text(edit[2], edit[3]),
            _ => vec![edit[2]; (usize::from(edit[3]) * 9).min(VALUE_MAX)],
        };
        let mark = (edit[0] & 0x40 != 0).then(|| vec![edit[3]; MARK_BYTES[usize::from(edit[0] >> 7)]]);
        let at = twin.iter().position(|pair| pair.0 == field);
        let spot = pairs::find(&image, Item::classify(&field));
        assert_eq!(spot.is_some(), at.is_some(), "a lookup finds what is there");
        match (at, spot, edit[0] % 4) {
            (Some(at), Some(spot), 0) => {
                pairs::remove(&mut image, spot);
                twin.remove(at);
            }
            (Some(at), Some(spot), 1) => {
                pairs::set_mark(&mut image, spot, mark.as_deref());
                twin[at].2 = mark;
            }
            (Some(at), Some(spot), _) => {
                pairs::set(&mut image, spot, Item::classify(&value), mark.as_deref());
                (twin[at].1, twin[at].2) = (value, mark);
            }
            (_, _, 3) => pairs::flag(&mut image),
            _ => {
                pairs::push(&mut image, Item::classify(&field), Item::classify(&value), mark.as_deref());
                twin.push((field, value, mark));
            }
        }
        let len = if edit[0] & 8 == 0 { pairs::len(&image) } else { pairs::len_of_kept(&mut image) };
        assert_eq!(len, twin.len() as u64);
    }
    compare(&image, &twin);
}

/// Small and large integers, texts that only look like some, and texts up to the longest.
fn text(kind: u8, word: u8) -> Vec<u8> {
    let n = i64::from(word);
    match kind % 8 {
        0 => n.to_string().into_bytes(),
        1 => (n.wrapping_mul(-0x0123_4567_89AB_CDEF)).to_string().into_bytes(),
        2 => format!("0{n}").into_bytes(),
        3 => vec![b'l'; FIELD_MAX.min(usize::from(word))],
        _ => format!("field:{kind}").into_bytes(),
    }
}

fn compare(image: &[u8], twin: &Twin) {
    let owned = |item: Item<'_>| {
        let mut text = Vec::new();
        item.append_to(&mut text);
        text
    };
    let all: Twin = pairs::iter(image)
        .map(|pair| (owned(pair.field), owned(pair.value), pair.mark.map(<[u8]>::to_vec)))
        .collect();
    assert!(all == *twin, "the image and its twin differ");
}
