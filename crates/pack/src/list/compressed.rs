//! Compressed leaves: the tight form of a list leaf, packed as a whole.
//!
//! ```text
//!  0      kind = 3, bits 2-3 codec: 0 lzf, 1 lz4, 2 zstd
//!  1..4   zero
//!  4..8   count          so that ranks need no decoding; little endian, as all numbers here
//!  8..12  raw length     of the tight form
//! 12..    the packed bytes
//! ```
//!
//! Four times the element `ab` is tight as `01 04 61 62 61 62 61 62 61 62 02 02 02 02`; were it longer, it
//! would begin as a leaf compressed by zstd with `0b 00 00 00 04 00 00 00 0e 00 00 00`. It is not: as in
//! Redis a leaf below 48 bytes stays open, and so does one that compression would shorten by less than 8
//! bytes.
//!
//! Entries come first and lengths after all of them, because the codecs find more in columns than in a
//! mixture. Compressor and decompressor of zstd keep tables that cost more to make than a leaf to pack, so
//! each thread keeps its own, with one buffer to decode into; nothing else is remembered between calls.
//!
//! Cost: 12 bytes a leaf and what the codec makes of it (zstd: about 0.45 of a leaf of dictionary words in
//! order). Opening a leaf of 8 KB takes some 10 us by zstd, 3 us by lz4.

use crate::classic::lzf;
use crate::code::words::u32_at;
use crate::list::leaf::{self, Leaf};
use crate::list::limits::Codec;
use crate::memory::block::Block;
use std::cell::{Cell, RefCell};

const KIND_COMPRESSED: u8 = 3;
const CODEC_SHIFT: u8 = 2;
const HEADER: usize = 12;
/// As in Redis, leaves of fewer bytes are left open, and so are those that would not get shorter by
/// [`SAVED_MIN`].
const RAW_MIN: usize = 48;
const SAVED_MIN: usize = 8;
/// A thread keeps its buffer while it is no longer than this, so that one huge element does not cost memory
/// for ever.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Chosen by measurement (examples/seq_bytes.rs).
const ZSTD_LEVEL: i32 = 3;

/// The bytes are not what the codec writes, or not as many as was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

