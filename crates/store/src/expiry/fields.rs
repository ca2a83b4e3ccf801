//! Removing fields of hashes that are past their deadlines: by the sweeper, and after a lookup that found
//! some. A hash that is empty then is removed with its key.
use crate::entry::Meta;
use crate::event::Event;
use crate::expiry::notes::{NO_DEADLINE, note_of};
use crate::expiry::timer::Volatile;
use crate::field_names::Names;
use crate::hash::due::fields_due;
use crate::hash::image::{expire_image, image_due};
use crate::keyspace::garbage::Garbage;
use crate::keyspace::shard::Db;
use crate::keyspace::view::EditContext;
use crate::value::Value;
use base::Millis;
use pack::map::{Found, Occupied, Sweeping};
use pack::pairs;

/// So many fields of one hash are removed at a time. The others are removed when the wheel fires for this
/// hash again.
const FIELDS_AT_ONCE: u64 = 128;

/// A hash inside its entry, after its due fields were removed.
struct Image {
    /// Deadline and image, as the entry has them.
    payload: Vec<u8>,
    removed: u64,
    /// When the next field falls due.
    due: u64,
    is_empty: bool,
}

impl Image {
    fn expired(meta: Meta, payload: &[u8], now: Millis, names: &mut Names) -> Image {
        let image = meta.value(payload);
        let (stamp, mut image) = (&payload[..payload.len() - image.len()], image.to_vec());
        let removed = expire_image(&mut image, now, names);
        let (due, is_empty) = (image_due(&image), pairs::len(&image) == 0);
        Image { payload: [stamp, &image].concat(), removed, due, is_empty }
    }
}

impl Db {
    /// Whether the value is a hash of which some field is past its deadline.
    pub(crate) fn has_overdue_fields(found: &Found<'_, Value>, now: Millis) -> bool {
        fields_due(Meta(found.meta), found.inline, found.outside) <= note_of(now)
    }
}

impl EditContext<'_> {
    /// Removes the fields of a hash that are past their deadline, and the key where none is left.
    pub(crate) fn expire_fields(&mut self, mut entry: Occupied<'_, Value>) {
        let (now, mut names) = (self.timer.now, self.wanted_names());
        if let Some(Value::Hash(tree)) = entry.outside_mut() {
            let taken = (&mut self.aside.garbage, &mut names);
            let removed = tree.expire(now, FIELDS_AT_ONCE, taken);
            self.stats.expired_fields += removed;
            self.timer.volatile.count_hash(true, tree.is_timed());
            let is_empty = tree.len() == 0;
            if removed > 0 {
                self.tell_fields(entry.found().key, names);
            }
            if is_empty {
                self.tell(entry.found().key, Event::DEL);
                self.remove(entry);
            }
            return;
        }
        let meta = Meta(entry.meta());
        let image = Image::expired(meta, entry.inline(), now, &mut names);
        self.stats.expired_fields += image.removed;
        if image.removed > 0 {
            self.tell_fields(entry.found().key, names);
        }
        if image.is_empty {
            self.tell(entry.found().key, Event::DEL);
            return self.remove(entry);
        }
        self.timer.volatile.count_hash(true, image.due != NO_DEADLINE);
        entry.replace_inline(meta.0, &image.payload, &mut self.timer);
    }
}

/// What came of removing the fields of a hash that were due.
pub(crate) struct Swept {
    pub(crate) removed: u64,
    pub(crate) is_empty: bool,
    /// When the next of its fields falls due.
    pub(crate) due: u64,
}

/// Removes the fields of a hash that are past their deadline. An empty hash will be removed by the caller:
/// then its entry is left as it is, so that the sums over deadlines are corrected by what it says.
pub(crate) fn sweep_fields(
    entry: &mut Sweeping<'_, Value>,
    now: Millis,
    volatile: &mut Volatile,
    (freed, names): (&mut Vec<Garbage>, &mut Names),
) -> Swept {
    if let Some(Value::Hash(tree)) = entry.outside_mut() {
        let removed = tree.expire(now, FIELDS_AT_ONCE, (freed, names));
        volatile.count_hash(true, tree.is_timed());
        return Swept { removed, is_empty: tree.len() == 0, due: tree.due().unwrap_or(NO_DEADLINE) };
    }
    let found = entry.found();
    let meta = Meta(found.meta);
    let image = Image::expired(meta, found.inline, now, names);
    if image.is_empty {
        return Swept { removed: image.removed, is_empty: true, due: NO_DEADLINE };
    }
    volatile.count_hash(true, image.due != NO_DEADLINE);
    entry.set_inline(meta.0, &image.payload);
    Swept { removed: image.removed, is_empty: false, due: image.due }
}
