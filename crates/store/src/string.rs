//! Strings: native integers where the text is one, bytes inside the keyspace entry, or behind one pointer where long.
//!
//! This file is on the path of every request. `string` is one descent and lends; `put_string` is one descent, and where a value
//! of the same size is there already, one copy in place.
use crate::entry::{Encoded, Large, Meta, Shape, Stamp, int_value, string_value};
use crate::view::{Before, Desk};
use crate::{Deadline, Key, Kind, View, WrongType};
use base::text::I64Text;
use base::{Item, Millis};
use pack::map::{Entry, Occupied, Vacant};

/// What a write does to the key's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    Clear,
    Keep,
    At(Millis),
}

/// The name that OBJECT ENCODING gives afterwards (the bytes are stored the same way).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// int, embstr or raw by content, as SET does.
    Auto,
    /// embstr or raw by length, never int (INCRBYFLOAT).
    Text,
    /// raw (APPEND, SETRANGE).
    Raw,
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
    #[inline]
    pub fn string(&mut self, key: &Key<'_>) -> Result<Option<Item<'_>>, WrongType> {
        let found = self.look(key);
        found.map(|found| string_value(Meta(found.meta), found.inline, found.outside)).transpose()
    }

    /// Replaces whatever the key held, of any type.
    pub fn put_string(&mut self, key: &Key<'_>, value: &[u8], form: Form, expiry: Expiry) {
        let value = Encoded::new(value, form);
        let (map, seed, mut desk) = self.open(key);
        match map.entry(seed, key.hash, key.bytes()) {
            Entry::Occupied(mut entry) => {
                let before = desk.read(&entry);
                let deadline = expiry.applied_to(before.live().unwrap_or(Deadline::Never));
                desk.timer.change(&mut entry, before.deadline, deadline);
                desk.store(entry, &before, &value, deadline);
            }
            Entry::Vacant(entry) => desk.insert(entry, &value, expiry.applied_to(Deadline::Never)),
        }
    }

    /// INCRBY: the sum, stored; a missing key counts as 0; the deadline stays.
    pub fn add(&mut self, key: &Key<'_>, delta: i64) -> Result<i64, AddError> {
        let (map, seed, mut desk) = self.open(key);
        match map.entry(seed, key.hash, key.bytes()) {
            Entry::Occupied(entry) => {
                let before = desk.read(&entry);
                if before.is_past {
                    desk.overwrite_overdue(entry, &before, &Encoded::int(delta, Shape::Int));
                    return Ok(delta);
                }
                let sum = int_of(&entry)?.checked_add(delta).ok_or(AddError::Overflow)?;
                desk.store(entry, &before, &Encoded::int(sum, Shape::Int), before.deadline);
                Ok(sum)
            }
            Entry::Vacant(entry) => {
                desk.insert(entry, &Encoded::int(delta, Shape::Int), Deadline::Never);
                Ok(delta)
            }
        }
    }

    /// Appends, creating the key; the new length.
    pub fn append(&mut self, key: &Key<'_>, tail: &[u8]) -> Result<u64, WrongType> {
        let append = |text: &mut Vec<u8>| text.extend_from_slice(tail);
        self.edit(key, Form::Auto, append)
    }

    /// Overwrites from `offset`, padding with zero bytes, creating the key; the new length. `bytes` is not empty.
    pub fn set_range(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> Result<u64, WrongType> {
        let start = usize::try_from(offset).expect("the command refuses more than proto-max-bulk-len");
        let end = start + bytes.len();
        let overwrite = |text: &mut Vec<u8>| {
            if text.len() < end {
                text.resize(end, 0);
            }
            text[start..end].copy_from_slice(bytes);
        };
        self.edit(key, Form::Raw, overwrite)
    }

    /// Edits the text of a string: in place where it lies outside, else by way of a buffer. The deadline stays and the form becomes
    /// raw; a missing key is an empty text, and `form_when_new` afterwards.
    fn edit(
        &mut self,
        key: &Key<'_>,
        form_when_new: Form,
        edit: impl FnOnce(&mut Vec<u8>),
    ) -> Result<u64, WrongType> {
        let (map, seed, mut desk) = self.open(key);
        let mut text = std::mem::take(&mut desk.buffers.text);
        text.clear();
        let len = match map.entry(seed, key.hash, key.bytes()) {
            Entry::Occupied(entry) => {
                let before = desk.read(&entry);
                if before.is_past {
                    edit(&mut text);
                    desk.overwrite_overdue(entry, &before, &Encoded::new(&text, form_when_new));
                    Ok(text.len() as u64)
                } else {
                    desk.edit_live(entry, &before, &mut text, edit)
                }
            }
            Entry::Vacant(entry) => {
                edit(&mut text);
                desk.insert(entry, &Encoded::new(&text, form_when_new), Deadline::Never);
                Ok(text.len() as u64)
            }
        };
        desk.buffers.text = text;
        desk.buffers.shrink();
        len
    }
}

/// The number that an entry holds.
fn int_of(entry: &Occupied<'_, Large>) -> Result<i64, AddError> {
    let meta = Meta(entry.meta());
    match meta.shape() {
        Shape::Int | Shape::IntText | Shape::IntRaw => Ok(int_value(meta.value(entry.inline()))),
        shape if shape.kind() == Kind::String => Err(AddError::NotAnInteger),
        _ => Err(AddError::WrongType),
    }
}

impl Desk<'_> {
    /// Writes value and deadline over an entry, whose change of deadline has been accounted for.
    #[inline]
    fn store(
        &mut self,
        mut entry: Occupied<'_, Large>,
        before: &Before,
        value: &Encoded<'_>,
        deadline: Deadline,
    ) {
        let stamp = Stamp::new(deadline);
        let meta = Meta::new(value.shape(), &stamp);
        let payload = stamp.payload(value.inline(), &mut self.buffers.payload);
        let fits = before.payload_len == payload.len();
        if fits && !before.meta.shape().is_outside() && !meta.shape().is_outside() {
            entry.inline_mut().copy_from_slice(payload);
            if before.meta != meta {
                entry.set_meta(meta.0);
            }
            return;
        }
        let old = entry.replace(meta.0, payload, value.outside(), &mut self.timer);
        self.discard(old);
    }

    /// The deadline is noted before the entry is written: should that split the leaf, the timer parts the note.
    fn insert(&mut self, mut entry: Vacant<'_, Large>, value: &Encoded<'_>, deadline: Deadline) {
        self.timer.change(&mut entry, Deadline::Never, deadline);
        let stamp = Stamp::new(deadline);
        let payload = stamp.payload(value.inline(), &mut self.buffers.payload);
        entry.insert(Meta::new(value.shape(), &stamp).0, payload, value.outside(), &mut self.timer);
    }

    /// Writes over an entry whose key is gone already; the new key has no deadline.
    fn overwrite_overdue(&mut self, mut entry: Occupied<'_, Large>, before: &Before, value: &Encoded<'_>) {
        self.timer.change(&mut entry, before.deadline, Deadline::Never);
        self.store(entry, before, value, Deadline::Never);
    }

    /// A string outside is edited where it is. No edit shortens it, so it never has to come back inside.
    fn edit_live(
        &mut self,
        mut entry: Occupied<'_, Large>,
        before: &Before,
        text: &mut Vec<u8>,
        edit: impl FnOnce(&mut Vec<u8>),
    ) -> Result<u64, WrongType> {
        let meta = before.meta;
        if meta.shape() == Shape::Long
            && let Some(Large::Str(bytes)) = entry.outside_mut()
        {
            edit(bytes);
            return Ok(bytes.len() as u64);
        }
        let item = string_value(meta, entry.inline(), entry.outside())?;
        text.extend_from_slice(item.text(&mut I64Text::new()));
        edit(text);
        self.store(entry, before, &Encoded::new(text, Form::Raw), before.deadline);
        Ok(text.len() as u64)
    }

    /// Gives an entry another deadline, already accounted for; the value stays.
    pub(crate) fn restamp(&mut self, mut entry: Occupied<'_, Large>, deadline: Deadline) {
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
    }
}
