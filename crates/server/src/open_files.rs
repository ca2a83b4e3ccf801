//! How many files the process may have open: every client is one. The limit is raised to what `maxclients` needs, and
//! `maxclients` lowered to what the limit allows.
use crate::{Config, Log};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files that are not clients: the log, listeners, the engines' own.
const RESERVED: u64 = 32;

/// Makes room for `maxclients`, or makes `maxclients` fit.
pub fn make_room(config: &mut Config, log: &Log) {
    let Err(possible) = room_for(config.maxclients) else { return };
    log.warning(&format!(
        "You requested maxclients of {} requiring at least {} max file descriptors. maxclients has been reduced to \
         {possible} to compensate for the low limit of open files.",
        config.maxclients,
        u64::from(config.maxclients) + RESERVED,
    ));
    config.maxclients = possible;
}

/// Raises the limit so that this many clients fit; otherwise how many do.
pub(crate) fn room_for(maxclients: u32) -> Result<(), u32> {
    let wanted = u64::from(maxclients) + RESERVED;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    if soft >= wanted || setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).is_ok() {
        return Ok(());
    }
    let reached = if setrlimit(Resource::RLIMIT_NOFILE, hard.min(wanted), hard).is_ok() {
        hard.min(wanted)
    } else {
        soft
    };
    if reached >= wanted {
        return Ok(());
    }
    Err(u32::try_from(reached.saturating_sub(RESERVED)).unwrap_or(u32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_clients_always_fit() {
        assert_eq!(room_for(1), Ok(()));
    }
}
