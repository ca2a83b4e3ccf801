//! Payloads outside their leaf. One that is longer than its form allows ([`Form::PAYLOAD_INSIDE_MAX`]) lies
//! in a block of its own, so that a leaf has many entries whatever they hold, and an edit of one that is long
//! moves none of the others. Whoever keeps a map does not see the difference.
//!
//! ```text
//! in the leaf   +------+------------+-----+-------------+
//!               | meta | key length | key | address | 1 |    bit 7 of meta: there is an address;
//!               |      |            |     | 8 bytes     |    its lowest bit: it is a payload's
//!               +------+------------+-----+------|------+
//!                                                v
//!               +------+-----+------+---------+------+
//!               | refs | len | size | payload | room |       a block (`memory/block.rs`)
//!               +------+-----+------+---------+------+
//! ```
//!
//! An entry has a payload outside or a value outside, not both: the payload beside a value is a few bytes.
//! A payload that has gone out returns when it is written anew with less than three quarters of the limit, so
//! that one which swings around the limit stays. A shorter one goes out too where the caller says that it is
//! going to change its length often, which in the leaf would move its neighbours each time. Copies of a leaf
//! share the blocks of its payloads, and the first edit copies one. Cost: 20 bytes, the pointer, and the
//! allocator's rounding.
use super::{Draft, OUTSIDE, Parts, Slot, Tagged};
use crate::map::form::Form;
use crate::memory::block::{Block, HEADER_BYTES};
use crate::memory::counted;
use crate::memory::shared::{POINTER_BYTES, Shared};
use std::mem::ManuallyDrop;

/// The lowest byte's bit that tells the address of a payload from that of a value.
const PAYLOAD: u8 = 1;

/// What an entry ends in.
#[derive(Clone, Copy)]
pub(super) enum Tail {
    Nothing,
    /// The pointer to a value outside.
    Value([u8; POINTER_BYTES]),
    /// The address of its payload.
    Payload([u8; POINTER_BYTES]),
}

/// Bytes of a payload's block.
pub(crate) struct PayloadBytes {
    pub(crate) used: usize,
    pub(crate) allocated: usize,
}

impl Tail {
    /// What the entry that these bytes are ends in, without a look at its key.
    #[inline(always)]
    pub(super) fn of<F: Form>(entry: &[u8]) -> Tail {
        match entry.last_chunk::<POINTER_BYTES>() {
            Some(pointer) if F::META != 0 && entry[0] & OUTSIDE != 0 => Tail::read(*pointer),
            _ => Tail::Nothing,
        }
    }

    #[inline(always)]
    fn read(mut pointer: [u8; POINTER_BYTES]) -> Tail {
        if pointer[0] & PAYLOAD == 0 {
            return Tail::Value(pointer);
        }
        pointer[0] &= !PAYLOAD;
        Tail::Payload(pointer)
    }

    /// The pointer to a value outside.
    #[inline(always)]
    pub(super) fn value(self) -> Option<[u8; POINTER_BYTES]> {
        if let Tail::Value(pointer) = self { Some(pointer) } else { None }
    }

    pub(super) fn is_payload(self) -> bool {
        matches!(self, Tail::Payload(_))
    }

    /// The block of the payload, without a reference of its own.
    ///
    /// # Safety
    /// The entry owns its payload, and keeps it for as long as this is used.
    unsafe fn payload(self) -> Option<ManuallyDrop<Block>> {
        let Tail::Payload(address) = self else { return None };
        // SAFETY: the caller's promise; `ManuallyDrop` gives the entry's reference to nobody.
        Some(ManuallyDrop::new(unsafe { Block::from_bytes(address) }))
    }

    /// Takes over what the entry owned: a value is handed on, a payload dropped.
    ///
    /// # Safety
    /// The entry owned it, and is not used any more.
    pub(super) unsafe fn take<V>(self) -> Option<Shared<V>> {
        match self {
            Tail::Nothing => None,
            // SAFETY: the caller's promise.
            Tail::Value(pointer) => Some(unsafe { Shared::from_bytes(pointer) }),
            Tail::Payload(address) => {
                // SAFETY: the caller's promise.
                drop(unsafe { Block::from_bytes(address) });
                None
            }
        }
    }

