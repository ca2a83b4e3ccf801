//! Users while clients are connected, on several workers; the ACL file and the configuration.
use crate::client::{Client, config, start};
use crate::pause::check_that_writes_rest;
use server::{Clock, Config, Log, Running, Source};
use std::path::PathBuf;

const NOPERM: &str = "-NOPERM User bob has no permissions to run the 'get' command\r\n";
const WRONGPASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

fn on_four_workers() -> Running {
    start(Config { worker_threads: 4, ..config() })
}

fn bob(server: &Running) -> Client {
    let mut client = Client::connect(server);
    client.check("AUTH bob x", "+OK\r\n");
    client
}

#[test]
fn whoever_is_connected_obeys_a_changed_rule_from_the_next_request_on() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    admin.check("ACL SETUSER bob on nopass ~* +@all", "+OK\r\n");
    let mut clients: Vec<Client> = (0..12).map(|_| bob(&server)).collect();
    for _ in 0..30 {
        admin.check("ACL SETUSER bob -get", "+OK\r\n");
        clients.iter_mut().for_each(|client| client.check("GET k", NOPERM));
        admin.check("ACL SETUSER bob +get", "+OK\r\n");
        clients.iter_mut().for_each(|client| client.check("GET k", "$-1\r\n"));
    }
    // A client that takes its own rights away obeys in the same batch.
    let own = b"ACL SETUSER bob -get\r\nGET k\r\nACL SETUSER bob +get\r\nGET k\r\n";
    clients[0].send(own);
    clients[0].expect(&format!("+OK\r\n{NOPERM}+OK\r\n$-1\r\n"));
}

#[test]
fn connections_of_a_user_who_is_removed_are_closed_and_run_nothing_more() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    admin.check("ACL SETUSER bob on nopass ~* +@all", "+OK\r\n");
    let mut clients: Vec<Client> = (0..12).map(|_| bob(&server)).collect();
    let mut other = Client::connect(&server);
    admin.check("ACL DELUSER bob", ":1\r\n");
    for client in &mut clients {
        client.try_send(b"SET k v\r\n");
        client.expect_end();
    }
    other.check("GET k", "$-1\r\n");
    other.check("AUTH bob x", WRONGPASS);
    // One who removes itself gets the reply.
    admin.check("ACL SETUSER bob on nopass ~* +@all", "+OK\r\n");
    let mut client = bob(&server);
    client.send(b"ACL DELUSER bob\r\nSET k v\r\n");
    assert_eq!(client.rest(), ":1\r\n");
    other.check("GET k", "$-1\r\n");
}

#[test]
fn who_logs_in_while_the_user_is_removed_is_not_the_next_user_of_that_name() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    admin.check("SET n 0", "+OK\r\n");
    // Whoever is not let in may do nothing.
    admin.check("ACL SETUSER default >secret", "+OK\r\n");
    for round in 0..60 {
        admin.check("ACL SETUSER bob reset on nopass ~* +@all", "+OK\r\n");
        let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(&server)).collect();
        for client in &mut clients {
            client.send(b"AUTH bob x\r\nINCR n\r\n");
        }
        admin.send(b"ACL DELUSER bob\r\nACL SETUSER bob on nopass ~* +get +ping\r\n");
        admin.expect(":1\r\n+OK\r\n");
        let before = admin.ask("GET n");
        // Those who were in are closed; those who came later are the new user, who may not.
        for client in &mut clients {
            client.try_send(b"INCR n\r\nPING\r\nQUIT\r\n");
            let _ = client.rest();
        }
        assert_eq!(admin.ask("GET n"), before, "round {round}");
        admin.check("ACL DELUSER bob", ":1\r\n");
    }
}

#[test]
fn a_new_client_has_to_log_in_from_the_moment_the_default_user_has_a_password() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    for _ in 0..20 {
        admin.check("ACL SETUSER default >secret", "+OK\r\n");
        for _ in 0..4 {
            Client::connect(&server).check("GET k", "-NOAUTH Authentication required.\r\n");
        }
        admin.check("ACL SETUSER default nopass", "+OK\r\n");
        for _ in 0..4 {
            Client::connect(&server).check("GET k", "$-1\r\n");
        }
    }
}

