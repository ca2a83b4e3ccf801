//! Long strings that stay in the buffer that their request has arrived in: whatever the command is called and
//! however the request comes, keys hold what was sent.
use crate::append_only::{Folder, command};
use crate::client::{Client, bulk, config, engines, request, start};
use base::random::Random;
use server::{AppendSync, Config};
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

/// Requests that edit the text under k; what they make of it, and their reply.
type Edit = (&'static str, fn(&mut String) -> String);
const EDITS: [Edit; 5] = [
    ("APPEND k !", |text| {
        text.push('!');
        format!(":{}\r\n", text.len())
    }),
    ("SETRANGE k 3 ABC", |text| {
        text.replace_range(3..6, "ABC");
        format!(":{}\r\n", text.len())
    }),
    ("SETBIT k 15 0", |text| {
        let byte = text.as_bytes()[1];
        text.replace_range(1..2, &char::from(byte & !1).to_string());
        format!(":{}\r\n", byte & 1)
    }),
    ("BITFIELD k SET u8 #7 88", |text| {
        let byte = text.as_bytes()[7];
        text.replace_range(7..8, "X");
        format!("*1\r\n:{byte}\r\n")
    }),
    ("SETRANGE k 9000 end", |text| {
        text.extend(std::iter::repeat_n('\0', 9_000 - text.len()));
        text.push_str("end");
        format!(":{}\r\n", text.len())
    }),
];

/// COPY shares the text, which is copied by whoever edits it first: on another thread where it is long,
/// unless the request runs with others.
#[test]
fn a_long_text_that_has_other_owners_is_copied_elsewhere_before_it_is_edited() {
    let folder = Folder::new("shared-texts");
    for config in [config(), folder.config(AppendSync::EverySecond)] {
        let server = start(Config { worker_threads: 1, ..config });
        let [mut client, mut other] = [(); 2].map(|()| Client::connect(&server));
        let lent = |client: &mut Client| client.info("lent_requests").parse::<u64>().expect("a number");
        let mut random = Random::new(5);
        for way in ["plain", "EXEC", "script"] {
            let mut own = text(&mut random);
            client.send(&request(&["SET", "k", &own, "EX", "1000"]));
            client.expect("+OK\r\n");
            for (line, edit) in EDITS {
                let before = own.clone();
                client.check("COPY k copy REPLACE", ":1\r\n");
                let (reply, lent_before) = (edit(&mut own), lent(&mut client));
                match way {
                    "plain" => client.check(line, &reply),
                    "EXEC" => {
                        client.check("MULTI", "+OK\r\n");
                        client.check(line, "+QUEUED\r\n");
                        client.check("EXEC", &format!("*1\r\n{reply}"));
                    }
                    _ => {
                        let words: Vec<&str> = line.split(' ').collect();
                        let call = ["EVAL", "return redis.call(unpack(ARGV))", "1", "k"];
                        client.send(&request(&[&call[..], &words[..]].concat()));
                        client.expect(&reply);
                    }
                }
                assert_eq!(lent(&mut client) - lent_before, u64::from(way == "plain"), "{way}: {line}");
                other.check("GET k", &bulk(&own));
                other.check("GET copy", &bulk(&before));
                // It is its own now.
                let lent_before = lent(&mut client);
                client.check("SETRANGE k 0 _", &format!(":{}\r\n", own.len()));
                own.replace_range(0..1, "_");
                assert_eq!(lent(&mut client), lent_before, "{way}: {line}");
                client.check("GET k", &bulk(&own));
                client.check("TTL copy", ":1000\r\n");
            }
        }
        client.check("COPY k wrong REPLACE", ":1\r\n");
        client.check("LPUSH l 1", ":1\r\n");
        client.check("APPEND l 1", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    }
    // What was recorded reads as what was done.
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    client.check("STRLEN k", ":9003\r\n");
    client.check("GETRANGE k 8999 -1", "$4\r\n\0end\r\n");
    client.check("GETRANGE k 7 7", "$1\r\nX\r\n");
}

#[test]
fn an_append_only_file_that_shares_a_long_text_and_edits_it_is_loaded() {
    let (mut random, mut file) = (Random::new(6), Vec::new());
    let mut own = text(&mut random);
    file.extend(request(&["SET", "k", &own]));
    let first = own.clone();
    for (number, (line, edit)) in EDITS.into_iter().enumerate() {
        file.extend(command(&format!("COPY k copy{number}")));
        file.extend(command(line));
        edit(&mut own);
    }
    let folder = Folder::holding("shared-texts-loaded", &file);
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    client.check("GET k", &bulk(&own));
    client.check("GET copy0", &bulk(&first));
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

/// Waits until this command has run since the statistics began.
fn wait_for_call(client: &mut Client, command: &str) {
    let line = format!("cmdstat_{}:", command.to_lowercase());
    while !client.ask("INFO commandstats").contains(&line) {}
}

/// Commands that answer the string under k, and which part of it.
const READING: [(&str, usize, usize); 7] = [
    ("GET k", 0, 0),
    ("GETRANGE k 0 -1", 0, 0),
    ("GETRANGE k 7 -10", 7, 9),
    ("SUBSTR k 1 -2", 1, 1),
    ("GETEX k PERSIST", 0, 0),
    ("SET k x GET", 0, 0),
    ("GETDEL k", 0, 0),
];

#[test]
fn a_long_reply_is_of_the_moment_of_its_command_however_late_it_is_read() {
    const LONG: usize = 12 << 20;
    for io_engine in engines() {
        let server = start(Config { io_engine, worker_threads: 2, ..config() });
        let [mut reader, mut writer] = [(); 2].map(|()| Client::connect(&server));
        let mut random = Random::new(5);
        for (line, from, cut) in READING {
            let own = text(&mut random).repeat(LONG / LEN);
            writer.send(&request(&["SET", "k", &own, "EX", "1000"]));
            writer.expect("+OK\r\n");
            writer.check("CONFIG RESETSTAT", "+OK\r\n");
            // More than socket buffers hold: most of it is read when the key is another.
            let words: Vec<&str> = line.split(' ').collect();
            reader.send(&[request(&words), request(&["PING"])].concat());
            wait_for_call(&mut writer, words[0]);
            std::thread::sleep(Duration::from_millis(20));
            writer.ask("APPEND k more");
            writer.ask("SETRANGE k 100 other");
            writer.ask("DEL k");
            reader.expect(&bulk(&own[from..own.len() - cut]));
            reader.expect("+PONG\r\n");
        }
    }
}

#[test]
fn many_long_replies_to_one_client_come_in_order_and_count_in_full() {
    for io_engine in engines() {
        let server = start(Config { io_engine, worker_threads: 1, ..config() });
        let [mut reader, mut other] = [(); 2].map(|()| Client::connect(&server));
        let mut random = Random::new(6);
        let texts = [1, 300, 3, 40].map(|times| text(&mut random).repeat(times));
        for (number, text) in texts.iter().enumerate() {
            other.send(&request(&["SET", &format!("k{number}"), text]));
            other.expect("+OK\r\n");
        }
        let before: usize = other.info("total_net_output_bytes").parse().unwrap();
        let (mut wire, mut expected) = (Vec::new(), String::new());
        for _ in 0..60 {
            let number = random.below(4) as usize;
            wire.extend(request(&["GET", &format!("k{number}")]));
            expected += &bulk(&texts[number]);
            if random.below(3) == 0 {
                wire.extend(request(&["ECHO", "between"]));
                expected += &bulk("between");
            }
        }
        reader.send(&wire);
        reader.expect(&expected);
        let after: usize = other.info("total_net_output_bytes").parse().unwrap();
        assert!((expected.len()..expected.len() + 20_000).contains(&(after - before)), "{}", after - before);
    }
}

#[test]
fn a_long_reply_that_nobody_reads_goes_with_its_client() {
    let server = start(Config { worker_threads: 1, ..config() });
    let mut other = Client::connect(&server);
    let own = "0123456789abcdef".repeat(1 << 20);
    other.send(&request(&["SET", "k", &own]));
    other.expect("+OK\r\n");
    let held = |client: &mut Client| client.info("mem_clients_normal").parse::<usize>().unwrap();
    for _ in 0..5 {
        let mut reader = Client::connect(&server);
        reader.send(&request(&["GET", "k"]));
        wait_for_call(&mut other, "get");
        other.check("CONFIG RESETSTAT", "+OK\r\n");
        other.check("SETRANGE k 0 x", &format!(":{}\r\n", own.len()));
        // What nothing but the reply holds counts for its client, as soon as somebody looks.
        while held(&mut other) < own.len() / 2 {}
        drop(reader);
        other.wait_for_info("connected_clients", "1");
        assert!(held(&mut other) < 1 << 20);
        other.check("GETRANGE k 0 3", "$4\r\nx123\r\n");
    }
}
