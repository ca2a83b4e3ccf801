//! Functions of Rust that take strings and numbers and answer in RESP, as `redis.call` does.
use crate::reply::{self, Marks};
use crate::wanted::is_unwanted;
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Result, Variadic};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// An argument, as the function's caller gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    Bytes(&'a [u8]),
    Number(f64),
    /// Of any other type.
    Other,
}

impl Argument<'_> {
    /// A number without its fraction, where that is the same in 32 bits and in 64.
    pub fn int(self) -> Option<i64> {
        match self {
            Argument::Number(number) if number.abs() < f64::from(i32::MAX) => Some(number as i64),
            _ => None,
        }
    }
}

/// The arguments of a call. They lie on the interpreter's stack as long as the call runs.
pub struct Arguments<'a> {
    state: *mut lua_State,
    next: c_int,
    count: c_int,
    call: PhantomData<&'a ()>,
}

impl<'a> Arguments<'a> {
    /// # Safety
    /// The function that `state` runs does not change its stack during `'a`.
    pub(crate) unsafe fn new(state: *mut lua_State) -> Arguments<'a> {
        // SAFETY: `state` runs a function; this reads and raises nothing.
        let count = unsafe { ffi::lua_gettop(state) };
        Arguments { state, next: 1, count, call: PhantomData }
    }
}

impl<'a> Arguments<'a> {
    /// The argument at `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<Argument<'a>> {
        let index = c_int::try_from(index).ok()?.checked_add(1)?;
        // SAFETY: the index is one of an argument, which stays where it is during 'a (`new`).
        (index <= self.count).then(|| unsafe { argument(self.state, index) })
    }

    /// Whether the next argument is there, and neither nil nor false.
    pub fn next_is_true(&mut self) -> bool {
        self.next += 1;
        // SAFETY: reading raises nothing; no argument at an index is none that is true.
        self.next <= self.count + 1 && unsafe { ffi::lua_toboolean(self.state, self.next - 1) != 0 }
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = Argument<'a>;

    #[inline]
    fn next(&mut self) -> Option<Argument<'a>> {
        if self.next > self.count {
            return None;
        }
        let (state, index) = (self.state, self.next);
        self.next += 1;
        // SAFETY: the index is one of an argument, which stays where it is during 'a (`new`).
        Some(unsafe { argument(state, index) })
    }
}

/// The argument at `index`. Nothing raises: a number is not made a string in place.
///
/// # Safety
/// There is a value at `index`, and it stays there during `'a`.
#[inline]
unsafe fn argument<'a>(state: *mut lua_State, index: c_int) -> Argument<'a> {
    // SAFETY: the index is valid. `lua_tolstring` gives the string's own bytes, which do not move while the
    // string is on the stack.
    unsafe {
        match ffi::lua_type(state, index) {
            ffi::LUA_TSTRING => {
                let mut len = 0;
                let bytes = ffi::lua_tolstring(state, index, &raw mut len);
                Argument::Bytes(std::slice::from_raw_parts(bytes.cast(), len))
            }
            ffi::LUA_TNUMBER => Argument::Number(ffi::lua_tonumber(state, index)),
            _ => Argument::Other,
        }
    }
}

/// What a body leaves in its buffer, and what the script sees of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A reply in RESP, marked as a command's where it is an error. With `raises` an error is not returned
    /// but raised.
    Reply { raises: bool },
    /// The text of an error that is no command's.
    Error { raises: bool },
    /// Nothing. The script is to end, and what it raises now does not matter.
    Stopped,
}

thread_local! {
    /// What a body has panicked with, until the run is over.
    static PANIC: Cell<Option<Box<dyn Any + Send>>> = const { Cell::new(None) };
}

/// A body with what it keeps from call to call, the bytes of its reply among it.
struct Bound<R, F> {
    room: Rc<RefCell<R>>,
    body: F,
}

