//! The interpreter of functions: all libraries live in one, because what their variables hold lasts from call
//! to call. It belongs to the thread of scripts, which starts it with the first library or call. Libraries
//! that hold nothing are compiled once more by each worker that calls their functions, in an interpreter of
//! its own.
//!
//! ```text
//! FUNCTION LOAD:  is its name free? -> the code runs, and registers functions -> are theirs? -> in force
//! FCALL:          found in the catalog (`state/scripts/libraries.rs`) -> compiled already? -> run
//!                                                                          \- no: its code runs first
//! ```
//!
//! A library that came with a file was compiled on the thread that loads, to see whether it can be and what
//! it registers; the thread of scripts compiles it again when it is first called. Code that loads sees
//! neither keys nor time, so it registers the same again. When all libraries go (FUNCTION FLUSH, or a file
//! that is loaded) the interpreter goes with them. EXEC of a queue that subscribes runs on its worker, and
//! what it calls in an interpreter there.
//!
//! `change.rs` has the commands that change libraries, which clients send and append-only files hold.
mod change;
mod host;

use crate::core::error;
use crate::core::server::Server;
use crate::core::tries::Tries;
use crate::state::scripts::{Catalog, Former, Function, Libraries, Library};
use command::Error;
use host::LoadHost;
pub(crate) use host::{Limit, log_for_script, logged_part, wants_log_of_script};
use script::{Kind, Machine, Registered, Settings, library_name};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// So many compiled libraries may be there that have gone, before these are looked for.
const FORGOTTEN_MAX: usize = 16;

/// A worker compiles a library that takes no longer: it serves nobody meanwhile.
const QUICK: Duration = Duration::from_millis(2);

/// See the file's opener.
pub(crate) struct FunctionInterpreter {
    pub(crate) machine: Machine,
    /// By the numbers of the libraries, with how attempts of each function have gone.
    compiled: BTreeMap<u64, (script::Library, Vec<Rc<Tries>>)>,
    /// Of the libraries, when it was started.
    generation: u64,
}

impl FunctionInterpreter {
    pub(crate) fn new(libraries: &Libraries) -> FunctionInterpreter {
        let machine = Machine::new(Kind::Functions, Settings::default());
        FunctionInterpreter { machine, compiled: BTreeMap::new(), generation: libraries.generation() }
    }

    /// Whether all libraries have gone since it was started.
    pub(crate) fn is_stale(&self, libraries: &Libraries) -> bool {
        self.generation != libraries.generation()
    }

    /// Puts a library in force. Returns its name.
    pub(crate) fn load(
        &mut self,
        server: &Server,
        code: &[u8],
        (former, limit): (Former, Limit),
    ) -> Result<Vec<u8>, Error> {
        let libraries = &server.scripts.libraries;
        let name = library_name(code).map_err(|why| Error::quoting(&[&why]))?;
        if former == Former::Stays && libraries.now().has(&name) {
            return Err(error::library_exists(&name));
        }
        let library = self.compile(server, code, limit)?;
        let number = library.number;
        match libraries.change(|catalog| catalog.add(library, former)) {
            Ok(gone) => drop(gone.and_then(|gone| self.compiled.remove(&gone.number))),
            Err(taken) => {
                self.compiled.remove(&number);
                return Err(error::taken(&taken));
            }
        }
        Ok(name)
    }

    /// Puts all of these libraries in force, or none.
    pub(crate) fn load_all(
        &mut self,
        server: &Server,
        codes: &[Vec<u8>],
        (others, limit): (Others, Limit),
    ) -> Result<(), Error> {
        let libraries = &server.scripts.libraries;
        let done = self.try_load_all(server, codes, (others, limit));
        if done.is_ok() && others == Others::Go {
            self.generation = libraries.generation();
        }
        let catalog = libraries.now();
        self.keep_only(&catalog);
        done
    }

