//! The interpreter of one thread, and the scripts that it has compiled. Each thread that runs scripts has one
//! of its own, started with the first script: about a hundred kilobytes.
//!
//! The texts are shared (`state/scripts/cache.rs`), so a script that one thread has met is known to all, and
//! compiled by each that runs it. SCRIPT FLUSH ends all interpreters: each when it is used next.
use crate::core::error;
use crate::state::scripts::{Cache, Origin, Sha};
use command::Error;
use script::{Compiled, Kind, Machine, Settings};
use sha1::{Digest as _, Sha1};
use std::cell::Cell;
use std::collections::BTreeMap;

/// So many compiled scripts may be there whose texts have gone, before these are looked for.
const FORGOTTEN_MAX: usize = 64;
/// A script that is given up again and again is attempted every 2^10 calls.
const FAILURES_MAX: u32 = 10;
/// After a script the collector goes one step on if there is more than this.
const COLLECT_BYTES_MIN: usize = 1 << 20;

/// See the file's opener.
pub(crate) struct Interpreter {
    pub(super) machine: Machine,
    compiled: BTreeMap<Sha, Known>,
    /// Of the cache, when it was started.
    generation: u64,
}

/// A script that was compiled.
struct Known {
    compiled: Compiled,
    /// How often in a row a worker has given it up, and how many of its next calls are not attempted.
    failures: Cell<u32>,
    skips: Cell<u32>,
}

impl Interpreter {
    pub(super) fn new(cache: &Cache) -> Interpreter {
        let machine = Machine::new(Kind::Scripts, Settings::default());
        Interpreter { machine, compiled: BTreeMap::new(), generation: cache.generation() }
    }

    /// Whether SCRIPT FLUSH has come since it was started.
    pub(super) fn is_stale(&self, cache: &Cache) -> bool {
        self.generation != cache.generation()
    }

    /// EVAL, SCRIPT LOAD: a script is there from here on, unless it cannot be compiled.
    pub(super) fn load(&mut self, cache: &Cache, text: &[u8], origin: Origin) -> Result<Sha, Error> {
        let sha = Sha::from(Sha1::digest(text));
        if !self.compiled.contains_key(&sha) {
            self.compile(sha, text)?;
        }
        if let Some(gone) = cache.add(sha, text, origin) {
            self.compiled.remove(&gone);
        }
        self.forget_some(cache);
        Ok(sha)
    }

    /// EVALSHA: the script with this SHA-1, in hexadecimal digits of either case.
    pub(super) fn find(&mut self, cache: &Cache, hex: &[u8]) -> Result<Sha, Error> {
        let sha = sha_of_hex(hex).ok_or_else(error::no_script)?;
        let text = cache.find(sha).ok_or_else(error::no_script)?;
        if !self.compiled.contains_key(&sha) {
            self.compile(sha, &text)?;
        }
        Ok(sha)
    }

    /// A script that [`Interpreter::load`] or [`Interpreter::find`] has given.
    pub(super) fn compiled(&self, sha: &Sha) -> &Compiled {
        &self.known(sha).compiled
    }

    fn known(&self, sha: &Sha) -> &Known {
        self.compiled.get(sha).expect("it was compiled when it was found, and nothing has run since")
    }

    /// Whether a worker should try to run it. One that was given up is not tried for a while, the longer the
    /// more often that has happened.
    pub(super) fn is_worth_an_attempt(&self, sha: &Sha) -> bool {
        let skips = &self.known(sha).skips;
        skips.replace(skips.get().saturating_sub(1)) == 0
    }

    /// A worker has tried to run it.
    pub(super) fn note_attempt(&self, sha: &Sha, has_worked: bool) {
        let known = self.known(sha);
        let failures = if has_worked { 0 } else { (known.failures.get() + 1).min(FAILURES_MAX) };
        known.failures.set(failures);
        known.skips.set(if has_worked { 0 } else { 1 << failures });
    }

    fn compile(&mut self, sha: Sha, text: &[u8]) -> Result<(), Error> {
        let compiled = self.machine.compile(text).map_err(|why| Error::quoting(&[&why]))?;
        let known = Known { compiled, failures: Cell::new(0), skips: Cell::new(0) };
        self.compiled.insert(sha, known);
        Ok(())
    }

    /// Other threads may have put texts out of the cache.
    fn forget_some(&mut self, cache: &Cache) {
        if self.compiled.len() > cache.size().0 + FORGOTTEN_MAX {
            self.compiled.retain(|sha, _| cache.has(sha));
        }
    }

    /// Between two scripts: collects some of what they have left.
    pub(super) fn tidy(&self) {
        if self.machine.used_bytes() > COLLECT_BYTES_MIN {
            self.machine.collect();
        }
    }
}

/// A SHA-1 from its 40 hexadecimal digits.
pub(crate) fn sha_of_hex(hex: &[u8]) -> Option<Sha> {
    let digit = |byte: &u8| (*byte as char).to_digit(16).map(|digit| digit as u8);
    let mut sha = Sha::default();
    if hex.len() != 2 * sha.len() {
        return None;
    }
    for (byte, two) in sha.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = digit(&two[0])? << 4 | digit(&two[1])?;
    }
    Some(sha)
}
