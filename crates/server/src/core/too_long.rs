//! Finds arguments that are too long for an element of a collection. An element lies in a leaf, and a leaf
//! has a limit (`pack/src/limits.rs`), while `proto-max-bulk-len` lets clients send more. If every command
//! checked its own arguments, one might forget it; so the arguments of all commands that write are checked
//! here. Commands that store their arguments as strings, or only hash them, may have longer ones; of those
//! only the keys are checked, because keys lie in leaves too. It costs nothing as long as a connection has
//! not sent so many bytes at a time.
use crate::core::registry::Row;
use command::{Flags, Group};
use resp::Args;

/// Whether an argument that would come into a leaf has more bytes than `bytes_max`, what the longest element
/// may have. `positions` is room for the places of keys, so that nothing is allocated.
#[cold]
pub(crate) fn is_too_long(row: &Row, args: &Args<'_>, bytes_max: usize, positions: &mut Vec<u32>) -> bool {
    if !row.flags.has(Flags::WRITE) {
        return false;
    }
    if !holds_strings(row) {
        return args.iter_from(1).any(|arg| arg.len() > bytes_max);
    }
    row.extract_keys(args, positions);
    positions.iter().any(|position| args.at(*position as usize).len() > bytes_max)
}

/// Whether nothing of the arguments but keys comes into a leaf.
fn holds_strings(row: &Row) -> bool {
    matches!(row.doc.group, Group::String | Group::Bitmap | Group::Hyperloglog)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::families::FAMILIES;
    use crate::core::registry::Registry;
    use command::Arity;
    use resp::Span;

    const BYTES_MAX: usize = 10;

    /// For each command that writes, the places at which an argument may be longer, of two more than it takes
    /// at least.
    fn unlimited(registry: &Registry) -> Vec<String> {
        let mut found = Vec::new();
        for row in registry.all().filter(|row| row.subcommands.is_empty() && row.flags.has(Flags::WRITE)) {
            let count = match row.arity {
                Arity::Exactly(count) => count,
                Arity::AtLeast(count) => count + 2,
            };
            // A count of keys among the arguments is 1.
            let places = (1..count).filter(|long| {
                let texts = (0..count).map(|at| if at == *long { "1".repeat(11) } else { "1".into() });
                let texts: Vec<String> = texts.collect();
                let starts = texts.iter().scan(0, |end, text| {
                    *end += text.len();
                    Some(Span { start: *end - text.len(), len: text.len() })
                });
                let (spans, buffer) = (starts.collect::<Vec<_>>(), texts.concat());
                !is_too_long(row, &Args::new(buffer.as_bytes(), &spans), BYTES_MAX, &mut Vec::new())
            });
            let places: Vec<String> = places.map(|place| place.to_string()).collect();
            if !places.is_empty() {
                found.push(format!("{} {}", row.full_name, places.join(" ")));
            }
        }
        found.sort();
        found
    }

    /// Whoever adds a command here has seen that these arguments become strings, or nothing that is kept.
    #[test]
    fn only_what_becomes_a_string_may_be_longer_than_an_element() {
        let expected = [
            "append 2",
            "bitfield 2 3",
            "bitop 1",
            "decrby 2",
            "getex 2 3",
            "getset 2",
            "incrby 2",
            "incrbyfloat 2",
            "mset 2 4",
            "msetnx 2 4",
            "pfadd 2 3",
            "pfdebug 1",
            "psetex 2 3",
            "set 2 3 4",
            "setbit 2 3",
            "setex 2 3",
            "setnx 2",
            "setrange 2 3",
        ];
        assert_eq!(unlimited(&Registry::new(FAMILIES)), expected);
    }

    #[test]
    fn reading_commands_take_arguments_of_any_length() {
        let registry = Registry::new(FAMILIES);
        let row = registry.find(b"ECHO").expect("a command");
        let spans = [Span { start: 0, len: 4 }, Span { start: 4, len: 20 }];
        assert!(!is_too_long(row, &Args::new(&[b'x'; 24], &spans), BYTES_MAX, &mut Vec::new()));
    }
}