#[test]
fn who_listens_to_what_its_user_may_not_hear_any_more_is_closed() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    admin.check("ACL SETUSER bob on nopass +@all allchannels", "+OK\r\n");
    let mut clients: Vec<Client> = (0..12).map(|_| bob(&server)).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        match index % 3 {
            0 => client.check("SUBSCRIBE a", "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"),
            1 => client.check("SUBSCRIBE b", "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:1\r\n"),
            _ => client.check("PSUBSCRIBE b*", "*3\r\n$10\r\npsubscribe\r\n$2\r\nb*\r\n:1\r\n"),
        }
    }
    admin.check("ACL SETUSER bob resetchannels &b &x*", "+OK\r\n");
    for (index, client) in clients.iter_mut().enumerate() {
        match index % 3 {
            1 => client.check("SUBSCRIBE a", "-NOPERM No permissions to access a channel\r\n"),
            _ => client.expect_end(),
        }
    }
    admin.check("PUBLISH b hi", ":4\r\n");
    clients[1].expect("*3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$2\r\nhi\r\n");
}

#[test]
fn nothing_that_is_published_behind_a_change_of_users_reaches_who_has_lost_the_channel() {
    const PUBLISH: &str = "PUBLISH a secret";
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    for change in ["ACL SETUSER bob resetchannels", "ACL DELUSER bob", "CLIENT KILL USER bob"] {
        // In a transaction both have been said when the worker of the client hears of either.
        for requests in [&["MULTI", change, PUBLISH, "EXEC"], &[change, PUBLISH, PUBLISH, PUBLISH]] {
            for _ in 0..8 {
                admin.check("ACL SETUSER bob on nopass +@all allchannels", "+OK\r\n");
                let mut client = bob(&server);
                client.check("PSUBSCRIBE *", "*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:1\r\n");
                admin.send((requests.join("\r\n") + "\r\n").as_bytes());
                (0..requests.len()).for_each(|_| drop(admin.raw_reply()));
                assert_eq!(client.rest(), "", "{requests:?}");
            }
        }
    }
}

#[test]
fn who_listens_to_more_than_its_user_may_is_closed_by_any_change_of_that_user() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    for (topic, name) in [("subscribe", "b"), ("psubscribe", "c*"), ("ssubscribe", "s")] {
        for (rules, stays) in [
            ("-get", false),
            ("&c", false),
            ("(&d +get)", false),
            (">secret", false),
            ("resetchannels &a", false),
            ("&b &c* &s", true),
            ("allchannels", true),
        ] {
            admin.check("ACL SETUSER bob reset on nopass +@all resetchannels &a", "+OK\r\n");
            // It begins to listen as somebody else.
            let mut client = Client::connect(&server);
            client.send(b"HELLO 3\r\n");
            let _ = client.raw_reply();
            let told = format!(">3\r\n${}\r\n{topic}\r\n${}\r\n{name}\r\n:1\r\n", topic.len(), name.len());
            client.check(&format!("{topic} {name}"), &told);
            client.check("AUTH bob x", "+OK\r\n");
            client.check("PING", "+PONG\r\n");
            admin.check(&format!("ACL SETUSER bob {rules}"), "+OK\r\n");
            match stays {
                true => client.check("PING", "+PONG\r\n"),
                false => client.expect_end(),
            }
        }
    }
    // Of a user who could hear nothing before, Redis closes nobody.
    admin.check("ACL SETUSER bob reset on nopass +@all resetchannels", "+OK\r\n");
    let mut client = Client::connect(&server);
    client.send(b"HELLO 3\r\n");
    let _ = client.raw_reply();
    client.check("SUBSCRIBE b", ">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:1\r\n");
    client.check("AUTH bob x", "+OK\r\n");
    for (rules, stays) in [("-get", true), (">secret", true), ("&c", true), ("&d", false)] {
        admin.check(&format!("ACL SETUSER bob {rules}"), "+OK\r\n");
        match stays {
            true => client.check("PING", "+PONG\r\n"),
            false => client.expect_end(),
        }
    }
}

/// The rest of a transaction runs by the rules of the default user.
#[test]
fn a_transaction_in_which_a_user_removes_itself_runs_to_its_end() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    for (default, c) in [("+@all", "$1\r\n1\r\n"), ("-append", "$-1\r\n")] {
        admin.check("ACL SETUSER bob on nopass ~* +@all", "+OK\r\n");
        admin.check(&format!("ACL SETUSER default {default}"), "+OK\r\n");
        admin.check("DEL a b c", if default == "+@all" { ":0\r\n" } else { ":3\r\n" });
        let mut client = bob(&server);
        client.send(b"MULTI\r\nSET a 1\r\nACL DELUSER bob\r\nSET b 1\r\nAPPEND c 1\r\nEXEC\r\nSET a 2\r\n");
        let queued = "+QUEUED\r\n".repeat(4);
        let answered = client.rest();
        assert!(answered.starts_with(&format!("+OK\r\n{queued}*4\r\n+OK\r\n:1\r\n")), "{answered}");
        admin.check("GET a", "$1\r\n1\r\n");
        admin.check("GET b", "$1\r\n1\r\n");
        admin.check("GET c", c);
    }
}

