//! The registry without a server: who gets which message, and that nothing is left of clients that have gone.
use super::*;

fn conn(index: u32) -> ConnId {
    ConnId { index, generation: 1 }
}

/// What each worker's connections get of a message, and how many PUBLISH counts.
fn publish(pubsub: &PubSub, topic: Topic, channel: &str) -> (u64, Vec<(usize, u32, String)>) {
    let (mut posted, mut got) = (Vec::new(), Vec::new());
    let count = pubsub.publish(topic, channel.as_bytes(), b"m", |worker, publication| {
        posted.push((worker, Arc::clone(publication)));
    });
    for (worker, publication) in posted {
        pubsub.deliver(worker, &[publication], |conns, pushes| {
            let kind = String::from_utf8_lossy(pushes.text(Protocol::Resp2))
                .lines()
                .nth(2)
                .unwrap_or_default()
                .to_owned();
            got.extend(conns.iter().map(|conn| (worker, conn.index, kind.clone())));
        });
    }
    (count, got)
}

#[test]
fn a_client_gets_a_message_for_its_channel_and_then_for_each_pattern() {
    let pubsub = PubSub::new(2);
    for (topic, name, place) in [
        (Topic::Pattern, "ne*", (1, conn(7))),
        (Topic::Channel, "news", (1, conn(7))),
        (Topic::Channel, "news", (0, conn(7))),
        (Topic::Pattern, "*s", (1, conn(7))),
        (Topic::Shard, "news", (1, conn(8))),
    ] {
        pubsub.subscribe(topic, name.as_bytes(), place);
    }
    let (count, got) = publish(&pubsub, Topic::Channel, "news");
    let expected = [(0, 7, "message"), (1, 7, "message"), (1, 7, "pmessage"), (1, 7, "pmessage")];
    assert_eq!(count, 4);
    assert_eq!(got, expected.map(|(worker, index, kind)| (worker, index, kind.to_owned())));
    assert_eq!(publish(&pubsub, Topic::Shard, "news"), (1, vec![(1, 8, "smessage".to_owned())]));
    assert_eq!(publish(&pubsub, Topic::Channel, "nobody"), (0, vec![]));
}

#[test]
fn who_subscribes_after_a_message_was_published_does_not_get_it() {
    let pubsub = PubSub::new(1);
    for (topic, name) in [(Topic::Channel, "c"), (Topic::Pattern, "c*")] {
        let early = pubsub.subscribe(topic, name.as_bytes(), (0, conn(1))).name;
        let mut posted = Vec::new();
        pubsub.publish(Topic::Channel, b"c", b"m", |_, publication| posted.push(Arc::clone(publication)));
        // One leaves and comes back, another comes, before the worker reads what was posted.
        pubsub.unsubscribe(topic, &early, (0, conn(1)));
        let again = pubsub.subscribe(topic, name.as_bytes(), (0, conn(1))).name;
        let late = pubsub.subscribe(topic, name.as_bytes(), (0, conn(2))).name;
        pubsub.deliver(0, &posted[..1], |conns, _| panic!("{conns:?} got a message from before they came"));
        assert_eq!(publish(&pubsub, Topic::Channel, "c").1.len(), 2);
        pubsub.unsubscribe(topic, &again, (0, conn(1)));
        pubsub.unsubscribe(topic, &late, (0, conn(2)));
    }
    assert!(pubsub.audience(0).is_empty());
    assert_eq!(pubsub.count(Topic::Channel) + pubsub.count(Topic::Pattern), 0);
}

#[test]
fn nothing_is_left_of_those_who_have_gone() {
    let pubsub = PubSub::new(4);
    let mut names = Vec::new();
    for n in 0..20_000u32 {
        let topic = [Topic::Channel, Topic::Pattern, Topic::Shard][n as usize % 3];
        let place = (n as usize % 4, conn(n));
        names.push((topic, pubsub.subscribe(topic, format!("c{}*", n % 500).as_bytes(), place).name, place));
    }
    assert_eq!(pubsub.count(Topic::Channel), 500);
    for (topic, name, place) in &names {
        pubsub.unsubscribe(*topic, name, *place);
    }
    for topic in [Topic::Channel, Topic::Pattern, Topic::Shard] {
        assert_eq!(pubsub.count(topic), 0);
    }
    assert!(pubsub.channels(Topic::Channel).is_empty() && pubsub.channels(Topic::Shard).is_empty());
    assert!((0..4).all(|worker| pubsub.audience(worker).is_empty()));
    let held: usize = names.iter().map(|(_, name, _)| Arc::strong_count(name)).max().unwrap_or(0);
    assert!(held <= names.len(), "only this test has the names: {held}");
}

#[test]
fn messages_of_one_channel_go_together_as_long_as_its_receivers_stay() {
    let pubsub = PubSub::new(1);
    let mut posted = Vec::new();
    let mut send = |message: &[u8], channel: &[u8]| {
        pubsub
            .publish(Topic::Channel, channel, message, |_, publication| posted.push(Arc::clone(publication)));
    };
    pubsub.subscribe(Topic::Channel, b"c", (0, conn(1)));
    pubsub.subscribe(Topic::Channel, b"d", (0, conn(1)));
    send(b"one", b"c");
    send(b"two", b"c");
    send(b"other", b"d");
    pubsub.subscribe(Topic::Channel, b"c", (0, conn(2)));
    send(b"three", b"c");
    let goes = |n: usize| posted[n].goes_with(&posted[0], 0);
    assert_eq!([goes(1), goes(2), goes(3)], [true, false, false]);
    assert!(!posted[1].goes_with(&posted[0], TOGETHER_BYTES));
    pubsub.deliver(0, &posted[..2], |conns, pushes| {
        let both =
            "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\none\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\ntwo\r\n";
        assert_eq!(conns, [conn(1)]);
        assert_eq!(String::from_utf8_lossy(pushes.text(Protocol::Resp2)), both);
        assert_eq!(String::from_utf8_lossy(pushes.text(Protocol::Resp3)), both.replace('*', ">"));
    });
}
