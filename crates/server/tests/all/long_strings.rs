//! Long strings that stay in the buffer that their request has arrived in: whatever the command is called and
//! however the request comes, keys hold what was sent.
use crate::client::{Client, bulk, config, engines, request, start};
use base::random::Random;
use server::Config;
use std::time::Duration;

const LEN: usize = 5_000;

/// A text that differs from others in every part, and is not compressed to nothing.
fn text(random: &mut Random) -> String {
    let len = LEN + random.below(200) as usize;
    (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// Sends a request in pieces that arrive by themselves, so that the connection has a buffer of its own.
fn send_in_pieces(client: &mut Client, wire: &[u8], random: &mut Random) {
    let first = 2_000 + random.below(1_000) as usize;
    let second = wire.len() - random.below(10) as usize;
    for piece in [&wire[..first], &wire[first..second], &wire[second..]] {
        client.send(piece);
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Commands that store the text `#` under k, with their reply; `$` is what k held before.
const STORING: [(&str, &str); 12] = [
    ("SET k #", "+OK\r\n"),
    ("SET k # EX 100", "+OK\r\n"),
    ("SET k # GET", "$"),
    ("SET k # XX KEEPTTL", "+OK\r\n"),
    ("SETEX k 100 #", "+OK\r\n"),
    ("PSETEX k 100000 #", "+OK\r\n"),
    ("GETSET k #", "$"),
    ("MSET k #", "+OK\r\n"),
    ("MSET k # l 1", "+OK\r\n"),
    ("EVAL return(redis.call('SET',KEYS[1],ARGV[1])) 1 k #", "+OK\r\n"),
    ("SET k #", "+OK\r\n"),
    ("SETRANGE k 0 #", ":"),
];

fn words<'w>(line: &'w str, text: &'w str) -> Vec<&'w str> {
    line.split(' ').map(|word| if word == "#" { text } else { word }).collect()
}

#[test]
fn keys_hold_what_was_sent_whatever_stores_it() {
    for io_engine in engines() {
        let server = start(Config { io_engine, worker_threads: 2, ..config() });
        let [mut writer, mut reader] = [(); 2].map(|()| Client::connect(&server));
        let mut random = Random::new(1);
        let mut before = text(&mut random);
        writer.send(&request(&["SET", "k", &before]));
        writer.expect("+OK\r\n");
        for round in 0..4 {
            for (line, reply) in STORING {
                let new =
                    format!("{}{}", text(&mut random), "x".repeat(if round % 2 == 0 { 300 } else { 0 }));
                let mut wire = request(&words(line, &new));
                // What comes behind it in the same packet keeps the request from being alone in its buffer.
                let is_alone = random.below(3) > 0;
                if !is_alone {
                    wire.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
                }
                send_in_pieces(&mut writer, &wire, &mut random);
                let after = if line.starts_with("SETRANGE") {
                    format!("{new}{}", before.get(new.len()..).unwrap_or_default())
                } else {
                    new
                };
                match reply {
                    "$" => writer.expect(&bulk(&before)),
                    ":" => writer.expect(&format!(":{}\r\n", after.len())),
                    reply => writer.expect(reply),
                }
                if !is_alone {
                    writer.expect("+PONG\r\n");
                }
                reader.check("GET k", &bulk(&after));
                reader.check("STRLEN k", &format!(":{}\r\n", after.len()));
                reader.check("GETRANGE k 100 199", &bulk(&after[100..200]));
                reader.check("OBJECT ENCODING k", "$3\r\nraw\r\n");
                before = after;
            }
        }
    }
}

#[test]
fn a_string_that_stays_in_its_buffer_is_edited_copied_and_moved_as_any() {
    let server = start(Config { worker_threads: 1, ..config() });
    let mut client = Client::connect(&server);
    let mut random = Random::new(2);
    for _ in 0..6 {
        let mut own = text(&mut random);
        send_in_pieces(&mut client, &request(&["SET", "k", &own]), &mut random);
        client.expect("+OK\r\n");
        client.check("COPY k copy REPLACE", ":1\r\n");
        client.check("APPEND k !", &format!(":{}\r\n", own.len() + 1));
        client.check("GET copy", &bulk(&own));
        own.push('!');
        client.check("SETRANGE k 3 ABC", &format!(":{}\r\n", own.len()));
        own.replace_range(3..6, "ABC");
        client.check("RENAME k moved", "+OK\r\n");
        client.check("GET moved", &bulk(&own));
        send_in_pieces(&mut client, &request(&["SET", "bits", &own]), &mut random);
        client.expect("+OK\r\n");
        client.check("BITOP XOR nothing bits moved", &format!(":{}\r\n", own.len()));
        client.check("BITCOUNT nothing", ":0\r\n");
        client.check("GETDEL bits", &bulk(&own));
        client.check("EXISTS bits", ":0\r\n");
        // Nothing of them is left: what counts for the next round is what it writes itself.
        client.check("DEL copy moved nothing", ":3\r\n");
    }
}

#[test]
fn requests_that_store_nothing_or_wait_keep_their_bytes() {
    let server = start(Config { worker_threads: 2, ..config() });
    let [mut client, mut other] = [(); 2].map(|()| Client::connect(&server));
    let mut random = Random::new(3);
    let [first, second] = [(); 2].map(|()| text(&mut random));
    let mut send = |client: &mut Client, words: &[&str]| send_in_pieces(client, &request(words), &mut random);
    send(&mut client, &["SET", "k", &first, "NX"]);
    client.expect("+OK\r\n");
    send(&mut client, &["SETNX", "k", &second]);
    client.expect(":0\r\n");
    send(&mut client, &["SET", "k", &second, "NX"]);
    client.expect("$-1\r\n");
    send(&mut client, &["SET", "k", &second, "EX", "0"]);
    client.expect("-ERR invalid expire time in 'set' command\r\n");
    other.check("GET k", &bulk(&first));
    // Queued: EXEC stores a copy.
    client.check("MULTI", "+OK\r\n");
    send(&mut client, &["SET", "k", &second]);
    client.expect("+QUEUED\r\n");
    client.check("EXEC", "*1\r\n+OK\r\n");
    other.check("GET k", &bulk(&second));
    // Held back: it runs from where it lies when the pause is over.
    other.check("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
    send(&mut client, &["SET", "k", &first]);
    std::thread::sleep(Duration::from_millis(20));
    other.check("GET k", &bulk(&second));
    other.check("CLIENT UNPAUSE", "+OK\r\n");
    client.expect("+OK\r\n");
    other.check("GET k", &bulk(&first));
    // Elements of collections are stored as before.
    send(&mut client, &["HSET", "h", "f", &first]);
    client.expect(":1\r\n");
    send(&mut client, &["RPUSH", "l", &second]);
    client.expect(":1\r\n");
    other.check("HGET h f", &bulk(&first));
    other.check("LINDEX l 0", &bulk(&second));
}

#[test]
fn clients_that_leave_in_the_middle_leave_nothing_behind() {
    let server = start(Config { worker_threads: 2, ..config() });
    let mut other = Client::connect(&server);
    let mut random = Random::new(4);
    for round in 0..10 {
        let own = text(&mut random);
        let wire = request(&["SET", "k", &own]);
        let mut client = Client::connect(&server);
        let cut = if round % 2 == 0 { wire.len() - 1 } else { wire.len() };
        client.send(&wire[..3_000]);
        std::thread::sleep(Duration::from_millis(3));
        client.send(&wire[3_000..cut]);
        if cut == wire.len() {
            client.expect("+OK\r\n");
        }
        drop(client);
        other.wait_for_info("connected_clients", "1");
        let is_stored = cut == wire.len();
        other.check("GETDEL k", &if is_stored { bulk(&own) } else { "$-1\r\n".to_owned() });
    }
}
