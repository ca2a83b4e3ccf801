//! The entry of a collection while the collection is edited. An edit walks down the keyspace's tree once, to
//! find the entry, and writes through the position that it found. `edit.rs` decides what is written; how
//! images and trees look is the business of the types' files.
//!
//! ```text
//!                     put_image                      put_outside
//!   no value  ------------------------>  image  ------------------------>  outside
//!             <------------------------         <------------------------
//!                      remove                         put_image
//! ```
//!
//! A value outside is edited where it lies and nothing is written back. A key past its deadline counts as no
//! value: what is left of it is never read, and is written over, or goes when the site is removed.
//!
//! On the path of every request that edits a collection: nothing here allocates.
use crate::entry::{Meta, Shape, Stamp};
use crate::event::Event;
use crate::expiry::deadline::Deadline;
use crate::expiry::timer::Timer;
use crate::field_names::Names;
use crate::keyspace::shard::Buffers;
use crate::keyspace::view::EditContext;
use crate::value::Value;
use crate::{Key, View};
use pack::apart::Apart;
use pack::map::{Entry, Occupied, Shared};

pub(crate) struct Site<'v> {
    /// None once the value was written or removed: a site can be used for one write.
    entry: Option<Entry<'v, Value>>,
    pub(crate) context: EditContext<'v>,
    /// The deadline of the key. Writing the value does not change it.
    deadline: Deadline,
    /// The shape of the entry; None where there is no value.
    shape: Option<Shape>,
}

impl<'v> Site<'v> {
    /// The shape of the entry; None where there is no value yet.
    #[inline]
    pub(crate) fn shape(&self) -> Option<Shape> {
        self.shape
    }

    /// The value inside the entry; empty where it lies outside, or is not there.
    #[inline]
    pub(crate) fn image(&self) -> &[u8] {
        image_of(&self.entry, self.shape)
    }

    /// The value inside the entry, to be edited where it lies; its length stays. Empty as above.
    pub(crate) fn image_mut(&mut self) -> &mut [u8] {
        match &mut self.entry {
            Some(Entry::Occupied(entry)) if self.shape.is_some() => {
                Meta(entry.meta()).value_mut(entry.inline_mut())
            }
            _ => &mut [],
        }
    }

    /// Whether the value inside the entry lies in a block of its own, where [`Site::edit_apart`] edits it.
    pub(crate) fn is_apart(&self) -> bool {
        matches!(&self.entry, Some(Entry::Occupied(entry)) if self.shape.is_some() && entry.is_apart())
    }

