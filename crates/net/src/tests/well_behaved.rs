//! Peers that behave: echoes of any split, large transfers, many connections, half-closed sockets, pauses.
use super::{LIMIT, Rig, kernel_table, on_every_engine, pattern};
use crate::{CloseWhen, ConnId, Event, Listener, Received, Wait};
use base::random::Random;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

on_every_engine! {
    what_is_sent_either_way_arrives
    requests_come_whole_whatever_the_split
    thousands_of_connections_are_served
    a_large_request_is_received_in_pieces_of_the_limit
    a_large_reply_reaches_a_slow_reader
    a_reply_of_many_pieces_waits_for_nothing_else
    the_last_reply_before_a_close_waits_for_nothing_else
    large_transfers_both_ways_at_once
    drained_is_told_once_all_has_left
    what_is_sent_in_turn_leaves_though_nothing_else_happens
    a_request_is_told_of_while_many_wait_for_their_turn
    what_waits_for_its_turn_leaves_with_what_is_sent_behind_it
    what_waits_for_its_turn_is_offered_before_a_close
    a_half_closed_peer_gets_its_reply
    an_end_right_behind_the_bytes_is_told
    a_paused_connection_tells_nothing_until_resumed
    pausing_after_readable_keeps_what_waits
    an_end_while_paused_is_told_after_resume
    a_unix_socket_serves_like_tcp
    a_passed_connection_is_served_by_another_engine
    those_who_send_little_are_told_of_beside_those_who_send_much
    one_poll_tells_of_all_that_has_come
    listening_can_stop
}

fn what_is_sent_either_way_arrives(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    for _ in 0..100 {
        client.write_all(b"ping").unwrap();
        rig.inbox.clear();
        rig.until_received(id, b"ping");
        rig.send(id, b"pong");
        assert_eq!(rig.replied(&mut client, 4), b"pong");
    }
    assert_eq!(rig.engine.unsent_bytes(id), 0);
}

fn requests_come_whole_whatever_the_split(mut rig: Rig) {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let (mut client, id) = rig.connect();
        let sent = pattern(50_000);
        let mut rest = &sent[..];
        rig.receive_limit = 1 + random.below(9000) as usize;
        while !rest.is_empty() {
            let n = (1 + random.below(6000) as usize).min(rest.len());
            client.write_all(&rest[..n]).unwrap();
            rest = &rest[n..];
            if random.below(2) == 0 {
                rig.poll(Duration::ZERO);
                rig.receive_all();
            }
        }
        rig.until_received(id, &sent);
    }
}

fn thousands_of_connections_are_served(mut rig: Rig) {
    let mut clients: Vec<_> = (0..400).map(|_| rig.connect()).collect();
    for round in 0..5u8 {
        for (at, (client, _)) in clients.iter_mut().enumerate() {
            client.write_all(&[round, at as u8, (at >> 8) as u8]).unwrap();
        }
        rig.inbox.clear();
        rig.until("every request", |rig| rig.inbox.values().filter(|i| i.bytes.len() == 3).count() == 400);
        for (_, id) in &clients {
            let request = rig.received(*id).to_vec();
            rig.send(*id, &request);
        }
        for (at, (client, _)) in clients.iter_mut().enumerate() {
            assert_eq!(rig.replied(client, 3), [round, at as u8, (at >> 8) as u8]);
        }
    }
    // The others come and go, ten at a time, so that slots are used over and over.
    for _ in 0..150 {
        let mut few: Vec<_> = (0..10).map(|_| rig.connect()).collect();
        for (client, id) in &mut few {
            client.write_all(b"hello").unwrap();
            rig.inbox.clear();
            rig.until_received(*id, b"hello");
        }
        let ids: Vec<_> = few.iter().map(|(_, id)| *id).collect();
        drop(few);
        rig.until("every end", |rig| ids.iter().all(|id| rig.has_ended(*id)));
        ids.iter().for_each(|id| rig.close(*id, CloseWhen::Flushed));
        rig.gone.clear();
        rig.until("every Gone", |rig| ids.iter().all(|id| rig.gone.contains(id)));
    }
}

