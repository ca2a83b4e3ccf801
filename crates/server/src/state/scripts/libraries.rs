//! The libraries of functions in force: what FUNCTION LIST shows, FUNCTION DUMP and snapshots save, and FCALL
//! looks a function up in. Every thread may ask for them.
//!
//! ```text
//! FUNCTION LOAD, a file --- the code has run once, in some interpreter ---> Catalog: code, names, flags
//!                                                                              | FCALL
//! the interpreter of functions  <--- it has not compiled this library? from its code ---/
//! ```
//!
//! What the variables of libraries hold is in that interpreter alone (`core/functions`); libraries that hold
//! nothing there are in those of workers too. A library has a
//! number that no other has had, by which the interpreter knows whether it has compiled this one or one
//! that was there before under the same name.
//!
//! Names of libraries are as they are; those of functions are the same in any case, as in Redis.
use script::Flags;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a library takes beside its code, and a function beside its name and description.
const LIBRARY_BYTES: usize = 192;
const FUNCTION_BYTES: usize = 144;

/// A library that was loaded.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) number: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) code: Arc<[u8]>,
    /// In the order in which it has registered them.
    pub(crate) functions: Vec<Function>,
    /// Its code takes no time to load, and its functions keep nothing from call to call: any interpreter may
    /// have a copy of it.
    pub(crate) is_quick_and_stateless: bool,
}

/// A function of a library.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) flags: Flags,
}

/// What becomes of a library that has the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Former {
    /// It stays, and the new one is refused.
    Stays,
    Goes,
}

/// A name that is taken already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Library(Vec<u8>),
    Function(String),
}

/// Libraries that go together: no two of them have the same name, or functions of the same name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    libraries: BTreeMap<Vec<u8>, Arc<Library>>,
    /// By their names in lower case: the library, and which of its functions it is.
    functions: BTreeMap<Vec<u8>, (Arc<Library>, usize)>,
    bytes: usize,
}

impl Library {
    fn bytes(&self) -> usize {
        let of_function = |function: &Function| {
            2 * function.name.len() + function.description.as_ref().map_or(0, Vec::len) + FUNCTION_BYTES
        };
        LIBRARY_BYTES
            + self.name.len()
            + self.code.len()
            + self.functions.iter().map(of_function).sum::<usize>()
    }
}

impl Catalog {
    pub(crate) fn has(&self, library: &[u8]) -> bool {
        self.libraries.contains_key(library)
    }

    /// The library that has a function of this name, and which of its functions that is.
    pub(crate) fn function(&self, name: &[u8]) -> Option<(Arc<Library>, usize)> {
        self.functions.get(&name.to_ascii_lowercase()).cloned()
    }

    /// All libraries, by name.
    pub(crate) fn libraries(&self) -> impl ExactSizeIterator<Item = &Arc<Library>> {
        self.libraries.values()
    }

    /// How many libraries there are, and how many functions.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.libraries.len(), self.functions.len())
    }

    /// About how many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a library to the others. Returns the one that went for it. Where a name is taken nothing has
    /// changed.
    pub(crate) fn add(
        &mut self,
        library: Arc<Library>,
        former: Former,
    ) -> Result<Option<Arc<Library>>, Taken> {
        let old = self.libraries.get(&library.name);
        if old.is_some() && former == Former::Stays {
            return Err(Taken::Library(library.name.clone()));
        }
        let old = old.map(|old| old.number);
        let mut mine = BTreeMap::new();
        for (index, function) in library.functions.iter().enumerate() {
            let key = function.name.as_bytes().to_ascii_lowercase();
            let is_taken = self.functions.get(&key).is_some_and(|(owner, _)| Some(owner.number) != old);
            if is_taken || mine.insert(key, (Arc::clone(&library), index)).is_some() {
                return Err(Taken::Function(function.name.clone()));
            }
        }
        let gone = self.remove(&library.name);
        self.bytes += library.bytes();
        self.functions.extend(mine);
        self.libraries.insert(library.name.clone(), library);
        Ok(gone)
    }

    /// Puts all of these to the others, which they fit together or not at all.
    pub(crate) fn add_all(&self, more: &Catalog, former: Former) -> Result<Catalog, Taken> {
        let mut all = self.clone();
        if former == Former::Goes {
            more.libraries.keys().for_each(|name| drop(all.remove(name)));
        }
        for library in more.libraries.values() {
            all.add(Arc::clone(library), Former::Stays)?;
        }
        Ok(all)
    }

    /// Takes the library of this name away, if there is one.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Arc<Library>> {
        let gone = self.libraries.remove(name)?;
        self.bytes -= gone.bytes();
        for function in &gone.functions {
            self.functions.remove(&function.name.as_bytes().to_ascii_lowercase());
        }
        Some(gone)
    }
}

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Libraries {
    catalog: Mutex<Arc<Catalog>>,
    last_number: AtomicU64,
    /// Grows when all libraries go: an interpreter that has seen a lower one begins anew.
    generation: AtomicU64,
    /// What the interpreter of functions takes.
    interpreter_bytes: AtomicU64,
}

