//! Peers that misbehave, and closes at every moment.
use super::{Rig, on_every_engine, pattern};
use crate::{CloseWhen, ConnId};
use base::random::Random;
use socket2::SockRef;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

on_every_engine! {
    a_reset_is_told_as_gone
    a_reset_while_paused_is_told_as_gone
    a_reset_while_sending_is_told_as_gone
    a_reset_after_the_end_is_told_as_gone
    what_came_before_a_reset_is_received_though_sending_fails_first
    closing_while_sending_is_at_once
    closing_flushed_may_become_closing_now
    a_reply_before_the_close_survives_unread_requests
    an_accepted_socket_that_nobody_adopts_is_closed
    closing_twice_tells_gone_once
    closed_descriptors_are_given_back
    out_of_descriptors_accepting_rests_and_goes_on
    random_operations_lose_and_confuse_nothing
}

fn reset(client: TcpStream) {
    SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
}

/// Receives until the connection has failed; whoever serves it closes it then.
fn until_gone_by_itself(rig: &mut Rig, id: ConnId) {
    rig.until_gone(id);
    assert_eq!(rig.gone, [id]);
    rig.settle();
    assert_eq!(rig.gone, [id]);
}

fn a_reset_is_told_as_gone(mut rig: Rig) {
    let (client, id) = rig.connect();
    rig.settle();
    reset(client);
    until_gone_by_itself(&mut rig, id);
}

fn a_reset_while_paused_is_told_as_gone(mut rig: Rig) {
    let (client, id) = rig.connect();
    rig.engine.pause(id);
    rig.settle();
    reset(client);
    until_gone_by_itself(&mut rig, id);
}

fn a_reset_while_sending_is_told_as_gone(mut rig: Rig) {
    let (client, id) = rig.connect();
    rig.send(id, &pattern(16 << 20));
    rig.settle();
    rig.engine.pause(id);
    rig.settle();
    reset(client);
    until_gone_by_itself(&mut rig, id);
    assert_eq!(rig.engine.unsent_bytes(id), 0);
}

fn a_reset_after_the_end_is_told_as_gone(mut rig: Rig) {
    let (client, id) = rig.connect();
    client.shutdown(Shutdown::Write).unwrap();
    rig.until("the end", |rig| rig.has_ended(id));
    rig.settle();
    reset(client);
    until_gone_by_itself(&mut rig, id);
}

/// The kernel takes no more of what is sent when a request and a reset arrive together: both are told by one
/// wait.
fn what_came_before_a_reset_is_received_though_sending_fails_first(mut rig: Rig) {
    for _ in 0..20 {
        let (mut client, id) = rig.connect();
        rig.send(id, &pattern(16 << 20));
        rig.settle();
        assert!(rig.engine.unsent_bytes(id) > 0);
        client.write_all(b"SET k v").unwrap();
        reset(client);
        rig.until_gone(id);
        assert_eq!(rig.received(id), b"SET k v");
        assert_eq!(rig.engine.unsent_bytes(id), 0);
    }
}

fn closing_while_sending_is_at_once(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    rig.send(id, &pattern(64 << 20));
    rig.settle();
    rig.close(id, CloseWhen::Now);
    rig.until_gone(id);
    let mut all = Vec::new();
    // What the kernel had taken may come, and an error may follow it; the rest may not.
    let _ = client.read_to_end(&mut all);
    assert!(all.len() < 64 << 20);
    assert!(pattern(64 << 20).starts_with(&all));
}

fn closing_flushed_may_become_closing_now(mut rig: Rig) {
    let (_client, id) = rig.connect();
    rig.send(id, &pattern(16 << 20));
    rig.close(id, CloseWhen::Flushed);
    rig.settle();
    assert!(rig.gone.is_empty());
    rig.close(id, CloseWhen::Now);
    until_gone_by_itself(&mut rig, id);
}

fn a_reply_before_the_close_survives_unread_requests(mut rig: Rig) {
    for _ in 0..20 {
        let (mut client, id) = rig.connect();
        client.write_all(&pattern(200_000)).unwrap();
        rig.poll(Duration::from_millis(10));
        rig.readable.clear();
        rig.send(id, b"-ERR Protocol error\r\n");
        rig.close(id, CloseWhen::Flushed);
        rig.until_gone(id);
        let mut reply = [0; 21];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"-ERR Protocol error\r\n");
    }
}

