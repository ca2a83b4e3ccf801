//! A value outside a leaf: reference-counted, behind a thin pointer that fits the last 8 bytes of an entry.
//!
//! It is not an `Arc`, which has a second count: 8 bytes more for each value, of which there may be millions.
use crate::memory::counted::count_copied;
use crate::memory::refs::Refs;
use crate::memory::{alloc, arena, twins};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

struct Body<V> {
    refs: Refs,
    value: V,
}

/// A value that several entries may own. It is edited in place by its only owner; any other owner gets a copy
/// to edit.
pub struct Shared<V>(NonNull<Body<V>>);

// SAFETY: as for `Arc`: several threads may read the value, and the last to let go drops it.
unsafe impl<V: Send + Sync> Send for Shared<V> {}
// SAFETY: as above.
unsafe impl<V: Send + Sync> Sync for Shared<V> {}

/// Bytes of a pointer as it is stored in an entry.
pub(crate) const POINTER_BYTES: usize = 8;
const _: () = assert!(size_of::<Shared<u8>>() == POINTER_BYTES);

impl<V> Shared<V> {
    /// A value with one owner, the caller.
    pub fn new(value: V) -> Shared<V> {
        let body = Self::allocate();
        // SAFETY: fresh, large enough and aligned.
        unsafe { body.write(Body { refs: Refs::one(), value }) };
        Shared(body)
    }

    fn allocate() -> NonNull<Body<V>> {
        const { assert!(align_of::<Body<V>>() <= 8) };
        alloc::allocate(Self::body_bytes()).cast()
    }

    /// # Safety
    /// The body came from [`Shared::allocate`]; nobody uses it any more, and its value was dropped or moved
    /// out.
    unsafe fn free(body: NonNull<Body<V>>) {
        // SAFETY: the caller's promise; it was allocated with this size.
        unsafe { alloc::free(body.cast(), Self::body_bytes()) };
    }

    /// Moves the value whose pointer these bytes are to another allocation, if its extent is being emptied
    /// ([`arena::is_evacuating`]). Returns the bytes to store instead; None where the value stays, because
    /// its extent is not being emptied or another owner knows its address.
    ///
    /// # Safety
    /// As for [`Shared::from_bytes`]: of the old bytes and the new ones only one own the reference, the new
    /// ones if there are any.
    pub(crate) unsafe fn relocate(bytes: [u8; POINTER_BYTES]) -> Option<[u8; POINTER_BYTES]> {
        let old = Self::pointer(bytes);
        if !arena::is_evacuating(old.cast()) {
            return None;
        }
        // SAFETY: the caller promises that the body is there.
        if !unsafe { &(*old).refs }.is_sole() {
            return None;
        }
        let _beside = arena::beside(old.cast());
        let fresh = Self::allocate();
        debug_assert!(fresh.as_ptr() != old, "the old body is in use until it was copied");
        // SAFETY: both are bodies of one size; the only reference goes over to the new one, and the old one's
        // value with it.
        unsafe {
            fresh.copy_from_nonoverlapping(NonNull::new_unchecked(old), 1);
            Self::free(NonNull::new_unchecked(old));
        }
        Some(Shared(fresh).into_bytes())
    }

    /// Where the body lies, for a prefetch.
    pub(crate) fn address(bytes: [u8; POINTER_BYTES]) -> *const u8 {
        Self::pointer(bytes).cast()
    }

    /// This owner keeps the value only for a moment, on this thread: see `twins.rs`, whose rules the caller
    /// follows.
    pub fn note_kept(&self) {
        twins::note_kept(self.0.cast());
    }

    /// Whether another owner has it too, at this moment.
    pub fn is_shared(&self) -> bool {
        !self.body().refs.is_sole()
    }

    /// The pointer as bytes; they own the reference from here on.
    pub(crate) fn into_bytes(self) -> [u8; POINTER_BYTES] {
        let address = ManuallyDrop::new(self).0.as_ptr().expose_provenance() as u64;
        address.to_le_bytes()
    }

    /// # Safety
    /// The bytes came from [`Shared::into_bytes`] of the same type, and own a reference that this takes over.
    pub(crate) unsafe fn from_bytes(bytes: [u8; POINTER_BYTES]) -> Shared<V> {
        // SAFETY: the caller promises that the address is that of a body, never null.
        Shared(unsafe { NonNull::new_unchecked(Self::pointer(bytes)) })
    }

    /// # Safety
    /// The bytes came from [`Shared::into_bytes`] of the same type, and own a reference for all of `'a`.
    pub(crate) unsafe fn peek<'a>(bytes: [u8; POINTER_BYTES]) -> &'a V {
        // SAFETY: the caller's promise.
        unsafe { &(*Self::pointer(bytes)).value }
    }