impl Libraries {
    /// Those in force now.
    pub(crate) fn now(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog())
    }

    /// Changes them. The caller is the only one that does: it runs alone, or loads the data.
    pub(crate) fn change<R>(&self, work: impl FnOnce(&mut Catalog) -> R) -> R {
        work(Arc::make_mut(&mut self.catalog()))
    }

    /// Puts others in their place, which keep their variables where they were there before.
    pub(crate) fn replace(&self, catalog: Catalog) {
        *self.catalog() = Arc::new(catalog);
    }

    /// All go: FUNCTION FLUSH, or before a file is loaded.
    pub(crate) fn flush(&self) {
        let gone = std::mem::take(&mut *self.catalog());
        self.generation.fetch_add(1, Relaxed);
        drop(gone);
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// A number for a library that is being loaded.
    pub(crate) fn take_number(&self) -> u64 {
        self.last_number.fetch_add(1, Relaxed)
    }

    /// So much the interpreter of functions takes.
    pub(crate) fn note_interpreter(&self, bytes: usize) {
        self.interpreter_bytes.store(bytes as u64, Relaxed);
    }

    pub(crate) fn interpreter_bytes(&self) -> u64 {
        self.interpreter_bytes.load(Relaxed)
    }

    /// Their codes, as a file keeps them.
    pub(crate) fn codes(&self) -> Vec<Arc<[u8]>> {
        self.now().libraries().map(|library| Arc::clone(&library.code)).collect()
    }

    fn catalog(&self) -> MutexGuard<'_, Arc<Catalog>> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(number: u64, name: &str, functions: &[&str]) -> Arc<Library> {
        let function =
            |name: &&str| Function { name: name.to_string(), description: None, flags: Flags::default() };
        let functions = functions.iter().map(function).collect();
        let (name, code) = (name.into(), Arc::from(name.as_bytes()));
        Arc::new(Library { number, name, code, functions, is_quick_and_stateless: false })
    }

    fn owner(catalog: &Catalog, function: &str) -> Option<u64> {
        catalog.function(function.as_bytes()).map(|(library, _)| library.number)
    }

    #[test]
    fn no_name_of_a_library_or_function_is_there_twice() {
        let mut catalog = Catalog::default();
        catalog.add(library(1, "a", &["f", "g"]), Former::Stays).unwrap();
        let taken = |name: &str| Some(Taken::Function(name.into()));
        let mut add = |library, former| catalog.add(library, former).err();
        assert_eq!(add(library(2, "a", &["h"]), Former::Stays), Some(Taken::Library(b"a".to_vec())));
        assert_eq!(add(library(2, "b", &["h", "F"]), Former::Goes), taken("F"));
        assert_eq!(add(library(2, "b", &["h", "H"]), Former::Goes), taken("H"));
        assert_eq!((catalog.size(), owner(&catalog, "h")), ((1, 2), None));
        catalog.add(library(2, "A", &["h"]), Former::Stays).unwrap();
        assert_eq!(catalog.add(library(3, "a", &["f", "H"]), Former::Goes).err(), taken("H"));
        assert_eq!((owner(&catalog, "G"), owner(&catalog, "h")), (Some(1), Some(2)));
        let gone = catalog.add(library(3, "a", &["F"]), Former::Goes).unwrap();
        assert_eq!(gone.map(|gone| gone.number), Some(1));
        assert_eq!((owner(&catalog, "f"), owner(&catalog, "g")), (Some(3), None));
    }

    #[test]
    fn several_are_added_together_or_not_at_all() {
        let mut catalog = Catalog::default();
        catalog.add(library(1, "a", &["f"]), Former::Stays).unwrap();
        catalog.add(library(2, "b", &["g"]), Former::Stays).unwrap();
        let mut more = Catalog::default();
        more.add(library(3, "a", &["g"]), Former::Stays).unwrap();
        more.add(library(4, "c", &["h"]), Former::Stays).unwrap();
        let taken = catalog.add_all(&more, Former::Stays).err();
        assert_eq!(taken, Some(Taken::Library(b"a".to_vec())));
        assert_eq!(catalog.add_all(&more, Former::Goes).err(), Some(Taken::Function("g".into())));
        more.add(library(5, "b", &["f"]), Former::Stays).unwrap();
        let all = catalog.add_all(&more, Former::Goes).unwrap();
        assert_eq!((all.size(), owner(&all, "f"), owner(&all, "g")), ((3, 3), Some(5), Some(3)));
    }

    #[test]
    fn bytes_are_counted_as_long_as_they_are_taken() {
        let mut catalog = Catalog::default();
        catalog.add(library(1, "a", &["f", "g"]), Former::Stays).unwrap();
        catalog.add(library(2, "a", &["f"]), Former::Goes).unwrap();
        catalog.add(library(3, "b", &["g"]), Former::Goes).unwrap();
        assert!(catalog.bytes() > 2 * LIBRARY_BYTES);
        assert!(catalog.remove(b"a").is_some() && catalog.remove(b"b").is_some());
        assert_eq!((catalog.bytes(), catalog.size()), (0, (0, 0)));
    }
}
