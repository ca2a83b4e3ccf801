//! One entry of COMMAND and COMMAND INFO: name, arity, flags, first key, last key, step, ACL categories,
//! tips, key specifications, subcommands.
use crate::core::registry::Row;
use command::{Access, Acl, Begin, Find, Flags, KeySpec};
use resp::Reply;

/// Writes one entry, and in it those of the subcommands.
pub(super) fn row(reply: &mut Reply, row: &Row) {
    reply.array(10);
    reply.bulk(row.full_name.as_bytes());
    reply.int(row.arity.number());
    words(reply, Flags::NAMES.iter().filter(|(f, _)| row.flags.has(*f)).map(|(_, name)| *name));
    let (first, last, step) = simple_range(row.keys);
    reply.int(first);
    reply.int(last);
    reply.int(step);
    categories(reply, row);
    reply.set(row.doc.tips.len());
    row.doc.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(row.keys.len());
    row.keys.iter().for_each(|spec| key_spec(reply, spec));
    // As in Redis an array, but where there are none a set without elements.
    match row.subcommands.len() {
        0 => reply.set(0),
        count => reply.array(count),
    };
    row.subcommands.iter().for_each(|sub| self::row(reply, sub));
}

/// The ACL categories, those that the flags imply included.
fn categories(reply: &mut Reply, row: &Row) {
    let categories = row.acl.with_implied(row.flags);
    let names = Acl::NAMES.iter().filter(|(c, _)| categories.has(*c)).map(|(_, name)| format!("@{name}"));
    let names: Vec<String> = names.collect();
    words(reply, names.iter().map(String::as_str));
}

/// A set of simple strings.
pub(super) fn words<'a>(reply: &mut Reply, words: impl Iterator<Item = &'a str> + Clone) {
    reply.set(words.clone().count());
    words.for_each(|word| reply.simple(word));
}

/// First key, last key and step. This is how Redis described keys before there were key specifications, and
/// old clients still read it: of the specifications only ranges at fixed places that follow one another can
/// be described so.
fn simple_range(keys: &[KeySpec]) -> (i64, i64, i64) {
    if let [KeySpec { begin: Begin::Index(first), find: Find::Range { last, step, .. }, .. }] = keys {
        return (*first as i64, absolute(*first, *last), *step as i64);
    }
    let mut range: Option<(i64, i64)> = None;
    for spec in keys {
        let (Begin::Index(first), Find::Range { last, step: 1, .. }) = (spec.begin, spec.find) else {
            continue;
        };
        let (at, end) = (first as i64, absolute(first, last));
        range = match range {
            Some((_, so_far)) if so_far != at - 1 => range,
            // A negative end counts from the last argument, so it lies beyond all others.
            Some((start, so_far)) => Some((start.min(at), if so_far < 0 { so_far } else { end })),
            None => Some((at, end)),
        };
    }
    range.map_or((0, 0, 0), |(first, last)| (first, last, 1))
}

/// The index of the last key among the arguments. A negative one counts from the end and is left as it is.
fn absolute(first: usize, last: i32) -> i64 {
    if last >= 0 { first as i64 + i64::from(last) } else { i64::from(last) }
}

fn key_spec(reply: &mut Reply, spec: &KeySpec) {
    reply.map(if spec.notes.is_empty() { 3 } else { 4 });
    if !spec.notes.is_empty() {
        reply.bulk(b"notes");
        reply.bulk(spec.notes.as_bytes());
    }
    reply.bulk(b"flags");
    access(reply, spec.access);
    reply.bulk(b"begin_search");
    begin_search(reply, spec.begin);
    reply.bulk(b"find_keys");
    find_keys(reply, spec.find);
}

/// What a command does with a key, as a set of words.
pub(super) fn access(reply: &mut Reply, access: Access) {
    words(reply, Access::NAMES.iter().filter(|(a, _)| access.has(*a)).map(|(_, name)| *name));
}

fn begin_search(reply: &mut Reply, begin: Begin) {
    match begin {
        Begin::Index(index) => {
            typed(reply, "index", 1);
            number(reply, "index", index as i64);
        }
        Begin::Keyword { word, start } => {
            typed(reply, "keyword", 2);
            reply.bulk(b"keyword");
            reply.bulk(word.as_bytes());
            number(reply, "startfrom", i64::from(start));
        }
        Begin::Unknown => typed(reply, "unknown", 0),
    }
}

fn find_keys(reply: &mut Reply, find: Find) {
    match find {
        Find::Range { last, step, limit } => {
            typed(reply, "range", 3);
            number(reply, "lastkey", i64::from(last));
            number(reply, "keystep", step as i64);
            number(reply, "limit", limit as i64);
        }
        Find::Count { index, first, step } => {
            typed(reply, "keynum", 3);
            number(reply, "keynumidx", index as i64);
            number(reply, "firstkey", first as i64);
            number(reply, "keystep", step as i64);
        }
        Find::Unknown(_) => typed(reply, "unknown", 0),
    }
}

/// The head of `{type: kind, spec: {...}}`.
fn typed(reply: &mut Reply, kind: &str, pairs: usize) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(pairs);
}

fn number(reply: &mut Reply, name: &str, value: i64) {
    reply.bulk(name.as_bytes());
    reply.int(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    const RO: Access = Access::RO;

    #[test]
    fn the_old_range_is_that_of_the_first_ranges_that_touch() {
        assert_eq!(simple_range(&[]), (0, 0, 0));
        assert_eq!(simple_range(&[KeySpec::one(1, RO)]), (1, 1, 1));
        assert_eq!(simple_range(&[KeySpec::range(1, -1, 2, RO)]), (1, -1, 2));
        assert_eq!(simple_range(&[KeySpec::count(1, RO)]), (0, 0, 0));
        assert_eq!(simple_range(&[KeySpec::one(1, RO), KeySpec::one(2, RO)]), (1, 2, 1));
        assert_eq!(simple_range(&[KeySpec::one(1, RO), KeySpec::range(2, -1, 1, RO)]), (1, -1, 1));
        assert_eq!(simple_range(&[KeySpec::one(1, RO), KeySpec::one(3, RO)]), (1, 1, 1));
    }
}
