//! One user: passwords and selectors.
use super::password::Digest;
use super::rule::{RuleError, Rules, is_word};
use super::selector::{Denied, Reason, Selector, Wanted};
use crate::state::config::ChannelDefault;

/// See the file's opener. A change makes a new value with the same id.
#[derive(Clone, Debug)]
pub(crate) struct User {
    /// Never used twice: a user who is removed and made anew is another one.
    pub(super) id: u64,
    pub(super) name: Vec<u8>,
    /// Whether clients can log in. Clients that have logged in are served further if this is turned off.
    is_on: bool,
    /// Any password is right.
    is_nopass: bool,
    /// `sanitize-payload`: kept and shown; every payload is checked here.
    sanitizes: bool,
    passwords: Vec<Digest>,
    root: Selector,
    others: Vec<Selector>,
}

impl User {
    /// One who can do nothing, not even log in.
    pub(super) fn new(id: u64, name: &[u8], channels: ChannelDefault) -> User {
        User {
            id,
            name: name.to_vec(),
            is_on: false,
            is_nopass: false,
            sanitizes: true,
            passwords: Vec::new(),
            root: Selector::new(channels),
            others: Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(crate) fn is_nopass(&self) -> bool {
        self.is_nopass
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether new clients have to log in where this is the default user.
    pub(crate) fn asks_for_login(&self) -> bool {
        !self.is_nopass || !self.is_on
    }

    /// Whether one selector allows every request, so that none needs to be checked.
    pub(crate) fn may_do_everything(&self) -> bool {
        self.root.allows_everything() || self.others.iter().any(Selector::allows_everything)
    }

    /// Whether this password lets a client in. All digests are compared, whichever is right.
    pub(crate) fn admits(&self, password: &[u8]) -> bool {
        let digest = Digest::of(password);
        let is_known = self.passwords.iter().fold(false, |known, other| known | other.is_same(digest));
        self.is_on && (self.is_nopass || is_known)
    }

    /// The root first.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.others)
    }

    /// Whether one selector allows all of a request. If none does, the error is the greatest of what the
    /// selectors do not allow: a channel before a key, a key before the command; of two keys the later.
    pub(crate) fn check(&self, wanted: &Wanted<'_>) -> Result<(), Denied> {
        let mut denied = Denied { reason: Reason::Command, position: 0 };
        for selector in self.selectors() {
            match selector.check(wanted) {
                Ok(()) => return Ok(()),
                Err(other) => denied = denied.max(other),
            }
        }
        Err(denied)
    }

    /// Whether a selector that allows this request also lets every key be read.
    pub(crate) fn reads_all_keys_in(&self, wanted: &Wanted<'_>) -> bool {
        self.selectors().any(|selector| selector.reads_all_keys() && selector.check(wanted).is_ok())
    }

    /// Whether a channel, or a pattern of channels, may be used in some request.
    pub(crate) fn allows_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        self.selectors().any(|selector| selector.allows_channel(name, is_pattern))
    }

    /// Whether some channel may be used in some request.
    pub(crate) fn allows_some_channel(&self) -> bool {
        self.selectors().any(Selector::allows_some_channel)
    }

    /// Applies one rule. Where it is refused nothing has changed.
    pub(super) fn apply(&mut self, rule: &[u8], rules: &Rules<'_>) -> Result<(), RuleError> {
        let is = |word: &str| is_word(rule, &[word]);
        match rule {
            [] => {}
            _ if is("on") => self.is_on = true,
            _ if is("off") => self.is_on = false,
            _ if is("nopass") => (self.is_nopass, self.passwords) = (true, Vec::new()),
            _ if is("resetpass") => (self.is_nopass, self.passwords) = (false, Vec::new()),
            _ if is("sanitize-payload") => self.sanitizes = true,
            _ if is("skip-sanitize-payload") => self.sanitizes = false,
            [b'>', password @ ..] => self.add(Digest::of(password)),
            [b'#', hex @ ..] => self.add(Digest::from_hex(hex)?),
            [b'<', password @ ..] => self.remove(Digest::of(password))?,
            [b'!', hex @ ..] => self.remove(Digest::from_hex(hex)?)?,
            [b'(', .., b')'] => self.others.push(Selector::parse(rule, rules)?),
            _ if is("clearselectors") => self.others.clear(),
            _ if is("reset") => *self = User::new(self.id, &self.name, rules.channels),
            _ => self.root.apply(rule, rules)?,
        }
        Ok(())
    }

    fn add(&mut self, digest: Digest) {
        self.is_nopass = false;
        if !self.passwords.contains(&digest) {
            self.passwords.push(digest);
        }
    }

    fn remove(&mut self, digest: Digest) -> Result<(), RuleError> {
        let place = self.passwords.iter().position(|other| *other == digest);
        self.passwords.remove(place.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    /// The words that say whether and how clients can log in.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &'static str> {
        let nopass = self.is_nopass.then_some("nopass");
        let payload = if self.sanitizes { "sanitize-payload" } else { "skip-sanitize-payload" };
        std::iter::once(if self.is_on { "on" } else { "off" }).chain(nopass).chain([payload])
    }

    /// The digests of the passwords, in hexadecimal digits.
    pub(crate) fn passwords(&self) -> impl Iterator<Item = String> {
        self.passwords.iter().map(|digest| digest.hex())
    }

    /// The line that makes this user: `user`, the name, the rules.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut words: Vec<Vec<u8>> = vec![b"user".to_vec(), self.name.clone()];
        words.extend(self.flags().map(|flag| flag.as_bytes().to_vec()));
        words.extend(self.passwords().map(|hex| format!("#{hex}").into_bytes()));
        words.extend(self.root.words());
        words.extend(self.others.iter().map(Selector::in_parentheses));
        words.join(&b' ')
    }
}
