//! Lengths, strings and numbers, written behind one another: all into memory, or through it to a sink.
use super::kind::Type;
use super::save::Form;
use base::Item;
use base::text::parse_i64;
use pack::classic::listpack::ListpackWriter;
use pack::lzf::Compressor;
use std::ops::ControlFlow;

/// Shorter strings are not compressed.
const COMPRESSED_BYTES_MIN: usize = 21;
/// The longest text of an integer of 32 bits.
const INT_TEXT_BYTES_MAX: usize = 11;

/// Takes what was written.
pub(crate) trait Sink {
    /// Breaks off if it can take no more. It keeps the reason, for whoever owns the sink.
    fn take(&mut self, bytes: &[u8]) -> ControlFlow<()>;
}

/// How many bytes are gathered for a sink.
const GATHERED_BYTES: usize = 128 << 10;
/// How many bytes are gathered for a sink behind a count that is not known yet.
const COUNTED_BYTES_MAX: usize = 1 << 20;

/// Writes what values are made of.
pub(crate) struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// Where `out` goes when it has grown to [`GATHERED_BYTES`].
    sink: Option<&'o mut dyn Sink>,
    /// [`GATHERED_BYTES`] where there is a sink.
    full_bytes: usize,
    /// How long `out` may become behind a count that is not known yet; 0 once it would have become longer.
    gathered_bytes_max: usize,
    /// The sink takes no more.
    is_broken: bool,
    pub(crate) form: Form,
    /// The name of the key whose value comes next; none in a payload.
    name: Option<Vec<u8>>,
    compressor: Compressor,
    /// What a string was compressed to.
    packed: Vec<u8>,
    /// Room for a collection that is written as one block.
    block: Option<ListpackWriter>,
}

impl<'o> Writer<'o> {
    /// Appends to `out`.
    pub(crate) fn new(out: &'o mut Vec<u8>, form: Form) -> Writer<'o> {
        let compressor = Compressor::default();
        let (full_bytes, packed) = (usize::MAX, Vec::new());
        let (name, block, gathered_bytes_max) = (None, None, usize::MAX);
        Writer {
            out,
            sink: None,
            full_bytes,
            gathered_bytes_max,
            is_broken: false,
            form,
            name,
            compressor,
            packed,
            block,
        }
    }

    /// Hands everything to `sink`, by way of `out`.
    pub(crate) fn into_sink(out: &'o mut Vec<u8>, sink: &'o mut dyn Sink, form: Form) -> Writer<'o> {
        Writer { sink: Some(sink), full_bytes: GATHERED_BYTES, ..Writer::new(out, form) }
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.drain_if_full();
    }

    #[inline]
    fn drain_if_full(&mut self) {
        if self.out.len() >= self.full_bytes {
            self.drain();
        }
    }

    /// Hands over what was gathered for the sink.
    #[cold]
    pub(crate) fn drain(&mut self) {
        if let Some(sink) = &mut self.sink {
            self.is_broken |= sink.take(self.out).is_break();
            self.out.clear();
        }
    }

    /// Whether the sink takes no more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The value that comes next belongs to the key of this name.
    pub(crate) fn begin_key(&mut self, name: &[u8]) {
        let room = self.name.get_or_insert_default();
        room.clear();
        room.extend_from_slice(name);
    }

    /// The type of a value, and the name of its key, where it has one.
    pub(crate) fn put_type(&mut self, kind: Type) {
        self.bytes(&[kind as u8]);
        if let Some(name) = self.name.take() {
            self.string(&name);
            self.name = Some(name);
        }
    }

    pub(crate) fn millis(&mut self, millis: i64) {
        self.bytes(&millis.to_le_bytes());
    }

