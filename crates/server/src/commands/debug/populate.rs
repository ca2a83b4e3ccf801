//! DEBUG POPULATE: many keys at once, named and filled as Redis does, for tests and measurements.
use crate::core::call::ServerCall;
use base::text::{append_i64, parse_i64};
use command::{Done, Error};
use store::{Expiry, Form, has_room_for_string};

/// `<count> [<prefix>] [<size>]`: keys `prefix:0` and so on hold `value:0` and so on, cut or filled up with
/// zero bytes to the size. Keys that are there stay as they are.
pub(super) fn populate(call: &mut ServerCall<'_>) -> Done {
    let count = positive(call.args.at(2))?;
    let prefix = call.args.get(3).unwrap_or(b"key");
    let size = call.args.get(4).map_or(Ok(0), positive)?;
    if !has_room_for_string(size as u64) {
        return Err(Error::string_too_long());
    }
    let config = call.server.config();
    let (mut name, mut value) = (Vec::new(), Vec::new());
    for number in 0..count {
        write_numbered(&mut name, prefix, number);
        if name.len() > config.store.lengths.element_bytes_max {
            return Err(Error::element_too_long());
        }
        write_numbered(&mut value, b"value", number);
        if size > 0 {
            value.resize(usize::try_from(size).map_err(|_| Error::string_too_long())?, 0);
        }
        let (mut view, key) = call.server.keyspace.lock_one(call.session.db, call.now, &config.store, &name);
        if !view.exists(&key) {
            view.put_string(&key, &value, Form::Auto, Expiry::Clear);
        }
    }
    call.reply.ok();
    Ok(())
}

/// Makes the text `prefix:number`.
fn write_numbered(text: &mut Vec<u8>, prefix: &[u8], number: i64) {
    text.clear();
    text.extend_from_slice(prefix);
    text.push(b':');
    append_i64(text, number);
}

fn positive(word: &[u8]) -> Result<i64, Error> {
    parse_i64(word).filter(|n| *n >= 0).ok_or_else(Error::not_positive)
}
