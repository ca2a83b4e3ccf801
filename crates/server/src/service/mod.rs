//! What the server does beside its requests.
//!
//! `process` is how its surroundings see it, `crash` what it says when it fails. `background` is the thread that frees, and that moves
//! data together (`defrag`); `restless` does rare things often, for tests.
pub(crate) mod background;
pub(crate) mod crash;
pub(crate) mod defrag;
pub(crate) mod process;
pub(crate) mod restless;
