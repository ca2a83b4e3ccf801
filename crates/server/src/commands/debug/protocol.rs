//! DEBUG PROTOCOL: one reply of each type that the protocol has, for the tests of clients. The values are
//! those that Redis sends.
use crate::core::call::ServerCall;
use crate::core::error;
use command::Done;
use resp::{Protocol, Reply};

/// Answers with a value of the type that is named.
#[allow(clippy::approx_constant, reason = "it is the number that Redis sends")]
pub(super) fn protocol(call: &mut ServerCall<'_>) -> Done {
    let is_resp2 = call.reply.protocol == Protocol::Resp2;
    let reply = &mut *call.reply;
    match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.int(12_345),
        b"double" => reply.double(3.141),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|n| reply.int(n));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|n| reply.int(n));
        }
        b"map" => {
            reply.map(3);
            for n in 0..3 {
                reply.int(n);
                reply.boolean(n == 1);
            }
        }
        b"push" if is_resp2 => {
            return Err(error::resp2_has_no_push());
        }
        b"attrib" => attribute(reply),
        b"push" => push(reply),
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        _ => return Err(error::unknown_protocol_type()),
    }
    Ok(())
}

/// An attribute, which RESP2 does not have, in front of a reply.
fn attribute(reply: &mut Reply) {
    if reply.attribute(1) {
        reply.bulk(b"key-popularity");
        reply.array(2);
        reply.bulk(b"key:123");
        reply.int(90);
    }
    reply.bulk(b"Some real reply following the attribute");
}

/// A push message behind a reply: it comes without being asked for.
fn push(reply: &mut Reply) {
    reply.bulk(b"Some real reply following the push reply");
    reply.push(2);
    reply.bulk(b"server-cpu-usage");
    reply.int(42);
}
