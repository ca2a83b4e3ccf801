//! What a server sends to another that is to take its keys: commands, with values in the format of dump
//! files.

/// AUTH, with these words.
pub fn append_login(out: &mut Vec<u8>, words: &[Vec<u8>]) {
    let words = words.iter().map(Vec::as_slice);
    append(out, std::iter::once(&b"AUTH"[..]).chain(words).collect());
}

/// SELECT of this database.
pub fn append_database(out: &mut Vec<u8>, db: i64) {
    append(out, vec![b"SELECT", db.to_string().as_bytes()]);
}

/// RESTORE of a payload; `ttl_ms` is 0 where the key has no deadline.
pub fn append_value(out: &mut Vec<u8>, key: &[u8], ttl_ms: i64, payload: &[u8], when: Taken) {
    let ttl = ttl_ms.to_string();
    let mut words: Vec<&[u8]> = vec![b"RESTORE", key, ttl.as_bytes(), payload];
    if when == Taken::Always {
        words.push(b"REPLACE");
    }
    append(out, words);
}

/// When the other server takes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    IfAbsent,
    Always,
}

fn append(out: &mut Vec<u8>, words: Vec<&[u8]>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}
