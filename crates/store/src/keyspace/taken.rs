//! Values on their way: taken from one key to be put under another, or kept to be put back.
use crate::entry::Meta;
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::NO_DEADLINE;
use crate::hash::due::fields_due;
use crate::keyspace::garbage::Garbage;
use crate::keyspace::shard::{discard, is_heavy, value_bytes};
use crate::keyspace::view::{Key, View};
use crate::kind::Kind;
use crate::outside::Outside;
use crate::value::{Parts, Value};
use pack::map::{Entry, Shared};

/// A value taken or copied from one key, to be put under another. What lies outside its entry is not copied.
pub struct Taken {
    meta: Meta,
    inline: Vec<u8>,
    outside: Option<Shared<Value>>,
}

impl Taken {
    pub(crate) fn kind(&self) -> Kind {
        self.meta.shape().kind()
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        (self.meta, &self.inline, self.outside.as_deref())
    }

    pub(crate) fn outside(&self) -> Option<&Shared<Value>> {
        self.outside.as_ref()
    }

    /// What of it is to be freed in the background, because it is large.
    pub(crate) fn into_garbage(self) -> Option<Garbage> {
        let mut garbage = Vec::new();
        discard(self.outside, &mut garbage);
        garbage.pop()
    }
}

/// A value that is kept to be put back. What lies in its entry is in a buffer of whoever keeps it, since many
/// are kept and few put back.
pub struct Kept {
    meta: Meta,
    /// Where that begins in the buffer.
    start: u32,
    len: u32,
    outside: Option<Shared<Value>>,
}

impl Kept {
    /// Whether anything of it lies outside its entry, and may be large.
    pub fn is_outside(&self) -> bool {
        self.outside.is_some()
    }

    /// What of it is to be freed in the background, because it is large. Where the value was written
    /// meanwhile, and not replaced, most of it is the value's own still; then it is freed here, which takes
    /// no longer than it took to write, and before the next write would have to copy what both have. Another
    /// thread would have to be woken for it, too.
    pub fn into_garbage(self) -> Option<Garbage> {
        let value = self.outside.filter(|value| !value.is_shared())?;
        let bytes = value_bytes(&value);
        let is_sole_in = |collection: &dyn Outside, samples| 2 * collection.count_sole(samples) > samples;
        // Nearly always the first two tell.
        let is_replaced = |collection: &dyn Outside| is_sole_in(collection, 2) && is_sole_in(collection, 8);
        let is_burden = is_heavy(&value, bytes) && value.collection().is_none_or(is_replaced);
        is_burden.then(|| Garbage::of_bytes(bytes, value))
    }
}