fn an_accepted_socket_that_nobody_adopts_is_closed(mut rig: Rig) {
    let mut client = TcpStream::connect(rig.address).unwrap();
    rig.until("the connection", |rig| !rig.accepted.is_empty());
    rig.accepted.clear();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}

fn closing_twice_tells_gone_once(mut rig: Rig) {
    let (_client, id) = rig.connect();
    rig.close(id, CloseWhen::Flushed);
    rig.close(id, CloseWhen::Now);
    rig.close(id, CloseWhen::Flushed);
    rig.settle();
    assert_eq!(rig.gone, [id]);
}

/// The sockets of this process whose remote or local port is that of the rig; other tests' do not disturb.
fn open_sockets_of(rig: &Rig) -> usize {
    let port = rig.address.port();
    let is_ours = |fd: &i32| {
        // SAFETY: only borrowed for the calls below; a number that is no socket, or is closed meanwhile,
        // answers with an error.
        let socket = unsafe { std::os::fd::BorrowedFd::borrow_raw(*fd) };
        let local = SockRef::from(&socket).local_addr().ok();
        local.and_then(|address| address.as_socket()).is_some_and(|address| address.port() == port)
    };
    let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
    numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(is_ours).count()
}

fn closed_descriptors_are_given_back(mut rig: Rig) {
    let before = open_sockets_of(&rig);
    for how in [CloseWhen::Now, CloseWhen::Flushed] {
        for _ in 0..50 {
            let (mut client, id) = rig.connect();
            client.write_all(b"x").unwrap();
            rig.until_received(id, b"x");
            rig.send(id, b"y");
            rig.close(id, how);
            rig.until_gone(id);
        }
    }
    drop(TcpStream::connect(rig.address).unwrap());
    rig.until("the connection", |rig| !rig.accepted.is_empty());
    rig.accepted.clear();
    assert_eq!(open_sockets_of(&rig), before);
}

/// The test runs in a process of its own: the limit is the process's, and other tests want descriptors
/// meanwhile.
fn out_of_descriptors_accepting_rests_and_goes_on(mut rig: Rig) {
    if !lowered::is_alone() {
        return lowered::run_alone();
    }
    let mut clients: Vec<_> = (0..3).map(|_| TcpStream::connect(rig.address).unwrap()).collect();
    let few = lowered::FewDescriptors::new();
    for _ in 0..10 {
        rig.poll(Duration::from_millis(1));
    }
    assert!(rig.accepted.is_empty());
    let is_told = |error: &std::io::Error| error.raw_os_error() == Some(libc::EMFILE);
    assert!(!rig.refused.is_empty() && rig.refused.iter().all(is_told), "{:?}", rig.refused);
    drop(few);
    rig.until("the connections", |rig| rig.accepted.len() == 3);
    for client in &mut clients {
        client.write_all(b"hello").unwrap();
    }
    while let Some(accepted) = rig.accepted.pop_front() {
        rig.engine.adopt(accepted).unwrap();
    }
    rig.until("every request", |rig| rig.inbox.values().filter(|inbox| inbox.bytes == b"hello").count() == 3);
}

struct Peer {
    client: TcpStream,
    id: ConnId,
    sent: Vec<u8>,
    expected: Vec<u8>,
    got: Vec<u8>,
    is_paused: bool,
}

impl Peer {
    /// Takes what has come without waiting.
    fn take(&mut self) {
        self.client.set_nonblocking(true).unwrap();
        let mut piece = vec![0; 1 << 16];
        while let Ok(n @ 1..) = self.client.read(&mut piece) {
            self.got.extend_from_slice(&piece[..n]);
        }
        self.client.set_nonblocking(false).unwrap();
    }

    fn write(&mut self, len: usize) {
        let data: Vec<u8> = (0..len).map(|i| (self.sent.len() + i) as u8).collect();
        self.client.set_nonblocking(true).unwrap();
        match self.client.write(&data) {
            Ok(n) => self.sent.extend_from_slice(&data[..n]),
            Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
        }
        self.client.set_nonblocking(false).unwrap();
    }
}

fn random_operations_lose_and_confuse_nothing(mut rig: Rig) {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let mut peers: Vec<Peer> = Vec::new();
        let mut leaving = BTreeSet::new();
        rig.inbox.clear();
        rig.gone.clear();
        for step in 0..2500 {
            rig.receive_limit = 1 + random.below(20_000) as usize;
            one_random_step(&mut rig, &mut random, &mut peers, &mut leaving);
            if step % 100 == 0 {
                let is_right =
                    |p: &Peer| p.sent.starts_with(rig.received(p.id)) && p.expected.starts_with(&p.got);
                assert!(peers.iter().all(is_right), "seed {seed} step {step}");
            }
        }
        finish_random(&mut rig, peers, leaving, seed);
    }
}

