//! What the server does beside its requests.
//!
//! `background` is the thread that frees, and that moves data together (`defrag`); `crash` has a report
//! written when the server fails; `supervisor` tells the service manager when the server serves; `restless`
//! does rare things often, for tests.
pub(crate) mod background;
pub(crate) mod crash;
pub(crate) mod defrag;
pub(crate) mod restless;
pub(crate) mod supervisor;
