//! FUNCTION LIST and FUNCTION STATS.
use crate::core::call::ServerCall;
use crate::core::error;
use crate::state::scripts::{Function, Kind, Library, Slow};
use base::glob::matches_ignore_case;
use command::{Done, Error};
use resp::Reply;

/// The one language that libraries are written in.
const ENGINE: &str = "LUA";

/// What FUNCTION LIST is asked for.
#[derive(Default)]
struct Options<'a> {
    pattern: Option<&'a [u8]>,
    with_code: bool,
}

fn options<'a>(call: &ServerCall<'a>) -> Result<Options<'a>, Error> {
    let mut options = Options::default();
    let mut words = call.args.iter_from(2);
    while let Some(word) = words.next() {
        if !options.with_code && word.eq_ignore_ascii_case(b"withcode") {
            options.with_code = true;
        } else if options.pattern.is_none() && word.eq_ignore_ascii_case(b"libraryname") {
            options.pattern = Some(words.next().ok_or_else(error::no_library_pattern)?);
        } else {
            return Err(error::unknown_list_option(word));
        }
    }
    Ok(options)
}

pub(super) fn list(call: &mut ServerCall<'_>) -> Done {
    let options = options(call)?;
    let catalog = call.server.scripts.libraries.now();
    let is_asked = |library: &&Library| {
        options.pattern.is_none_or(|pattern| matches_ignore_case(pattern, &library.name))
    };
    let asked: Vec<&Library> = catalog.libraries().map(|library| &**library).filter(is_asked).collect();
    call.reply.array(asked.len());
    for library in asked {
        call.reply.map(if options.with_code { 4 } else { 3 });
        call.reply.bulk(b"library_name");
        call.reply.bulk(&library.name);
        call.reply.bulk(b"engine");
        call.reply.bulk(ENGINE.as_bytes());
        call.reply.bulk(b"functions");
        call.reply.array(library.functions.len());
        library.functions.iter().for_each(|function| write(call.reply, function));
        if options.with_code {
            call.reply.bulk(b"library_code");
            call.reply.bulk(&library.code);
        }
    }
    Ok(())
}

fn write(reply: &mut Reply, function: &Function) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(function.name.as_bytes());
    reply.bulk(b"description");
    match &function.description {
        Some(description) => reply.bulk(description),
        None => reply.null(),
    }
    reply.bulk(b"flags");
    reply.set(function.flags.names().count());
    function.flags.names().for_each(|name| reply.simple(name));
}

pub(super) fn stats(call: &mut ServerCall<'_>) -> Done {
    let server = call.server;
    let running = server.scripts.running.slow().clone();
    if running.as_ref().is_some_and(|slow| slow.kind == Kind::Script) {
        return Err(Error::quoting(&[error::busy(Kind::Script)]));
    }
    let reply = &mut *call.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    match running {
        Some(slow) => write_running(reply, &slow, server.clock.steady_us()),
        None => reply.null(),
    }
    let (libraries, functions) = server.scripts.libraries.now().size();
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(ENGINE.as_bytes());
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.int(libraries as i64);
    reply.bulk(b"functions_count");
    reply.int(functions as i64);
    Ok(())
}

fn write_running(reply: &mut Reply, slow: &Slow, now_us: i64) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(&slow.name);
    reply.bulk(b"command");
    reply.array(slow.command.len());
    slow.command.iter().for_each(|word| reply.bulk(word));
    reply.bulk(b"duration_ms");
    reply.int((now_us - slow.began_us) / 1000);
}