#[test]
fn many_users_are_made_and_removed_one_by_one() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    for n in 0..3000 {
        admin.check(&format!("ACL SETUSER user{n} on >secret{n} ~key{n}"), "+OK\r\n");
    }
    for n in (0..3000).filter(|n| n % 3 > 0) {
        admin.check(&format!("ACL DELUSER user{n}"), ":1\r\n");
    }
    admin.send(b"ACL USERS\r\n");
    let mut expected: Vec<String> = (0..3000).step_by(3).map(|n| format!("user{n}")).collect();
    expected.insert(0, "default".into());
    expected.sort();
    let names: String = expected.iter().map(|name| format!("${}\r\n{name}\r\n", name.len())).collect();
    admin.expect(&format!("*1001\r\n{names}"));
}

#[test]
fn a_request_that_waits_is_refused_if_its_user_may_not_send_it_any_more() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    let free = "ACL SETUSER bob reset on nopass ~* +@all";
    let of_key = "-NOPERM No permissions to access a key\r\n";
    let command = |name: &str| format!("-NOPERM User bob has no permissions to run the '{name}' command\r\n");
    let cases = [
        ("BLPOP l 0", "-blpop", command("blpop")),
        ("BLPOP l 0", "resetkeys", of_key.into()),
        ("BLPOP x l 0", "resetkeys ~l", of_key.into()),
        ("BLMOVE l d LEFT LEFT 0", "resetkeys ~l %R~d", of_key.into()),
        ("BLPOP l 0", "reset", command("blpop")),
        // Who may not log in any more is served on.
        ("BLPOP l 0", "off", "*2\r\n$1\r\nl\r\n$1\r\n1\r\n".into()),
        ("BLPOP l 0", "-get resetkeys ~l", "*2\r\n$1\r\nl\r\n$1\r\n1\r\n".into()),
    ];
    for (request, rules, reply) in cases {
        admin.check(free, "+OK\r\n");
        let mut clients: Vec<Client> = (0..4).map(|_| bob(&server)).collect();
        clients.iter_mut().for_each(|client| client.send(format!("{request}\r\n").as_bytes()));
        admin.wait_for_info("blocked_clients", "4");
        admin.check(&format!("ACL SETUSER bob {rules}"), "+OK\r\n");
        admin.check("RPUSH l 1 1 1 1", ":4\r\n");
        for client in &mut clients {
            client.expect(&reply);
        }
        let left = if reply.starts_with('-') { ":4\r\n" } else { ":0\r\n" };
        admin.check("LLEN l", left);
        admin.check("EXISTS d", ":0\r\n");
        admin.check("DEL l", if left == ":4\r\n" { ":1\r\n" } else { ":0\r\n" });
        admin.wait_for_info("blocked_clients", "0");
    }
    // A refusal of one does not keep the element from the next.
    admin.check(free, "+OK\r\n");
    let (mut refused, mut served) = (bob(&server), Client::connect(&server));
    refused.send(b"BLPOP l 0\r\n");
    admin.wait_for_info("blocked_clients", "1");
    served.send(b"BLPOP l 0\r\n");
    admin.wait_for_info("blocked_clients", "2");
    admin.check("ACL LOG RESET", "+OK\r\n");
    admin.check("ACL SETUSER bob -@all", "+OK\r\n");
    admin.check("RPUSH l 1", ":1\r\n");
    refused.expect(&command("blpop"));
    served.expect("*2\r\n$1\r\nl\r\n$1\r\n1\r\n");
    let log = admin.raw("ACL LOG");
    assert!(log.contains("\r\nblpop\r\n") && log.contains("\r\ntoplevel\r\n"), "{log}");
}