    /// Edits the value inside the entry where it lies, which is [apart](Site::is_apart).
    pub(crate) fn edit_apart<R>(&mut self, edit: impl FnOnce(&mut Apart<'_>) -> R) -> Option<R> {
        let image_bytes = self.image().len();
        match &mut self.entry {
            Some(Entry::Occupied(entry)) => entry.edit_apart(entry.inline().len() - image_bytes, edit),
            _ => None,
        }
    }

    /// Whether an image of so many bytes that lies apart stays there when it is written anew.
    pub(crate) fn stays_apart(image_bytes: usize) -> bool {
        Occupied::<Value>::stays_apart(image_bytes)
    }

    /// The value inside the entry, and the buffers to edit it in.
    #[inline]
    pub(crate) fn image_and_buffers(&mut self) -> (&[u8], &mut Buffers) {
        (image_of(&self.entry, self.shape), self.context.buffers)
    }

    /// The value outside its entry; None where the shape says that there is none.
    #[inline]
    pub(crate) fn outside(&self) -> Option<&Value> {
        match &self.entry {
            Some(Entry::Occupied(entry)) => entry.outside(),
            _ => None,
        }
    }

    /// The value outside its entry, and the buffers.
    #[inline]
    pub(crate) fn outside_and_buffers(&mut self) -> (Option<&Value>, &mut Buffers) {
        let outside = match &self.entry {
            Some(Entry::Occupied(entry)) => entry.outside(),
            _ => None,
        };
        (outside, self.context.buffers)
    }

    /// The value outside, to be edited where it lies, and what else the edit needs.
    #[inline]
    pub(crate) fn outside_and_context(&mut self) -> (Option<&mut Value>, &mut EditContext<'v>) {
        let outside = match &mut self.entry {
            Some(Entry::Occupied(entry)) => entry.outside_mut(),
            _ => None,
        };
        (outside, &mut self.context)
    }

    /// Makes sure that the leaf is looked at when something in the value falls due; `due` is a note. To be
    /// called before the value is written, because writing may split the leaf.
    pub(crate) fn arm(&mut self, due: u64) {
        if let Some(entry) = &mut self.entry {
            self.context.timer.arm_for(entry, due);
        }
    }

    /// Writes the image that `close` lends from the buffers into the entry. A value that lay outside is
    /// freed. An image that has changed its length and is longer than `still_bytes_max` is expected to change
    /// it again, and lies apart from its neighbours.
    pub(crate) fn put_image(
        &mut self,
        shape: Shape,
        still_bytes_max: usize,
        close: impl FnOnce(&mut Buffers) -> &[u8],
    ) {
        let Some(entry) = self.entry.take() else { return };
        self.context.aside.has_created |= self.shape.is_none();
        let stamp = Stamp::new(self.deadline);
        let meta = Meta::new(shape, &stamp);
        // This buffer is taken out while `close` borrows the others, and given back below.
        let mut payload = std::mem::take(&mut self.context.buffers.payload);
        let bytes = stamp.payload(close(self.context.buffers), &mut payload);
        let timer = &mut self.context.timer;
        let old = match entry {
            Entry::Occupied(entry)
                if bytes.len() > still_bytes_max
                    && (entry.outside().is_some() || entry.inline().len() != bytes.len()) =>
            {
                entry.replace_apart(meta.0, bytes, timer)
            }
            entry => put_entry(entry, meta, bytes, None, timer),
        };
        self.context.buffers.payload = payload;
        self.context.discard(old);
    }

    /// Puts a value behind the entry's pointer, in the place of whatever was there.
    pub(crate) fn put_outside(&mut self, shape: Shape, value: Value) {
        let Some(entry) = self.entry.take() else { return };
        self.context.aside.has_created |= self.shape.is_none();
        let stamp = Stamp::new(self.deadline);
        let meta = Meta::new(shape, &stamp);
        let value = Some(Shared::new(value));
        let old = put_entry(entry, meta, stamp.as_bytes(), value, &mut self.context.timer);
        self.context.discard(old);
    }

    /// Tells that fields of the hash have expired, before the command does anything.
    #[cold]
    pub(crate) fn tell_fields(&mut self, names: Names) {
        if let Some(Entry::Occupied(entry)) = &self.entry {
            self.context.tell_fields(entry.found().key, names);
        }
    }

    /// Tells that the key is gone, because its value has lost all that was in it by itself, and counts as no
    /// value what is left, as with a key past its deadline. Its deadlines but for its own are the caller's to
    /// take out of the sums.
    #[cold]
    pub(crate) fn end_value(&mut self) {
        let Some(Entry::Occupied(entry)) = &mut self.entry else { return };
        self.context.tell(entry.found().key, Event::DEL);
        self.context.timer.change(entry, self.deadline, Deadline::Never);
        entry.set_meta(nothing_to_read().0);
        (self.deadline, self.shape) = (Deadline::Never, None);
    }

    /// Removes the key.
    pub(crate) fn remove(&mut self) {
        if let Some(Entry::Occupied(entry)) = self.entry.take() {
            self.context.remove(entry);
        }
    }
}

#[inline]
fn image_of<'s>(entry: &'s Option<Entry<'_, Value>>, shape: Option<Shape>) -> &'s [u8] {
    match entry {
        Some(Entry::Occupied(entry)) if shape.is_some() => Meta(entry.meta()).value(entry.inline()),
        _ => &[],
    }
}

/// Of an entry whose value has gone, until it is written over or removed.
fn nothing_to_read() -> Meta {
    Meta::new(Shape::Bytes, &Stamp::new(Deadline::Never))
}

/// Writes an entry. Returns what lay outside before.
fn put_entry(
    entry: Entry<'_, Value>,
    meta: Meta,
    payload: &[u8],
    outside: Option<Shared<Value>>,
    timer: &mut Timer<'_>,
) -> Option<Shared<Value>> {
    match entry {
        Entry::Vacant(entry) => {
            entry.insert(meta.0, payload, outside, timer);
            None
        }
        Entry::Occupied(mut entry) => {
            let is_in_place =
                outside.is_none() && entry.outside().is_none() && entry.inline().len() == payload.len();
            if !is_in_place {
                return entry.replace(meta.0, payload, outside, timer);
            }
            entry.inline_mut().copy_from_slice(payload);
            entry.set_meta(meta.0);
            None
        }
    }
}

impl View<'_> {
    /// The site of the value of `key`; None where there is none. A key past its deadline is removed. One
    /// descent.
    #[inline(always)]
    pub(crate) fn site<'v>(&'v mut self, key: &Key<'v>) -> Option<Site<'v>> {
        let (map, seed, mut context) = self.open(key);
        let Entry::Occupied(mut entry) = map.entry(seed, key.hash, key.bytes()) else { return None };
        let before = context.read(&mut entry);
        if before.is_past {
            context.remove(entry);
            return None;
        }
        let shape = Some(before.meta.shape());
        Some(Site { entry: Some(Entry::Occupied(entry)), context, deadline: before.deadline, shape })
    }

    /// The site of the value of `key`, or of a new value under `key`. One descent.
    #[inline(always)]
    pub(crate) fn site_or_new<'v>(&'v mut self, key: &Key<'v>) -> Site<'v> {
        let (map, seed, mut context) = self.open(key);
        let mut entry = map.entry(seed, key.hash, key.bytes());
        let (mut deadline, mut shape) = (Deadline::Never, None);
        if let Entry::Occupied(entry) = &mut entry {
            let before = context.read(entry);
            if before.is_past {
                context.forget_fields(entry);
                context.timer.change(entry, before.deadline, Deadline::Never);
                // What the expired key left in the entry is not read, because the site has no shape.
                entry.set_meta(nothing_to_read().0);
            } else {
                (deadline, shape) = (before.deadline, Some(before.meta.shape()));
            }
        }
        Site { entry: Some(entry), context, deadline, shape }
    }
}
