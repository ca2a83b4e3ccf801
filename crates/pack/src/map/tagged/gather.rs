//! A leaf made of all its entries at once: they are gathered first, so that the leaf is allocated in its size
//! and each entry is written to its place.
use super::kind::{Kind, NOTE_BYTES};
use super::{Draft, NOTE_NONE, Tagged, entry_len, laid_out, len_of, write_entry};
use crate::map::form::Form;
use crate::memory::block::Block;
use crate::memory::shared::Shared;
use std::marker::PhantomData;

/// What entries are given room for at first.
const ROOM_MIN: usize = 1024;

/// The entries of a leaf to be. References to values outside that are not made a leaf are leaked.
pub(crate) struct Gathered<V, F: Form> {
    /// Tag and length of each entry.
    lanes: Vec<(u8, u32)>,
    /// Room, and at its end the entries as they will lie at the end of the leaf: the last one first.
    bytes: Vec<u8>,
    lens: Lens,
    has_outside: bool,
    owns: PhantomData<(Shared<V>, F)>,
}

/// What a leaf has to know of the lengths of its entries.
#[derive(Clone, Copy)]
struct Lens {
    count: usize,
    sum: usize,
    least: usize,
    most: usize,
}

impl Lens {
    const NONE: Lens = Lens { count: 0, sum: 0, least: usize::MAX, most: 0 };

    #[inline]
    fn with(self, len: usize) -> Lens {
        Lens {
            count: self.count + 1,
            sum: self.sum + len,
            least: self.least.min(len),
            most: self.most.max(len),
        }
    }

    fn kind(self) -> Kind {
        if self.count == 0 { Kind::EMPTY } else { Kind::between(self.count, self.least, self.most) }
    }

    /// The content of a leaf of such entries.
    fn leaf_bytes(self) -> usize {
        self.kind().front_bytes() + self.sum
    }
}

/// How many entries of these lengths there are, and the content of a leaf of all of them.
pub(crate) fn leaf_bytes(entries: impl Iterator<Item = usize>) -> (usize, usize) {
    let lens = entries.fold(Lens::NONE, Lens::with);
    (lens.count, lens.leaf_bytes())
}

impl<V: Clone, F: Form> Gathered<V, F> {
    pub(crate) fn new() -> Gathered<V, F> {
        Gathered {
            lanes: Vec::new(),
            bytes: Vec::new(),
            lens: Lens::NONE,
            has_outside: false,
            owns: PhantomData,
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The content of the leaf that the entries would make, with one of `more` bytes.
    pub(crate) fn leaf_bytes_with(&self, more: usize) -> usize {
        self.lens.with(more).leaf_bytes()
    }

    /// How many bytes an entry takes, tag and length not counted.
    pub(crate) fn entry_len(draft: &Draft<'_>, outside: Option<&Shared<V>>) -> usize {
        len_of::<F>(draft, outside.is_some())
    }

    /// Adds an entry. The caller makes sure that no two have one key.
    pub(crate) fn push(&mut self, draft: &Draft<'_>, outside: Option<Shared<V>>) {
        debug_assert!(draft.birth.is_none(), "a map that is built has no uses");
        let (draft, pointer) = &laid_out::<V, F>(draft, outside);
        let len = entry_len::<F>(draft, *pointer);
        if len > self.start() {
            self.make_room(len);
        }
        let end = self.start();
        write_entry::<F>(&mut self.bytes[end - len..end], draft, *pointer);
        self.lanes.push((draft.tag, u32::try_from(len).expect("an entry has less than 4 GB")));
        self.lens = self.lens.with(len);
        self.has_outside |= pointer.is_some();
    }

    /// Where the entries begin in `bytes`.
    fn start(&self) -> usize {
        self.bytes.len() - self.lens.sum
    }

    /// Room for `len` more bytes, before those that are there.
    #[cold]
    fn make_room(&mut self, len: usize) {
        let (start, old) = (self.start(), self.bytes.len());
        let more = (old + len).max(ROOM_MIN);
        self.bytes.resize(old + more, 0);
        self.bytes.copy_within(start..old, start + more);
    }

    /// The leaf of these entries, in the order in which they came. None are left.
    pub(crate) fn take(&mut self) -> Tagged<V, F> {
        let kind = Kind { has_outside: self.has_outside, ..self.lens.kind() };
        let entries = &self.bytes[self.start()..];
        debug_assert_eq!(kind.count, self.lanes.len());
        let mut leaf: Tagged<V, F> = Tagged::of_block(Block::spread_tightly(
            &NOTE_NONE.to_le_bytes(),
            kind.front_bytes() - NOTE_BYTES + entries.len(),
            &[],
        ));
        let block = leaf.block.make_mut();
        assert!(kind.front_bytes() + entries.len() <= block.len(), "the leaf has room for all it is made of");
        let at = block.len() - entries.len();
        block[at..].copy_from_slice(entries);
        for (index, (tag, len)) in self.lanes.iter().enumerate() {
            kind.set_lane(block, index, *tag, *len as usize);
        }
        kind.store(block);
        leaf.check();
        self.lanes.clear();
        (self.lens, self.has_outside) = (Lens::NONE, false);
        leaf
    }
}
