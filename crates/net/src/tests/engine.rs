//! What every engine keeps to beside the bytes: timeouts, wakers, ids, descriptors.
use super::{LIMIT, Rig, on_every_engine, with_rig};
use crate::{CloseWhen, EngineKind, Event, Received, Wait};
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

on_every_engine! {
    a_poll_without_news_ends_by_its_timeout
    a_shorter_wait_ends_though_a_longer_was_asked_for_before
    wakes_from_other_threads_are_told
    many_wakes_before_a_poll_are_told_once
    a_dead_id_answers_nothing_and_disturbs_no_one
    sending_nothing_is_nothing
    the_buffer_of_send_can_be_used_again_at_once
    what_does_not_leave_at_once_leaves_in_order
    what_is_kept_back_leaves_when_it_is_let_go
}

fn a_poll_without_news_ends_by_its_timeout(mut rig: Rig) {
    let mut events = Vec::new();
    for timeout in [Duration::ZERO, Duration::from_micros(1), Duration::from_millis(3)] {
        rig.engine.poll(Wait::at_most(timeout), &mut events).unwrap();
        assert!(events.is_empty());
    }
}

fn a_shorter_wait_ends_though_a_longer_was_asked_for_before(mut rig: Rig) {
    let start = crate::now();
    for _ in 0..3 {
        rig.engine.waker().wake();
        rig.poll(2 * LIMIT);
        rig.poll(Duration::from_millis(2));
    }
    assert_eq!(rig.woken, 3);
    assert!(crate::now().since(start) < LIMIT.as_millis() as i64, "the alarm was left as it was");
}

fn wakes_from_other_threads_are_told(mut rig: Rig) {
    let waker = rig.engine.waker();
    let ringers: Vec<_> = (0..4)
        .map(|_| {
            let waker = waker.clone();
            thread::Builder::new().spawn(move || (0..200).for_each(|_| waker.wake())).unwrap()
        })
        .collect();
    while !ringers.iter().all(|ringer| ringer.is_finished()) {
        rig.poll(Duration::from_millis(1));
    }
    ringers.into_iter().for_each(|ringer| ringer.join().unwrap());
    rig.settle();
    assert!(rig.woken > 0);
    for _ in 0..100 {
        rig.woken = 0;
        waker.wake();
        let mut events = Vec::new();
        while events.is_empty() {
            rig.engine.poll(Wait::Forever, &mut events).unwrap();
        }
        assert!(matches!(events[..], [Event::Woken]));
    }
}

fn many_wakes_before_a_poll_are_told_once(mut rig: Rig) {
    let waker = rig.engine.waker();
    (0..100).for_each(|_| waker.wake());
    rig.poll(LIMIT);
    rig.settle();
    assert_eq!(rig.woken, 1);
}

fn a_dead_id_answers_nothing_and_disturbs_no_one(mut rig: Rig) {
    let (_first, old) = rig.connect();
    rig.close(old, CloseWhen::Now);
    rig.until_gone(old);
    let (mut client, id) = rig.connect();
    assert_eq!(id.index, old.index);
    assert_ne!(id, old);
    rig.send(old, b"to nobody");
    rig.engine.pause(old);
    rig.engine.resume(old);
    rig.close(old, CloseWhen::Now);
    assert!(matches!(rig.engine.receive(old, &mut Vec::new(), 10), Received::Failed(_)));
    assert_eq!(rig.engine.unsent_bytes(old), 0);
    rig.settle();
    assert_eq!(rig.gone, [old]);
    client.write_all(b"alive").unwrap();
    rig.until_received(id, b"alive");
}

fn sending_nothing_is_nothing(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    rig.send(id, b"");
    rig.send(id, b"something");
    rig.send(id, b"");
    assert_eq!(rig.replied(&mut client, 9), b"something");
}

fn the_buffer_of_send_can_be_used_again_at_once(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    let mut data = Vec::new();
    let mut expected = Vec::new();
    for round in 0..200u8 {
        assert!(data.is_empty());
        data.extend(std::iter::repeat_n(round, 100));
        expected.extend_from_slice(&data);
        rig.engine.send(id, &mut data);
        if round % 7 == 0 {
            rig.poll(Duration::ZERO);
        }
    }
    assert_eq!(rig.replied(&mut client, expected.len()), expected);
}

/// Before the next poll, and the buffer stays with who filled it. io_uring submits all with the next poll.
#[test]
fn epoll_sends_much_at_once() {
    with_rig(EngineKind::Epoll, |mut rig| {
        let (mut client, id) = rig.connect();
        client.set_read_timeout(Some(LIMIT)).unwrap();
        let (len, mut received) = (32 << 10, Vec::new());
        for round in 0..3u8 {
            let mut data = vec![round; len];
            let place = data.as_ptr();
            assert_eq!(rig.engine.send_at_once(id, &mut data), 0);
            assert!(data.is_empty() && data.as_ptr() == place, "the buffer was given away");
            received.resize(len, u8::MAX);
            client.read_exact(&mut received).unwrap();
            assert_eq!(received, vec![round; len]);
        }
    });
}

/// Where the kernel does not take all data at once, the rest leaves behind it, and data that is sent later
/// behind the rest.
fn what_does_not_leave_at_once_leaves_in_order(mut rig: Rig) {
    let (mut client, id) = rig.connect();
    let mut expected = Vec::new();
    for (round, len) in [8 << 20, 10, 20 << 10, 30, 100 << 10, 40].into_iter().enumerate() {
        let mut data = vec![round as u8; len];
        expected.extend_from_slice(&data);
        assert!(rig.engine.send_at_once(id, &mut data) <= expected.len() && data.is_empty());
    }
    assert!(rig.engine.unsent_bytes(id) > 0, "8 MB are more than the kernel takes");
    assert!(rig.replied(&mut client, expected.len()) == expected);
}

/// However it was queued, and also where the connection is to be closed meanwhile.
fn what_is_kept_back_leaves_when_it_is_let_go(mut rig: Rig) {
    for closes in [false, true] {
        let (mut client, id) = rig.connect();
        rig.send(id, b"before ");
        assert_eq!(rig.replied(&mut client, 7), b"before ");
        rig.engine.keep_back(id);
        rig.engine.keep_back(id);
        let long = vec![b'x'; 40 << 10];
        rig.send(id, b"kept ");
        rig.engine.send_at_once(id, &mut long.clone());
        rig.engine.send_in_turn(id, &mut b"in turn".to_vec());
        rig.engine.try_now(id);
        if closes {
            rig.close(id, CloseWhen::Flushed);
        }
        client.write_all(b"go on").unwrap();
        rig.settle();
        client.set_nonblocking(true).unwrap();
        let nothing = client.read(&mut [0; 8]).unwrap_err();
        assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
        assert_eq!(rig.engine.unsent_bytes(id), 5 + long.len() + 7);
        rig.engine.let_go(id);
        let all = [b"kept ", &long[..], b"in turn"].concat();
        assert!(rig.replied(&mut client, all.len()) == all);
        match closes {
            true => rig.until_gone(id),
            false => rig.until("Drained", |rig| rig.drained.contains(&id)),
        }
    }
}