/// Makes a function of Lua. Its body is given the arguments, and `room`, which keeps from call to call what
/// it uses again, and which whoever made the function may look at between two runs. As bytes that is the
/// reply of the last call.
pub fn function<R, F>(lua: &Lua, room: Rc<RefCell<R>>, body: F) -> Result<Function>
where
    R: AsRef<[u8]> + 'static,
    F: Fn(Arguments<'_>, &mut R) -> Outcome + 'static,
{
    closure(lua, Bound { room, body }, &[], call::<R, F>)
}

/// Makes `call` a function of Lua over the address of `body`, which lives as long as the function. The
/// address is its first upvalue; from the third on are the functions that it calls.
pub(crate) fn closure<F: 'static>(
    lua: &Lua,
    body: F,
    others: &[Function],
    call: ffi::lua_CFunction,
) -> Result<Function> {
    let body = Box::new(body);
    let address: *const F = &raw const *body;
    let owner = lua.create_any_userdata(body)?;
    // SAFETY: the closure runs in a protected call with the owner and the functions as its arguments, and
    // owns nothing. The owner is the function's second upvalue, where scripts cannot reach it, and boxes do
    // not move: so the body is at its address while the function can be called.
    unsafe {
        lua.exec_raw((owner, Variadic::from(others.to_vec())), |state| {
            ffi::lua_pushlightuserdata(state, address.cast_mut().cast());
            ffi::lua_insert(state, 1);
            ffi::lua_pushcclosure(state, call, ffi::lua_gettop(state));
        })
    }
}

/// What Lua calls.
///
/// # Safety
/// To be called by Lua as a closure over the address of a [`Bound`] that lives. It owns nothing, since it
/// raises.
unsafe extern "C-unwind" fn call<R, F>(state: *mut lua_State) -> c_int
where
    R: AsRef<[u8]> + 'static,
    F: Fn(Arguments<'_>, &mut R) -> Outcome + 'static,
{
    // SAFETY: as this function is called. The reply's bytes are the body's, and nothing that this frame calls
    // from here on runs a body: neither making values nor collecting garbage runs code of scripts, because
    // they have no finalizers.
    unsafe {
        let bound: *const Bound<R, F> = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast();
        let (outcome, bytes) = answer(&*bound, state);
        let is_raised = matches!((outcome, &*bytes), (Outcome::Reply { raises: true }, [b'-', ..]));
        // A call that is a statement: no value is made of the reply.
        if matches!(outcome, Outcome::Reply { .. }) && !is_raised && is_unwanted(state) {
            return 0;
        }
        match outcome {
            Outcome::Stopped => raise_text(state, b"the script was stopped"),
            Outcome::Error { raises } => {
                reply::push_error(state, &*bytes, Marks::Plain);
                if raises {
                    ffi::lua_error(state);
                }
            }
            Outcome::Reply { .. } => match reply::push(state, &*bytes) {
                Err(reply::Broken) => raise_text(state, b"the reply of a command cannot be read"),
                Ok(()) if is_raised => ffi::lua_error(state),
                Ok(()) => {}
            },
        }
        1
    }
}

/// # Safety
/// In a function that Lua has called, whose frames own nothing.
unsafe fn raise_text(state: *mut lua_State, text: &'static [u8]) -> ! {
    // SAFETY: the text is there, and the caller allows raising.
    unsafe {
        ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len());
        ffi::lua_error(state)
    }
}

/// Runs the body. Nothing raises here, so what the body owns is dropped as always. The bytes are there until
/// its next call.
///
/// # Safety
/// `state` runs the function that the body is of.
unsafe fn answer<R, F>(bound: &Bound<R, F>, state: *mut lua_State) -> (Outcome, *const [u8])
where
    R: AsRef<[u8]>,
    F: Fn(Arguments<'_>, &mut R) -> Outcome,
{
    // SAFETY: nothing changes the stack before this function returns.
    let arguments = unsafe { Arguments::new(state) };
    let Ok(mut room) = bound.room.try_borrow_mut() else { return (Outcome::Stopped, &raw const *b"") };
    let outcome = guarded(|| (bound.body)(arguments, &mut room)).unwrap_or(Outcome::Stopped);
    (outcome, &raw const *(*room).as_ref())
}

/// Runs `f`; None where it panics. A panic would have to cross frames of C, so it goes on when the run is
/// over.
pub(crate) fn guarded<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| PANIC.set(Some(panic))).ok()
}

/// Goes on with a panic of a body. A run that it has ended calls this.
pub(crate) fn resume_panic() {
    if let Some(panic) = PANIC.take() {
        std::panic::resume_unwind(panic);
    }
}
