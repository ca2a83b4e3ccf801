//! DEBUG RESTLESS: begin or end what the server does at random for its tests, or show what has been done.
use crate::core::call::ServerCall;
use crate::core::error;
use command::Done;
use std::sync::atomic::Ordering::Relaxed;

/// DEBUG RESTLESS [seed|OFF]: without an argument it answers how often each thing was done.
pub(super) fn restless(call: &mut ServerCall<'_>) -> Done {
    let Some(word) = call.args.get(2) else {
        let counts = call.server.restless.counts().named();
        call.reply.map(counts.len());
        for (name, count) in counts {
            call.reply.bulk(name.as_bytes());
            call.reply.int(count.load(Relaxed) as i64);
        }
        return Ok(());
    };
    match base::text::parse_u64(word) {
        _ if word.eq_ignore_ascii_case(b"off") => call.server.restless.end(),
        None => return Err(error::restless_argument()),
        Some(seed) => {
            let begun = call.server.restless.begin(seed);
            begun.map_err(|error| error::no_thread(&error))?;
        }
    }
    call.reply.ok();
    Ok(())
}
