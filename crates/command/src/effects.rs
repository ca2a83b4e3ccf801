//! What a command has done, for the journal: as the request reads, or in other words.
//!
//! A request that has changed something goes into the journal as its client sent it, and one that has changed
//! nothing does not: whoever runs commands sees to both. A command says something only where running it again
//! could have another outcome, because it looks at the clock, draws at random, or waits:
//!
//! ```text
//! EXPIRE k 100      call.effect(&[b"PEXPIREAT", k, b"1795404800633"])
//! BLPOP a b 0       call.effect(&[b"LPOP", b])
//! ```
//!
//! The words are those that Redis 8 sends its replicas. Where nobody reads the journal nothing is written,
//! and a command that would have to collect words asks before it does ([`Call::effects`]).
use crate::Call;
use base::text::I64Text;
use disk::journal::{Audience, Group};

/// Takes the effects of commands, one command after the other.
#[derive(Debug, Default)]
pub struct Effects {
    /// The effects so far.
    pub group: Group,
    /// The database of the command that runs.
    db: u16,
    /// The command has said itself what it has done.
    is_said: bool,
    words: Words,
}

/// How the removal of keys reads, by the `lazyfree-lazy-` settings: a bit for each that is on, because every
/// write takes a copy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words(pub u8);

impl Words {
    pub const EXPIRES_LAZILY: u8 = 1;
    pub const EVICTS_LAZILY: u8 = 2;
    /// Of what commands remove beside DEL and UNLINK.
    pub const DELETES_LAZILY: u8 = 4;

    /// The removal of a key that has expired.
    pub fn expired(self) -> &'static [u8] {
        removal(self.0 & Words::EXPIRES_LAZILY != 0)
    }

    /// The removal of a key that is evicted.
    pub fn evicted(self) -> &'static [u8] {
        removal(self.0 & Words::EVICTS_LAZILY != 0)
    }

    fn deleted(self) -> &'static [u8] {
        removal(self.0 & Words::DELETES_LAZILY != 0)
    }
}

fn removal(is_lazy: bool) -> &'static [u8] {
    if is_lazy { b"UNLINK" } else { b"DEL" }
}

impl Effects {
    /// A command on this database begins.
    #[inline]
    pub fn begin(&mut self, db: u16, words: Words) {
        (self.db, self.words, self.is_said) = (db, words, false);
    }

    /// The database of the command, if it has said nothing, and there is nothing before it that belongs to
    /// the same record.
    #[inline]
    pub fn alone_in(&self) -> Option<u16> {
        (!self.is_said && self.group.is_empty()).then_some(self.db)
    }

    /// The command has ended and has changed something: unless it has said what, the request is its effect.
    pub fn end<'w>(&mut self, request: impl ExactSizeIterator<Item = &'w [u8]>) {
        if !self.is_said {
            self.group.add(self.db, Audience::Everybody, request);
        }
    }

    /// The command has run elsewhere, and this is what it has done.
    pub fn say_made(&mut self, made: Effects) {
        self.is_said = true;
        self.group.append(made.group);
    }

    /// The request is of interest to replicas.
    pub fn tell_replicas<'w>(&mut self, request: impl ExactSizeIterator<Item = &'w [u8]>) {
        self.group.add(self.db, Audience::Replicas, request);
    }

    /// A key has gone by itself, which reads as this word.
    pub fn tell_gone(&mut self, word: &[u8], key: &[u8]) {
        self.tell(&[word, key]);
    }

    /// A field of a hash has gone by itself.
    pub fn tell_field_gone(&mut self, key: &[u8], field: &[u8]) {
        self.tell(&[b"HDEL", key, field]);
    }

    /// A key has gone to another server, which is all that is done.
    pub fn say_moved(&mut self, key: &[u8]) {
        self.say(&[removal(false), key]);
    }

    fn tell(&mut self, words: &[&[u8]]) {
        self.group.add(self.db, Audience::Everybody, words.iter().copied());
    }

    /// The command has done this, instead of what its request says; in addition to what it has said before.
    pub(crate) fn say(&mut self, words: &[&[u8]]) {
        self.say_all(words.iter().copied());
    }

    /// The same, for words that are not in a slice.
    pub(crate) fn say_all<'w>(&mut self, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        self.is_said = true;
        self.group.add(self.db, Audience::Everybody, words);
    }

    /// Begins an effect of so many words, for [`Effects::word`]; [`Effects::end_words`] ends it.
    pub(crate) fn begin_words(&mut self, count: usize) {
        self.is_said = true;
        self.group.begin(self.db, Audience::Everybody, count);
    }

    pub(crate) fn word(&mut self, word: &[u8]) {
        self.group.word(word);
    }

    pub(crate) fn end_words(&mut self) {
        self.group.end();
    }
}

impl Call<'_, '_> {
    /// Where the command's effects go; None where nobody reads them.
    pub(crate) fn effects(&mut self) -> Option<&mut Effects> {
        self.effects.as_deref_mut()
    }

    /// The command has done this, instead of what its request says.
    #[inline]
    pub(crate) fn effect(&mut self, words: &[&[u8]]) {
        if let Some(effects) = self.effects() {
            effects.say(words);
        }
    }

    /// The command has given the key this deadline, which has passed or not: its effect is one word, the key,
    /// and the time, or the removal of the key.
    pub(crate) fn deadline_effect(&mut self, key: &[u8], at: base::Millis, options: &[&[u8]]) {
        let is_past = at <= self.view.now();
        let Some(effects) = self.effects() else { return };
        if is_past {
            let word = effects.words.expired();
            return effects.say(&[word, key]);
        }
        let mut text = I64Text::new();
        let words = [b"PEXPIREAT", key, text.format(at.0)];
        effects.say_all(Chain { first: &words, second: options });
    }

    /// The command has removed the key as DEL does, whatever the settings.
    pub(crate) fn plain_deletion_effect(&mut self, key: &[u8]) {
        self.effect(&[b"DEL", key]);
    }

    /// The command has taken away all that the key held.
    pub(crate) fn deletion_effect(&mut self, key: &[u8]) {
        if let Some(effects) = self.effects() {
            let word = effects.words.deleted();
            effects.say(&[word, key]);
        }
    }
}

/// Words from two places, counted.
pub(crate) struct Chain<'s, 'w> {
    pub(crate) first: &'s [&'w [u8]],
    pub(crate) second: &'s [&'w [u8]],
}

impl<'w> Iterator for Chain<'_, 'w> {
    type Item = &'w [u8];

    fn next(&mut self) -> Option<&'w [u8]> {
        let from = if self.first.is_empty() { &mut self.second } else { &mut self.first };
        let (word, rest) = from.split_first()?;
        *from = rest;
        Some(word)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.first.len() + self.second.len();
        (len, Some(len))
    }
}

impl ExactSizeIterator for Chain<'_, '_> {}
