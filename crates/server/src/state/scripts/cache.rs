//! The texts of scripts, by their SHA-1: what EVALSHA and SCRIPT EXISTS know.
//!
//! A script that SCRIPT LOAD has brought stays until SCRIPT FLUSH. Of those that came with EVAL the last
//! [`EVAL_TEXTS_MAX`] stay that were used, as in Redis since 7.4: so a program that builds a new text for
//! every call does not fill the memory.
//!
//! Workers keep the texts that they have compiled, and see in them when they have gone. So a call of a known
//! script takes no lock, and writes to nothing that workers share unless a new text has come since its last.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
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
    /// How many texts have come.
    come: AtomicU64,
}

#[derive(Default)]
struct Texts {
    by_sha: BTreeMap<Sha, Text>,
    /// How many of them came with EVAL, and no SCRIPT LOAD since.
    evals: usize,
    /// Those, by when they were used as somebody last looked: a use takes no lock, so each may have been used
    /// since, or been loaded.
    by_use: BinaryHeap<Reverse<(u64, Sha)>>,
    bytes: usize,
}

#[derive(Clone)]
struct Text {
    bytes: Arc<[u8]>,
    state: Arc<TextState>,
}

/// What is known of a text that is in the cache, or has been.
pub(crate) struct TextState {
    /// SCRIPT LOAD has brought it.
    is_loaded: AtomicBool,
    /// How many texts had come when it was used last.
    used: AtomicU64,
    is_gone: AtomicBool,
}

impl TextState {
    /// Whether it is in the cache no longer.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Relaxed)
    }
}

impl Cache {
    /// Keeps a text. Another may have to go for it.
    pub(crate) fn add(&self, sha: Sha, text: &[u8], origin: Origin) -> Arc<TextState> {
        let mut texts = self.texts();
        if let Some(state) = texts.by_sha.get(&sha).map(|text| Arc::clone(&text.state)) {
            self.touch(&state);
            if origin == Origin::Load && !state.is_loaded.swap(true, Relaxed) {
                texts.evals -= 1;
            }
            return state;
        }
        let come = self.come.fetch_add(1, Relaxed) + 1;
        let used = AtomicU64::new(come);
        let is_loaded = AtomicBool::new(origin == Origin::Load);
        let state = Arc::new(TextState { is_loaded, used, is_gone: AtomicBool::new(false) });
        texts.bytes += text.len() + ENTRY_BYTES;
        texts.by_sha.insert(sha, Text { bytes: text.into(), state: Arc::clone(&state) });
        if origin == Origin::Eval {
            texts.evals += 1;
            texts.by_use.push(Reverse((come, sha)));
            if texts.evals > EVAL_TEXTS_MAX {
                texts.evict();
                self.evicted.fetch_add(1, Relaxed);
            }
        }
        state
    }

    /// The text, which counts as used.
    pub(crate) fn find(&self, sha: Sha) -> Option<(Arc<[u8]>, Arc<TextState>)> {
        let Text { bytes, state } = self.texts().by_sha.get(&sha).cloned()?;
        self.touch(&state);
        Some((bytes, state))
    }

    /// A text is used again.
    pub(crate) fn touch(&self, text: &TextState) {
        let come = self.come.load(Relaxed);
        if text.used.load(Relaxed) != come {
            text.used.store(come, Relaxed);
        }
    }

    /// Whether it is known; that is no use.
    pub(crate) fn has(&self, sha: &Sha) -> bool {
        self.texts().by_sha.contains_key(sha)
    }

    /// SCRIPT FLUSH
    pub(crate) fn flush(&self) {
        let mut texts = self.texts();
        let old = std::mem::take(&mut *texts);
        old.by_sha.values().for_each(|text| text.state.is_gone.store(true, Relaxed));
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
    /// Removes the text that came with EVAL and was not used for longest. Each look at one that was used
    /// meanwhile is paid for by that use.
    fn evict(&mut self) {
        while let Some(Reverse((seen, sha))) = self.by_use.pop() {
            let Some(state) = self.by_sha.get(&sha).map(|text| &text.state) else { continue };
            let used = state.used.load(Relaxed);
            if state.is_loaded.load(Relaxed) {
                continue;
            }
            if used > seen {
                self.by_use.push(Reverse((used, sha)));
                continue;
            }
            if let Some(text) = self.by_sha.remove(&sha) {
                text.state.is_gone.store(true, Relaxed);
                self.bytes -= text.bytes.len() + ENTRY_BYTES;
                self.evals -= 1;
            }
            return;
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
        let states: Vec<_> = (1..=EVAL_TEXTS_MAX).map(|n| cache.add(sha(n), b"text", Origin::Eval)).collect();
        assert!(cache.find(sha(1)).is_some(), "it is used again");
        cache.add(sha(2), b"text", Origin::Load);
        cache.add(sha(1000), b"text", Origin::Eval);
        assert_eq!(cache.evicted(), 0, "one was loaded, so there is room");
        cache.touch(&states[4]);
        cache.add(sha(1001), b"text", Origin::Eval);
        let gone: Vec<usize> = (1..=500).filter(|n| states[n - 1].is_gone()).collect();
        assert_eq!(gone, [3]);
        for n in [0, 1, 2, 1000, 1001] {
            assert!(cache.has(&sha(n)), "{n}");
        }
        assert!(!cache.has(&sha(3)));
        assert_eq!((cache.size().0, cache.evicted()), (EVAL_TEXTS_MAX + 2, 1));
        cache.flush();
        assert_eq!((cache.size(), cache.generation()), ((0, 0), 1));
        assert!(states.iter().all(|state| state.is_gone()));
    }
}