fn a_large_request_is_received_in_pieces_of_the_limit(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    let sent = pattern(64 << 20);
    let expected = sent.clone();
    let writer = thread::Builder::new().spawn(move || client.write_all(&sent).map(|()| client)).unwrap();
    rig.until("64 MB", |rig| rig.received(id).len() == 64 << 20);
    assert!(rig.received(id) == expected);
    writer.join().unwrap().unwrap();
}

/// Reads everything, with pauses.
fn read_slowly(mut client: TcpStream, len: usize) -> Vec<u8> {
    let mut all = vec![0; len];
    for (at, piece) in all.chunks_mut(1 << 20).enumerate() {
        if at % 8 == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        client.read_exact(piece).unwrap();
    }
    all
}

fn a_large_reply_reaches_a_slow_reader(mut rig: Rig) {
    let (client, id) = rig.connect();
    let sent = pattern(64 << 20);
    for piece in sent.chunks(3_000_001) {
        rig.send(id, piece);
    }
    let mut left = usize::MAX;
    rig.until("a full socket", |rig| {
        let before = std::mem::replace(&mut left, rig.engine.unsent_bytes(id));
        before == left
    });
    assert!(left > 0);
    let reader = thread::Builder::new().spawn(move || read_slowly(client, 64 << 20)).unwrap();
    rig.until("Drained", |rig| rig.engine.unsent_bytes(id) == 0);
    rig.settle();
    assert_eq!(rig.drained, [id]);
    assert!(reader.join().unwrap() == sent);
}

fn a_reply_of_many_pieces_waits_for_nothing_else(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    let sent = pattern(1 << 20);
    sent.chunks(10_000).for_each(|piece| rig.send(id, piece));
    let waker = rig.engine.waker();
    let read_all = move || {
        let mut all = vec![0; 1 << 20];
        let result = client.read_exact(&mut all);
        waker.wake();
        result.map(|()| all)
    };
    let reader = thread::Builder::new().spawn(read_all).unwrap();
    while rig.woken == 0 {
        rig.poll(2 * crate::tests::LIMIT);
    }
    assert!(reader.join().unwrap().unwrap() == sent, "every poll is for longer than the client has patience");
}

fn the_last_reply_before_a_close_waits_for_nothing_else(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    rig.send(id, b"+OK\r\n");
    rig.close(id, CloseWhen::Flushed);
    let waker = rig.engine.waker();
    let read_all = move || {
        let mut all = Vec::new();
        let result = client.read_to_end(&mut all);
        waker.wake();
        result.map(|_| all)
    };
    let reader = thread::Builder::new().spawn(read_all).unwrap();
    while rig.woken == 0 {
        rig.poll(2 * crate::tests::LIMIT);
    }
    let read = reader.join().unwrap().expect("every poll is for longer than the client has patience");
    assert_eq!(read, b"+OK\r\n");
}

fn large_transfers_both_ways_at_once(mut rig: Rig) {
    let (client, id) = rig.connect();
    let (request, reply) = (pattern(16 << 20), pattern(24 << 20));
    let expected = request.clone();
    let mut writing = client.try_clone().unwrap();
    let writer = thread::Builder::new().spawn(move || writing.write_all(&request)).unwrap();
    let reader = thread::Builder::new().spawn(move || read_slowly(client, 24 << 20)).unwrap();
    rig.send(id, &reply);
    rig.until("both", |rig| rig.received(id).len() == 16 << 20 && rig.engine.unsent_bytes(id) == 0);
    assert!(rig.received(id) == expected);
    assert!(reader.join().unwrap() == reply);
    writer.join().unwrap().unwrap();
}