    fn try_load_all(
        &mut self,
        server: &Server,
        codes: &[Vec<u8>],
        (others, limit): (Others, Limit),
    ) -> Result<(), Error> {
        let libraries = &server.scripts.libraries;
        let mut fresh = Catalog::default();
        for code in codes {
            let name = library_name(code).map_err(|why| Error::quoting(&[&why]))?;
            if fresh.has(&name) {
                return Err(error::library_exists(&name));
            }
            let library = self.compile(server, code, limit)?;
            fresh.add(library, Former::Stays).map_err(|taken| error::taken(&taken))?;
        }
        let all = match others {
            Others::Go => {
                libraries.flush();
                fresh
            }
            Others::Stay(former) => {
                libraries.now().add_all(&fresh, former).map_err(|taken| error::taken_by_restored(&taken))?
            }
        };
        libraries.replace(all);
        Ok(())
    }

    /// Takes the library of this name out of force. Whether there was one.
    pub(crate) fn remove(&mut self, libraries: &Libraries, name: &[u8]) -> bool {
        let gone = libraries.change(|catalog| catalog.remove(name));
        if let Some(gone) = &gone {
            self.compiled.remove(&gone.number);
        }
        gone.is_some()
    }

    /// Has a library compiled that is in force.
    pub(crate) fn compile_again(&mut self, server: &Server, library: &Library) -> Result<(), Error> {
        if !self.compiled.contains_key(&library.number) {
            let mut host = LoadHost::again(server);
            let compiled = self.machine.load_library(&library.code, &mut host);
            let compiled = compiled.map_err(|why| Error::quoting(&[&why]))?;
            self.keep(library.number, compiled);
        }
        Ok(())
    }

    fn keep(&mut self, number: u64, library: script::Library) {
        let tries = library.functions().iter().map(|_| Rc::default()).collect();
        self.compiled.insert(number, (library, tries));
    }

    /// A function of a library that is compiled.
    pub(crate) fn registered(
        &self,
        library: &Library,
        index: usize,
    ) -> Result<(&Registered, &Rc<Tries>), Error> {
        let (compiled, tries) = self.compiled.get(&library.number).ok_or_else(error::no_function)?;
        let is_it = |function: &&Registered| function.name() == library.functions[index].name;
        let function = compiled.functions().get(index).filter(is_it);
        function.zip(tries.get(index)).ok_or_else(error::no_function)
    }

    /// Runs a library's code, and keeps the functions that it has registered.
    fn compile(&mut self, server: &Server, code: &[u8], limit: Limit) -> Result<Arc<Library>, Error> {
        let mut host = LoadHost::new(server, limit);
        let compiled = self.machine.load_library(code, &mut host);
        let compiled = compiled.map_err(|why| Error::quoting(&[&why]))?;
        let functions = compiled.functions().iter().map(|function| Function {
            name: function.name().to_string(),
            description: function.description().map(<[u8]>::to_vec),
            flags: function.flags(),
        });
        let library = Library {
            number: server.scripts.libraries.take_number(),
            name: compiled.name().to_vec(),
            code: code.into(),
            functions: functions.collect(),
            is_quick_and_stateless: compiled.is_stateless() && host.used() < QUICK,
        };
        self.keep(library.number, compiled);
        Ok(Arc::new(library))
    }

    /// Forgets what was compiled of others.
    fn keep_only(&mut self, catalog: &Catalog) {
        let mut numbers: Vec<u64> = catalog.libraries().map(|library| library.number).collect();
        numbers.sort_unstable();
        self.compiled.retain(|number, _| numbers.binary_search(number).is_ok());
    }

    /// Between two calls: frees what was dropped, and collects some of what they have left if that is much.
    pub(crate) fn collect(&self) {
        self.machine.tidy();
    }

    /// The same, for the interpreter that runs functions. Libraries may have gone elsewhere.
    pub(crate) fn tidy(&mut self, libraries: &Libraries) {
        // Few cannot be too many, whoever else asks for the catalog.
        if self.compiled.len() > FORGOTTEN_MAX {
            let catalog = libraries.now();
            if self.compiled.len() > catalog.size().0 + FORGOTTEN_MAX {
                self.keep_only(&catalog);
            }
        }
        self.collect();
    }
}

/// What becomes of the libraries that are there, when several are put in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    Go,
    /// They stay, but for those of the same name, perhaps.
    Stay(Former),
}
