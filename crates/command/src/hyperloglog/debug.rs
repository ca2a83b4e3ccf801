//! PFDEBUG, which looks inside a sketch, and PFSELFTEST.
use super::dense;
use super::estimate::REGISTERS;
use super::row::{ABOUT, ROW};
use super::sketch::{self, Encoding};
use crate::argument::is_word;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Scope, WholeCall};
use base::random::Random;
use base::text::I64Text;
use std::fmt::Write;

pub(super) const PFDEBUG: Command = Command {
    name: "PFDEBUG",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::ADMIN),
    keys: &[KeySpec::one(2, Access::RW.or(Access::ACCESS))],
    doc: Doc {
        since: "2.8.9",
        summary: "Looks inside a sketch: GETREG, DECODE, ENCODING, TODENSE.",
        complexity: "N/A",
        args: &[Arg::str("subcommand"), Arg::key("key", 0)],
        is_system: true,
        ..ABOUT
    },
    run: DataRun::Keys(pfdebug),
    ..ROW
};

pub(super) const PFSELFTEST: Command = Command {
    name: "PFSELFTEST",
    arity: Arity::Exactly(1),
    flags: Flags::ADMIN,
    doc: Doc {
        since: "2.8.9",
        summary: "Checks registers and estimates against what they must be.",
        complexity: "N/A",
        is_system: true,
        ..ABOUT
    },
    run: DataRun::Whole(Scope::Shared, pfselftest),
    ..ROW
};

/// SIMD takes no key: Redis 8 switches its vector instructions with it. Here nothing depends on them.
fn pfdebug(call: &mut Call<'_, '_>) -> Done {
    let word = call.args.at(1);
    if is_word(word, "SIMD") {
        return simd(call);
    }
    check_key(call)?;
    match word {
        _ if is_word(word, "GETREG") => getreg(call),
        _ if is_word(word, "DECODE") => decode(call),
        _ if is_word(word, "ENCODING") => encoding(call),
        _ if is_word(word, "TODENSE") => todense(call),
        _ => Err(Error::unknown_pfdebug(word)),
    }
}

fn simd(call: &mut Call<'_, '_>) -> Done {
    let word = call.args.at(2);
    let state = match word {
        _ if is_word(word, "ON") => "enabled",
        _ if is_word(word, "OFF") => "disabled",
        _ => return Err(Error::simd_on_or_off()),
    };
    call.reply.simple(state);
    Ok(())
}

fn check_key(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    match call.view.string(key)? {
        None => Err(Error::pfdebug_no_key()),
        Some(item) => super::sketch(item.text(&mut I64Text::new())).map(drop),
    }
}

