//! The interpreter of one thread, and the scripts that it has compiled. Each thread that runs scripts has one
//! of its own, started with the first script: about a hundred kilobytes.
//!
//! The texts are shared (`state/scripts/cache.rs`), so a script that one thread has met is known to all, and
//! compiled by each that runs it. SCRIPT FLUSH ends all interpreters: each when it is used next.
use crate::core::error;
use crate::core::tries::Tries;
use crate::state::scripts::{Cache, Origin, Sha, TextState};
use command::Error;
use script::{Compiled, Flags, Kind, Machine, Settings};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// So many compiled scripts may be there whose texts have gone before these are looked for, or one for so
/// many texts: the look is at all of them.
const FORGOTTEN_MAX: usize = 64;
const FORGOTTEN_SHARE: usize = 8;

/// See the file's opener.
pub(crate) struct Interpreter {
    pub(super) machine: Machine,
    compiled: BTreeMap<Sha, Rc<Known>>,
    /// Of the cache, when it was started.
    generation: u64,
}

/// A script that was compiled.
pub(super) struct Known {
    pub(super) compiled: Compiled,
    pub(super) tries: Rc<Tries>,
    text: Arc<TextState>,
}

/// What is kept of a script beside what the interpreter takes for it: its SHA-1 as text, and the allocations'
/// own bytes.
const KNOWN_BYTES: usize = size_of::<Known>() + size_of::<Tries>() + 160;

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
    pub(super) fn load(&mut self, cache: &Cache, text: &[u8], origin: Origin) -> Result<Rc<Known>, Error> {
        let sha = base::digest::sha1(text);
        if let Some(known) = self.known(cache, &sha) {
            if origin == Origin::Load {
                cache.add(sha, text, origin);
            }
            return Ok(known);
        }
        let compiled = self.compile(text)?;
        let known = self.keep(sha, compiled, cache.add(sha, text, origin));
        self.forget_some(cache);
        Ok(known)
    }

    /// EVALSHA: the script with this SHA-1, in hexadecimal digits of either case.
    pub(super) fn find(&mut self, cache: &Cache, hex: &[u8]) -> Result<Rc<Known>, Error> {
        let sha = sha_of_hex(hex).ok_or_else(error::no_script)?;
        if let Some(known) = self.known(cache, &sha) {
            return Ok(known);
        }
        let (text, state) = cache.find(sha).ok_or_else(error::no_script)?;
        let compiled = self.compile(&text)?;
        Ok(self.keep(sha, compiled, state))
    }

    /// One that was compiled, and whose text is in the cache still. It counts as used.
    fn known(&self, cache: &Cache, sha: &Sha) -> Option<Rc<Known>> {
        let known = self.compiled.get(sha).filter(|known| !known.text.is_gone())?;
        cache.touch(&known.text);
        Some(Rc::clone(known))
    }

    /// What a script has promised that was compiled here.
    pub(super) fn flags(&self, sha: &Sha) -> Option<Flags> {
        self.compiled.get(sha).filter(|known| !known.text.is_gone()).map(|known| known.compiled.flags())
    }

    fn compile(&mut self, text: &[u8]) -> Result<Compiled, Error> {
        self.machine.compile(text).map_err(|why| Error::quoting(&[&why]))
    }

    fn keep(&mut self, sha: Sha, compiled: Compiled, text: Arc<TextState>) -> Rc<Known> {
        let known = Rc::new(Known { compiled, tries: Rc::default(), text });
        self.compiled.insert(sha, Rc::clone(&known));
        known
    }

    /// What it takes, with all that is kept of scripts which it has compiled.
    pub(super) fn used_bytes(&self) -> u64 {
        (self.machine.used_bytes() + self.compiled.len() * KNOWN_BYTES) as u64
    }

    /// Other threads may have put texts out of the cache.
    fn forget_some(&mut self, cache: &Cache) {
        let texts = cache.size().0;
        if self.compiled.len() > texts + FORGOTTEN_MAX.max(texts / FORGOTTEN_SHARE) {
            self.compiled.retain(|_, known| !known.text.is_gone());
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