    /// The same where an entry goes, or what it held: what a snapshot still holds of its payload is counted.
    ///
    /// # Safety
    /// As for [`Tail::take`].
    pub(super) unsafe fn discard<V>(self) -> Option<Shared<V>> {
        // SAFETY: the caller's promise.
        if let Some(block) = unsafe { self.payload() } {
            counted::drop_of(block.allocated_bytes() as u64, ManuallyDrop::into_inner(block));
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe { self.take() }
    }

    /// The pointer for another entry that owns the same.
    ///
    /// # Safety
    /// The entry owns it, and goes on owning it.
    pub(super) unsafe fn share<V: Clone>(self) -> Option<[u8; POINTER_BYTES]> {
        match self {
            Tail::Nothing => None,
            Tail::Value(pointer) => {
                // SAFETY: the caller's promise; the clone's reference is the copy's, which owns it as bytes.
                let shared = ManuallyDrop::new(unsafe { Shared::<V>::from_bytes(pointer) });
                Some(Shared::clone(&shared).into_bytes())
            }
            Tail::Payload(_) => {
                // SAFETY: the caller's promise.
                let block = unsafe { self.payload() }?;
                Some(pointer_to(Block::clone(&block)))
            }
        }
    }
}

/// The pointer of an entry that owns this payload.
fn pointer_to(payload: Block) -> [u8; POINTER_BYTES] {
    let mut pointer = payload.into_bytes();
    pointer[0] |= PAYLOAD;
    pointer
}

/// How many bytes an entry has behind its head: what lies in it of its payload, and the pointer.
pub(crate) fn tail_len<F: Form>(payload_bytes: usize, has_outside: bool) -> usize {
    match has_outside {
        true => payload_bytes + POINTER_BYTES,
        false if payload_bytes > F::PAYLOAD_INSIDE_MAX => POINTER_BYTES,
        false => payload_bytes,
    }
}

/// Whether a payload that lies outside stays there when so many bytes replace it.
#[inline]
pub(crate) fn stays_outside<F: Form>(payload_bytes: usize) -> bool {
    payload_bytes > F::PAYLOAD_INSIDE_MAX / 4 * 3
}

/// The draft as it is written into a leaf, and the pointer behind it: a long payload goes to its block.
#[inline]
pub(super) fn laid_out<'d, V, F: Form>(
    draft: &Draft<'d>,
    outside: Option<Shared<V>>,
) -> (Draft<'d>, Option<[u8; POINTER_BYTES]>) {
    match outside {
        Some(value) => (*draft, Some(value.into_bytes())),
        None if draft.inline.len() > F::PAYLOAD_INSIDE_MAX => {
            let (draft, pointer) = laid_apart(draft);
            (draft, Some(pointer))
        }
        None => (*draft, None),
    }
}

/// The draft as it is written into a leaf, and the pointer behind it, with its payload in a block.
#[inline]
pub(super) fn laid_apart<'d>(draft: &Draft<'d>) -> (Draft<'d>, [u8; POINTER_BYTES]) {
    let block = Block::fitting(draft.inline);
    (Draft { inline: &[], ..*draft }, pointer_to(block))
}

impl<'l> Parts<'l> {
    /// Takes an entry of a leaf apart, which owns what it ends in for as long as it is borrowed.
    #[inline(always)]
    pub(super) fn of<F: Form>(entry: &'l [u8]) -> Parts<'l> {
        let (read, tail) = (F::read(entry), Tail::of::<F>(entry));
        let inline = match tail {
            Tail::Nothing => read.rest,
            Tail::Value(_) => &read.rest[..read.rest.len() - POINTER_BYTES],
            Tail::Payload(_) => payload_of(tail),
        };
        Parts { meta: read.meta, name: read.name, inline, tail }
    }
}

/// The payload that a borrowed entry of a leaf has outside.
#[inline]
fn payload_of<'l>(tail: Tail) -> &'l [u8] {
    // SAFETY: the entry owns the block, and is borrowed for as long as what is returned.
    match unsafe { tail.payload() } {
        // SAFETY: as above: the block's content stays where it is as long as the entry does.
        Some(block) => unsafe { std::slice::from_raw_parts(block.as_ptr(), block.len()) },
        None => &[],
    }
}

impl<V: Clone, F: Form> Tagged<V, F> {
    /// Edits the block of an entry's payload, which may move.
    pub(in crate::map) fn edit_payload<R>(
        &mut self,
        slot: Slot,
        edit: impl FnOnce(&mut Block) -> R,
    ) -> Option<R> {
        self.unshare();
        // SAFETY: the entry owns the block, and is given it back below before anyone reads it.
        let mut block = unsafe { Tail::of::<F>(self.entry(slot)).payload() }?;
        let edited = edit(&mut block);
        self.set_pointer(slot, pointer_to(ManuallyDrop::into_inner(block)));
        Some(edited)
    }

    /// The payload that an entry has outside, to be edited where it lies: copied first where it is shared.
    pub(super) fn payload_mut(&mut self, slot: Slot) -> &mut [u8] {
        let content = self.edit_payload(slot, |block| {
            let content = block.make_mut();
            (content.as_mut_ptr(), content.len())
        });
        match content {
            // SAFETY: the entry is the only owner of the block, and `&mut self` keeps others from the entry.
            Some((start, len)) => unsafe { std::slice::from_raw_parts_mut(start, len) },
            None => &mut [],
        }
    }

    /// Writes meta and the payload of an entry that has it outside, and leaves it there.
    pub(super) fn write_payload(&mut self, slot: Slot, meta: u8, payload: &[u8]) {
        self.edit_payload(slot, |block| block.assign(payload));
        self.set_meta(slot, meta);
    }
}

impl<V, F: Form> Tagged<V, F> {
    /// Whether the payload lies in a block of its own.
    pub(crate) fn is_apart(&self, slot: Slot) -> bool {
        Tail::of::<F>(self.entry(slot)).is_payload()
    }

    /// What the payload takes that an entry has outside.
    pub(crate) fn payload_bytes(&self, slot: Slot) -> Option<PayloadBytes> {
        // SAFETY: the entry owns the block for as long as `self` is borrowed.
        let block = unsafe { Tail::of::<F>(self.entry(slot)).payload() }?;
        Some(PayloadBytes { used: HEADER_BYTES + block.len(), allocated: block.allocated_bytes() })
    }
}
