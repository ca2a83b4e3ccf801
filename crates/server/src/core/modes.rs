//! The states of a session in which its requests are checked before they run. All of them are bits of one
//! byte, so a request of a session that is in none, which is nearly every request, pays one test for all of
//! them (`Executor::check_and_run`); for the others `Executor::look_at_modes` decides.
use crate::state::acl::{User, Users};

/// See the file's opener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modes(u8);

impl Modes {
    /// The client came while new clients had to log in, and has not done so; see `Session::must_log_in`.
    pub(crate) const NOT_LOGGED_IN: Modes = Modes(1);
    /// It listens to some channel, pattern or channel of a shard.
    pub(crate) const SUBSCRIBED: Modes = Modes(1 << 1);
    /// It listens and speaks RESP2, in which a reply cannot be told from a message: it may do little else.
    pub(crate) const LISTENS_ONLY: Modes = Modes(1 << 2);
    /// Between MULTI and EXEC: requests are queued.
    pub(crate) const TRANSACTION: Modes = Modes(1 << 3);
    /// EXEC runs: a command that would wait does not.
    pub(crate) const EXECUTING: Modes = Modes(1 << 4);
    /// There is something that its user may not do (`permission`).
    pub(crate) const RESTRICTED: Modes = Modes(1 << 5);
    /// It tracks keys (CLIENT TRACKING): what it reads is remembered.
    pub(crate) const TRACKING: Modes = Modes(1 << 6);
    /// One of its scripts runs.
    pub(crate) const SCRIPT: Modes = Modes(1 << 7);
    /// Either of those in which a client is sent what it did not ask for, perhaps caused by its own command.
    pub(crate) const HEARS: Modes = Modes(Modes::SUBSCRIBED.0 | Modes::TRACKING.0);

    /// The modes of a session that begins while these users are in force.
    pub(crate) fn of_new(users: &Users) -> Modes {
        let mut modes = Modes(0);
        if users.ask_for_login() {
            modes.set(Modes::NOT_LOGGED_IN);
        }
        modes.restrict(users.default_user());
        modes
    }

    /// From here on requests run by the rules of this user.
    pub(crate) fn restrict(&mut self, user: &User) {
        if user.may_do_everything() {
            self.clear(Modes::RESTRICTED);
        } else {
            self.set(Modes::RESTRICTED);
        }
    }

    /// Whether a transaction is open and nothing else is to be asked.
    #[inline]
    pub(crate) fn only_queues(self) -> bool {
        self == Modes::TRANSACTION
    }

    /// Whether the session is in any of these.
    #[inline]
    pub(crate) fn is_any(self) -> bool {
        self.0 != 0
    }

    /// Whether it is in this one, or in one of these.
    #[inline]
    pub(crate) fn has(self, mode: Modes) -> bool {
        self.0 & mode.0 != 0
    }

    /// From here on it is.
    pub(crate) fn set(&mut self, mode: Modes) {
        self.0 |= mode.0;
    }

    /// From here on it is not.
    pub(crate) fn clear(&mut self, mode: Modes) {
        self.0 &= !mode.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_comes_and_goes_without_the_others() {
        let (one, other) = (Modes(1), Modes(4));
        let mut modes = Modes(0);
        assert!(!modes.is_any() && !modes.has(one));
        modes.set(one);
        modes.set(other);
        modes.clear(one);
        assert!(modes.is_any() && modes.has(other) && !modes.has(one));
        modes.clear(other);
        assert_eq!(modes, Modes(0));
    }
}
