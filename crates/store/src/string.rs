//! Strings: native integers where the text is one, bytes inside the keyspace entry, or behind one pointer
//! where long.
//!
//! This file is on the path of every request. `string` is one descent, and lends the value. `put_string` is
//! one descent, and a copy in place if the old value has the same size.
use crate::entry::{INLINE_BYTES_MAX, Meta, Shape, Stamp};
use crate::expiry::deadline::Deadline;
use crate::keyspace::arrivals::OFFERED_BYTES_MIN;
use crate::keyspace::shard::BUFFER_KEPT_BYTES_MAX;
use crate::keyspace::view::{Before, EditContext};
use crate::kind::{EditError, Kind, WrongType};
use crate::value::Form;
use crate::value::{EMBSTR_BYTES_MAX, Encoded, Value, string_value};
use crate::{Key, View};
use base::text::I64Text;
use base::{Item, Millis};
use pack::map::{Entry, Occupied, Shared, Vacant};
use pack::short_int::read_int;

/// What a write does to the key's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    Clear,
    Keep,
    At(Millis),
}

/// Which of several keys are looked up, and so count as hits and misses, if one is of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUp {
    All,
    /// The keys up to that one.
    UntilRefused,
    /// All, by a command that has looked them up already: it has used them once.
    Again,
}

/// Whether an edit made a string longer. A string that it created counts as longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    None,
    Longer,
}

/// A text of more bytes is put behind its entry with the allocation that it has; for a shorter one a copy of
/// the exact size wastes less.
const HANDED_OVER_BYTES_MIN: usize = 16 << 10;
const _: () = assert!(HANDED_OVER_BYTES_MIN >= INLINE_BYTES_MAX);

/// A shared text of at least so many bytes is not copied by a view that leaves copies to another thread: that
/// takes as long as a thousand short commands.
const LEFT_BYTES_MIN: usize = if cfg!(debug_assertions) { 2 << 10 } else { 2 << 20 };

/// An allocation of at least so many bytes has pages of its own.
const RECLAIMED_BYTES_MIN: usize = 1 << 20;

/// A string of at least so many bytes grows only after [`has_room_for_string`] has said yes.
pub const HUGE_STRING_BYTES_MIN: u64 = 1 << 30;

/// Whether the system can map memory for a string that grows to so many bytes. A client may name any length,
/// and an allocation that fails would end the process.
pub fn has_room_for_string(len_bytes: u64) -> bool {
    if len_bytes < HUGE_STRING_BYTES_MIN {
        return true;
    }
    let Ok(len_bytes) = usize::try_from(len_bytes) else { return false };
    let mut probe: Vec<u8> = Vec::new();
    let has_room = probe.try_reserve_exact(with_growth(len_bytes)).is_ok();
    // Without this the compiler may leave out an allocation that nobody uses.
    std::hint::black_box(&mut probe);
    has_room
}

fn with_growth(len_bytes: usize) -> usize {
    len_bytes.saturating_add(len_bytes / 8)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    WrongType,
    NotAnInteger,
    Overflow,
}

impl Expiry {
    fn applied_to(self, old: Deadline) -> Deadline {
        match self {
            Expiry::Clear => Deadline::Never,
            Expiry::Keep => old,
            Expiry::At(at) => Deadline::At(at),
        }
    }
}

