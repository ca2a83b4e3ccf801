//! Members of sorted sets as they come out of a packed leaf, and bounds between them.
//!
//! A leaf keeps once what all its members begin with, so a member is lent in two parts. Whoever needs it
//! whole appends it to a buffer.
use crate::code::probe::strip_prefix;
use base::Item;
use base::text::{I64Text, parse_u64, u64_len};
use std::cmp::Ordering;

/// A member, lent from a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    prefix: &'a [u8],
    rest: Item<'a>,
}

/// A score and its member.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub score: f64,
    pub member: Member<'a>,
}

/// One end of a range among the members of one score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge<'a> {
    /// Before all of them.
    Least,
    Before(&'a [u8]),
    After(&'a [u8]),
    /// Behind all of them.
    Greatest,
}

/// A bound in the order of a sorted set: between two entries, or at an end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound<'a> {
    pub score: f64,
    pub edge: Edge<'a>,
}

impl<'a> Bound<'a> {
    /// Before everything of this score.
    pub fn least(score: f64) -> Bound<'a> {
        Bound { score, edge: Edge::Least }
    }

    /// Behind everything of this score.
    pub fn greatest(score: f64) -> Bound<'a> {
        Bound { score, edge: Edge::Greatest }
    }

    /// Whether an entry comes before this bound.
    pub(crate) fn is_after(&self, entry: Entry<'_>) -> bool {
        match entry.score.partial_cmp(&self.score) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => match self.edge {
                Edge::Least => false,
                Edge::Before(member) => entry.member.compare(member).is_lt(),
                Edge::After(member) => entry.member.compare(member).is_le(),
                Edge::Greatest => true,
            },
            _ => false,
        }
    }
}

/// A text that is compared with the rests of many members. Whether it is a number is found out once.
pub(crate) struct Needle<'a> {
    text: &'a [u8],
    number: Option<u64>,
}

impl<'a> Needle<'a> {
    #[inline]
    pub(crate) fn new(text: &'a [u8]) -> Needle<'a> {
        Needle { text, number: parse_u64(text) }
    }

    /// The order of a rest. Numbers of as many digits are in the order of their texts, and need not become
    /// text.
    #[inline]
    pub(crate) fn compare(&self, rest: Item<'_>) -> Ordering {
        match (rest, self.number) {
            (Item::Bytes(own), _) => own.cmp(self.text),
            (Item::Int(n @ 0..), Some(number)) if u64_len(n as u64) == self.text.len() => {
                (n as u64).cmp(&number)
            }
            (Item::Int(n), _) => I64Text::new().format(n).cmp(self.text),
        }
    }
}

impl<'a> Member<'a> {
    pub(crate) fn new(prefix: &'a [u8], rest: Item<'a>) -> Member<'a> {
        Member { prefix, rest }
    }

    /// A member whose text lies together.
    pub fn of(text: &'a [u8]) -> Member<'a> {
        Member { prefix: &[], rest: Item::Bytes(text) }
    }

    /// A member whose text lies together, and is an integer where it reads as one.
    pub fn classify(text: &'a [u8]) -> Member<'a> {
        Member::of_item(Item::classify(text))
    }

    /// A member that lies together, be it a text or an integer.
    pub fn of_item(item: Item<'a>) -> Member<'a> {
        Member { prefix: &[], rest: item }
    }

    pub(crate) fn rest(&self) -> Item<'a> {
        self.rest
    }

    /// What stands behind the first `len` bytes of its text: an integer where that reads as one. Written to
    /// `scratch` where it does not lie together.
    #[inline]
    pub(crate) fn rest_behind<'s>(&'s self, len: usize, scratch: &'s mut Vec<u8>) -> Item<'s> {
        match (len.checked_sub(self.prefix.len()), self.rest) {
            (Some(0), Item::Int(n)) => Item::Int(n),
            (Some(cut), Item::Bytes(text)) => Item::classify(&text[cut..]),
            _ => {
                scratch.clear();
                self.append_to(scratch);
                Item::classify(&scratch[len..])
            }
        }
    }

    /// The two parts of its text: the prefix of the leaf, and the rest.
    #[inline]
    pub fn parts(&self) -> (&'a [u8], Item<'a>) {
        (self.prefix, self.rest)
    }

    /// How many bytes its text has.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks whether a member is the empty text")]
    pub fn len(&self) -> usize {
        self.prefix.len() + self.rest.len()
    }

    /// Appends its text.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix);
        self.rest.append_to(out);
    }

    /// A copy of its text.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len());
        self.append_to(&mut text);
        text
    }

    /// Byte by byte, as Redis orders members.
    pub fn compare(&self, text: &[u8]) -> Ordering {
        match (strip_prefix(text, self.prefix), self.rest) {
            (None, _) => self.prefix.cmp(text),
            (Some(rest), own) => Needle::new(rest).compare(own),
        }
    }

    /// The order of two members. Allocates nothing where both lie together.
    pub fn order(&self, other: &Member<'_>) -> Ordering {
        match (self.parts(), other.parts()) {
            (([], Item::Bytes(own)), ([], Item::Bytes(others))) => own.cmp(others),
            (_, ([], other)) => self.compare(other.text(&mut I64Text::new())),
            _ => self.compare(&other.to_vec()),
        }
    }

    /// Whether this is its text. Allocates nothing.
    pub fn is(&self, text: &[u8]) -> bool {
        strip_prefix(text, self.prefix).is_some_and(|rest| match self.rest {
            Item::Bytes(own) => own == rest,
            int => int == Item::classify(rest),
        })
    }

    /// How many bytes it has in common with the beginning of `text`.
    pub(crate) fn common(&self, text: &[u8]) -> usize {
        let common = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let shared = common(self.prefix, text);
        if shared < self.prefix.len() {
            return shared;
        }
        shared + common(self.rest.text(&mut I64Text::new()), &text[shared..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn numbers_compare_with_texts_as_their_own_texts_do() {
        let mut random = Random::new(8);
        for _ in 0..50_000 {
            let n = random.next_u64() as i64 >> random.below(64);
            let near = n.wrapping_add(random.below(3) as i64 - 1).to_string();
            let text = match random.below(4) {
                0 => near,
                1 => (random.next_u64() as i64 >> random.below(64)).to_string(),
                2 => format!("{}x", &near[..near.len() - 1]),
                _ => format!("0{near}"),
            };
            let own = n.to_string();
            assert_eq!(
                Needle::new(text.as_bytes()).compare(Item::Int(n)),
                own.as_bytes().cmp(text.as_bytes()),
                "{n} {text}"
            );
        }
    }
}
