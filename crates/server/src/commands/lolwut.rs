//! LOLWUT: a picture, and the versions below it. Clients read the last line; people look at the rest.
//!
//! The picture is a tin of sardines. Which way each of them looks is left to chance.
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::state::REDIS_VERSION;
use base::random::Random;
use command::{Arg, Arity, Doc, Done, Error, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&LOLWUT]);

const LOLWUT: ServerCommand = ServerCommand {
    name: "LOLWUT",
    arity: Arity::AtLeast(1),
    flags: Flags::READONLY.or(Flags::FAST),
    doc: Doc {
        group: Group::Server,
        since: "5.0.0",
        summary: "Draws a picture and tells the version.",
        args: &[Arg::int("version").after("VERSION").optional()],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(lolwut),
    ..ROW
};

const ROWS: usize = 6;
const FISH_IN_ROW: usize = 5;
/// Wider than a fish, so that rows can be shifted against each other.
const FISH_WIDTH: usize = 11;
const TIN_WIDTH: usize = FISH_IN_ROW * FISH_WIDTH + 3;

/// VERSION asks Redis for an older picture; Sardine has one. Other arguments mean nothing, in Redis too.
fn lolwut(call: &mut ServerCall<'_>) -> Done {
    if let (Some(word), Some(version)) = (call.args.get(1), call.args.get(2))
        && word.eq_ignore_ascii_case(b"VERSION")
    {
        base::text::parse_i64(version).ok_or_else(Error::not_an_integer)?;
    }
    let mut text = tin(&mut Random::new(call.server.clock.now_us() as u64));
    text += &format!(
        "\nPacked like sardines. Sardine ver. {}, compatible with Redis ver. {REDIS_VERSION}\n",
        env!("CARGO_PKG_VERSION"),
    );
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// Rows of fish in a tin whose lid has been rolled up.
fn tin(random: &mut Random) -> String {
    let mut text = format!("   {}\n  ({}@\n", "_".repeat(TIN_WIDTH - 2), "_".repeat(TIN_WIDTH - 2));
    for row in 0..ROWS {
        let shift = 1 + 2 * (row % 2);
        let fish: String = (0..FISH_IN_ROW).map(|_| fish(random)).collect();
        let content = format!("{}{fish}", " ".repeat(shift));
        text += &format!(" |{content:TIN_WIDTH$.TIN_WIDTH$}|\n");
    }
    text + &format!("  \\{}/\n", "_".repeat(TIN_WIDTH - 2))
}

/// Draws a fish. One in eight looks to the left, and one in twenty has its eye open.
fn fish(random: &mut Random) -> String {
    let eye = if random.below(20) == 0 { 'O' } else { '-' };
    let fish = match random.below(8) {
        0 => format!("<{eye})))=<"),
        _ => format!(">=((({eye}>"),
    };
    format!("{fish:FISH_WIDTH$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tin_is_as_wide_at_every_row_and_another_every_time() {
        let tins: Vec<String> = (0..20).map(|seed| tin(&mut Random::new(seed))).collect();
        for tin in &tins {
            let widths: Vec<usize> = tin.lines().skip(2).take(ROWS).map(str::len).collect();
            assert_eq!(widths, [TIN_WIDTH + 3; ROWS], "\n{tin}");
            assert!(
                tin.matches(">=(((").count() + tin.matches(")))=<").count() == ROWS * FISH_IN_ROW,
                "\n{tin}"
            );
        }
        assert_ne!(tins[0], tins[1]);
    }
}
