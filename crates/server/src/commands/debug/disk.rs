//! DEBUG DISK: the disk fails as it is told to, for tests of what the server does then.
use crate::core::call::ServerCall;
use crate::core::error;
use crate::state::disk::FAULTS;
use command::Done;

/// DEBUG DISK OK|FULL|BROKEN|FORGETFUL|STUCK|SLOW.
pub(super) fn disk(call: &mut ServerCall<'_>) -> Done {
    let word = call.args.at(2);
    let is_meant = |(name, _): &&(&str, _)| name.as_bytes().eq_ignore_ascii_case(word);
    let (_, fault) = FAULTS.iter().find(is_meant).ok_or_else(error::disk_argument)?;
    call.server.persistence.disk.set(*fault);
    call.reply.ok();
    Ok(())
}
