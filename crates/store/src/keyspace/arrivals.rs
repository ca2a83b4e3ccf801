//! Long strings that stay in the buffer that their request has arrived in, so that no byte of them is copied.
//!
//! Whoever runs a request offers its buffer first (`Keyspace::offer`): it becomes a value that nobody has
//! yet, and the request is read from there. A command that stores just that text gives the key one more owner
//! of the value ([`Arrivals::find`]), whatever the command is called. Then the request has run and its offer
//! ends: either a key has the buffer alone, or it goes back.
//!
//! ```text
//! buffer   *3 $3 SET $4 page $1000000 | text | \r\n
//! ```
//!
//! What stands around the text stays with it, so a buffer is offered only where that is little.
use crate::arrived::Arrived;
use crate::value::Value;
use pack::map::Shared;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A text is looked for among what is offered from this length on. Shorter ones are copied.
pub(crate) const OFFERED_BYTES_MIN: usize = if cfg!(debug_assertions) { 600 } else { 32 << 10 };

/// What stands around a text may take this part of it.
const SHARE_AROUND: usize = 32;

/// The buffers that are offered, one for each thread that runs such a request.
#[derive(Default)]
pub(crate) struct Arrivals(Mutex<Vec<Shared<Value>>>);

impl Arrivals {
    fn offered(&self) -> MutexGuard<'_, Vec<Shared<Value>>> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers a buffer until the arrival ends. `text` is the part of it that may be stored. The buffer itself
    /// comes back where that is too short, or too little of the whole.
    pub(crate) fn offer(
        self: &Arc<Arrivals>,
        mut buffer: Vec<u8>,
        text: Range<usize>,
    ) -> Result<Arrival, Vec<u8>> {
        let is_most_of = |bytes: usize| bytes - text.len() <= text.len() / SHARE_AROUND;
        if text.len() < OFFERED_BYTES_MIN || !is_most_of(buffer.len()) {
            return Err(buffer);
        }
        buffer.shrink_to_fit();
        if !is_most_of(buffer.capacity()) {
            return Err(buffer);
        }
        let value = Shared::new(Value::Arrived(Arrived::new(buffer, text)));
        self.offered().push(value.clone());
        Ok(Arrival { value: Some(value), all: Arc::clone(self) })
    }

    /// The value that holds just these bytes: not a copy of them, the bytes themselves.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<Shared<Value>> {
        let is_it = |value: &&Shared<Value>| {
            arrived(value).is_some_and(|arrived| std::ptr::eq(arrived.text(), bytes))
        };
        self.offered().iter().find(is_it).cloned()
    }
}

fn arrived(value: &Value) -> Option<&Arrived> {
    if let Value::Arrived(arrived) = value { Some(arrived) } else { None }
}

/// The buffer of a request that runs, offered to those who would store what it holds.
pub struct Arrival {
    /// None when it has ended.
    value: Option<Shared<Value>>,
    all: Arc<Arrivals>,
}

impl Arrival {
    /// A shorter text is not worth an offer.
    pub const BYTES_MIN: usize = OFFERED_BYTES_MIN;

    /// The whole buffer.
    pub fn buffer(&self) -> &[u8] {
        self.value.as_deref().and_then(arrived).map_or(&[], Arrived::buffer)
    }

    /// Ends the offer. The buffer comes back unless somebody has stored it.
    pub fn end(mut self) -> Option<Vec<u8>> {
        self.withdraw();
        let mut value = self.value.take()?;
        match value.is_shared() {
            false if let Value::Arrived(arrived) = value.make_mut() => {
                Some(std::mem::take(arrived.buffer_mut()))
            }
            _ => None,
        }
    }

