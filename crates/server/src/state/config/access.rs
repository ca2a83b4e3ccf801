//! The settings of who may do what: passwords, users, and commands that can do harm. A part of the `table`.
use super::setting::Change::{Anytime, AtStart};
use super::setting::{Kind, Outcome, Setting};
use super::table::{bytes_of, field, path, place, row};
use super::values::{Allow, ChannelDefault, Config};

const ALLOWANCES: [Allow; 3] = [Allow::No, Allow::Yes, Allow::Local];
const ALLOWANCE_WORDS: &[&str] = &["no", "yes", "local"];
const CHANNEL_DEFAULTS: [ChannelDefault; 2] = [ChannelDefault::All, ChannelDefault::None];

pub(super) const SECURITY: &[Setting] = &[
    row(
        "requirepass",
        Anytime,
        Kind::Text { get: |c| c.requirepass.clone(), set: set_password },
        "The password of the default user, which AUTH asks for; empty is none. ACL SETUSER can give that user others.",
        "Set it before other machines can reach the server.",
    )
    .secret(),
    row(
        "aclfile",
        AtStart,
        field!(path acl_file),
        "The file with the users, which ACL LOAD reads and ACL SAVE writes, instead of lines `user`; empty is none.",
        "Set it where users are managed apart from the settings.",
    ),
    row(
        "acl-pubsub-default",
        Anytime,
        field!(word CHANNEL_DEFAULTS, &["allchannels", "resetchannels"], acl_channels_default),
        "Whether a new user may use every channel or none.",
        "Programs that were written before Redis 7 may count on `allchannels`.",
    ),
    row(
        "acllog-max-len",
        Anytime,
        field!(int 0, i64::MAX, acl_log_len_max as usize),
        "How many entries ACL LOG keeps.",
        "Raise it to look further back, at some hundred bytes for each entry.",
    ),
    row(
        "enable-protected-configs",
        AtStart,
        field!(word ALLOWANCES, ALLOWANCE_WORDS, enable_protected_configs),
        "Who may change protected settings with CONFIG SET: nobody, everybody, or connections from this machine.",
        "Allow it where an operator has to change `dir` in a running server.",
    ),
    row(
        "enable-debug-command",
        AtStart,
        field!(word ALLOWANCES, ALLOWANCE_WORDS, enable_debug_command),
        "Who may use DEBUG: nobody, everybody, or connections from this machine.",
        "Allow it in tests. DEBUG can stop the server and end it.",
    ),
    row(
        "enable-module-command",
        AtStart,
        field!(word ALLOWANCES, ALLOWANCE_WORDS, enable_module_command),
        "Who may use MODULE's LOAD, LOADEX and UNLOAD, which then find that there are no modules.",
        "There is no reason to: it is kept for old configuration files.",
    ),
];

fn set_password(config: &mut Config, text: &[u8]) -> Outcome {
    config.requirepass = text.to_vec();
    Ok(())
}
