//! How long the values of dump files are, beside the peers': what DUMP answers for texts of words and of
//! JSON, and for collections of 10 to 5,000 elements, which are what a file has for each key.
//!
//! Redis 8 writes a small set of texts as one block, which no version of the format has that Redis 7.0 reads;
//! `--sardine-args "--rdb-version 11"` has Sardine do the same.
use super::Options;
use super::client::{Answer, Client};
use super::server::Server;
use crate::shell::Outcome;
use base::random::Random;

const TEXTS: [usize; 7] = [100, 300, 1_000, 3_000, 8_192, 30_000, 100_000];
const COLLECTIONS: [(&str, &[u64]); 7] = [
    ("hash", &[10, 100, 500]),
    ("set", &[10, 100, 500]),
    ("integers", &[10, 100, 500]),
    ("zset", &[10, 100, 500]),
    ("list", &[10, 100, 500, 5_000]),
    ("words", &[10, 100, 500]),
    ("stream", &[100, 5_000]),
];
const DEPTH: usize = 200;

pub(crate) fn run(options: &Options) -> Outcome {
    let mut rows: Vec<(String, Vec<usize>)> = Vec::new();
    for spec in &options.servers {
        let server = Server::start(spec, None)?;
        for (number, (name, len)) in measure(&mut server.client()?)?.into_iter().enumerate() {
            match rows.get_mut(number) {
                Some((_, lens)) => lens.push(len),
                None => rows.push((name, vec![len])),
            }
        }
    }
    let names: Vec<&str> = options.servers.iter().map(|spec| spec.name.as_str()).collect();
    println!("bytes of DUMP: {}; the first in parts of the last", names.join(", "));
    for (name, lens) in rows {
        let ratio = lens[0] as f64 / lens[lens.len() - 1] as f64;
        let cells: Vec<String> = lens.iter().map(|len| format!("{len:8}")).collect();
        println!("{name:14} {} {ratio:.3}", cells.join(" "));
    }
    Ok(())
}

fn measure(client: &mut Client) -> Result<Vec<(String, usize)>, String> {
    let mut random = Random::new(23);
    let words: Vec<String> = (0..400).map(|_| word(&mut random)).collect();
    let mut lens = Vec::new();
    for len in TEXTS {
        for kind in ["text", "json"] {
            let text = text(kind, len, &words, &mut random);
            client.call(&[b"SET", b"key", text.as_bytes()])?;
            lens.push((format!("{kind} {len}"), dumped(client)?));
        }
    }
    for (kind, counts) in COLLECTIONS {
        for count in counts {
            client.call(&[b"DEL", b"key"])?;
            for number in 0..*count {
                let request = element(kind, number, &words, &mut random);
                let request: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
                client.pipe(&request, DEPTH)?;
            }
            client.flush()?;
            lens.push((format!("{kind} {count}"), dumped(client)?));
        }
    }
    Ok(lens)
}

fn dumped(client: &mut Client) -> Result<usize, String> {
    match client.call(&[b"DUMP", b"key"])? {
        Answer::Text(payload) => Ok(payload.len()),
        other => Err(format!("bench: DUMP answers {other:?}")),
    }
}

fn word(random: &mut Random) -> String {
    let len = 2 + random.below(8);
    (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

fn drawn<'w>(words: &'w [String], random: &mut Random) -> &'w str {
    &words[random.below(words.len() as u64) as usize]
}

/// A text of so many bytes.
fn text(kind: &str, len: usize, words: &[String], random: &mut Random) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= len {
            break;
        }
        text += &match kind {
            "text" => format!("{} ", drawn(words, random)),
            _ => format!(
                r#"{{"id":{number},"name":"{}","email":"{}@example.com","age":{}}},"#,
                drawn(words, random),
                drawn(words, random),
                random.below(99)
            ),
        };
    }
    text.truncate(len);
    text
}

/// The request that adds an element.
fn element(kind: &str, number: u64, words: &[String], random: &mut Random) -> Vec<String> {
    let request = match kind {
        "hash" => format!("HSET key field{number} value-{number}"),
        "set" => format!("SADD key member:{number}"),
        "integers" => format!("SADD key {}", number * 7),
        "zset" => format!("ZADD key {} member:{number}", number as f64 * 1.5),
        "list" => format!("RPUSH key element-{number}"),
        "words" => format!("RPUSH key {}", drawn(words, random)),
        _ => {
            let id = 1_600_000_000_000 + number * 17;
            let (value, text) = (random.below(1_000_000), drawn(words, random));
            format!("XADD key {id}-0 sensor {} value 0.{value} text {text}", number % 10)
        }
    };
    request.split(' ').map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_length_that_is_said_and_elements_their_words() {
        let words = vec!["a".to_string(), "bc".to_string()];
        let random = &mut Random::new(1);
        for len in TEXTS {
            assert_eq!(
                (text("text", len, &words, random).len(), text("json", len, &words, random).len()),
                (len, len)
            );
        }
        assert_eq!(element("hash", 7, &words, random), ["HSET", "key", "field7", "value-7"]);
        assert_eq!(element("stream", 7, &words, random).len(), 9);
    }
}