impl View<'_> {
    /// The string under `key`; None where there is no such key. One descent; the bytes are lent, not copied.
    #[inline]
    pub fn string(&mut self, key: &Key<'_>) -> Result<Option<Item<'_>>, WrongType> {
        let found = self.look_used(key);
        found.map(|found| string_value(Meta(found.meta), found.inline, found.outside)).transpose()
    }

    /// The string under `key`, looked at without a trace, for an estimate of what a command will take.
    pub fn peek_string(&self, key: &Key<'_>) -> Option<Item<'_>> {
        let found = self.peek(key)?;
        string_value(Meta(found.meta), found.inline, found.outside).ok()
    }

    /// Writes a string under `key`, in the place of a value of any type. One descent.
    pub fn put_string(&mut self, key: &Key<'_>, value: &[u8], form: Form, expiry: Expiry) {
        if value.len() >= OFFERED_BYTES_MIN
            && let Some(arrived) = self.keyspace.arrivals.find(value)
        {
            return self.put_outside(key, &arrived, expiry);
        }
        self.put(key, &Encoded::new(value, form), expiry);
    }

    /// [`View::put_string`] of one that lies outside already.
    #[cold]
    fn put_outside(&mut self, key: &Key<'_>, value: &Shared<Value>, expiry: Expiry) {
        self.put(key, &Encoded::Outside { value }, expiry);
    }

    #[inline(always)]
    fn put(&mut self, key: &Key<'_>, value: &Encoded<'_>, expiry: Expiry) {
        let (map, seed, mut context) = self.open(key);
        match map.entry(seed, key.hash, key.bytes()) {
            Entry::Occupied(mut entry) => {
                let before = context.read(&mut entry);
                let deadline = expiry.applied_to(before.live().unwrap_or(Deadline::Never));
                context.timer.change(&mut entry, before.deadline, deadline);
                context.store(entry, &before, value, deadline);
            }
            Entry::Vacant(entry) => context.insert(entry, value, expiry.applied_to(Deadline::Never)),
        }
    }

    /// Adds to the integer under `key` and returns the sum (INCRBY). A missing key counts as 0. The deadline
    /// stays.
    pub fn add(&mut self, key: &Key<'_>, delta: i64) -> Result<i64, AddError> {
        let (map, seed, mut context) = self.open(key);
        match map.entry(seed, key.hash, key.bytes()) {
            Entry::Occupied(mut entry) => {
                let before = context.read(&mut entry);
                if before.is_past {
                    context.overwrite_overdue(entry, &before, &Encoded::int(delta, Shape::Int));
                    return Ok(delta);
                }
                let sum = int_of(&entry)?.checked_add(delta).ok_or(AddError::Overflow)?;
                context.store(entry, &before, &Encoded::int(sum, Shape::Int), before.deadline);
                Ok(sum)
            }
            Entry::Vacant(entry) => {
                context.insert(entry, &Encoded::int(delta, Shape::Int), Deadline::Never);
                Ok(delta)
            }
        }
    }

    /// The strings of several keys, lent all at once; None for each key that is missing.
    pub fn strings(&mut self, keys: &[Key<'_>], look_up: LookUp) -> Result<Vec<Option<Item<'_>>>, WrongType> {
        // A lookup counts and lists overdue keys, so it borrows the view mutably and its result cannot be
        // kept: all keys are looked up first, and read again by `peek` to be lent together.
        let mut is_there = Vec::with_capacity(keys.len());
        let leaves_trace = self.leaves_trace();
        self.set_trace(leaves_trace && look_up != LookUp::Again);
        for key in keys {
            match (self.string(key), look_up) {
                (Err(wrong), LookUp::UntilRefused) => return Err(wrong),
                // A value of another type: the second lookup below returns the error.
                (Err(_), _) => is_there.push(true),
                (Ok(item), _) => is_there.push(item.is_some()),
            }
        }
        self.set_trace(leaves_trace);
        let read = |(key, is_there): (&Key<'_>, bool)| {
            let found = self.peek(key).filter(|_| is_there);
            found.map(|found| string_value(Meta(found.meta), found.inline, found.outside)).transpose()
        };
        keys.iter().zip(is_there).map(read).collect()
    }

    /// Appends to the string under `key`, which is created where it is missing. Returns the new length.
    pub fn append(&mut self, key: &Key<'_>, tail: &[u8]) -> Result<u64, EditError> {
        // Where there is no key it is the whole string, and a long one stays where it has arrived.
        if tail.len() >= OFFERED_BYTES_MIN && self.peek_kind(key).is_none() {
            self.put_string(key, tail, Form::Auto, Expiry::Clear);
            return Ok(tail.len() as u64);
        }
        self.edit(key, Form::Auto, OfEnd { tail })
    }

    /// Overwrites the string under `key` from `offset` on, padding it with zero bytes up to there; the key is
    /// created where it is missing. `bytes` is not empty. Returns the new length.
    pub fn set_range(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> Result<u64, EditError> {
        let start = usize::try_from(offset).expect("the command refuses more than proto-max-bulk-len");
        let end = start + bytes.len();
        self.edit_bytes(key, end as u64, |text, _| {
            text[start..end].copy_from_slice(bytes);
            text.len() as u64
        })
    }

    /// Lends the bytes of a string to `edit`, to be changed in place. The string is first padded with zero
    /// bytes to `len_min`, which is not 0, and `edit` is told whether that made it longer; a missing key is
    /// created. Returns what `edit` returns.
    pub fn edit_bytes<R>(
        &mut self,
        key: &Key<'_>,
        len_min: u64,
        edit: impl FnOnce(&mut [u8], Growth) -> R,
    ) -> Result<R, EditError> {
        let len_min = usize::try_from(len_min).expect("the command refuses more than proto-max-bulk-len");
        self.edit(key, Form::Raw, OfBytes { len_min, edit })
    }

    /// Writes a string named "raw" under `key`, without a deadline, in the place of a value of any type. A
    /// long one is moved, not copied.
    pub fn put_bytes(&mut self, key: &Key<'_>, bytes: Vec<u8>) {
        if bytes.len() <= HANDED_OVER_BYTES_MIN {
            return self.put_string(key, &bytes, Form::Raw, Expiry::Clear);
        }
        self.put_outside(key, &Shared::new(Value::Str(bytes)), Expiry::Clear);
    }

    /// Takes the allocation of a large string, with its content, for a command that will replace it by
    /// [`View::put_bytes`]: its pages are there already, while each fresh page costs a fault. The key holds
    /// an empty string until then. None where the string is not large, or is shared.
    pub fn reclaim(&mut self, key: &Key<'_>) -> Option<Vec<u8>> {
        let (map, seed, mut context) = self.open(key);
        let Entry::Occupied(entry) = map.entry(seed, key.hash, key.bytes()) else { return None };
        let room_bytes = entry.outside().and_then(Value::text_room_bytes);
        if room_bytes.is_none_or(|bytes| bytes < RECLAIMED_BYTES_MIN) {
            return None;
        }
        let (meta, payload) = (entry.meta(), entry.inline().to_vec());
        let empty = Shared::new(Value::Str(Vec::new()));
        let mut old = entry.replace(meta, &payload, Some(empty), &mut context.timer)?;
        match old.is_shared() {
            false if let Some(text) = old.make_mut().text_mut() => Some(std::mem::take(text)),
            _ => {
                context.discard(Some(old));
                None
            }
        }
    }

    /// Edits the text of a string as a whole: in place where it lies outside its entry, else by way of a
    /// buffer. A missing key counts as an empty text. For an existing string `check` is called first, and if
    /// it returns an error nothing changes. The string is named "raw" afterwards.
    pub fn edit_text<R, E: From<WrongType>>(
        &mut self,
        key: &Key<'_>,
        check: impl FnOnce(&[u8]) -> Result<(), E>,
        edit: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> Result<R, E> {
        self.edit_checked(key, Form::Raw, None, (check, edit))
    }

    /// [`View::edit_text`] without a check; `form_when_new` is the form of a string that is created.
    fn edit<R>(
        &mut self,
        key: &Key<'_>,
        form_when_new: Form,
        edit: impl TextEdit<R>,
    ) -> Result<R, EditError> {
        let left = self.leaves_copies().then_some(EditError::WouldCopy);
        self.edit_checked(key, form_when_new, left, (|_: &[u8]| Ok(()), edit))
    }

    /// Does the work of [`View::edit_text`]. The deadline stays. A string outside its entry stays outside,
    /// because edits hardly ever make a text shorter. A long one that has other owners is copied first, or
    /// `left` is returned.
    fn edit_checked<R, E: From<WrongType>, T: TextEdit<R>>(
        &mut self,
        key: &Key<'_>,
        form_when_new: Form,
        left: Option<E>,
        (check, edit): (impl FnOnce(&[u8]) -> Result<(), E>, T),
    ) -> Result<R, E> {
        let (map, seed, mut context) = self.open(key);
        let mut text = std::mem::take(&mut context.buffers.text);
        text.clear();
        let result = match map.entry(seed, key.hash, key.bytes()) {
            Entry::Occupied(mut entry) => {
                let before = context.read(&mut entry);
                if before.is_past {
                    let result = edit.make(&mut text, 0);
                    context.timer.change(&mut entry, before.deadline, Deadline::Never);
                    context.store_text(entry, &before, &mut text, form_when_new, Deadline::Never);
                    Ok(result)
                } else {
                    context.edit_live((entry, &before, left), &mut text, check, edit)
                }
            }
            Entry::Vacant(entry) => {
                let result = edit.make(&mut text, 0);
                context.insert_text(entry, &mut text, form_when_new);
                Ok(result)
            }
        };
        context.buffers.text = text;
        context.buffers.shrink();
        result
    }
}

/// What an edit does to the text of a string.
trait TextEdit<R>: Sized {
    /// Whether it can be made of a text that something else stands before.
    const STARTS_ANYWHERE: bool;

    /// Makes the edit of the text that begins at `start`, which is 0 unless it [starts
    /// anywhere](TextEdit::STARTS_ANYWHERE).
    fn make(self, text: &mut Vec<u8>, start: usize) -> R;

    /// Whether it is known that a text of so many bytes will keep its length.
    fn keeps_length(&self, _len: usize) -> bool {
        false
    }

    /// Makes the edit of a text that [keeps its length](TextEdit::keeps_length).
    fn make_in_place(self, _text: &mut [u8]) -> R {
        unreachable!("the length is not known to stay")
    }
}

impl<R, F: FnOnce(&mut Vec<u8>) -> R> TextEdit<R> for F {
    const STARTS_ANYWHERE: bool = false;

    fn make(self, text: &mut Vec<u8>, start: usize) -> R {
        debug_assert_eq!(start, 0);
        self(text)
    }
}

/// The edit of [`View::append`].
struct OfEnd<'t> {
    tail: &'t [u8],
}

impl TextEdit<u64> for OfEnd<'_> {
    const STARTS_ANYWHERE: bool = true;

    fn make(self, text: &mut Vec<u8>, start: usize) -> u64 {
        grow_slowly(text, text.len() + self.tail.len());
        text.extend_from_slice(self.tail);
        (text.len() - start) as u64
    }
}

/// The edit of [`View::edit_bytes`].
struct OfBytes<F> {
    len_min: usize,
    edit: F,
}

impl<R, F: FnOnce(&mut [u8], Growth) -> R> TextEdit<R> for OfBytes<F> {
    const STARTS_ANYWHERE: bool = true;

    fn make(self, text: &mut Vec<u8>, start: usize) -> R {
        let len_min = start + self.len_min;
        let growth = if text.len() < len_min { Growth::Longer } else { Growth::None };
        lengthen(text, len_min);
        (self.edit)(&mut text[start..], growth)
    }

    fn keeps_length(&self, len: usize) -> bool {
        len >= self.len_min
    }

    fn make_in_place(self, text: &mut [u8]) -> R {
        (self.edit)(text, Growth::None)
    }
}

/// Whether a string inside its entry is named "raw" and would be kept as it is after any edit that leaves its
/// length: it is too long for an integer and for "embstr".
fn stays_raw(shape: Shape, item: Item<'_>) -> bool {
    matches!(shape, Shape::Bytes | Shape::BytesRaw) && item.len() > EMBSTR_BYTES_MAX
}

/// Makes `text` at least `len` bytes long. If more is added than there is, the new text comes zeroed from the
/// allocator, whose large blocks are untouched pages: setting a bit far out costs the pages around it, not
/// all in between.
fn lengthen(text: &mut Vec<u8>, len: usize) {
    if len > HANDED_OVER_BYTES_MIN && len / 2 > text.len() {
        let mut longer = vec![0; len];
        longer[..text.len()].copy_from_slice(text);
        *text = longer;
    } else if len > text.len() {
        grow_slowly(text, len);
        text.resize(len, 0);
    }
}

/// Makes room for `len` bytes, and for an eighth of that in addition, where `Vec` would double: what a string
/// has in reserve counts as used, and a byte that is appended is copied eight times in all.
#[inline]
fn grow_slowly(text: &mut Vec<u8>, len: usize) {
    if len > text.capacity() {
        text.reserve_exact(with_growth(len) - text.len());
    }
}

/// The integer that an entry holds; an error where its value is of another type or no integer.
fn int_of(entry: &Occupied<'_, Value>) -> Result<i64, AddError> {
    let meta = Meta(entry.meta());
    match meta.shape() {
        Shape::Int | Shape::IntText | Shape::IntRaw => Ok(read_int(meta.value(entry.inline()))),
        shape if shape.kind() == Kind::String => Err(AddError::NotAnInteger),
        _ => Err(AddError::WrongType),
    }
}

impl EditContext<'_> {
    /// Writes value and deadline over an entry. The timer has been told of the change of deadline already.
    #[inline]
    fn store(
        &mut self,
        mut entry: Occupied<'_, Value>,
        before: &Before,
        value: &Encoded<'_>,
        deadline: Deadline,
    ) {
        if !before.meta.is_string() {
            self.forget_fields(&entry);
        }
        let stamp = Stamp::new(deadline);
        let meta = Meta::new(value.shape(), &stamp);
        let payload = stamp.payload(value.inline(), &mut self.buffers.payload);
        let is_long = payload.len() > BUFFER_KEPT_BYTES_MAX;
        let fits = entry.inline().len() == payload.len();
        if fits && !before.meta.shape().is_outside() && !meta.shape().is_outside() {
            entry.inline_mut().copy_from_slice(payload);
            if before.meta != meta {
                entry.set_meta(meta.0);
            }
        } else {
            let old = entry.replace(meta.0, payload, value.outside(), &mut self.timer);
            self.discard(old);
        }
        if is_long {
            self.buffers.shrink();
        }
    }

    /// Writes a new entry. The timer is told of the deadline before that: if writing splits the leaf, it
    /// gives each half its note.
    fn insert(&mut self, mut entry: Vacant<'_, Value>, value: &Encoded<'_>, deadline: Deadline) {
        self.note_created();
        self.timer.change(&mut entry, Deadline::Never, deadline);
        let stamp = Stamp::new(deadline);
        let payload = stamp.payload(value.inline(), &mut self.buffers.payload);
        let is_long = payload.len() > BUFFER_KEPT_BYTES_MAX;
        entry.insert(Meta::new(value.shape(), &stamp).0, payload, value.outside(), &mut self.timer);
        if is_long {
            self.buffers.shrink();
        }
    }

    /// Writes over the entry of an expired key. The new key has no deadline.
    fn overwrite_overdue(&mut self, mut entry: Occupied<'_, Value>, before: &Before, value: &Encoded<'_>) {
        self.timer.change(&mut entry, before.deadline, Deadline::Never);
        self.store(entry, before, value, Deadline::Never);
    }

    /// Edits the string of an entry that has not expired. A string outside is edited where it lies, and stays
    /// there.
    fn edit_live<R, E: From<WrongType>, T: TextEdit<R>>(
        &mut self,
        (mut entry, before, left): (Occupied<'_, Value>, &Before, Option<E>),
        text: &mut Vec<u8>,
        check: impl FnOnce(&[u8]) -> Result<(), E>,
        edit: T,
    ) -> Result<R, E> {
        let meta = before.meta;
        let item = string_value(meta, entry.inline(), entry.outside())?;
        if stays_raw(meta.shape(), item) && edit.keeps_length(item.len()) {
            check(item.text(&mut I64Text::new()))?;
            return Ok(edit.make_in_place(meta.value_mut(entry.inline_mut())));
        }
        if meta.shape() != Shape::Long {
            text.extend_from_slice(item.text(&mut I64Text::new()));
            check(text)?;
            let result = edit.make(text, 0);
            self.store_text(entry, before, text, Form::Raw, before.deadline);
            return Ok(result);
        }
        check(item.text(&mut I64Text::new()))?;
        if let Some(left) = left.filter(|_| item.len() >= LEFT_BYTES_MIN)
            && entry.outside_if_sole().is_none()
        {
            return Err(left);
        }
        match entry.outside_mut() {
            Some(Value::Arrived(arrived)) if T::STARTS_ANYWHERE => {
                Ok(arrived.edit(|text, start| edit.make(text, start)))
            }
            value => match value.and_then(Value::text_mut) {
                Some(text) => Ok(edit.make(text, 0)),
                None => Err(WrongType.into()),
            },
        }
    }

    /// As [`EditContext::store`], but a long text is moved out of `text` instead of copied.
    fn store_text(
        &mut self,
        entry: Occupied<'_, Value>,
        before: &Before,
        text: &mut Vec<u8>,
        form: Form,
        deadline: Deadline,
    ) {
        if text.len() <= HANDED_OVER_BYTES_MIN {
            return self.store(entry, before, &Encoded::new(text, form), deadline);
        }
        let value = &Shared::new(Value::Str(std::mem::take(text)));
        self.store(entry, before, &Encoded::Outside { value }, deadline);
    }

    /// As [`EditContext::insert`] without a deadline, but a long text is moved out of `text` instead of
    /// copied.
    fn insert_text(&mut self, entry: Vacant<'_, Value>, text: &mut Vec<u8>, form: Form) {
        if text.len() <= HANDED_OVER_BYTES_MIN {
            return self.insert(entry, &Encoded::new(text, form), Deadline::Never);
        }
        let value = &Shared::new(Value::Str(std::mem::take(text)));
        self.insert(entry, &Encoded::Outside { value }, Deadline::Never);
    }

    /// Gives an entry another deadline, of which the timer has been told already. The value stays.
    pub(crate) fn restamp(&mut self, mut entry: Occupied<'_, Value>, deadline: Deadline) {
        let old = Meta(entry.meta());
        let stamp = Stamp::new(deadline);
        let meta = Meta::new(old.shape(), &stamp);
        let value = old.value(entry.inline());
        let start = entry.inline().len() - value.len();
        if start == stamp.as_bytes().len() {
            entry.inline_mut()[..start].copy_from_slice(stamp.as_bytes());
            entry.set_meta(meta.0);
            return;
        }
        self.buffers.payload.clear();
        self.buffers.payload.extend_from_slice(stamp.as_bytes());
        self.buffers.payload.extend_from_slice(value);
        entry.replace_inline(meta.0, &self.buffers.payload, &mut self.timer);
        self.buffers.shrink();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_string_has_little_in_reserve() {
        let mut text = Vec::new();
        let mut moves = 0;
        while text.len() < 5 << 20 {
            let (len, room) = (text.len() + 1000, text.capacity());
            grow_slowly(&mut text, len);
            text.resize(len, 0);
            moves += u32::from(text.capacity() != room);
            assert!(text.capacity() <= with_growth(len), "{} of {len}", text.capacity());
        }
        assert!(moves < 90, "{moves} times");
    }
}
