//! `appendfsync always`: replies to writes that wait for the disk.
use crate::append_only::{Folder, len};
use crate::client::{Client, bulk, engines, request, start, start_at_noon};
use server::{AppendSync, Config, DiskAct, DiskWatch, OutputLimit, OutputLimits};
use std::io;
use std::sync::{Arc, Condvar, Mutex};

#[test]
fn replies_to_writes_come_when_the_disk_has_them_in_their_order() {
    for io_engine in engines() {
        let folder = Folder::new("always");
        let server = start(Config { io_engine, worker_threads: 2, ..folder.config(AppendSync::Always) });
        let mut clients: Vec<Client> = (0..20).map(|_| Client::connect(&server)).collect();
        for round in 1..=20 {
            for client in &mut clients {
                client.send(b"INCR n\r\nPING\r\nMULTI\r\nRPUSH l x\r\nGET nothing\r\nEXEC\r\n");
            }
            for client in &mut clients {
                let first = client.read(1);
                assert_eq!(first, b":");
                while client.read(1) != b"\n" {}
                client.expect("+PONG\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:");
                while client.read(1) != b"\n" {}
                client.expect("$-1\r\n");
            }
            assert_eq!(len(&server), 20 * round);
        }
        let mut client = Client::connect(&server);
        // One that waits is answered when the disk has the push that served it.
        let mut waiter = Client::connect(&server);
        waiter.send(b"SET w 1\r\nBLPOP queue 0\r\n");
        waiter.expect("+OK\r\n");
        client.wait_for_info("blocked_clients", "1");
        client.check("RPUSH queue job", ":1\r\n");
        waiter.expect("*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n");
        client.check("WAITAOF 1 0 0", "*2\r\n:1\r\n:0\r\n");
        client.send(b"SET last 1\r\nQUIT\r\n");
        client.expect("+OK\r\n+OK\r\n");
        client.expect_end();
        server.stop();
        let server = folder.start().unwrap();
        Client::connect(&server).check("GET last", "$1\r\n1\r\n");
        assert_eq!(len(&server), 400);
    }
}

/// A disk that takes so many more writes, and then has the next one wait.
struct Barred {
    state: Mutex<Bar>,
    changed: Condvar,
}

struct Bar {
    left: u64,
    is_waited_for: bool,
}

impl Barred {
    /// One that takes all writes.
    fn open() -> Barred {
        Barred { state: Mutex::new(Bar { left: u64::MAX, is_waited_for: false }), changed: Condvar::new() }
    }

    fn allow(&self, writes: u64) {
        *self.state.lock().unwrap() = Bar { left: writes, is_waited_for: false };
        self.changed.notify_all();
    }

    /// Returns when a write waits that came after [`Barred::allow`].
    fn wait_for_write(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !state.is_waited_for).unwrap());
    }
}

impl DiskWatch for Barred {
    fn before(&self, act: DiskAct<'_>) -> io::Result<usize> {
        let DiskAct::Write(_, bytes) = act else { return Ok(0) };
        let mut state = self.state.lock().unwrap();
        if state.left == 0 {
            state.is_waited_for = true;
            self.changed.notify_all();
            state = self.changed.wait_while(state, |state| state.left == 0).unwrap();
        }
        state.left -= 1;
        Ok(bytes.len())
    }

