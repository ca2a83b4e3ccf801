//! DEBUG RELOAD: the data is written to the dump file and loaded from it again. DEBUG LOADAOF: it is loaded
//! again from the append-only file.
use crate::core::call::ServerCall;
use crate::core::error;
use crate::core::persistence::{append, load_again, save_now};
use crate::state::append_only::Phase;
use command::Done;

/// What the words behind it ask for.
#[derive(Default)]
struct Options {
    /// A key that is there already is replaced.
    merges: bool,
    /// What is there stays.
    keeps: bool,
    /// The file is loaded that is there already.
    only_loads: bool,
}

pub(super) fn reload(call: &mut ServerCall<'_>) -> Done {
    let mut options = Options::default();
    for word in call.args.iter_from(2) {
        match word.to_ascii_lowercase().as_slice() {
            b"merge" => options.merges = true,
            b"noflush" => options.keeps = true,
            b"nosave" => options.only_loads = true,
            _ => return Err(error::reload_option()),
        }
    }
    if !options.only_loads && !save_now(call.server, call.now) {
        return Err(error::unspecified());
    }
    load_again(call.server, options.keeps, options.merges).map_err(|why| {
        call.server.log.warning(&why);
        error::reload_failed()
    })?;
    call.server.log.warning("DB reloaded by DEBUG RELOAD");
    call.reply.ok();
    Ok(())
}

pub(super) fn load_append_only(call: &mut ServerCall<'_>) -> Done {
    let append = &call.server.append;
    // What a rewrite replaces is removed when it ends, whoever reads it.
    if append.phase() != Phase::On || append.is_rewriting() {
        call.server.log.warning("DEBUG LOADAOF: there is no append-only file, or it is being rewritten");
        return Err(error::load_append_only_failed());
    }
    call.server.journal.settle();
    append::load_again(call.server, &call.server.config()).map_err(|why| {
        call.server.log.warning(&why);
        error::load_append_only_failed()
    })?;
    call.server.log.warning("Append Only File loaded by DEBUG LOADAOF");
    call.reply.ok();
    Ok(())
}
