//! One selector of a user: commands, keys and channels that go together.
use super::commands::Commands;
use super::rule::{RuleError, Rules, has_spaces, is_word};
use crate::state::config::{ChannelDefault, quoted, until_nul, words};

/// See the file's opener. A new one allows nothing, but for channels where `acl-pubsub-default` says so.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    commands: Commands,
    keys: Keys,
    channels: Channels,
}

/// Which keys.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Keys {
    All,
    These(Vec<KeyPattern>),
}

/// Keys, and what may be done to them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyPattern {
    glob: Vec<u8>,
    may_read: bool,
    may_write: bool,
}

/// Which channels.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Channels {
    All,
    /// Globs.
    These(Vec<Vec<u8>>),
}

/// What a request asks to be allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The number of its command.
    pub(crate) command: usize,
    /// Everybody may run the command: it is how a client logs in.
    pub(crate) is_free: bool,
    pub(crate) first_arg: Option<&'a [u8]>,
    pub(crate) keys: &'a [KeyUse<'a>],
    pub(crate) channels: &'a [ChannelUse<'a>],
}

/// A key that a request names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyUse<'a> {
    pub(crate) name: &'a [u8],
    /// Which argument it is.
    pub(crate) position: usize,
    /// Whether the request looks at its value, and whether it changes it. One that does neither (EXISTS)
    /// still needs a pattern that the name matches.
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// A channel that a request names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelUse<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) position: usize,
    /// It is itself a glob, which must be allowed as it is written.
    pub(crate) is_pattern: bool,
}

/// What a selector does not allow of a request. If no selector allows it, the greatest is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Denied {
    pub(crate) reason: Reason,
    /// The argument that is at fault; 0 for the command.
    pub(crate) position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Command,
    Key,
    Channel,
}

impl KeyPattern {
    /// Whether the request may do with the key what it does.
    fn allows(&self, key: &KeyUse<'_>) -> bool {
        let is_enough = (self.may_read || !key.reads) && (self.may_write || !key.writes);
        is_enough && base::glob::matches(&self.glob, key.name)
    }

    fn word(&self) -> Vec<u8> {
        let mark: &[u8] = match (self.may_read, self.may_write) {
            (true, false) => b"%R~",
            (false, true) => b"%W~",
            _ => b"~",
        };
        [mark, &self.glob].concat()
    }
}

impl Selector {
    /// A new one.
    pub(super) fn new(channels: ChannelDefault) -> Selector {
        let channels = match channels {
            ChannelDefault::All => Channels::All,
            ChannelDefault::None => Channels::These(Vec::new()),
        };
        Selector { commands: Commands::default(), keys: Keys::These(Vec::new()), channels }
    }

    /// From `(rule rule ...)`.
    pub(super) fn parse(text: &[u8], rules: &Rules<'_>) -> Result<Selector, RuleError> {
        let inside = text.get(1..text.len() - 1).unwrap_or_default();
        let mut selector = Selector::new(rules.channels);
        // If quotes do not close there are no words, as in Redis.
        for word in words(until_nul(inside)).unwrap_or_default() {
            selector.apply(&word, rules)?;
        }
        Ok(selector)
    }

    /// Whether a request of any kind is allowed.
    pub(crate) fn allows_everything(&self) -> bool {
        self.commands.allows_all() && self.keys == Keys::All && self.channels == Channels::All
    }

