//! SHUTDOWN: the data is saved if need be, while nothing else runs; nothing runs afterwards either. The
//! workers send what they owe and stop; the process then returns 0. Signals end it in the same way
//! (`signals.rs`).
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::persistence::save_to_end;
use crate::core::session::After;
use command::{Arg, Arity, Doc, Done, Error, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&SHUTDOWN]);

const SHUTDOWN: ServerCommand = ServerCommand {
    name: "SHUTDOWN",
    arity: Arity::AtLeast(1),
    flags: crate::core::call::ADMIN.or(Flags::NO_MULTI).or(Flags::ALLOW_BUSY),
    doc: Doc {
        group: Group::Server,
        since: "1.0.0",
        summary: "Writes the data to the dump file, if there are save points or it is asked for, and ends the server.",
        complexity: "O(N) where N is the number of keys in all databases when saving, otherwise that of connections.",
        args: &[
            Arg::one_of("save-selector", &[Arg::word("nosave", "NOSAVE"), Arg::word("save", "SAVE")])
                .optional(),
            Arg::word("now", "NOW").since("7.0.0").optional(),
            Arg::word("force", "FORCE").since("7.0.0").optional(),
            Arg::word("abort", "ABORT").since("7.0.0").optional(),
        ],
        history: &[("7.0.0", "The modifiers `NOW`, `FORCE` and `ABORT`.")],
        ..Doc::NEW
    },
    run: ServerRun::Exclusive(shutdown),
    ..ROW
};

/// What SHUTDOWN was told by its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Wish {
    /// Whether to save the data first; None where nothing is said.
    saves: Option<bool>,
    /// The server ends even if it cannot save.
    is_forced: bool,
    aborts: bool,
}

/// Ends the server, unless the data is to be saved and cannot be; FORCE goes on without.
fn shutdown(call: &mut ServerCall<'_>) -> Done {
    let words: Vec<&[u8]> = call.args.iter_from(1).collect();
    let wish = wish(&words).ok_or_else(Error::syntax)?;
    if wish.aborts {
        return abort(call);
    }
    // The script may have ended meanwhile: then the gates are open, and others write.
    if wish.saves != Some(false) && call.is_shut_out {
        return Err(Error::quoting(&[error::busy(call.server.scripts.running.kind())]));
    }
    if !save_to_end(call.server, call.now, (wish.saves, wish.is_forced)) {
        return Err(error::shutdown_failed());
    }
    call.session.after = After::Close;
    call.server.stop(0);
    Ok(())
}

/// A shutdown waits neither for replicas nor for a disk. So there is one to abort only where a signal has
/// asked for it while a script runs for long.
fn abort(call: &mut ServerCall<'_>) -> Done {
    if !call.server.ending.call_off() {
        return Err(error::no_shutdown_in_progress());
    }
    call.server.log.notice("Shutdown manually aborted.");
    call.reply.ok();
    Ok(())
}

/// What these words ask for together; None where they contradict each other or are none of Redis's.
fn wish(words: &[&[u8]]) -> Option<Wish> {
    let mut wish = Wish::default();
    for word in words {
        match word.to_ascii_lowercase().as_slice() {
            b"nosave" if wish.saves != Some(true) => wish.saves = Some(false),
            b"save" if wish.saves != Some(false) => wish.saves = Some(true),
            // There are no replicas to wait for.
            b"now" => {}
            b"force" => wish.is_forced = true,
            b"abort" => wish.aborts = true,
            _ => return None,
        }
    }
    let is_abort = |word: &&[u8]| word.eq_ignore_ascii_case(b"abort");
    (!wish.aborts || words.iter().all(is_abort)).then_some(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Wish> {
        wish(&text.split(' ').filter(|w| !w.is_empty()).map(str::as_bytes).collect::<Vec<_>>())
    }

    #[test]
    fn wishes_that_contradict_are_refused() {
        assert_eq!(parse(""), Some(Wish::default()));
        assert_eq!(
            parse("NOSAVE now Force"),
            Some(Wish { saves: Some(false), is_forced: true, aborts: false })
        );
        for good in ["abort", "ABORT abort"] {
            assert_eq!(parse(good).map(|w| w.aborts), Some(true), "{good}");
        }
        for bad in ["foo", "save nosave", "nosave save", "abort now", "now abort", "abort save", "save x"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