#[test]
fn what_a_transaction_has_queued_is_looked_at_again_when_it_runs() {
    let server = on_four_workers();
    let mut admin = Client::connect(&server);
    admin.check("ACL SETUSER bob on nopass ~* +@all", "+OK\r\n");
    let denied = |why: &str| {
        format!(
            "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
             command is no longer allowed for the following reason: {why}\r\n"
        )
    };
    let command = denied("no permission to execute the command or subcommand");
    let key = denied("no permission to touch the specified keys");
    // By another client, with the keys' shards locked or alone.
    for (other, reply) in [("SET k v", "+OK\r\n"), ("DBSIZE", ":1\r\n")] {
        admin.check("ACL SETUSER bob ~* +@all", "+OK\r\n");
        let mut client = bob(&server);
        client.check("MULTI", "+OK\r\n");
        client.check(other, "+QUEUED\r\n");
        client.check("GET k", "+QUEUED\r\n");
        client.check("LPUSH x a", "+QUEUED\r\n");
        admin.check("ACL SETUSER bob -get resetkeys ~k", "+OK\r\n");
        client.check("EXEC", &format!("*3\r\n{reply}{command}{key}"));
    }
    admin.check("EXISTS x", ":0\r\n");
    // By what runs before it in the same transaction.
    admin.check("ACL SETUSER bob ~* +@all", "+OK\r\n");
    let mut client = bob(&server);
    client.send(b"MULTI\r\nACL SETUSER bob -get\r\nGET k\r\nACL SETUSER bob +get\r\nGET k\r\nEXEC\r\n");
    let queued = "+QUEUED\r\n".repeat(4);
    client.expect(&format!("+OK\r\n{queued}*4\r\n+OK\r\n{command}+OK\r\n$1\r\nv\r\n"));
    // A user who is removed meanwhile runs none of it.
    client.send(b"MULTI\r\nSET k w\r\n");
    client.expect("+OK\r\n+QUEUED\r\n");
    admin.check("ACL DELUSER bob", ":1\r\n");
    client.try_send(b"EXEC\r\n");
    client.expect_end();
    admin.check("GET k", "$1\r\nv\r\n");
}

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("sardine-acl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.file(name), text).unwrap();
        self.file(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn with_acl_file(file: &std::path::Path) -> Config {
    Config { acl_file: Some(file.to_owned()), ..config() }
}

#[test]
fn the_acl_file_is_read_at_the_start_saved_and_loaded_again() {
    let folder = Folder::new("file");
    let file = folder.write("users.acl", "user bob on nopass ~* +@all -get\nuser al on >p\n");
    let server = start(with_acl_file(&file));
    let mut admin = Client::connect(&server);
    admin.check("ACL USERS", "*3\r\n$2\r\nal\r\n$3\r\nbob\r\n$7\r\ndefault\r\n");
    let (mut one, mut other) = (bob(&server), Client::connect(&server));
    other.check("AUTH al p", "+OK\r\n");
    one.check("GET k", NOPERM);
    // Whose user stays is served on, by the rules of the file; whose user has gone is closed.
    folder.write("users.acl", "user bob on nopass ~* +get\n");
    admin.check("ACL LOAD", "+OK\r\n");
    one.check("GET k", "$-1\r\n");
    other.expect_end();
    // Nothing of a file that is wrong.
    folder.write("users.acl", "user new on\nuser bob +foo\n");
    let name = file.display();
    admin.check(
        "ACL LOAD",
        &format!(
            "-ERR {name}:2: Error in applying operation '+foo': Unknown command or category name in ACL. WARNING: ACL \
             errors detected, no change to the previously active ACL rules was performed\r\n"
        ),
    );
    one.check("GET k", "$-1\r\n");
    admin.check("ACL SETUSER new on >p (%R~a +get)", "+OK\r\n");
    admin.check("ACL SAVE", "+OK\r\n");
    let digest = "148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940";
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        format!(
            "user bob on nopass sanitize-payload ~* resetchannels -@all +get\n\
             user default on nopass sanitize-payload ~* &* +@all\n\
             user new on sanitize-payload #{digest} resetchannels -@all (%R~a resetchannels -@all +get)\n"
        )
    );
    std::fs::remove_file(&file).unwrap();
    let missing = format!("-ERR Error loading ACLs, opening file '{name}': No such file or directory\r\n");
    admin.check("ACL LOAD", &missing);
    std::fs::create_dir(&file).unwrap();
    admin.check(
        "ACL SAVE",
        "-ERR There was an error trying to save the ACLs. Please check the server logs for more information\r\n",
    );
}

#[test]
fn users_that_cannot_be_read_keep_the_server_from_starting() {
    let folder = Folder::new("start");
    let why = |config: Config| server::start(config, Clock::real(), Log::silent()).err().unwrap().0;
    let missing = folder.file("none.acl");
    let text = why(with_acl_file(&missing));
    assert!(text.contains("No such file or directory"), "{text}");
    let wrong = folder.write("wrong.acl", "user bob foo\n");
    let text = why(with_acl_file(&wrong));
    assert!(
        text.starts_with("Aborting startup because of ACL errors: ") && text.contains(":1: Syntax error.")
    );
    let source = Source { reads_stdin: true, ..Source::default() };
    let both = source.load(&mut format!("user bob on\naclfile {}\n", missing.display()).as_bytes()).unwrap();
    let text = why(Config { picks_port: true, port: 0, bind: vec!["127.0.0.1".into()], ..both });
    assert!(text.contains("one of the two"), "{text}");
    for (line, fault) in [
        ("user bob on foo", "Error in user declaration 'bob': Syntax error"),
        ("user bob on +foo", "Error in user declaration 'bob': Unknown command or category name in ACL"),
        ("user bob on (+get", "Error in user declaration 'bob': Wrong format"),
    ] {
        let error = source.load(&mut line.as_bytes()).unwrap_err().0;
        assert!(error.ends_with(&format!("at line 1\n>>> '{line}'\n{fault}")), "{error}");
    }
}

#[test]
fn lines_of_users_in_the_configuration_are_read_and_rewritten() {
    let folder = Folder::new("rewrite");
    let file = folder.write("a.conf", "user bob on nopass ~* +get\n# mine\nuser al off >p\n");
    let load = || Source { file: Some(file.clone()), ..Source::default() }.load(&mut &b""[..]).unwrap();
    let started = |config: Config| {
        start(Config {
            picks_port: true,
            port: 0,
            bind: vec!["127.0.0.1".into()],
            worker_threads: 1,
            ..config
        })
    };
    let server = started(load());
    let mut admin = Client::connect(&server);
    bob(&server).check("GET k", "$-1\r\n");
    admin.check("AUTH al p", WRONGPASS);
    admin.check("ACL DELUSER al", ":1\r\n");
    admin.check("ACL SETUSER eve on >p ~\"a' (+get ~b\")", "+OK\r\n");
    admin.check("CONFIG SET requirepass secret", "+OK\r\n");
    admin.check("CONFIG REWRITE", "+OK\r\n");
    let listed = admin.raw("ACL LIST");
    drop(server);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("user bob on nopass sanitize-payload ~* resetchannels -@all +get\n# mine\n"),
        "{text}"
    );
    let server = started(load());
    let mut admin = Client::connect(&server);
    admin.check("AUTH secret", "+OK\r\n");
    assert_eq!(admin.raw("ACL LIST"), listed);
}

