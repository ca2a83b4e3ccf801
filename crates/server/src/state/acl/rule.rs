//! Rules as words: what they are read against, and what is wrong with one.
use super::catalog::Catalog;
use crate::state::config::{ChannelDefault, until_nul};

/// What rules are read against.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'c> {
    pub(crate) catalog: &'c Catalog,
    pub(crate) channels: ChannelDefault,
}

/// Why a rule is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleError {
    /// No command or category of this name.
    Unknown,
    Syntax,
    /// A pattern of keys where all keys are allowed.
    AfterAllKeys,
    AfterAllChannels,
    NoSuchPassword,
    BadHash,
    FirstArgOfSubcommand,
}

impl RuleError {
    /// The error in Redis's words.
    pub(crate) fn text(self) -> &'static str {
        match self {
            RuleError::Unknown => "Unknown command or category name in ACL",
            RuleError::Syntax => "Syntax error",
            RuleError::AfterAllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
                 effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            RuleError::AfterAllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have \
                 any effect. Try 'resetchannels' to start with an empty list of channels"
            }
            RuleError::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            RuleError::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal \
                 characters"
            }
            RuleError::FirstArgOfSubcommand => "Allowing first-arg of a subcommand is not supported",
        }
    }
}

/// Whether a rule is one of these words, in any case. As in Redis a word ends at its first NUL.
pub(super) fn is_word(rule: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| until_nul(rule).eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether a name or pattern holds a byte that is not allowed in it: white space, or a NUL.
pub(crate) fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|b| matches!(b, b' ' | b'\t'..=b'\r' | 0))
}
