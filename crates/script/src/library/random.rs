//! `math.random` and `math.randomseed`: the generator of `drand48`, whose numbers are the same everywhere.
//! An interpreter starts with the generator's own first state, as Redis does, and goes on from script to
//! script.
use super::given::Given;
use crate::state::State;
use lua::{Answer, Argument, Arguments, Findings, Found};
use mlua::{Lua, Result, Table, Value, Variadic};
use std::rc::Rc;

/// The greatest number that one step gives.
const STEP_MAX: u64 = i32::MAX as u64;

/// The next state, of 48 bits.
fn step(state: u64) -> u64 {
    state.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF
}

/// The next number, from 0 to below 1.
fn share(state: &State) -> f64 {
    let next = step(state.random.get());
    state.random.set(next);
    ((next >> 17) % STEP_MAX) as f64 / STEP_MAX as f64
}

fn within(share: f64, (first, last): (i64, i64)) -> f64 {
    (share * (last as f64 - first as f64 + 1.0)).floor() + first as f64
}

fn random(lua: &Lua, state: &State, values: &[Value]) -> Result<f64> {
    let (given, share) = (Given::behind(lua, values, 1), share(state));
    match given.len() {
        0 => Ok(share),
        1 => {
            let last = given.int32(0)?;
            if last < 1 {
                return Err(given.bad(0, "interval is empty"));
            }
            Ok(within(share, (1, last)))
        }
        2 => {
            let (first, last) = (given.int32(0)?, given.int32(1)?);
            if first > last {
                return Err(given.bad(1, "interval is empty"));
            }
            Ok(within(share, (first, last)))
        }
        _ => Err(given.fail("wrong number of arguments")),
    }
}

fn quick_random(arguments: Arguments<'_>, findings: &mut Findings, state: &State) -> Answer {
    let bound = |index: usize| arguments.get(index).and_then(Argument::int);
    let count = (0..3).take_while(|index| arguments.get(*index).is_some()).count();
    let interval = match (count, bound(0), bound(1)) {
        (0, ..) => None,
        (1, Some(last), _) if last >= 1 => Some((1, last)),
        (2, Some(first), Some(last)) if first <= last => Some((first, last)),
        _ => return Answer::Unclear,
    };
    let share = share(state);
    findings.values.push(Found::Number(interval.map_or(share, |interval| within(share, interval))));
    Answer::Given
}

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    let shared = Rc::clone(state);
    let slow = lua.create_function(move |lua, values: Variadic<Value>| random(lua, &shared, &values))?;
    let shared = Rc::clone(state);
    let quick =
        move |arguments: Arguments<'_>, findings: &mut Findings| quick_random(arguments, findings, &shared);
    rust.raw_set("random", lua::quick(lua, &slow, quick)?)?;
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