    pub(crate) fn double(&mut self, value: f64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn length(&mut self, length: u64) {
        let (bytes, len) = length_bytes(length);
        self.bytes(&bytes[..len]);
    }

    /// A count, and what it counts, which `write` writes while it counts it. Where that is more than is
    /// gathered for a sink, `count` is asked first and `write` again: it breaks off where
    /// [`Writer::may_gather`] says no.
    pub(crate) fn counted(
        &mut self,
        write: &mut dyn FnMut(&mut Writer<'_>) -> u64,
        count: &mut dyn FnMut() -> u64,
    ) {
        let start = self.out.len();
        let full_bytes = std::mem::replace(&mut self.full_bytes, usize::MAX);
        if self.sink.is_some() {
            self.gathered_bytes_max = start + COUNTED_BYTES_MAX;
        }
        // Most counts take one byte.
        self.out.push(0);
        let counted = write(self);
        let is_whole = self.gathered_bytes_max > 0;
        (self.gathered_bytes_max, self.full_bytes) = (usize::MAX, full_bytes);
        if is_whole {
            let (head, len) = length_bytes(counted);
            self.out.splice(start..=start, head[..len].iter().copied());
            self.drain_if_full();
        } else {
            self.out.truncate(start);
            self.length(count());
            write(self);
        }
    }

    /// Whether so many bytes more may be written behind a count: otherwise it has to be counted first.
    pub(crate) fn may_gather(&mut self, bytes: u64) -> bool {
        let may = self.out.len() as u64 + bytes <= self.gathered_bytes_max as u64;
        if !may {
            self.gathered_bytes_max = 0;
        }
        may
    }

    /// A value: as an integer where it is one of at most 32 bits, otherwise as a string.
    pub(crate) fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Int(value) if i32::try_from(value).is_ok() => self.int(value as i32),
            Item::Int(value) => self.plain(base::text::I64Text::new().format(value)),
            Item::Bytes(text) => self.string(text),
        }
    }

    /// A string: as an integer where it is one, or compressed where that is shorter.
    pub(crate) fn string(&mut self, text: &[u8]) {
        if text.len() <= INT_TEXT_BYTES_MAX
            && let Some(value) = parse_i64(text).and_then(|value| i32::try_from(value).ok())
        {
            return self.int(value);
        }
        if self.form.compresses && text.len() >= COMPRESSED_BYTES_MIN && self.compressed(text) {
            return;
        }
        self.plain(text);
    }

    fn int(&mut self, value: i32) {
        let wide = value.to_le_bytes();
        match value {
            -0x80..=0x7F => self.bytes(&[0xC0, wide[0]]),
            -0x8000..=0x7FFF => self.bytes(&[0xC1, wide[0], wide[1]]),
            _ => {
                self.bytes(&[0xC2]);
                self.bytes(&wide);
            }
        }
    }

    /// Writes a string compressed and returns true; or writes nothing and returns false, if that saves too
    /// little.
    fn compressed(&mut self, text: &[u8]) -> bool {
        if text.len() >= u32::MAX as usize {
            return false;
        }
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        self.compressor.compress(text, &mut packed);
        // The compressed form needs a second length and the byte of its encoding; Redis asks for 4 bytes too.
        let is_shorter = packed.len() + 4 < text.len();
        if is_shorter {
            self.bytes(&[0xC3]);
            self.length(packed.len() as u64);
            self.length(text.len() as u64);
            self.bytes(&packed);
        }
        self.packed = packed;
        is_shorter
    }

    /// An empty block.
    pub(crate) fn block(&mut self) -> ListpackWriter {
        self.block.take().unwrap_or_default()
    }

    /// Writes a block, which goes back to where its room is kept.
    pub(crate) fn packed(&mut self, mut block: ListpackWriter) {
        self.string(block.finish());
        self.keep_room(block);
    }

    /// Keeps the room of a block for the next.
    pub(crate) fn keep_room(&mut self, mut block: ListpackWriter) {
        block.clear();
        self.block = Some(block);
    }

    /// A string as it is.
    pub(crate) fn plain(&mut self, text: &[u8]) {
        self.length(text.len() as u64);
        self.bytes(text);
    }
}

/// How a length is written, and in how many bytes.
fn length_bytes(length: u64) -> ([u8; 9], usize) {
    let mut bytes = [0; 9];
    let len = match length {
        0..0x40 => {
            bytes[0] = length as u8;
            1
        }
        0x40..0x4000 => {
            bytes[..2].copy_from_slice(&(0x4000 | length as u16).to_be_bytes());
            2
        }
        0x4000..0x1_0000_0000 => {
            bytes[0] = 0x80;
            bytes[1..5].copy_from_slice(&(length as u32).to_be_bytes());
            5
        }
        _ => {
            bytes[0] = 0x81;
            bytes[1..].copy_from_slice(&length.to_be_bytes());
            9
        }
    };
    (bytes, len)
}