/// Whoever changes users closes the clients of those who are gone, but not of users that were made after the
/// change, which it does not know. The idle clients let it take longer to look at all.
#[test]
fn who_logs_in_as_a_new_user_stays_connected_while_others_make_users() {
    let server = on_four_workers();
    let idle: Vec<Client> = (0..500).map(|_| Client::connect(&server)).collect();
    std::thread::scope(|scope| {
        for client in 0..8 {
            let server = &server;
            scope.spawn(move || {
                for round in 0..25 {
                    let mut it = Client::connect(server);
                    let user = format!("u{client}-{round}");
                    let make = format!("ACL SETUSER {user} on nopass +@all\r\nAUTH {user} x\r\nPING\r\n");
                    it.send(make.as_bytes());
                    it.expect("+OK\r\n+OK\r\n+PONG\r\n");
                    it.check("PING", "+PONG\r\n");
                }
            });
        }
    });
    drop(idle);
}

/// Also by those that were about to begin, and waited until they would be alone, while the rules changed.
#[test]
fn nothing_runs_by_rules_that_were_changed_before() {
    let server = start(Config { worker_threads: 3, ..config() });
    Client::connect(&server).check("ACL SETUSER u on nopass ~* &* +@all", "+OK\r\n");
    let exec: (&[u8], _) = (b"MULTI\r\nKEYS none\r\nINCR n\r\nEXEC\r\n", 4);
    let behind: (&[u8], _) = (b"KEYS none\r\nINCR n\r\n", 2);
    let changes = ["ACL SETUSER u -incr", "ACL SETUSER u +incr"];
    check_that_writes_rest(&server, "AUTH u x", &[exec, exec, behind, behind], changes);
}