/// A string is too long to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl View<'_> {
    /// Takes the value of `key`, with its deadline, out of the keyspace.
    pub fn take(&mut self, key: &Key<'_>) -> Option<Taken> {
        let (map, seed, mut context) = self.open(key);
        // What lies inside the entry is copied; of what lies outside only the pointer moves, so a list of any
        // length costs the same.
        let removed = map.remove(seed, key.hash, key.bytes())?;
        let taken = Taken { meta: Meta(removed.meta), inline: removed.inline, outside: removed.outside };
        let deadline = taken.meta.deadline(&taken.inline);
        context.timer.volatile.forget(taken.meta, &taken.inline, taken.outside.as_deref());
        if deadline.is_past(context.timer.now) {
            context.note_expired(key.bytes());
            discard(taken.outside, &mut context.aside.garbage);
            return None;
        }
        Some(taken)
    }

    /// A value that was taken is not needed any more: what of it is large goes to the garbage.
    pub fn discard_taken(&mut self, taken: Option<Taken>) {
        discard(taken.and_then(|taken| taken.outside), &mut self.aside.garbage);
    }

    /// Copies the value of `key`, with its deadline; None where there is no such key. What lies outside gets
    /// one more owner, and is copied later as far as either copy is written: O(1) for a value of any size.
    pub fn copy(&mut self, key: &Key<'_>) -> Option<Taken> {
        let (map, seed, mut context) = self.open(key);
        let Entry::Occupied(mut entry) = map.entry(seed, key.hash, key.bytes()) else { return None };
        let before = context.read(&mut entry);
        if before.is_past {
            context.remove(entry);
            return None;
        }
        Some(Taken { meta: before.meta, inline: entry.inline().to_vec(), outside: entry.share_outside() })
    }

    /// What is under `key`, to be put back by [`View::put_back`] whatever happens to it: the value with its
    /// deadline, which may have passed; None where there is no such key. Its entry is appended to `entries`.
    /// That is no use of the key. O(1). An error for a long string: while it is kept, a write would have to
    /// copy it as a whole.
    ///
    /// Whoever keeps values calls [`end_keeping`](pack::end_keeping) before others may edit or share them,
    /// hence before the shard is unlocked or, alone, before the gates are given back: when what was kept has
    /// gone, but first of all where any of it is put back.
    pub fn keep(&mut self, key: &Key<'_>, entries: &mut Vec<u8>) -> Result<Option<Kept>, TooLong> {
        // To be copied takes about as long as to have the script run by another thread.
        const LONG_BYTES: usize = 512 << 10;
        let (map, seed, _) = self.open(key);
        let Entry::Occupied(entry) = map.entry(seed, key.hash, key.bytes()) else { return Ok(None) };
        let meta = Meta(entry.meta());
        if let Some(text) = entry.found().outside.and_then(Value::text)
            && text.len() > LONG_BYTES
        {
            return Err(TooLong);
        }
        let (start, inline) = (entries.len() as u32, entry.inline());
        entries.extend_from_slice(inline);
        let outside = entry.share_outside().inspect(Shared::note_kept);
        Ok(Some(Kept { meta, start, len: inline.len() as u32, outside }))
    }

    /// Puts what was kept back under its key, with the same buffer. Nobody is told.
    pub fn put_back(&mut self, key: &Key<'_>, kept: Option<Kept>, entries: &[u8]) {
        match kept {
            Some(Kept { meta, start, len, outside }) => {
                let inline = entries[start as usize..(start + len) as usize].to_vec();
                self.put_in_place(key, Taken { meta, inline, outside });
            }
            None => drop(self.remove(key)),
        }
        drop(self.take_told());
    }

    /// Puts a value that was taken or copied under `key`, with its deadline, in the place of whatever was
    /// there. As in Redis the key is a new one, and what was there counts as removed before.
    pub fn put_taken(&mut self, key: &Key<'_>, taken: Taken) {
        self.put_as(key, taken, true);
    }

    /// The same where it is still the same key: that is no use of it.
    pub(crate) fn put_in_place(&mut self, key: &Key<'_>, taken: Taken) {
        let leaves_trace = self.set_trace(false);
        self.put_as(key, taken, false);
        self.set_trace(leaves_trace);
    }

    fn put_as(&mut self, key: &Key<'_>, taken: Taken, is_new: bool) {
        let (map, seed, mut context) = self.open(key);
        let deadline = taken.meta.deadline(&taken.inline);
        let fields_due = fields_due(taken.meta, &taken.inline, taken.outside.as_deref());
        let mut entry = map.entry(seed, key.hash, key.bytes());
        if fields_due != NO_DEADLINE {
            context.timer.volatile.hashes += 1;
            context.timer.arm_for(&mut entry, fields_due);
        }
        match entry {
            Entry::Occupied(mut entry) => {
                let before = context.read(&mut entry);
                if let Some(birth) = context.timer.birth.filter(|_| is_new) {
                    entry.touch(|_| birth);
                }
                context.tell_created(key.bytes());
                context.forget_fields(&entry);
                context.timer.change(&mut entry, before.deadline, deadline);
                let old = entry.replace(taken.meta.0, &taken.inline, taken.outside, &mut context.timer);
                context.discard(old);
            }
            Entry::Vacant(mut entry) => {
                context.tell_created(key.bytes());
                context.timer.change(&mut entry, Deadline::Never, deadline);
                entry.insert(taken.meta.0, &taken.inline, taken.outside, &mut context.timer);
            }
        }
    }
}
