//! `math.random` and `math.randomseed`: the generator of `drand48`, whose numbers are the same everywhere.
//! An interpreter starts with the generator's own first state, as Redis does, and goes on from script to
//! script.
use super::given::Given;
use crate::state::State;
use mlua::{Lua, Result, Table, Value, Variadic};
use std::rc::Rc;

/// The greatest number that one step gives.
const STEP_MAX: u64 = i32::MAX as u64;

/// The next state, of 48 bits.
fn step(state: u64) -> u64 {
    state.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF
}

fn random(lua: &Lua, state: &State, values: &[Value]) -> Result<f64> {
    let given = Given::new(lua, values);
    let next = step(state.random.get());
    state.random.set(next);
    let share = ((next >> 17) % STEP_MAX) as f64 / STEP_MAX as f64;
    match given.len() {
        0 => Ok(share),
        1 => {
            let last = given.int(0)?;
            if last < 1 {
                return Err(given.bad(0, "interval is empty"));
            }
            Ok((share * last as f64).floor() + 1.0)
        }
        2 => {
            let (first, last) = (given.int(0)?, given.int(1)?);
            if first > last {
                return Err(given.bad(1, "interval is empty"));
            }
            Ok((share * (last as f64 - first as f64 + 1.0)).floor() + first as f64)
        }
        _ => Err(given.fail("wrong number of arguments")),
    }
}

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    let shared = Rc::clone(state);
    let function = move |lua: &Lua, values: Variadic<Value>| random(lua, &shared, &values);
    rust.raw_set("random", lua.create_function(function)?)?;
    let shared = Rc::clone(state);
    let function = move |lua: &Lua, values: Variadic<Value>| {
        let seed = Given::new(lua, &values).int(0)? as u32;
        shared.random.set((u64::from(seed) << 16) | 0x330E);
        Ok(())
    };
    rust.raw_set("randomseed", lua.create_function(function)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_numbers_of_lrand48() {
        // What `srand48(42); lrand48()` gives in C, three times.
        let mut state = 42 << 16 | 0x330E;
        let numbers = [0; 3].map(|_| {
            state = step(state);
            state >> 17
        });
        assert_eq!(numbers, [1_598_855_263, 735_945_821, 238_553_827]);
    }
}
