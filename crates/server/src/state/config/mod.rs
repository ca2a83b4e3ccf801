//! The configuration: one table of settings ([`table::TOPICS`]) from which CONFIG GET and SET, the file, the
//! command line and the documents come.
//!
//! A [`Config`] (`values`) is a plain value. CONFIG SET works on a copy and puts it in force as a whole or
//! not at all; whoever wants a consistent look takes the `Arc` and keeps it.
//!
//! A `setting` is a row of the `table`, or of the table of `accepted` settings, which change nothing here. A
//! configuration is read from its `source`: a file, whose lines may be a `directive` or include the files of
//! `paths`; the command line; CONFIG SET. `rules` joins words into rules of users. `rewrite` writes it back,
//! and `docs` makes the documents. `bind`, `defrag`, `limits`, `log_rules`, `process` and `snapshots` are the
//! values of some settings; `access`, `persistence_rows` and `tls` have the rows of their topics, `notify`
//! has one row with its values.
mod accepted;
mod access;
mod append;
mod bind;
mod defrag;
mod directive;
mod docs;
mod limits;
mod log_rules;
pub(crate) mod notify;
mod paths;
mod persistence_rows;
mod process;
pub(crate) mod rewrite;
mod rules;
pub(crate) mod setting;
mod snapshots;
mod source;
mod table;
#[cfg(test)]
mod table_tests;
mod tls;
mod values;

pub use append::{AppendSync, Appending};
pub(crate) use base::quotes::{quoted, words};
pub(crate) use base::reason::reason;
pub(crate) use bind::{Bind, Binds};
pub use defrag::Defrag;
pub(crate) use directive::Checks;
pub(crate) use docs::contents;
pub use docs::{markdown as settings_reference, sample_file};
pub use limits::{MemoryShare, OutputLimit, OutputLimits};
pub use log_rules::{LogRule, LogRules};
pub use process::{Facility, OomScore, Supervised};
pub(crate) use rewrite::replace;
pub(crate) use rules::merged;
pub(crate) use setting::until_nul;
pub use snapshots::{OnSignal, SavePoint, Snapshots};
pub use source::Source;
pub(crate) use table::percentiles;
pub(crate) use tls::is_of_tls;
pub use values::{Allow, Config, ConfigError, LogLevel, Tracking};
pub(crate) use values::{ChannelDefault, Rename, UserLine};