    fn after(&self, _: DiskAct<'_>) {}
}

/// A function is called on another thread, and its session comes back with the number up to which its client
/// had written before the turn in which it was lent. What was written in that turn is waited for as well.
#[test]
fn a_call_that_writes_nothing_does_not_let_go_the_replies_to_writes_before_it() {
    for io_engine in engines() {
        let folder = Folder::new("lent");
        let server = start(Config { io_engine, ..folder.config(AppendSync::Always) });
        let disk = Arc::new(Barred::open());
        server.watch_disk(disk.clone());
        let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
        let library = "#!lua name=l\nredis.register_function{function_name='f', callback=function() return 1 end, \
                       flags={'no-writes'}}";
        client.send(&request(&["FUNCTION", "LOAD", library]));
        client.expect("$1\r\nl\r\n");
        disk.allow(0);
        client.send(b"SET a 1\r\n");
        disk.wait_for_write();
        client.send(b"SET b 2\r\nFCALL_RO f 0\r\nCLIENT SETNAME back\r\n");
        while !other.ask("CLIENT LIST").contains("name=back") {
            std::thread::yield_now();
        }
        // The disk gets the first write. The second waits, hence so do all replies behind it.
        disk.allow(1);
        disk.wait_for_write();
        (0..3).for_each(|_| other.check("PING", "+PONG\r\n"));
        let is_early = client.has_received();
        disk.allow(u64::MAX);
        client.expect("+OK\r\n+OK\r\n:1\r\n+OK\r\n");
        assert!(!is_early, "a reply has come before the disk had what it tells");
    }
}

/// Its replies are more than may wait unsent, so its next requests wait as well, or the rest of a long reply;
/// the kernel takes all of them at the first try. Time stands still: nobody looks by and by.
#[test]
fn a_client_that_was_paused_while_the_disk_was_waited_for_is_served_when_its_replies_have_left() {
    let limited = OutputLimit { hard_bytes: 800_000, ..OutputLimit::default() };
    let cases =
        [(OutputLimit::default(), 1 << 20, "GET v\r\n", 40), (limited, 400_000, "LRANGE l 0 -1\r\n", 1)];
    for (io_engine, (normal, owed_bytes, read, reads)) in
        engines().into_iter().flat_map(|engine| cases.map(|case| (engine, case)))
    {
        let folder = Folder::new("paused");
        let client_output_buffer = OutputLimits { normal, ..OutputLimits::default() };
        let config = Config { io_engine, client_output_buffer, ..folder.config(AppendSync::Always) };
        let (server, _time) = start_at_noon(config);
        let disk = Arc::new(Barred::open());
        server.watch_disk(disk.clone());
        let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
        let value = "x".repeat(100 << 10);
        client.send(&request(&["SET", "v", &value]));
        client.send(&request(&[&["RPUSH", "l"][..], &[&value[..100]; 20_000]].concat()));
        client.expect("+OK\r\n:20000\r\n");
        disk.allow(0);
        client.send(format!("SET a 1\r\n{}", read.repeat(reads)).as_bytes());
        disk.wait_for_write();
        let is_owed_much = |list: String| {
            let omem = list.split("omem=").filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
            omem.max().is_some_and(|most| most > owed_bytes)
        };
        while !is_owed_much(other.ask("CLIENT LIST")) {
            std::thread::yield_now();
        }
        client.send(b"PING\r\n");
        disk.allow(u64::MAX);
        client.expect("+OK\r\n");
        let reply = match reads {
            1 => format!("*20000\r\n{}", bulk(&value[..100]).repeat(20_000)),
            _ => bulk(&value).repeat(reads),
        };
        client.expect(&format!("{reply}+PONG\r\n"));
        // Nothing is left in the books either.
        assert!(!is_owed_much(other.ask("CLIENT LIST")));
    }
}

/// Replies of 100 KB are handed over before the end of their turn, and kept back behind the write before
/// them. What ends the turn lets the disk get that write, or has nobody wait for it any more.
#[test]
fn replies_that_are_kept_back_early_are_let_go_whatever_ends_their_turn() {
    for io_engine in engines() {
        let folder = Folder::new("early");
        let server = start(Config { io_engine, worker_threads: 2, ..folder.config(AppendSync::Always) });
        let mut client = Client::connect(&server);
        let value = "x".repeat(500);
        client.send(&request(&["SET", "v", &value]));
        client.expect("+OK\r\n");
        let script = "EVAL 'for n = 1, 300 do redis.call(\"GET\", n) end return redis.call(\"DBSIZE\")' 0";
        let cases = [
            ("DEBUG SLEEP 0.05", "+OK\r\n", 1),
            (script, ":2\r\n", 30),
            ("CONFIG SET appendfsync everysec", "+OK\r\n", 1),
            ("CONFIG SET appendfsync always", "+OK\r\n", 1),
            ("CONFIG SET appendonly no", "+OK\r\n", 1),
        ];
        for (line, reply, times) in cases {
            let lines = format!("{line}\r\n").repeat(times);
            client.send(format!("SET k 1\r\n{}{lines}PING\r\n", "GET v\r\n".repeat(200)).as_bytes());
            client.expect(&format!("+OK\r\n{}{}+PONG\r\n", bulk(&value).repeat(200), reply.repeat(times)));
        }
    }
}
