//! What a SORT asks for. Options may come in any order and be repeated: of LIMIT, the order, BY and STORE the
//! last counts, of GET each.
use super::pattern::Pattern;
use crate::Error;
use crate::argument::{int, is_word};
use resp::{Args, Reply};

/// Whether STORE is an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storing {
    Allowed,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

/// What elements are compared by.
#[derive(Debug, PartialEq)]
pub(super) enum By<'a> {
    Themselves,
    Others(Pattern<'a>),
}

/// What GET answers for an element.
#[derive(Debug, PartialEq)]
pub(super) enum Get<'a> {
    /// `#`
    Itself,
    Other(Pattern<'a>),
    /// A name without `*` is of no use: always null.
    Nothing,
}

#[derive(Debug, PartialEq)]
pub(super) struct Sort<'a> {
    /// None: not sorted at all, because some BY named no pattern (`BY nosort`).
    pub(super) by: Option<By<'a>>,
    pub(super) get: Vec<Get<'a>>,
    pub(super) order: Order,
    /// Compared as text, not as numbers.
    pub(super) alpha: bool,
    pub(super) offset: i64,
    /// Negative: all.
    pub(super) count: i64,
    pub(super) destination: Option<&'a [u8]>,
    /// Whether a script gets the result.
    pub(super) is_for_script: bool,
}

impl<'a> Sort<'a> {
    pub(super) fn parse(args: &Args<'a>, storing: Storing) -> Result<Sort<'a>, Error> {
        let mut sort = Sort {
            by: Some(By::Themselves),
            get: Vec::new(),
            order: Order::Ascending,
            alpha: false,
            offset: 0,
            count: -1,
            destination: None,
            is_for_script: false,
        };
        let mut at = 2;
        while let Some(word) = args.get(at) {
            at += sort.take(word, args.get(at + 1), args.get(at + 2), storing)?;
        }
        Ok(sort)
    }

    /// The same for whoever gets this reply.
    pub(super) fn answering(self, reply: &Reply) -> Sort<'a> {
        Sort { is_for_script: reply.is_for_script(), ..self }
    }

    /// Whether the members of a set are put in order though none is asked for: where they are kept, or a
    /// script gets them, which is to do the same with the same set.
    pub(super) fn orders_sets(&self) -> bool {
        self.destination.is_some() || self.is_for_script
    }

    /// Reads the option that begins with `word`, and returns how many arguments it has.
    fn take(
        &mut self,
        word: &[u8],
        value: Option<&'a [u8]>,
        second: Option<&'a [u8]>,
        storing: Storing,
    ) -> Result<usize, Error> {
        if is_word(word, "ASC") {
            self.order = Order::Ascending;
        } else if is_word(word, "DESC") {
            self.order = Order::Descending;
        } else if is_word(word, "ALPHA") {
            self.alpha = true;
        } else if let (true, Some(offset), Some(count)) = (is_word(word, "LIMIT"), value, second) {
            (self.offset, self.count) = (int(offset)?, int(count)?);
            return Ok(3);
        } else {
            let value = value.ok_or_else(Error::syntax)?;
            self.take_value(word, value, storing)?;
            return Ok(2);
        }
        Ok(1)
    }

    fn take_value(&mut self, word: &[u8], value: &'a [u8], storing: Storing) -> Result<(), Error> {
        if is_word(word, "STORE") && storing == Storing::Allowed {
            self.destination = Some(value);
        } else if is_word(word, "BY") {
            // Once a BY has said not to sort, no later BY changes that.
            let pattern = Pattern::new(value).map(By::Others);
            self.by = self.by.take().and(pattern);
        } else if is_word(word, "GET") {
            self.get.push(match Pattern::new(value) {
                _ if value == b"#" => Get::Itself,
                Some(pattern) => Get::Other(pattern),
                None => Get::Nothing,
            });
        } else {
            return Err(Error::syntax());
        }
        Ok(())
    }

    /// Whether the data tells which keys are read.
    pub(super) fn reads_other_keys(&self) -> bool {
        matches!(self.by, Some(By::Others(_))) || self.get.iter().any(|get| matches!(get, Get::Other(_)))
    }

    /// The first result and how many there are, of `len` elements.
    pub(super) fn window(&self, len: usize) -> std::ops::Range<usize> {
        let within = |n: i64| usize::try_from(n.max(0)).unwrap_or(usize::MAX).min(len);
        let start = within(self.offset);
        let count = if self.count < 0 { len } else { within(self.count) };
        start..start.saturating_add(count).min(len)
    }
}

/// Where the key stands that STORE names: what its key spec looks for before the command runs, and so by the
/// same rules.
pub(super) fn destination(args: &Args<'_>) -> Option<usize> {
    let (mut found, mut at) = (None, 2);
    while let Some(word) = args.get(at) {
        at += if is_word(word, "STORE") {
            found = args.get(at + 1).map(|_| at + 1).or(found);
            2
        } else if is_word(word, "LIMIT") {
            3
        } else if is_word(word, "BY") || is_word(word, "GET") {
            2
        } else {
            1
        };
    }
    found
}