fn drained_is_told_once_all_has_left(mut rig: Rig) {
    let (client, id) = rig.connect();
    rig.send(id, b"small");
    rig.settle();
    assert!(rig.drained.is_empty());
    rig.send(id, &pattern(32 << 20));
    rig.settle();
    assert!(rig.drained.is_empty() && rig.engine.unsent_bytes(id) > 0);
    let reader = thread::Builder::new().spawn(move || read_slowly(client, (32 << 20) + 5)).unwrap();
    rig.until("Drained", |rig| !rig.drained.is_empty());
    assert_eq!(rig.engine.unsent_bytes(id), 0);
    assert!(reader.join().unwrap()[5..] == pattern(32 << 20));
}

fn a_half_closed_peer_gets_its_reply(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    client.write_all(b"last words").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    rig.until("the end", |rig| rig.has_ended(id));
    assert_eq!(rig.received(id), b"last words");
    rig.settle();
    assert!(rig.gone.is_empty());
    check_last_reply(&mut rig, client, id, 20 << 20);
}

/// A reply of so many bytes, behind which the connection is closed, arrives as a whole.
fn check_last_reply(rig: &mut Rig, mut client: impl Read + Send + 'static, id: ConnId, len: usize) {
    let reply = pattern(len);
    rig.send(id, &reply);
    rig.close(id, CloseWhen::Flushed);
    let reader = thread::Builder::new().spawn(move || {
        let mut all = Vec::new();
        let result = client.read_to_end(&mut all);
        (result, all)
    });
    rig.until_gone(id);
    let (result, all) = reader.unwrap().join().unwrap();
    let table = || kernel_table(rig.address.port());
    assert!(result.is_ok(), "{result:?} after {} of {len} bytes;{}", all.len(), table());
    assert!(all == reply);
}

fn an_end_right_behind_the_bytes_is_told(mut rig: Rig) {
    for _ in 0..50 {
        let mut client = TcpStream::connect(rig.address).unwrap();
        client.write_all(b"bye").unwrap();
        drop(client);
        rig.until("the connection", |rig| !rig.accepted.is_empty());
        let accepted = rig.accepted.pop_front().unwrap();
        let id = rig.engine.adopt(accepted).unwrap();
        rig.until("the end", |rig| rig.has_ended(id));
        assert_eq!(rig.received(id), b"bye");
        rig.close(id, CloseWhen::Now);
        rig.until_gone(id);
    }
}

fn a_paused_connection_tells_nothing_until_resumed(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    rig.engine.pause(id);
    client.write_all(b"one").unwrap();
    rig.settle();
    assert_eq!(rig.received(id), b"");
    client.write_all(b"two").unwrap();
    rig.settle();
    assert_eq!(rig.received(id), b"");
    rig.engine.resume(id);
    rig.until_received(id, b"onetwo");
    // Twice over, and with more than the engine would keep for itself.
    rig.inbox.clear();
    rig.engine.pause(id);
    rig.engine.pause(id);
    let big = pattern(8 << 20);
    let expected = big.clone();
    let writer = thread::Builder::new().spawn(move || client.write_all(&big).map(|()| client)).unwrap();
    rig.settle();
    rig.settle();
    assert_eq!(rig.received(id), b"");
    rig.engine.resume(id);
    rig.engine.resume(id);
    rig.until("all", |rig| rig.received(id).len() == expected.len());
    assert!(rig.received(id) == expected);
    writer.join().unwrap().unwrap();
}

fn pausing_after_readable_keeps_what_waits(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    for _ in 0..20 {
        client.write_all(b"waits").unwrap();
        while rig.readable.is_empty() {
            rig.poll(LIMIT);
        }
        rig.readable.clear();
        rig.engine.pause(id);
        rig.settle();
        assert_eq!(rig.received(id), b"");
        rig.engine.resume(id);
        rig.until_received(id, b"waits");
        rig.inbox.clear();
    }
}

fn an_end_while_paused_is_told_after_resume(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    rig.engine.pause(id);
    client.write_all(b"bye").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    rig.settle();
    assert!(!rig.has_ended(id) && rig.received(id).is_empty());
    rig.engine.resume(id);
    rig.until("the end", |rig| rig.has_ended(id));
    assert_eq!(rig.received(id), b"bye");
    assert!(rig.gone.is_empty());
}

