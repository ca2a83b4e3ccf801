//! `notify-keyspace-events`: which events of keys are published, as letters.
use super::setting::Change::Anytime;
use super::setting::{Kind, Setting};
use super::table::row;
use store::Classes;

/// The letters in the order in which they are shown. Those before `n` are the ones that `A` stands for.
const LETTERS: [(u8, Classes); 15] = [
    (b'g', Classes::GENERIC),
    (b'$', Classes::STRING),
    (b'l', Classes::LIST),
    (b's', Classes::SET),
    (b'h', Classes::HASH),
    (b'z', Classes::ZSET),
    (b'x', Classes::EXPIRED),
    (b'e', Classes::EVICTED),
    (b't', Classes::STREAM),
    (b'd', Classes::MODULE),
    (b'n', Classes::NEW),
    (b'K', Classes::KEYSPACE),
    (b'E', Classes::KEYEVENT),
    (b'm', Classes::KEYMISS),
    (b'A', Classes::NONE),
];
const IN_ALL: usize = 10;

/// What `A` stands for.
fn all() -> Classes {
    LETTERS[..IN_ALL].iter().fold(Classes::NONE, |all, (_, class)| all | *class)
}

/// Reads the letters, in any order.
pub(super) fn parse(letters: &[u8]) -> Result<Classes, String> {
    let mut classes = Classes::NONE;
    for letter in letters {
        let (_, class) = LETTERS
            .iter()
            .find(|(known, _)| known == letter)
            .ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
        classes = classes | if *letter == b'A' { all() } else { *class };
    }
    Ok(classes)
}

/// The letters as CONFIG GET shows them: with `A`, `n` is left out, as in Redis.
pub(super) fn render(classes: Classes) -> Vec<u8> {
    let shown = |letters: &[(u8, Classes)]| -> Vec<u8> {
        letters.iter().filter(|(_, class)| classes.has(*class)).map(|(letter, _)| *letter).collect()
    };
    let kinds = match classes.has(all()) {
        true => b"A".to_vec(),
        false => shown(&LETTERS[..IN_ALL + 1]),
    };
    [kinds, shown(&LETTERS[IN_ALL + 1..LETTERS.len() - 1])].concat()
}

/// The classes that are published: none unless `K` or `E` says to which channels.
pub(crate) fn published(classes: Classes) -> Classes {
    match classes.has(Classes::KEYSPACE) || classes.has(Classes::KEYEVENT) {
        true => classes,
        false => Classes::NONE,
    }
}

/// The setting's row.
pub(super) const ROW: Setting = row(
    "notify-keyspace-events",
    Anytime,
    Kind::Text { get: |c| render(c.notify), set: |c, text| parse(text).map(|classes| c.notify = classes) },
    "Which events of keys are published, as letters: `K` to `__keyspace@<db>__:<key>`, `E` to \
     `__keyevent@<db>__:<event>`; `g` commands on keys of any type, `$` strings, `l` lists, `s` sets, `h` hashes, \
     `z` sorted sets, `t` streams, `x` keys that expire, `e` keys that are evicted, `n` keys that are new, `m` \
     keys that were looked for and not there, `d` modules, `A` all of these but `n` and `m`.",
    "Set it where a program has to know what happens to keys. Every event costs a message to whoever listens.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_shown_in_redis_order() {
        for (given, shown) in [
            ("KEA", "AKE"),
            ("Kg", "gK"),
            ("KElshzxetdmn", "lshzxetdnKEm"),
            ("Kg$lshzxetd", "AK"),
            ("Kg$lshzxetdn", "AK"),
            ("EKnm", "nKEm"),
            ("AKEmn", "AKEm"),
            ("KKK", "K"),
            ("xd", "xd"),
            ("lxzgEmn$K", "g$lzxnKEm"),
            ("", ""),
        ] {
            let classes = parse(given.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(render(classes)).unwrap(), shown, "{given}");
        }
        assert!(parse(b"Kl Ex").is_err() && parse(b"q").is_err());
        assert_eq!(published(parse(b"A").unwrap()), Classes::NONE);
    }
}