    /// Applies one rule. Where it is refused nothing has changed.
    pub(super) fn apply(&mut self, rule: &[u8], rules: &Rules<'_>) -> Result<(), RuleError> {
        let is = |words: &[&str]| is_word(rule, words);
        match rule.first() {
            _ if is(&["allkeys", "~*"]) => self.keys = Keys::All,
            _ if is(&["resetkeys"]) => self.keys = Keys::These(Vec::new()),
            _ if is(&["allchannels", "&*"]) => self.channels = Channels::All,
            _ if is(&["resetchannels"]) => self.channels = Channels::These(Vec::new()),
            _ if is(&["allcommands"]) => self.commands.set_all(true, rules.catalog),
            _ if is(&["nocommands"]) => self.commands.set_all(false, rules.catalog),
            Some(b'~' | b'%') => self.add_keys(rule)?,
            Some(b'&') => self.add_channels(&rule[1..])?,
            Some(b'+' | b'-') => self.commands.apply(rule, rules.catalog)?,
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    /// Adds `~glob`, `%R~glob`, `%W~glob` or `%RW~glob`. Where the glob is there already, what the rule
    /// allows is added to what was allowed before.
    fn add_keys(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let Keys::These(patterns) = &mut self.keys else { return Err(RuleError::AfterAllKeys) };
        let pattern = key_pattern(rule)?;
        if has_spaces(&pattern.glob) {
            return Err(RuleError::Syntax);
        }
        match patterns.iter_mut().find(|other| other.glob == pattern.glob) {
            Some(same) => {
                same.may_read |= pattern.may_read;
                same.may_write |= pattern.may_write;
            }
            None => patterns.push(pattern),
        }
        Ok(())
    }

    fn add_channels(&mut self, glob: &[u8]) -> Result<(), RuleError> {
        let Channels::These(globs) = &mut self.channels else { return Err(RuleError::AfterAllChannels) };
        if has_spaces(glob) {
            return Err(RuleError::Syntax);
        }
        if !globs.iter().any(|other| other == glob) {
            globs.push(glob.to_vec());
        }
        Ok(())
    }

    /// Whether this selector allows all of a request; the error is the first that it does not allow.
    pub(super) fn check(&self, wanted: &Wanted<'_>) -> Result<(), Denied> {
        if !wanted.is_free && !self.commands.allows(wanted.command, wanted.first_arg) {
            return Err(Denied { reason: Reason::Command, position: 0 });
        }
        if let Keys::These(patterns) = &self.keys {
            let denied = wanted.keys.iter().find(|key| !patterns.iter().any(|p| p.allows(key)));
            if let Some(key) = denied {
                return Err(Denied { reason: Reason::Key, position: key.position });
            }
        }
        let denied =
            wanted.channels.iter().find(|channel| !self.allows_channel(channel.name, channel.is_pattern));
        match denied {
            Some(channel) => Err(Denied { reason: Reason::Channel, position: channel.position }),
            None => Ok(()),
        }
    }

    /// Whether a channel, or a pattern of channels, may be used.
    pub(super) fn allows_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        match &self.channels {
            Channels::All => true,
            Channels::These(globs) if is_pattern => globs.iter().any(|glob| glob == name),
            Channels::These(globs) => globs.iter().any(|glob| base::glob::matches(glob, name)),
        }
    }

    /// Whether some channel may be used.
    pub(super) fn allows_some_channel(&self) -> bool {
        match &self.channels {
            Channels::All => true,
            Channels::These(globs) => !globs.is_empty(),
        }
    }

    /// Whether every key may be read.
    pub(super) fn reads_all_keys(&self) -> bool {
        match &self.keys {
            Keys::All => true,
            Keys::These(patterns) => patterns.iter().any(|p| p.may_read && p.glob == b"*"),
        }
    }

    /// Its commands as ACL GETUSER shows them.
    pub(crate) fn commands_text(&self) -> Vec<u8> {
        self.commands.words().collect::<Vec<_>>().join(&b' ')
    }

    /// Its keys as ACL GETUSER shows them.
    pub(crate) fn keys_text(&self) -> Vec<u8> {
        self.key_words().join(&b' ')
    }

    /// Its channels as ACL GETUSER shows them.
    pub(crate) fn channels_text(&self) -> Vec<u8> {
        self.channel_words().join(&b' ')
    }

    fn key_words(&self) -> Vec<Vec<u8>> {
        match &self.keys {
            Keys::All => vec![b"~*".to_vec()],
            Keys::These(patterns) => patterns.iter().map(KeyPattern::word).collect(),
        }
    }

    fn channel_words(&self) -> Vec<Vec<u8>> {
        match &self.channels {
            Channels::All => vec![b"&*".to_vec()],
            Channels::These(globs) => globs.iter().map(|glob| [b"&", glob.as_slice()].concat()).collect(),
        }
    }

    /// All rules, which make the same selector of a new one whatever `acl-pubsub-default` is.
    pub(super) fn words(&self) -> Vec<Vec<u8>> {
        let mut words = self.key_words();
        if let Keys::These(_) = self.keys {
            // When read back, `~*` would mean `allkeys`, behind which no pattern may follow.
            words.iter_mut().filter(|word| **word == b"~*").for_each(|word| *word = b"%RW~*".to_vec());
        }
        if let Channels::These(_) = self.channels {
            words.push(b"resetchannels".to_vec());
        }
        words.extend(self.channel_words());
        words.extend(self.commands.words().map(<[u8]>::to_vec));
        words
    }

    /// The selector as one rule in parentheses. Inside them words are read with quotes, and a word that ends
    /// with a parenthesis would end the rule, so such words are quoted.
    pub(super) fn in_parentheses(&self) -> Vec<u8> {
        let needs_quotes = |word: &[u8]| word.ends_with(b")") || word.iter().any(|b| b"\"'".contains(b));
        let inside = self
            .words()
            .iter()
            .map(|w| if needs_quotes(w) { quoted(w) } else { w.clone() })
            .collect::<Vec<_>>();
        [b"(", inside.join(&b' ').as_slice(), b")"].concat()
    }
}

/// A rule that begins with `~` or `%`.
fn key_pattern(rule: &[u8]) -> Result<KeyPattern, RuleError> {
    let (mut may_read, mut may_write) = (false, false);
    let [b'%', rest @ ..] = rule else {
        return Ok(KeyPattern { glob: rule[1..].to_vec(), may_read: true, may_write: true });
    };
    let mut rest = rest;
    loop {
        match rest {
            [b'R' | b'r', tail @ ..] if !may_read => (may_read, rest) = (true, tail),
            [b'W' | b'w', tail @ ..] if !may_write => (may_write, rest) = (true, tail),
            [b'~', glob @ ..] if may_read || may_write => {
                return Ok(KeyPattern { glob: glob.to_vec(), may_read, may_write });
            }
            // As in Redis the `~` and the glob may be left out; the glob is empty then.
            [] if may_read || may_write => {
                return Ok(KeyPattern { glob: Vec::new(), may_read, may_write });
            }
            _ => return Err(RuleError::Syntax),
        }
    }
}