fn a_unix_socket_serves_like_tcp(mut rig: Rig) {
    let path =
        std::env::temp_dir().join(format!("sardine-calm-{}-{}.sock", std::process::id(), rig.address.port()));
    rig.engine.listen(Arc::new(Listener::unix(&path, Some(0o600), 16).unwrap())).unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    client.set_read_timeout(Some(LIMIT)).unwrap();
    rig.until("the connection", |rig| !rig.accepted.is_empty());
    let accepted = rig.accepted.pop_front().unwrap();
    assert_eq!(accepted.peer, crate::Peer::Unix { path });
    let id = rig.engine.adopt(accepted).unwrap();
    client.write_all(b"ping").unwrap();
    rig.until_received(id, b"ping");
    check_last_reply(&mut rig, client, id, 4 << 20);
}

fn a_passed_connection_is_served_by_another_engine(mut rig: Rig) {
    let mut other = crate::open(crate::EngineKind::Epoll).unwrap().engine;
    let mut client = TcpStream::connect(rig.address).unwrap();
    rig.until("the connection", |rig| !rig.accepted.is_empty());
    let id = other.adopt(rig.accepted.pop_front().unwrap()).unwrap();
    client.write_all(b"over there").unwrap();
    let mut bytes = Vec::new();
    while bytes.len() < 10 {
        let mut events = Vec::new();
        other.poll(Wait::at_most(LIMIT), &mut events).unwrap();
        assert!(matches!(events[..], [Event::Readable(told)] if told == id));
        assert!(matches!(other.receive(id, &mut bytes, 100), Received::Bytes(_)));
    }
    assert_eq!(bytes, b"over there");
}

fn listening_can_stop(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    assert!(rig.engine.is_listening());
    rig.engine.stop_listening();
    rig.settle();
    assert!(!rig.engine.is_listening(), "nothing holds the listener any more");
    // Our end of the listener is gone with the engine's share of it.
    assert!(TcpStream::connect(rig.address).is_err());
    client.write_all(b"still served").unwrap();
    rig.until_received(id, b"still served");
}

fn those_who_send_little_are_told_of_beside_those_who_send_much(mut rig: Rig) {
    const POLLS_MAX: usize = 3;
    let mut flood: Vec<_> = (0..200).map(|_| rig.connect()).collect();
    let mut quiet: Vec<_> = (0..10).map(|_| rig.connect()).collect();
    flood.iter().for_each(|(client, _)| client.set_nonblocking(true).unwrap());
    let (piece, mut sent) = (vec![b'x'; 64 << 10], vec![0; flood.len()]);
    for round in 0..30 {
        for ((client, _), sent) in flood.iter_mut().zip(&mut sent) {
            *sent += client.write(&piece).unwrap_or(0);
        }
        if round % 10 == 9 {
            quiet.iter_mut().for_each(|(client, _)| client.write_all(b"ask").unwrap());
            for _ in 0..POLLS_MAX {
                rig.poll(Duration::ZERO);
                rig.receive_all();
            }
            let asked = |(_, id): &(TcpStream, ConnId)| rig.received(*id).len() == 3 * (round / 10 + 1);
            assert!(quiet.iter().all(asked), "round {round}");
        }
        rig.poll(Duration::ZERO);
        rig.receive_all();
    }
    rig.until("all that was sent", |rig| {
        flood.iter().zip(&sent).all(|((_, id), sent)| rig.received(*id).len() == *sent)
    });
}

fn one_poll_tells_of_all_that_has_come(mut rig: Rig) {
    let mut clients: Vec<_> = (0..100).map(|_| rig.connect()).collect();
    rig.settle();
    clients.iter_mut().for_each(|(client, _)| client.write_all(b"ask").unwrap());
    rig.poll(Duration::ZERO);
    rig.receive_all();
    let told = clients.iter().filter(|(_, id)| rig.received(*id) == b"ask").count();
    assert_eq!(told, clients.len());
}

