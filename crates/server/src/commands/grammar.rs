//! Every command with the grammar of its arguments, for those who write requests by the table: the
//! differential runner draws its streams from here, so that a command is in them as soon as it has a row.
use crate::commands::families::FAMILIES;
use crate::core::registry::{Registry, Row, Run};
use command::{Doc, Flags};

/// A command or subcommand that can be sent.
pub struct Grammar {
    /// Lower case, `object|encoding`.
    pub full_name: String,
    pub doc: &'static Doc,
    pub flags: Flags,
    /// It runs on the keyspace alone, without a session or a server.
    pub is_data: bool,
}

/// All of them, in the order of the tables; containers are left out, their subcommands are there.
pub fn grammars() -> Vec<Grammar> {
    let registry = Registry::new(FAMILIES);
    registry.all().filter(|row| row.subcommands.is_empty()).map(grammar).collect()
}

fn grammar(row: &Row) -> Grammar {
    Grammar {
        full_name: row.full_name.clone(),
        doc: row.doc,
        flags: row.flags,
        is_data: matches!(row.run, Run::Data(_)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_listed_and_containers_are_not() {
        let names: Vec<String> = grammars().into_iter().map(|grammar| grammar.full_name).collect();
        assert!(names.iter().any(|name| name == "object|encoding"));
        assert!(!names.iter().any(|name| name == "object"));
    }
}