fn mostly_small(random: &mut Random, max: u64) -> usize {
    let max = if random.below(10) == 0 { max } else { 200 };
    random.below(max) as usize
}

fn one_random_step(
    rig: &mut Rig,
    random: &mut Random,
    peers: &mut Vec<Peer>,
    leaving: &mut BTreeSet<ConnId>,
) {
    if peers.is_empty() || (peers.len() < 40 && random.below(20) == 0) {
        let (client, id) = rig.connect();
        peers.push(Peer { client, id, sent: vec![], expected: vec![], got: vec![], is_paused: false });
    }
    let at = random.below(peers.len() as u64) as usize;
    let peer = &mut peers[at];
    match random.below(100) {
        0..30 => peer.write(mostly_small(random, 300_000)),
        30..50 => {
            let len = mostly_small(random, 400_000);
            let data: Vec<u8> = (0..len).map(|i| (peer.expected.len() + 7 * i) as u8).collect();
            peer.expected.extend_from_slice(&data);
            rig.send(peer.id, &data);
        }
        50..65 => peer.take(),
        65..70 => {
            peer.is_paused = !peer.is_paused;
            if peer.is_paused { rig.engine.pause(peer.id) } else { rig.engine.resume(peer.id) }
        }
        70..74 => {
            let peer = peers.swap_remove(at);
            leaving.insert(peer.id);
            leave(rig, random, peer);
        }
        _ => {
            rig.poll(Duration::ZERO);
            rig.receive_all();
        }
    }
}

/// One of the ways in which a connection ends.
fn leave(rig: &mut Rig, random: &mut Random, peer: Peer) {
    match random.below(4) {
        0 => rig.close(peer.id, CloseWhen::Now),
        1 => {
            rig.close(peer.id, CloseWhen::Flushed);
            reset(peer.client);
        }
        2 => {
            peer.client.shutdown(Shutdown::Both).unwrap();
            rig.close(peer.id, CloseWhen::Now);
        }
        _ => {
            reset(peer.client);
            rig.poll(Duration::ZERO);
            rig.close(peer.id, CloseWhen::Now);
        }
    }
}

fn finish_random(rig: &mut Rig, mut peers: Vec<Peer>, leaving: BTreeSet<ConnId>, seed: u64) {
    rig.receive_limit = 16 << 10;
    for peer in &mut peers {
        rig.engine.resume(peer.id);
    }
    let has_all =
        |rig: &Rig, p: &Peer| rig.received(p.id).len() == p.sent.len() && p.got.len() == p.expected.len();
    rig.until("every byte", |rig| {
        peers.iter_mut().for_each(Peer::take);
        peers.iter().all(|peer| has_all(rig, peer))
    });
    let is_whole = |p: &Peer| rig.received(p.id) == p.sent && p.got == p.expected;
    assert!(peers.iter().all(is_whole), "seed {seed}");
    rig.until("every Gone", |rig| leaving.iter().all(|id| rig.gone.contains(id)));
    assert_eq!(rig.gone.len(), leaving.len(), "seed {seed}");
    for peer in &peers {
        rig.close(peer.id, CloseWhen::Flushed);
    }
    rig.until("the last Gone", |rig| rig.gone.len() == leaving.len() + peers.len());
}

/// Lowering the limit of descriptors of the whole process for a moment.
mod lowered {
    const ALONE: &str = "SARDINE_NET_TEST_ALONE";

    pub(super) fn is_alone() -> bool {
        std::env::var_os(ALONE).is_some()
    }

    /// Runs the calling test once more, alone in a process.
    pub(super) fn run_alone() {
        let this = std::thread::current();
        let name = this.name().expect("a test's thread has its name");
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", name]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    pub(super) struct FewDescriptors(libc::rlimit);

    impl FewDescriptors {
        /// No new descriptor from here on: the limit is below those in use.
        pub(super) fn new() -> FewDescriptors {
            let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: `now` is writable for the call.
            assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut now) }, 0);
            set(libc::rlimit { rlim_cur: 3, ..now });
            FewDescriptors(now)
        }
    }

    impl Drop for FewDescriptors {
        fn drop(&mut self) {
            set(self.0);
        }
    }

    fn set(limit: libc::rlimit) {
        // SAFETY: `limit` is readable for the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    }
}