/// Clients, to each of which this text was sent in turn.
fn crowd(rig: &mut Rig, count: usize, text: &[u8]) -> Vec<(TcpStream, ConnId)> {
    let crowd: Vec<_> = (0..count).map(|_| rig.connect()).collect();
    for (_, id) in &crowd {
        let mut data = text.to_vec();
        assert_eq!(rig.engine.send_in_turn(*id, &mut data), text.len());
        assert!(data.is_empty());
    }
    assert_eq!(rig.engine.in_turn_bytes(), count * text.len());
    crowd
}

#[allow(clippy::disallowed_methods, reason = "a limit that is far away")]
fn what_is_sent_in_turn_leaves_though_nothing_else_happens(mut rig: Rig) {
    let mut crowd = crowd(&mut rig, 300, b"one ");
    let (mut polls, began) = (0, Instant::now());
    while rig.engine.in_turn_bytes() > 0 {
        // Whoever still waits gets both in one piece.
        if polls == 0 {
            for (_, id) in &crowd {
                rig.engine.send_in_turn(*id, &mut b"two".to_vec());
            }
        }
        // The last one may sleep, since all is sent then. If each did it would take minutes.
        rig.engine.poll(Wait::at_most(Duration::from_secs(2)), &mut Vec::new()).unwrap();
        polls += 1;
    }
    assert!(polls > 1, "there is more than one slice");
    assert!(began.elapsed() < LIMIT, "a poll slept while others waited");
    for (client, id) in &mut crowd {
        assert_eq!(rig.replied(client, 7), b"one two");
        assert_eq!(rig.engine.unsent_bytes(*id), 0);
    }
}

fn a_request_is_told_of_while_many_wait_for_their_turn(mut rig: Rig) {
    let (mut asker, asking) = rig.connect();
    let mut crowd = crowd(&mut rig, 300, b"message");
    asker.write_all(b"ask").unwrap();
    let mut slices = 0;
    while rig.engine.in_turn_bytes() > 0 {
        rig.poll(LIMIT);
        rig.receive_all();
        slices += 1;
        if rig.received(asking) == b"ask" {
            // A reply does not queue up behind messages.
            rig.inbox.clear();
            rig.send(asking, b"answer");
            rig.poll(LIMIT);
            asker.set_nonblocking(true).unwrap();
            let mut reply = [0; 6];
            assert!(asker.read(&mut reply).is_ok_and(|read| read == 6), "after {slices} slices");
            assert!(rig.engine.in_turn_bytes() > 0, "after {slices} slices");
            break;
        }
    }
    for (client, _) in &mut crowd {
        assert_eq!(rig.replied(client, 7), b"message");
    }
}

fn what_waits_for_its_turn_leaves_with_what_is_sent_behind_it(mut rig: Rig) {
    let mut crowd = crowd(&mut rig, 100, b"message ");
    let (client, id) = crowd.last_mut().unwrap();
    rig.send(*id, b"reply");
    assert_eq!(rig.replied(client, 13), b"message reply");
    assert!(rig.engine.in_turn_bytes() > 0, "the others wait");
    let id = *id;
    rig.close(id, CloseWhen::Now);
    rig.until("every turn", |rig| rig.engine.in_turn_bytes() == 0);
}

fn what_waits_for_its_turn_is_offered_before_a_close(mut rig: Rig) {
    let mut crowd = crowd(&mut rig, 100, b"message");
    for (at, (_, id)) in crowd.iter().enumerate() {
        rig.close(*id, if at % 2 == 0 { CloseWhen::Now } else { CloseWhen::Flushed });
    }
    assert_eq!(rig.engine.in_turn_bytes(), 50 * 7);
    rig.until("every Gone", |rig| rig.gone.len() == 100);
    assert_eq!(rig.engine.in_turn_bytes(), 0);
    for (client, _) in &mut crowd {
        let mut all = Vec::new();
        client.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"message");
    }
}
