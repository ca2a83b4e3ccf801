//! How many files the process may have open: every client is one. The limit is raised to what `maxclients`
//! needs, and `maxclients` lowered to what the limit allows.
use crate::state::config::Config;
use crate::state::log::Log;
use crate::state::start_error::StartError;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// How many descriptors are kept free in any case, as in Redis.
const RESERVED_MIN: u64 = 32;
/// Standard input, output and error, the log, the system's log, and what is open for a moment: files that
/// INFO reads, the configuration's, a name server's socket.
const FEW: u64 = 12;
/// What one worker's engine takes, and a client that it has accepted to turn it away.
const PER_WORKER: u64 = net::DESCRIPTORS_MAX as u64 + 1;

/// Files that are not clients.
fn reserved(config: &Config) -> u64 {
    let listeners = config.bind.len() as u64 + u64::from(config.unixsocket.is_some());
    RESERVED_MIN.max(FEW + listeners + config.worker_threads as u64 * PER_WORKER)
}

/// Raises the limit for `maxclients`, or lowers `maxclients` to what the limit allows. An error where there
/// is not room for one client: the server cannot start then.
pub fn make_room(config: &mut Config, log: &Log) -> Result<(), StartError> {
    let Err(reached) = raise(config) else { return Ok(()) };
    let needed = u64::from(config.maxclients) + reserved(config);
    let possible = reached.saturating_sub(reserved(config));
    if possible == 0 {
        return Err(StartError(format!(
            "Your current 'ulimit -n' of {reached} is not enough for the server to start. Please increase your open \
             file limit to at least {needed}. Exiting."
        )));
    }
    log.warning(&format!(
        "You requested maxclients of {} requiring at least {needed} max file descriptors. maxclients has been reduced \
         to {possible} to compensate for the low limit of open files, which is {reached}. If you need more clients, \
         increase 'ulimit -n'.",
        config.maxclients,
    ));
    config.maxclients = u32::try_from(possible).unwrap_or(u32::MAX);
    Ok(())
}

/// Raises the limit so that `maxclients` clients fit. Where the system does not allow that, the error is how
/// many would fit.
pub(crate) fn room_for(config: &Config) -> Result<(), u32> {
    let possible = |reached: u64| reached.saturating_sub(reserved(config)).max(1);
    raise(config).map_err(|reached| u32::try_from(possible(reached)).unwrap_or(u32::MAX))
}

/// Raises the limit to what this configuration needs. Where the system does not allow that, the error is the
/// limit that was reached.
fn raise(config: &Config) -> Result<(), u64> {
    let wanted = u64::from(config.maxclients) + reserved(config);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    if soft >= wanted || setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).is_ok() {
        return Ok(());
    }
    let reached = if setrlimit(Resource::RLIMIT_NOFILE, hard.min(wanted), hard).is_ok() {
        hard.min(wanted)
    } else {
        soft
    };
    if reached >= wanted { Ok(()) } else { Err(reached) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_clients_always_fit() {
        assert_eq!(room_for(&Config { maxclients: 1, worker_threads: 1, ..Config::default() }), Ok(()));
    }

    #[test]
    fn what_workers_take_is_kept_free() {
        let config = |worker_threads| Config { worker_threads, ..Config::default() };
        assert_eq!(reserved(&config(1)), 32);
        assert_eq!(reserved(&config(16)), 12 + 2 + 16 * 4);
    }
}
