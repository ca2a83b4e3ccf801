//! The elements of a collection, gathered from a file so that the collection is built at once.
//!
//! The elements of a block (a listpack, a ziplist) are lent from its bytes. Those that come one by one are
//! copied, so there is a bound on how many are gathered; those behind it are added to what was built.
use super::read::{Reader, TOO_LONG};
use crate::source::{Broken, Source};
use base::Item;
use pack::classic;
use pack::classic::listpack::Listpack;
use pack::classic::ziplist::Ziplist;

/// So many elements are gathered, or elements of so many bytes. Tests come to the bound sooner.
const ELEMENTS_MAX: usize = if cfg!(test) { 1000 } else { 1 << 18 };
const BYTES_MAX: usize = 16 << 20;

/// A block of entries that is being read.
pub(super) enum Packed<'b> {
    Listpack(Listpack<'b>),
    Ziplist(Ziplist<'b>),
}

impl<'b> Packed<'b> {
    fn next_entry(&mut self) -> Result<Option<Item<'b>>, classic::Broken> {
        match self {
            Packed::Listpack(listpack) => listpack.next_entry(),
            Packed::Ziplist(ziplist) => ziplist.next_entry(),
        }
    }

    /// Goes through all entries, none of which may be longer as an element.
    pub(super) fn check_lengths(&mut self, bytes_max: usize) -> Result<(), classic::Broken> {
        while let Some(entry) = self.next_entry()? {
            if matches!(entry, Item::Bytes(text) if text.len() > bytes_max) {
                return Err(classic::Broken { what: TOO_LONG, at: 0 });
            }
        }
        Ok(())
    }

    /// The next entry as an element: an integer where its text reads as one.
    #[inline]
    pub(super) fn next_item(&mut self) -> Result<Option<Item<'b>>, classic::Broken> {
        Ok(self.next_entry()?.map(classified))
    }

    /// The next element, where there has to be one.
    #[inline]
    pub(super) fn item(&mut self) -> Result<Item<'b>, classic::Broken> {
        self.entry().map(classified)
    }

    /// The next entry as it is written, where there has to be one.
    #[inline]
    pub(super) fn entry(&mut self) -> Result<Item<'b>, classic::Broken> {
        match self {
            Packed::Listpack(listpack) => listpack.entry(),
            Packed::Ziplist(ziplist) => ziplist.entry(),
        }
    }

    /// An empty vector with room for one of `size` entries each, if the header says how many there are. It
    /// says no more than 65,535.
    pub(super) fn vector<T>(&self, size: usize) -> Vec<T> {
        match self {
            Packed::Listpack(listpack) => Vec::with_capacity(listpack.len().unwrap_or(0) / size),
            Packed::Ziplist(_) => Vec::new(),
        }
    }

    /// All elements.
    pub(super) fn items(&mut self) -> Result<Vec<Item<'b>>, classic::Broken> {
        let mut items = self.vector(1);
        while let Some(item) = self.next_item()? {
            items.push(item);
        }
        Ok(items)
    }
}

fn classified(entry: Item<'_>) -> Item<'_> {
    match entry {
        Item::Bytes(text) => Item::classify(text),
        Item::Int(n) => Item::Int(n),
    }
}

/// Copies of elements that came one by one.
#[derive(Default)]
pub(super) struct Copies {
    bytes: Vec<u8>,
    cells: Vec<Cell>,
}

enum Cell {
    Int(i64),
    /// A text that ends here, and begins where the last one ended.
    Text(usize),
}

impl Copies {
    /// Whether no more should be gathered.
    pub(super) fn is_full(&self) -> bool {
        self.cells.len() >= ELEMENTS_MAX || self.bytes.len() >= BYTES_MAX
    }

    /// Copies the next element of a file.
    pub(super) fn take(&mut self, reader: &mut Reader<impl Source>) -> Result<(), Broken> {
        match reader.item()? {
            Item::Int(n) => self.cells.push(Cell::Int(n)),
            Item::Bytes(text) => {
                self.bytes.extend_from_slice(text);
                self.cells.push(Cell::Text(self.bytes.len()));
            }
        }
        Ok(())
    }

    /// All of them, in the order in which they came.
    pub(super) fn items(&self) -> Vec<Item<'_>> {
        let mut start = 0;
        let item = |cell: &Cell| match cell {
            Cell::Int(n) => Item::Int(*n),
            Cell::Text(end) => Item::Bytes(&self.bytes[std::mem::replace(&mut start, *end)..*end]),
        };
        self.cells.iter().map(item).collect()
    }
}