    /// # Safety
    /// As for [`Shared::peek`], and nobody else holds a reference to this value.
    pub(crate) unsafe fn peek_mut<'a>(bytes: [u8; POINTER_BYTES]) -> &'a mut V {
        // SAFETY: the caller's promise.
        debug_assert!(unsafe { Self::is_sole(bytes) }, "only a sole owner edits a value where it lies");
        // SAFETY: the caller's promise.
        unsafe { &mut (*Self::pointer(bytes)).value }
    }

    /// Whether the value has no other owner.
    ///
    /// # Safety
    /// As for [`Shared::peek`].
    #[inline]
    pub(crate) unsafe fn is_sole(bytes: [u8; POINTER_BYTES]) -> bool {
        // SAFETY: the caller's promise.
        unsafe { &(*Self::pointer(bytes)).refs }.is_sole()
    }

    /// Bytes of one body, as it is asked from the allocator.
    pub(crate) const fn body_bytes() -> usize {
        size_of::<Body<V>>()
    }

    /// Bytes of one body, the allocator's rounding included.
    pub(crate) fn allocated_bytes() -> usize {
        alloc::footprint(alloc::rounded(Self::body_bytes()))
    }

    fn pointer(bytes: [u8; POINTER_BYTES]) -> *mut Body<V> {
        let address = u64::from_le_bytes(bytes) as usize;
        debug_assert!(address != 0 && address.is_multiple_of(align_of::<Body<V>>()), "no pointer to a value");
        std::ptr::with_exposed_provenance_mut(address)
    }

    fn body(&self) -> &Body<V> {
        // SAFETY: the body lives as long as any reference to it.
        unsafe { self.0.as_ref() }
    }
}

impl<V: Clone> Shared<V> {
    /// A value of its own. If the other of two owners keeps the old one, nodes of its trees may get twins.
    fn copied(&self) -> Shared<V> {
        let copy = || Shared::new(V::clone(self));
        if self.body().refs.are_two() { twins::copying(self.0.cast(), copy) } else { copy() }
    }

    /// The value, to be edited: cloned first where another owner has it too.
    pub fn make_mut(&mut self) -> &mut V {
        if self.is_shared() {
            *self = count_copied(|| self.copied());
        }
        // SAFETY: we are the only owner, and `&mut self` keeps it so.
        unsafe { &mut self.0.as_mut().value }
    }
}

impl<V> Deref for Shared<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.body().value
    }
}

/// Another reference, or a clone of the value where it has as many owners as can be counted.
impl<V: Clone> Clone for Shared<V> {
    fn clone(&self) -> Shared<V> {
        if self.body().refs.retain() { Shared(self.0) } else { Shared::new(V::clone(self)) }
    }
}

#[cfg(test)]
impl<V> Shared<V> {
    /// Counts so many owners more, or no longer.
    pub(crate) fn pretend_owners(&self, more: u32) {
        self.body().refs.pretend(more);
    }
}

impl<V> Drop for Shared<V> {
    fn drop(&mut self) {
        if self.body().refs.release() {
            // SAFETY: ours was the last reference.
            unsafe {
                self.0.drop_in_place();
                Self::free(self.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::refs::REFS_MAX;
    use std::sync::Arc;

    #[test]
    fn a_value_is_cloned_for_an_edit_only_when_it_is_shared() {
        let witness = Arc::new(());
        let mut first = Shared::new((witness.clone(), 1));
        first.make_mut().1 = 2;
        assert_eq!(Arc::strong_count(&witness), 2);
        let second = first.clone();
        first.make_mut().1 = 3;
        assert_eq!((first.1, second.1, Arc::strong_count(&witness)), (3, 2, 3));
        assert_eq!((second.1, second.is_shared()), (2, false));
        drop((first, second));
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn one_owner_more_than_can_be_counted_gets_a_clone_of_the_value() {
        let shared = Shared::new(vec![7]);
        shared.pretend_owners(REFS_MAX - 2);
        let (last, mut copy) = (shared.clone(), shared.clone());
        copy.make_mut().push(8);
        assert_eq!(
            (&*last, &*copy, copy.is_shared(), last.0 == shared.0),
            (&vec![7], &vec![7, 8], false, true)
        );
        drop(last);
        shared.pretend_owners(0_u32.wrapping_sub(REFS_MAX - 2));
        assert!(!shared.is_shared());
    }

    #[test]
    fn a_pointer_survives_as_bytes() {
        let witness = Arc::new(7);
        let bytes = Shared::new(witness.clone()).into_bytes();
        // SAFETY: the bytes own their reference.
        assert_eq!(**unsafe { Shared::<Arc<i32>>::peek(bytes) }, 7);
        // SAFETY: the bytes are not used after this.
        drop(unsafe { Shared::<Arc<i32>>::from_bytes(bytes) });
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}
