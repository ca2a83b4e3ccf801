//! Functions that stay from one run to the next, by number: scripts, and the functions of libraries.
use mlua::{Function, Lua, Result, Table};
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;

/// A function that is kept. When it is dropped its number is given back, and [`Functions::forget_dropped`]
/// frees it.
pub struct Kept {
    number: c_int,
    dropped: Rc<RefCell<Vec<c_int>>>,
}

impl Kept {
    pub(crate) fn number(&self) -> c_int {
        self.number
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.dropped.borrow_mut().push(self.number);
    }
}

/// The functions that an interpreter keeps.
pub struct Functions {
    pub(crate) table: Table,
    /// The highest number that was ever given.
    last: Cell<c_int>,
    /// Numbers whose functions were dropped, and those that are free.
    dropped: Rc<RefCell<Vec<c_int>>>,
    free: RefCell<Vec<c_int>>,
}

impl Functions {
    pub fn new(lua: &Lua) -> Result<Functions> {
        let (last, dropped, free) = (Cell::new(0), Rc::default(), RefCell::default());
        Ok(Functions { table: lua.create_table()?, last, dropped, free })
    }

    pub fn keep(&self, function: Function) -> Result<Kept> {
        let number = self.free.borrow_mut().pop().unwrap_or_else(|| self.last.get() + 1);
        // From here on the number is given back in any case.
        self.last.set(self.last.get().max(number));
        let kept = Kept { number, dropped: Rc::clone(&self.dropped) };
        self.table.raw_set(number, function)?;
        Ok(kept)
    }

    /// A function that is kept.
    pub fn get(&self, kept: &Kept) -> Result<Function> {
        self.table.raw_get(kept.number)
    }

    /// Lets the collector have the functions that were dropped.
    pub fn forget_dropped(&self) {
        for number in self.dropped.take() {
            // Setting what is there to nothing takes no memory.
            let _ = self.table.raw_set(number, false);
            self.free.borrow_mut().push(number);
        }
    }
}