thread_local! {
    static RAW: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static PACKER: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static OPENER: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Whether a leaf has to be opened before it is read.
pub(crate) fn is_compressed(leaf: &[u8]) -> bool {
    leaf[0] & leaf::KIND_MASK == KIND_COMPRESSED
}

/// How long the tight form of a compressed leaf is.
pub(crate) fn raw_len(leaf: &[u8]) -> usize {
    debug_assert!(is_compressed(leaf));
    u32_at(leaf, 8) as usize
}

/// The compressed form of an open leaf; None where that would not be shorter by enough.
pub(crate) fn close(open: &[u8], codec: Codec) -> Option<Block> {
    debug_assert!(!is_compressed(open));
    with_buffer(|raw| {
        leaf::copy_tight(Leaf::open(open), raw);
        if raw.len() < RAW_MIN {
            return None;
        }
        let mut closed = Vec::with_capacity(HEADER + raw.len() + raw.len() / 8 + 64);
        closed.extend_from_slice(&[KIND_COMPRESSED | codec_bits(codec) << CODEC_SHIFT, 0, 0, 0]);
        closed.extend_from_slice(&(leaf::count(open) as u32).to_le_bytes());
        closed.extend_from_slice(&(raw.len() as u32).to_le_bytes());
        encode(codec, raw, &mut closed);
        (closed.len() + SAVED_MIN <= open.len()).then(|| Block::fitting(&closed))
    })
}

/// The open form of a compressed leaf, sealed.
pub(crate) fn open(closed: &[u8]) -> Block {
    let mut block = Block::with_capacity(raw_len(closed));
    read(closed, |leaf| leaf::copy_range(leaf, 0..leaf.count(), &mut block));
    debug_assert_eq!(leaf::count(&block), leaf::count(closed));
    block
}

/// Lends the content of a leaf, whichever form it has.
pub(crate) fn read<R>(bytes: &[u8], look: impl FnOnce(Leaf<'_>) -> R) -> R {
    if !is_compressed(bytes) {
        return look(Leaf::open(bytes));
    }
    with_buffer(|raw| {
        decode(codec_of(bytes[0] >> CODEC_SHIFT), &bytes[HEADER..], raw_len(bytes), raw)
            .expect("a compressed leaf is made here alone");
        let leaf = Leaf::open_tight(raw);
        debug_assert_eq!(leaf.count(), leaf::count(bytes));
        look(leaf)
    })
}

/// Lends this thread's buffer. It is not there meanwhile, so a visitor of one leaf that opens another gets a
/// new buffer.
fn with_buffer<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = RAW.take();
    let result = work(&mut buffer);
    if buffer.capacity() <= KEPT_BYTES_MAX {
        RAW.set(buffer);
    }
    result
}

fn codec_bits(codec: Codec) -> u8 {
    match codec {
        Codec::Lzf => 0,
        Codec::Lz4 => 1,
        Codec::Zstd => 2,
    }
}

fn codec_of(bits: u8) -> Codec {
    match bits & 3 {
        0 => Codec::Lzf,
        1 => Codec::Lz4,
        _ => Codec::Zstd,
    }
}

/// Appends the packed form of `raw`. If zstd fails for want of memory, more bytes are appended than `raw`
/// has, so that the caller leaves the leaf open.
fn encode(codec: Codec, raw: &[u8], target: &mut Vec<u8>) {
    match codec {
        Codec::Lzf => lzf::compress(raw, target),
        Codec::Lz4 => target.extend_from_slice(&lz4_flex::block::compress(raw)),
        Codec::Zstd => match zstd_compress(raw) {
            Ok(packed) => target.extend_from_slice(&packed),
            Err(_) => target.resize(target.len() + raw.len() + SAVED_MIN + HEADER, 0),
        },
    }
}

fn zstd_compress(raw: &[u8]) -> std::io::Result<Vec<u8>> {
    PACKER.with_borrow_mut(|packer| {
        let packer = match packer {
            Some(packer) => packer,
            None => packer.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
        };
        packer.compress(raw)
    })
}

/// Makes `target` the `raw_len` bytes that `packed` stands for; an error where they are not what `codec`
/// writes, or not so many. Never panics, whatever the bytes.
pub fn decode(codec: Codec, packed: &[u8], raw_len: usize, target: &mut Vec<u8>) -> Result<(), Corrupt> {
    target.clear();
    target.resize(raw_len, 0);
    match codec {
        Codec::Lzf => lzf::decompress(packed, target).map_err(|_| Corrupt),
        Codec::Lz4 => match lz4_flex::block::decompress_into(packed, target) {
            Ok(len) if len == raw_len => Ok(()),
            _ => Err(Corrupt),
        },
        Codec::Zstd => zstd_decompress(packed, target),
    }
}

fn zstd_decompress(packed: &[u8], target: &mut [u8]) -> Result<(), Corrupt> {
    OPENER.with_borrow_mut(|opener| {
        let opener = match opener {
            Some(opener) => opener,
            None => opener.insert(zstd::bulk::Decompressor::new().map_err(|_| Corrupt)?),
        };
        match opener.decompress_to_buffer(packed, target) {
            Ok(len) if len == target.len() => Ok(()),
            _ => Err(Corrupt),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::leaf::{Start, start};
    use crate::tree::end::End;
    use base::Item;
    use base::random::Random;

    const CODECS: [Codec; 3] = [Codec::Lzf, Codec::Lz4, Codec::Zstd];

    fn words() -> Vec<u8> {
        let mut buffer = Vec::new();
        start(&mut buffer, End::Tail, Item::Bytes(b"word"), 8192, Start::Small);
        for n in 0..500 {
            let word = format!("word-{}", n % 37);
            leaf::push(&mut buffer, End::Tail, Item::Bytes(word.as_bytes()), 8192).expect("room");
        }
        buffer
    }

    #[test]
    fn a_closed_leaf_opens_to_what_it_was() {
        let open = words();
        for codec in CODECS {
            let closed = close(&open, codec).expect("words repeat");
            assert!(closed.len() < open.len() / 2 && leaf::count(&closed) == 501);
            let again = super::open(&closed);
            let leaf = Leaf::open(&again);
            assert_eq!(leaf.used_bytes(), again.len());
            assert!((0..501).all(|i| leaf.get(i) == Leaf::open(&open).get(i)), "{codec:?}");
        }
    }

    #[test]
    fn small_leaves_and_noise_stay_open() {
        let mut random = Random::new(5);
        let noise: Vec<u8> = (0..4000).map(|_| random.next_u64() as u8).collect();
        for value in [&b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"[..], &noise] {
            let mut buffer = Vec::new();
            start(&mut buffer, End::Tail, Item::Bytes(value), 8192, Start::Small);
            leaf::seal(&mut buffer);
            assert!(CODECS.iter().all(|codec| close(&buffer, *codec).is_none()));
        }
    }

    #[test]
    fn a_look_may_look_elsewhere() {
        let closed = close(&words(), Codec::Lz4).expect("words repeat");
        let same = read(&closed, |outer| read(&closed, |inner| outer.get(9) == inner.get(9)));
        assert!(same);
    }

    #[test]
    fn corrupt_bytes_are_an_error_and_never_a_panic() {
        let mut random = Random::new(6);
        for codec in CODECS {
            let closed = close(&words(), codec).expect("words repeat");
            let (mut target, raw_len) = (Vec::new(), raw_len(&closed));
            for _ in 0..3000 {
                let mut bad = closed[HEADER..].to_vec();
                let at = random.below(bad.len() as u64) as usize;
                bad[at] = random.next_u64() as u8;
                bad.truncate(random.below(bad.len() as u64 + 1) as usize);
                let _ = decode(codec, &bad, raw_len, &mut target);
            }
            assert_eq!(decode(codec, &closed[HEADER..], raw_len + 1, &mut target), Err(Corrupt));
        }
    }
}
