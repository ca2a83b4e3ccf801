//! Decoders on any bytes, which must answer with an error or with bytes, and short lists edited through
//! drafts.
//!
//! The first byte chooses the codec and the length that is promised; the rest is what a dump file might hold.
use base::Item;
use pack::compressed::decode;
use pack::image::{self, Draft};
use pack::lzf;
use pack::seq::{Codec, End};

pub(super) fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let codec = [Codec::Lzf, Codec::Lz4, Codec::Zstd][usize::from(*first) % 3];
    let _ = decode(codec, rest, usize::from(*first) * 8, &mut Vec::new());
    survives_lzf(rest);
    survives_an_image(rest);
}

fn survives_lzf(bytes: &[u8]) {
    let (mut packed, mut opened) = (Vec::new(), vec![0; bytes.len()]);
    lzf::compress(bytes, &mut packed);
    assert_eq!(lzf::decompress(&packed, &mut opened), Ok(()));
    assert_eq!(opened, bytes);
}

/// The pieces between commas are pushed, at the end that their length says, with an image between any two.
fn survives_an_image(bytes: &[u8]) {
    let (mut draft, mut list, mut closed) = (Draft::new(), Vec::new(), Vec::new());
    for piece in bytes.split(|byte| *byte == b',').take(64) {
        draft.open(&closed);
        match piece.len() % 2 {
            0 => (draft.push(End::Tail, piece), list.push(piece)).1,
            _ => (draft.push(End::Head, piece), list.insert(0, piece)).1,
        }
        closed = draft.close().to_vec();
    }
    for (index, piece) in list.iter().enumerate() {
        assert_eq!(image::get(&closed, index as u64), Some(Item::classify(piece)));
    }
    assert_eq!(image::len(&closed), list.len() as u64);
}
