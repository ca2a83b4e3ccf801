//! What a stream may say: the commands of the tables that the peer has too, the groups that were asked for,
//! and the settings that both servers know and agree on.
use super::excluded;
use super::values::SETTINGS;
use crate::resp_client::{Address, RespClient};
use crate::resp_value::Value;
use crate::transcript::{Version, parse_version};
use command::Arg;
use server::Grammar;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

pub struct Vocabulary {
    pub(super) grammars: Vec<Grammar>,
    /// The peer's version: what is newer is not sent.
    pub(super) version: Version,
    /// Names for CONFIG GET: both have the same value when they start.
    pub(super) readable_settings: Vec<String>,
    /// Rows of `values::SETTINGS` that both know.
    pub(super) settings: Vec<(&'static str, &'static [&'static str])>,
}

impl Vocabulary {
    /// Empties a server and sets its settings back. The connection on which that was done.
    pub(super) fn begin(&self, address: &Address) -> io::Result<RespClient> {
        let mut client = RespClient::connect(address)?;
        client.call(&["FLUSHALL"])?;
        client.call(&["FUNCTION", "FLUSH"])?;
        for (name, values) in &self.settings {
            client.call(&["CONFIG", "SET", name, values[0]])?;
        }
        Ok(client)
    }

    /// Asks both servers. `groups` are names as COMMAND DOCS has them, but "keys" for "generic"; none is all.
    pub fn learn(
        ours: &mut RespClient,
        theirs: &mut RespClient,
        groups: &[String],
    ) -> io::Result<Vocabulary> {
        let theirs_known = commands(theirs)?;
        let mut grammars = server::grammars();
        grammars.retain(|grammar| {
            theirs_known.contains(&grammar.full_name)
                && excluded::reason(grammar).is_none()
                && (groups.is_empty() || groups.iter().any(|group| group == group_name(grammar)))
        });
        if grammars.is_empty() {
            return Err(io::Error::other("the peer has no command of these groups"));
        }
        let (our_settings, their_settings) = (settings(ours)?, settings(theirs)?);
        let agreed = our_settings.iter().filter(|(name, value)| their_settings.get(*name) == Some(value));
        let known = |name: &str| our_settings.contains_key(name) && their_settings.contains_key(name);
        Ok(Vocabulary {
            grammars,
            version: version(theirs)?,
            readable_settings: agreed.map(|(name, _)| name.clone()).collect(),
            settings: SETTINGS.iter().copied().filter(|(name, _)| known(name)).collect(),
        })
    }

    /// How many commands and subcommands are drawn.
    pub fn command_count(&self) -> usize {
        self.grammars.len()
    }

    /// Whether the peer is old enough to know it.
    pub(super) fn knows(&self, arg: &Arg) -> bool {
        arg.since.and_then(parse_version).is_none_or(|since| since <= self.version)
    }
}

/// The name of a command's group, as `--groups` takes it: "keys" for what COMMAND DOCS calls "generic".
fn group_name(grammar: &Grammar) -> &'static str {
    match grammar.doc.group.name() {
        "generic" => "keys",
        name => name,
    }
}

/// Full names in lower case.
pub(super) fn commands(client: &mut RespClient) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    if let Value::Aggregate(_, entries) = client.call(&["COMMAND"])? {
        entries.iter().for_each(|entry| append_names(entry, &mut names));
    }
    if names.is_empty() { Err(io::Error::other("COMMAND lists nothing")) } else { Ok(names) }
}

/// A command's name comes first in its entry, its subcommands last.
fn append_names(entry: &Value, names: &mut BTreeSet<String>) {
    let Value::Aggregate(_, fields) = entry else { return };
    if let Some(name) = fields.first().and_then(Value::text) {
        names.insert(String::from_utf8_lossy(name).into_owned());
    }
    if let Some(Value::Aggregate(_, subcommands)) = fields.get(9) {
        subcommands.iter().for_each(|entry| append_names(entry, names));
    }
}

fn settings(client: &mut RespClient) -> io::Result<BTreeMap<String, Value>> {
    let Value::Aggregate(_, parts) = client.call(&["CONFIG", "GET", "*"])? else {
        return Err(io::Error::other("CONFIG GET answers no list"));
    };
    let name = |value: &Value| String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned();
    Ok(parts.chunks_exact(2).map(|pair| (name(&pair[0]), pair[1].clone())).collect())
}

fn version(client: &mut RespClient) -> io::Result<Version> {
    let reply = client.call(&["INFO", "server"])?;
    let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
    let version = text.lines().find_map(|line| line.strip_prefix("redis_version:"));
    version.and_then(parse_version).ok_or_else(|| io::Error::other("INFO names no version"))
}
