//! What the functions of one interpreter share: the protocol that the script chose, what ends it, the bound
//! on memory.
use crate::error;
use crate::exchange::Exchange;
use crate::host;
use crate::raised::Raised;
use crate::registered::Loading;
use lua::{Buffer, Functions};
use mlua::{Error, Lua, Result};
use resp::Protocol;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The error of a script that went past the bound on memory. Lua's own text for it.
pub(crate) const OUT_OF_MEMORY: &[u8] = b"not enough memory";

/// The state of `math.random` before any number: 0x1234 and 0xABCD, and the 0x330E that every seed has below
/// it.
const RANDOM_FIRST: u64 = 0x1234_ABCD_330E;

/// See the file's opener. Functions hold it in an `Rc`.
pub(crate) struct State {
    /// The protocol in which commands answer the script, and the script its caller.
    pub(crate) protocol: Cell<Protocol>,
    /// The bytes that the interpreter may take; 0 for no bound.
    pub(crate) bytes_max: Cell<usize>,
    /// Why the script ends, once it does: from then on nothing catches an error.
    pub(crate) stop: RefCell<Option<Vec<u8>>>,
    /// Scripts, and the functions of libraries.
    pub(crate) functions: Functions,
    /// What was raised to the top, and where.
    pub(crate) failure: RefCell<Option<Failure>>,
    /// The state of `math.random`.
    pub(crate) random: Cell<u64>,
    /// What the library that is loading has registered; None while none is.
    pub(crate) loading: RefCell<Option<Loading>>,
    /// The text of the last error that ended a script, code included, without where it was raised.
    pub(crate) last_error: RefCell<Vec<u8>>,
    /// Steps of long loops since the host was asked whether to go on.
    steps: Cell<u32>,
    /// What the libraries write into that make strings and values.
    pub(crate) buffer: Buffer,
    /// What calls of commands use again.
    pub(crate) exchanges: RefCell<Vec<Rc<RefCell<Exchange>>>>,
}

/// An error that nothing in the script caught.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    /// The text, code included.
    pub(crate) text: Vec<u8>,
    /// Where it was raised: the chunk's name as it was given, and the line.
    pub(crate) place: Option<(String, i64)>,
    /// Whether the server's statistics have it already.
    pub(crate) is_counted: bool,
}

/// How many steps of a loop in a library pass between two questions to the host: some hundred microseconds.
const STEPS_BETWEEN: u32 = 1 << 14;

impl State {
    pub(crate) fn new(lua: &Lua) -> Result<State> {
        Ok(State {
            functions: Functions::new(lua)?,
            protocol: Cell::new(Protocol::Resp2),
            bytes_max: Cell::new(0),
            stop: RefCell::new(None),
            failure: RefCell::new(None),
            random: Cell::new(RANDOM_FIRST),
            loading: RefCell::new(None),
            last_error: RefCell::default(),
            steps: Cell::new(0),
            buffer: Buffer::default(),
            exchanges: RefCell::default(),
        })
    }

    /// Between two scripts: gives back the memory of what has become large. It is none of the interpreter's.
    pub(crate) fn let_go(&self) {
        lua::let_go(&self.buffer);
        for exchange in self.exchanges.borrow().iter() {
            if let Ok(mut exchange) = exchange.try_borrow_mut() {
                exchange.let_go();
            }
        }
    }

    /// Before a script: nothing is left of the one before.
    pub(crate) fn begin(&self) {
        self.protocol.set(Protocol::Resp2);
        self.stop.replace(None);
        self.failure.replace(None);
        self.steps.set(0);
    }

    /// Ends the script for that reason; the first one stays.
    pub(crate) fn stop(&self, reason: Vec<u8>) -> Error {
        self.stop.borrow_mut().get_or_insert(reason);
        Raised::Stop.error()
    }

    /// Ends the script because of its memory.
    pub(crate) fn stop_out_of_memory(&self) -> Error {
        self.stop(error::coded(OUT_OF_MEMORY))
    }

    /// Asks the host whether the script may go on. One that was stopped is not asked again.
    pub(crate) fn interrupt(&self) -> Result<()> {
        if self.stop.borrow().is_some() {
            return Err(Raised::Stop.error());
        }
        match host::with(|host| host.interrupt()) {
            Some(Err(stop)) => Err(self.stop(stop.0)),
            _ => Ok(()),
        }
    }

    /// Counts `n` steps of a loop in a library, and asks the host now and then.
    #[inline]
    pub(crate) fn steps(&self, n: u32) -> Result<()> {
        let steps = self.steps.get().saturating_add(n);
        if steps < STEPS_BETWEEN {
            self.steps.set(steps);
            return Ok(());
        }
        self.steps.set(0);
        self.interrupt()
    }

    /// How many bytes more the interpreter may take.
    pub(crate) fn spare_bytes(&self, lua: &Lua) -> usize {
        match self.bytes_max.get() {
            0 => usize::MAX,
            bytes_max => bytes_max.saturating_sub(lua.used_memory()),
        }
    }

    /// Ends the script if a buffer of `bytes` would go past its memory.
    pub(crate) fn check_room(&self, lua: &Lua, bytes: usize) -> Result<()> {
        if bytes > self.spare_bytes(lua) { Err(self.stop_out_of_memory()) } else { Ok(()) }
    }

    /// Runs `f`, which makes at most about `bytes` of Lua values, with the bound lifted where they fit below
    /// it. mlua makes every value inside a protected call of its own while there is a bound, which is
    /// three times slower; one look at the room replaces them all.
    pub(crate) fn lifted<R>(&self, lua: &Lua, bytes: usize, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let bytes_max = self.bytes_max.get();
        if bytes_max == 0 || bytes > self.spare_bytes(lua) {
            return f();
        }
        lua.set_memory_limit(0)?;
        let result = f();
        lua.set_memory_limit(bytes_max)?;
        result
    }
}
