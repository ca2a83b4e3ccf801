//! The texts of scripts, by their SHA-1: what EVALSHA and SCRIPT EXISTS know.
//!
//! A script that SCRIPT LOAD has brought stays until SCRIPT FLUSH. Of those that came with EVAL the last
//! [`EVAL_TEXTS_MAX`] stay that were used, as in Redis since 7.4: so a program that builds a new text for
//! every call does not fill the memory.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many texts stay that came with EVAL.
const EVAL_TEXTS_MAX: usize = 500;
/// What an entry takes beside its text.
const ENTRY_BYTES: usize = 96;

/// The SHA-1 of a script's text.
pub(crate) type Sha = [u8; 20];

/// Where a text has come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Eval,
    Load,
}

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Cache {
    texts: Mutex<Texts>,
    /// Grows with SCRIPT FLUSH: interpreters that have seen a lower one forget what they have compiled.
    generation: AtomicU64,
    evicted: AtomicU64,
}

#[derive(Default)]
struct Texts {
    by_sha: BTreeMap<Sha, Text>,
    /// Those that came with EVAL, by when they were used last.
    by_use: BTreeMap<u64, Sha>,
    uses: u64,
    bytes: usize,
}

struct Text {
    text: Arc<[u8]>,
    /// Where it stands in `by_use`; None for what SCRIPT LOAD has brought.
    used: Option<u64>,
}

impl Cache {
    /// Keeps a text. Returns the one that had to go for it, if one had.
    pub(crate) fn add(&self, sha: Sha, text: &[u8], origin: Origin) -> Option<Sha> {
        let mut texts = self.texts();
        if texts.by_sha.contains_key(&sha) {
            texts.touch(sha, origin);
            return None;
        }
        texts.bytes += text.len() + ENTRY_BYTES;
        texts.by_sha.insert(sha, Text { text: text.into(), used: None });
        if origin == Origin::Load {
            return None;
        }
        texts.enter(sha);
        let gone = (texts.by_use.len() > EVAL_TEXTS_MAX).then(|| texts.by_use.pop_first()).flatten();
        let (_, gone) = gone?;
        texts.remove(&gone);
        self.evicted.fetch_add(1, Relaxed);
        Some(gone)
    }

    /// The text, which counts as used.
    pub(crate) fn find(&self, sha: Sha) -> Option<Arc<[u8]>> {
        let mut texts = self.texts();
        texts.touch(sha, Origin::Eval);
        texts.by_sha.get(&sha).map(|text| Arc::clone(&text.text))
    }

    /// Whether it is known; that is no use.
    pub(crate) fn has(&self, sha: &Sha) -> bool {
        self.texts().by_sha.contains_key(sha)
    }

    /// SCRIPT FLUSH
    pub(crate) fn flush(&self) {
        let mut texts = self.texts();
        let old = std::mem::take(&mut *texts);
        self.generation.fetch_add(1, Relaxed);
        drop(texts);
        drop(old);
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// How many texts there are, and about what they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        let texts = self.texts();
        (texts.by_sha.len(), texts.bytes)
    }

    /// How many had to go for others.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// CONFIG RESETSTAT
    pub(crate) fn reset_evicted(&self) {
        self.evicted.store(0, Relaxed);
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Texts {
    /// A text was used again. Once SCRIPT LOAD has named it, it stays.
    fn touch(&mut self, sha: Sha, origin: Origin) {
        let Some(text) = self.by_sha.get_mut(&sha) else { return };
        let Some(used) = text.used.take() else { return };
        self.by_use.remove(&used);
        if origin == Origin::Eval {
            self.enter(sha);
        }
    }

    fn enter(&mut self, sha: Sha) {
        self.uses += 1;
        self.by_use.insert(self.uses, sha);
        if let Some(text) = self.by_sha.get_mut(&sha) {
            text.used = Some(self.uses);
        }
    }

    fn remove(&mut self, sha: &Sha) {
        if let Some(text) = self.by_sha.remove(sha) {
            self.bytes -= text.text.len() + ENTRY_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha(n: usize) -> Sha {
        let mut sha = [0; 20];
        sha[..8].copy_from_slice(&(n as u64).to_le_bytes());
        sha
    }

    #[test]
    fn what_came_with_eval_goes_when_it_was_not_used_for_long_and_what_was_loaded_stays() {
        let cache = Cache::default();
        cache.add(sha(0), b"loaded", Origin::Load);
        for n in 1..=EVAL_TEXTS_MAX {
            assert_eq!(cache.add(sha(n), b"text", Origin::Eval), None);
        }
        assert!(cache.find(sha(1)).is_some(), "it is used again");
        cache.add(sha(2), b"text", Origin::Load);
        assert_eq!(cache.add(sha(1000), b"text", Origin::Eval), None, "one was loaded, so there is room");
        assert_eq!(cache.add(sha(1001), b"text", Origin::Eval), Some(sha(3)));
        for n in [0, 1, 2, 1000, 1001] {
            assert!(cache.has(&sha(n)), "{n}");
        }
        assert!(!cache.has(&sha(3)));
        assert_eq!((cache.size().0, cache.evicted()), (EVAL_TEXTS_MAX + 2, 1));
        cache.flush();
        assert_eq!((cache.size(), cache.generation()), ((0, 0), 1));
    }
}