/// Runs `see` on the sketch, whose key was checked.
fn with_sketch<R>(
    call: &mut Call<'_, '_>,
    see: impl FnOnce(sketch::Sketch<'_>, &mut resp::Reply) -> Result<R, Error>,
) -> Result<R, Error> {
    let key = call.key(0);
    let item = call.view.string(key)?.ok_or_else(Error::pfdebug_no_key)?;
    let mut scratch = I64Text::new();
    see(super::sketch(item.text(&mut scratch))?, call.reply)
}

/// PFDEBUG GETREG. It makes the sketch dense first.
fn getreg(call: &mut Call<'_, '_>) -> Done {
    make_dense(call)?;
    with_sketch(call, |sketch, reply| {
        let mut registers = sketch::no_registers();
        sketch.merge_into(&mut registers)?;
        reply.array(registers.len());
        (0..registers.len()).for_each(|index| reply.int(i64::from(registers.get(index))));
        Ok(())
    })
}

/// The runs as text: `z` and `Z` for zeros in one and two bytes, `v` for a value.
fn decode(call: &mut Call<'_, '_>) -> Done {
    with_sketch(call, |sketch, reply| {
        if sketch.encoding != Encoding::Sparse {
            return Err(Error::not_sparse());
        }
        let mut text = String::new();
        for run in sketch.runs() {
            let gap = if text.is_empty() { "" } else { " " };
            // Writing to a String cannot fail.
            let _ = match (run.value, run.bytes) {
                (0, 1) => write!(text, "{gap}z:{}", run.registers),
                (0, _) => write!(text, "{gap}Z:{}", run.registers),
                (value, _) => write!(text, "{gap}v:{value},{}", run.registers),
            };
        }
        reply.bulk(text.as_bytes());
        Ok(())
    })
}

fn encoding(call: &mut Call<'_, '_>) -> Done {
    with_sketch(call, |sketch, reply| {
        reply.simple(if sketch.encoding == Encoding::Dense { "dense" } else { "sparse" });
        Ok(())
    })
}

fn todense(call: &mut Call<'_, '_>) -> Done {
    let was_sparse = make_dense(call)?;
    call.reply.int(i64::from(was_sparse));
    Ok(())
}

/// Makes the sketch dense, and returns whether it was sparse.
fn make_dense(call: &mut Call<'_, '_>) -> Result<bool, Error> {
    let key = call.key(0);
    let edit = |text: &mut Vec<u8>| {
        let len = text.len();
        sketch::make_dense(text).map(|()| text.len() != len)
    };
    let was_sparse = call.view.edit_text(key, |_| Ok::<(), Error>(()), edit)??;
    call.view.dirty(u64::from(was_sparse));
    Ok(was_sparse)
}

/// Elements that the self-test adds.
const TEST_ELEMENTS: u64 = 50_000;
const TEST_SPARSE_BYTES_MAX: usize = 3_000;
/// Six times the standard error.
const TEST_ERROR_MAX: f64 = 6.0 * 0.0081;

fn pfselftest(call: &mut WholeCall<'_>) -> Done {
    test_registers(call.random)?;
    test_estimates(call.random.next_u64())?;
    call.reply.ok();
    Ok(())
}

/// Tests the packed array of registers against one of bytes.
fn test_registers(random: &mut Random) -> Done {
    let mut array = vec![0; dense::BYTES];
    let mut twin = vec![0; REGISTERS];
    for _ in 0..REGISTERS {
        let (index, value) = (random.below(REGISTERS as u64) as usize, random.below(64) as u8);
        dense::raise(&mut array, index, value);
        twin[index] = value.max(twin[index]);
    }
    let mut registers = sketch::no_registers();
    registers.raise_all(&array);
    let is_same = twin.iter().enumerate().all(|(index, value)| registers.get(index) == *value);
    if is_same { Ok(()) } else { Err(Error::selftest_failed("registers differ from their twins")) }
}

/// Tests estimates against true numbers, and the two encodings against each other as long as one sketch is
/// sparse.
fn test_estimates(seed: u64) -> Done {
    let (mut runs, mut array) = (Vec::new(), Vec::new());
    for text in [&mut runs, &mut array] {
        sketch::begin(text);
    }
    sketch::make_dense(&mut array)?;
    let mut next_check = 1;
    for n in 1..=TEST_ELEMENTS {
        let element = (seed ^ n).to_le_bytes();
        sketch::add(&mut runs, &element, TEST_SPARSE_BYTES_MAX)?;
        sketch::add(&mut array, &element, TEST_SPARSE_BYTES_MAX)?;
        if n == next_check {
            next_check *= 10;
            test_estimate(&runs, &array, n as f64)?;
        }
    }
    Ok(())
}

fn test_estimate(runs: &[u8], array: &[u8], elements: f64) -> Done {
    let (runs, array) = (super::sketch(runs)?.estimate()?, super::sketch(array)?.estimate()?);
    if runs != array {
        return Err(Error::selftest_failed("the encodings differ in their estimates"));
    }
    // One element more or less is no error where there are few.
    let is_near = (array as f64 - elements).abs() <= (elements * TEST_ERROR_MAX).max(1.0);
    if is_near { Ok(()) } else { Err(Error::selftest_failed("an estimate is too far off")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_self_test_passes_whatever_the_seed() {
        for seed in 0..3 {
            assert_eq!(test_registers(&mut Random::new(seed)), Ok(()));
            assert_eq!(test_estimates(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)), Ok(()), "seed {seed}");
        }
    }
}