    fn withdraw(&self) {
        if let Some(own) = &self.value {
            self.all.offered().retain(|value| !std::ptr::eq(&**value, &**own));
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.withdraw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::tests::{NOW, keyspace, with};
    use crate::string::{Expiry, Growth};
    use crate::{Form, Keyspace, WrongType};
    use base::{Item, Millis};

    const TEXT: usize = 40_000;

    /// A request with a text of this length in its middle, and where that is.
    fn request(len: usize) -> (Vec<u8>, Range<usize>) {
        let mut buffer = b"*3 SET page ".to_vec();
        let start = buffer.len();
        buffer.extend((0..len).map(|n| n as u8));
        buffer.extend_from_slice(b"\r\n");
        buffer.shrink_to_fit();
        (buffer, start..start + len)
    }

    fn stored(keyspace: &Keyspace, name: &str) -> Option<Vec<u8>> {
        with(keyspace, NOW, name, |view, key| match view.string(key).unwrap() {
            Some(Item::Bytes(bytes)) => Some(bytes.to_vec()),
            other => other.map(|_| panic!("an integer")),
        })
    }

    fn address(keyspace: &Keyspace, name: &str) -> *const u8 {
        with(keyspace, NOW, name, |view, key| match view.string(key).unwrap() {
            Some(Item::Bytes(bytes)) => bytes.as_ptr(),
            other => panic!("{other:?}"),
        })
    }

    fn put(keyspace: &Keyspace, name: &str, bytes: &[u8], expiry: Expiry) {
        with(keyspace, NOW, name, |view, key| view.put_string(key, bytes, Form::Auto, expiry));
    }

    #[test]
    fn a_text_that_is_stored_stays_where_it_arrived() {
        let keyspace = keyspace(2);
        let (buffer, text) = request(TEXT);
        let (wanted, at) = (buffer[text.clone()].to_vec(), buffer[text.start..].as_ptr());
        let arrival = keyspace.offer(buffer, text.clone()).expect("long enough");
        put(&keyspace, "page", &arrival.buffer()[text.clone()], Expiry::At(Millis(NOW.0 + 100)));
        // Whoever stores it twice has two keys with one value, until one of them is edited.
        put(&keyspace, "other", &arrival.buffer()[text], Expiry::Clear);
        assert_eq!(arrival.end(), None);
        assert_eq!((stored(&keyspace, "page"), address(&keyspace, "page")), (Some(wanted.clone()), at));
        assert_eq!(keyspace.arrivals.offered().len(), 0);
        with(&keyspace, NOW, "other", |view, key| view.append(key, b"!").unwrap());
        assert_eq!(stored(&keyspace, "page"), Some(wanted.clone()));
        let longer = [&wanted[..], b"!"].concat();
        assert_eq!(stored(&keyspace, "other"), Some(longer.clone()));
        with(&keyspace, NOW, "page", |view, key| view.append(key, b"!").unwrap());
        assert_eq!(stored(&keyspace, "page"), Some(longer));
    }

    #[test]
    fn what_nobody_stores_comes_back() {
        let keyspace = keyspace(2);
        let (buffer, text) = request(TEXT);
        let copy = buffer.clone();
        let arrival = keyspace.offer(buffer, text.clone()).expect("long enough");
        // A part of it, the same bytes from elsewhere, and another text are copied.
        put(&keyspace, "part", &arrival.buffer()[text.start + 1..text.end], Expiry::Clear);
        put(&keyspace, "copy", &copy[text.clone()], Expiry::Clear);
        assert_ne!(address(&keyspace, "copy"), arrival.buffer()[text.start..].as_ptr());
        assert_eq!(arrival.end(), Some(copy.clone()));
        drop(keyspace.offer(copy.clone(), text.clone()));
        assert_eq!(keyspace.arrivals.offered().len(), 0);
        assert_eq!(stored(&keyspace, "part").as_deref(), Some(&copy[text.start + 1..text.end]));
    }

    #[test]
    fn a_short_text_or_a_small_part_of_the_buffer_is_not_offered() {
        let keyspace = keyspace(2);
        let (buffer, text) = request(OFFERED_BYTES_MIN - 1);
        assert!(keyspace.offer(buffer, text).is_err());
        let (mut buffer, text) = request(TEXT);
        buffer.resize(TEXT + TEXT / SHARE_AROUND + 20, 0);
        assert!(keyspace.offer(buffer, text).is_err());
    }

    #[test]
    fn edits_reads_and_sizes_are_those_of_any_string() {
        let keyspace = keyspace(2);
        let (buffer, text) = request(TEXT);
        let wanted = buffer[text.clone()].to_vec();
        let arrival = keyspace.offer(buffer, text.clone()).expect("long enough");
        put(&keyspace, "page", &arrival.buffer()[text], Expiry::Clear);
        arrival.end();
        put(&keyspace, "copy", &wanted, Expiry::Clear);
        for name in ["page", "copy"] {
            with(&keyspace, NOW, name, |view, key| {
                let info = view.info(key).expect("it is there");
                assert_eq!((info.len, info.encoding), (TEXT as u64, "raw"));
                assert_eq!(view.extent(key).bytes, TEXT as u64);
                assert!(
                    (TEXT as u64..TEXT as u64 + 300).contains(&info.memory_bytes),
                    "{}",
                    info.memory_bytes
                );
                assert_eq!(view.set_range(key, 2, b"xyz").unwrap(), TEXT as u64);
            });
        }
        let same = || assert_eq!(stored(&keyspace, "page"), stored(&keyspace, "copy"));
        same();
        // Where it lies, in a longer buffer, in one that is twice as long, and as a whole.
        let far = TEXT as u64 * 3;
        for name in ["page", "copy"] {
            with(&keyspace, NOW, name, |view, key| {
                assert_eq!(view.append(key, b"!").unwrap(), TEXT as u64 + 1);
                assert_eq!(view.append(key, &[b'+'; 90]).unwrap(), TEXT as u64 + 91);
                assert_eq!(view.set_range(key, TEXT as u64 + 100, b"end").unwrap(), TEXT as u64 + 103);
                let third = view.edit_bytes(key, 1, |text, growth| (text[2], text.len(), growth));
                assert_eq!(third.unwrap(), (b'x', TEXT + 103, Growth::None));
            });
        }
        same();
        for name in ["page", "copy"] {
            with(&keyspace, NOW, name, |view, key| {
                assert_eq!(view.set_range(key, far, b"far").unwrap(), far + 3);
            });
        }
        same();
        for name in ["page", "copy"] {
            with(&keyspace, NOW, name, |view, key| {
                let cut = |text: &mut Vec<u8>| text.drain(..7).len();
                let done: Result<usize, WrongType> = view.edit_text(key, |_| Ok(()), cut);
                assert_eq!(done.unwrap(), 7);
            });
        }
        same();
        with(&keyspace, NOW, "page", |view, key| assert!(view.remove(key)));
    }
}
