//! One entry of COMMAND DOCS: a name and a map of what is known, absent fields left out.
use super::describe::words;
use crate::core::registry::Row;
use command::{Arg, ArgKind, Doc};
use resp::Reply;

/// Writes the command's name and the map.
pub(super) fn row(reply: &mut Reply, row: &Row) {
    reply.bulk(row.full_name.as_bytes());
    let place = reply.deferred();
    let mut pairs = Pairs { reply, count: 0 };
    let doc = row.doc;
    pairs.text("summary", Some(doc.summary));
    pairs.text("since", Some(doc.since));
    pairs.text("group", Some(doc.group.name()));
    pairs.text("complexity", Some(doc.complexity).filter(|c| !c.is_empty()));
    doc_flags(&mut pairs, doc);
    pairs.text("deprecated_since", doc.deprecated.map(|d| d.since));
    pairs.text("replaced_by", doc.deprecated.map(|d| d.replaced_by));
    history(&mut pairs, doc.history);
    arguments(&mut pairs, doc.args);
    subcommands(&mut pairs, &row.subcommands);
    let count = pairs.count;
    reply.fill_map(place, count);
}

/// A map that is being written, and how many pairs it has.
struct Pairs<'r> {
    reply: &'r mut Reply,
    count: usize,
}

impl Pairs<'_> {
    /// Begins a pair; the caller writes its value.
    fn key(&mut self, name: &str) -> &mut Reply {
        self.count += 1;
        self.reply.bulk(name.as_bytes());
        self.reply
    }

    /// Writes a pair of texts, if there is a value.
    fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.key(name).bulk(value.as_bytes());
        }
    }
}

fn doc_flags(pairs: &mut Pairs<'_>, doc: &Doc) {
    let flags = [(doc.deprecated.is_some(), "deprecated"), (doc.is_system, "syscmd")];
    let flags = flags.iter().filter(|(is, _)| *is).map(|(_, name)| *name);
    if flags.clone().next().is_some() {
        words(pairs.key("doc_flags"), flags);
    }
}

fn history(pairs: &mut Pairs<'_>, history: &[(&str, &str)]) {
    if history.is_empty() {
        return;
    }
    let reply = pairs.key("history");
    reply.set(history.len());
    for (version, change) in history {
        reply.array(2);
        reply.bulk(version.as_bytes());
        reply.bulk(change.as_bytes());
    }
}

fn arguments(pairs: &mut Pairs<'_>, args: &[Arg]) {
    if args.is_empty() {
        return;
    }
    let reply = pairs.key("arguments");
    reply.array(args.len());
    args.iter().for_each(|arg| argument(reply, arg));
}

fn argument(reply: &mut Reply, arg: &Arg) {
    let place = reply.deferred();
    let mut pairs = Pairs { reply, count: 0 };
    pairs.text("name", Some(arg.name));
    pairs.text("type", Some(kind_name(arg.kind)));
    let holds_others = matches!(arg.kind, ArgKind::OneOf | ArgKind::Block);
    pairs.text("display_text", Some(arg.display.unwrap_or(arg.name)).filter(|_| !holds_others));
    let key_spec = if let ArgKind::Key(spec) = arg.kind { Some(spec) } else { arg.key_spec };
    if let Some(spec) = key_spec {
        pairs.key("key_spec_index").int(i64::from(spec));
    }
    pairs.text("token", arg.token);
    pairs.text("since", arg.since);
    pairs.text("deprecated_since", arg.deprecated_since);
    argument_flags(&mut pairs, arg);
    arguments(&mut pairs, arg.args);
    let count = pairs.count;
    reply.fill_map(place, count);
}

fn argument_flags(pairs: &mut Pairs<'_>, arg: &Arg) {
    let flags =
        [(arg.optional, "optional"), (arg.multiple, "multiple"), (arg.multiple_token, "multiple_token")];
    let flags = flags.iter().filter(|(is, _)| *is).map(|(_, name)| *name);
    if flags.clone().next().is_some() {
        words(pairs.key("flags"), flags);
    }
}

/// Redis's word for what an argument is.
pub(super) fn kind_name(kind: ArgKind) -> &'static str {
    match kind {
        ArgKind::Key(_) => "key",
        ArgKind::String => "string",
        ArgKind::Integer => "integer",
        ArgKind::Double => "double",
        ArgKind::Pattern => "pattern",
        ArgKind::UnixTime => "unix-time",
        ArgKind::PureToken => "pure-token",
        ArgKind::OneOf => "oneof",
        ArgKind::Block => "block",
    }
}

fn subcommands(pairs: &mut Pairs<'_>, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let reply = pairs.key("subcommands");
    reply.map(rows.len());
    rows.iter().for_each(|sub| row(reply, sub));
}
