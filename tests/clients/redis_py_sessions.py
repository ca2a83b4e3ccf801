"""redis-py between several clients: transactions, blocking, messages, users, copies kept by the client.

    redis_py_sessions.py PORT [NAME ...]

As `redis_py.py`: PORT is of 127.0.0.1, for TLS where the variable CERTIFICATES names a folder; NAMEs choose among the
tests. It passes on a real redis-server too. A failing assertion ends it with its traceback.
"""

import os
import sys
import threading
import time

import redis
from redis.backoff import ConstantBackoff
from redis.cache import CacheConfig
from redis.retry import Retry

PORT = int(sys.argv[1])
FOLDER = os.environ.get("CERTIFICATES")
SECURE = {
    "ssl_ca_certs": f"{FOLDER}/ca.crt",
    "ssl_certfile": f"{FOLDER}/client.crt",
    "ssl_keyfile": f"{FOLDER}/client.key",
} if FOLDER else {}
TESTS = []
ONCE = Retry(ConstantBackoff(0), 0)
PATIENCE_S = 60


def test(function):
    TESTS.append(function)
    return function


def connect(**options):
    options.setdefault("socket_timeout", PATIENCE_S)
    options.setdefault("decode_responses", True)
    options.setdefault("retry", ONCE)
    return redis.Redis(host="127.0.0.1", port=PORT, ssl=bool(SECURE), **SECURE, **options)


def raises(kind, text, function, *args, **options):
    try:
        function(*args, **options)
    except kind as error:
        assert text in str(error), f"{error!r} does not say {text!r}"
        return
    raise AssertionError(f"no {kind.__name__}")


def until(condition):
    """Looks again and again at what another connection brings about."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.002)


class Apart(threading.Thread):
    """A call on a connection of its own, in a thread."""

    def __init__(self, call, **options):
        super().__init__(daemon=True)
        self.client = connect(single_connection_client=True, **options)
        self.id, self.call, self.outcome = self.client.client_id(), call, None
        self.start()

    def run(self):
        try:
            self.outcome = self.call(self.client)
        except redis.RedisError as error:
            self.outcome = error

    def is_blocked(self, r):
        return "b" in r.client_list(client_id=[self.id])[0]["flags"]

    def end(self):
        self.join(PATIENCE_S)
        assert not self.is_alive()
        self.client.close()
        return self.outcome


def blocked(r, *calls, **options):
    """Clients that wait, in this order."""
    waiting = []
    for call in calls:
        waiting.append(Apart(call, **options))
        until(lambda: waiting[-1].is_blocked(r))
    return waiting


@test
def transactions(r):
    pipe = r.pipeline(transaction=True)
    assert pipe.set("a", 1).incr("a").lpush("l", "x").get("none").execute() == [True, 2, 1, None]
    replies = pipe.set("t", "x").incr("t").get("t").execute(raise_on_error=False)
    assert replies[0] is True and "not an integer" in str(replies[1]) and replies[2] == "x"
    raises(redis.ResponseError, "Command # 2", pipe.set("t", "y").incr("t").execute)
    assert r.get("t") == "y"
    pipe.set("t", "z").execute_command("GET")
    raises(redis.ResponseError, "wrong number of arguments", pipe.execute)
    pipe.reset()
    assert r.get("t") == "y"
    pipe.watch("t")
    pipe.multi()
    pipe.set("t", "mine")
    assert r.set("t", "theirs")
    raises(redis.WatchError, "Watched variable changed", pipe.execute)
    assert r.get("t") == "theirs"
    with r.pipeline() as again:
        again.watch("t")
        assert again.get("t") == "theirs"
        again.unwatch()
        assert r.set("t", "others")
        again.multi()
        assert again.set("t", "last").execute() == [True]


@test
def counters_are_read_and_written_under_watch(r):
    tries = []

    def count(client):
        def add(pipe):
            tries.append(1)
            value = int(pipe.get("n") or 0)
            pipe.multi()
            pipe.set("n", value + 1)

        for _ in range(100):
            assert client.transaction(add, "n") == [True]

    threads = [threading.Thread(target=count, args=(connect(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert r.get("n") == "400" and len(tries) >= 400


@test
def those_who_wait_are_served_in_their_order(r):
    for protocol in (2, 3):
        first, second = blocked(r, lambda c: c.blpop(["none", "l"], 0), lambda c: c.brpop("l", 0), protocol=protocol)
        assert int(r.info("clients")["blocked_clients"]) == 2
        assert r.rpush("l", "a", "b") == 2
        assert list(first.end()) == ["l", "a"] and list(second.end()) == ["l", "b"]
        chain = blocked(r, lambda c: c.blmove("from", "over", 0, "LEFT", "RIGHT"),
                        lambda c: c.brpoplpush("over", "to", 0))
        r.pipeline(transaction=True).rpush("from", "x").rpush("other", 1).execute()
        assert [one.end() for one in chain] == ["x", "x"]
        assert r.lrange("to", 0, -1) == ["x"] and not r.exists("from", "over")
        (many,) = blocked(r, lambda c: c.blmpop(0, 2, "none", "l", direction="RIGHT", count=2), protocol=protocol)
        r.rpush("l", 1, 2, 3)
        assert many.end() == ["l", ["3", "2"]]
        least, most, some = blocked(
            r, lambda c: c.bzpopmin("z", 0), lambda c: c.bzpopmax("z", 0),
            lambda c: c.bzmpop(0, 1, ["z"], min=True, count=9), protocol=protocol)
        r.zadd("z", {"a": 1, "b": 2.5, "c": 3, "d": 4})
        assert list(least.end()) == ["z", "a", 1.0] and list(most.end()) == ["z", "d", 4.0]
        name, pairs = some.end()
        assert name == "z" and [(member, float(score)) for member, score in pairs] == [("b", 2.5), ("c", 3.0)]
        r.flushall()


@test
def streams_are_waited_for(r):
    r.xgroup_create("x", "g", "$", mkstream=True)
    reader, grouped = blocked(r, lambda c: c.xread({"x": "$"}, block=0),
                              lambda c: c.xreadgroup("g", "me", {"x": ">"}, block=0), protocol=2)
    assert r.xadd("x", {"f": "v"}, "5-1") == "5-1"
    assert reader.end() == [["x", [("5-1", {"f": "v"})]]] == grouped.end()
    assert r.xpending("x", "g")["pending"] == 1
    (reader,) = blocked(r, lambda c: c.xread({"x": "$"}, block=0), protocol=3)
    r.xadd("x", {"f": "w"}, "6-1")
    assert reader.end() == {"x": [[("6-1", {"f": "w"})]]}
    (grouped,) = blocked(r, lambda c: c.xreadgroup("g", "me", {"y": ">", "x": ">"}, block=0)
                         if c.xgroup_create("y", "g", "$", mkstream=True) and c.xreadgroup("g", "me", {"x": ">"})
                         else None)
    r.xgroup_destroy("x", "g")
    assert "NOGROUP" in str(grouped.end()) or "no longer exists" in str(grouped.outcome), grouped.outcome


@test
def timeouts_and_unblocking(r):
    started = time.monotonic()
    assert r.blpop("none", 0.2) is None and r.bzpopmin("none", 0.05) is None
    assert r.blmove("none", "l", 0.05) is None and not r.xread({"none": "$"}, block=50)
    assert time.monotonic() - started >= 0.35
    one, other, third = blocked(r, lambda c: c.blpop("l", 0), lambda c: c.blpop("l", 0), lambda c: c.blpop("l", 0))
    assert r.client_unblock(one.id) and one.end() is None
    assert r.client_unblock(other.id, error=True)
    assert "UNBLOCKED client unblocked via CLIENT UNBLOCK" in str(other.end())
    r.client_kill_filter(_id=third.id)
    assert isinstance(third.end(), redis.ConnectionError)
    assert r.rpush("l", "kept") == 1 and r.lpop("l") == "kept"
    assert not r.client_unblock(r.client_id())
    pipe = r.pipeline(transaction=True)
    assert pipe.blpop("none", 0).blmove("none", "l", 0).execute() == [None, None]


def hears(talk, kind, **expected):
    message = talk.get_message(timeout=PATIENCE_S)
    assert message is not None and message["type"] == kind, message
    for name, value in expected.items():
        assert message[name] == value, message


@test
def messages_on_channels_patterns_and_shard_channels(r):
    for protocol in (2, 3):
        talk = connect(protocol=protocol).pubsub()
        talk.subscribe("news", "ключ")
        hears(talk, "subscribe", channel="news", data=1)
        hears(talk, "subscribe", channel="ключ", data=2)
        talk.psubscribe("n?ws*")
        hears(talk, "psubscribe", channel="n?ws*", data=3)
        talk.ssubscribe("news")
        hears(talk, "ssubscribe", channel="news", data=1)
        assert r.publish("news", "one") == 2 and r.publish("news.a", "two") == 1 and r.publish("none", "") == 0
        assert r.spublish("news", "three") == 1
        hears(talk, "message", channel="news", pattern=None, data="one")
        hears(talk, "pmessage", channel="news", pattern="n?ws*", data="one")
        hears(talk, "pmessage", channel="news.a", pattern="n?ws*", data="two")
        hears(talk, "smessage", channel="news", data="three")
        assert r.pubsub_channels() == ["news", "ключ"] or r.pubsub_channels() == ["ключ", "news"]
        assert r.pubsub_channels("n*") == ["news"] and r.pubsub_numpat() == 1
        assert [tuple(pair) for pair in r.pubsub_numsub("news", "none")] == [("news", 1), ("none", 0)]
        assert [tuple(pair) for pair in r.pubsub_shardnumsub("news")] == [("news", 1)]
        assert r.pubsub_shardchannels() == ["news"]
        talk.unsubscribe("news")
        hears(talk, "unsubscribe", channel="news", data=2)
        assert r.publish("news", "four") == 1
        hears(talk, "pmessage", data="four")
        talk.unsubscribe(), talk.punsubscribe(), talk.sunsubscribe()
        kinds = [talk.get_message(timeout=PATIENCE_S)["type"] for _ in range(3)]
        assert kinds == ["unsubscribe", "punsubscribe", "sunsubscribe"]
        assert r.publish("news", "five") == 0 and r.pubsub_channels() == []
        talk.close()


@test
def messages_of_many_come_in_order(r):
    heard = []
    talk = r.pubsub(ignore_subscribe_messages=True)
    talk.subscribe(many=heard.append)
    until(lambda: talk.get_message(timeout=0.1) is None and r.pubsub_numsub("many")[0][1] == 1)
    thread = talk.run_in_thread(sleep_time=0.05)
    pipe = r.pipeline(transaction=False)
    for n in range(5_000):
        pipe.publish("many", n)
    assert pipe.execute() == [1] * 5_000
    until(lambda: len(heard) == 5_000)
    thread.stop()
    thread.join()
    assert [int(message["data"]) for message in heard] == list(range(5_000))


@test
def events_of_keys(r):
    r.config_set("notify-keyspace-events", "KEA")
    try:
        talk = connect().pubsub()
        talk.psubscribe("__key*@0__:*")
        hears(talk, "psubscribe")

        def happens(key, *events):
            for event in events:
                hears(talk, "pmessage", channel=f"__keyspace@0__:{key}", data=event)
                hears(talk, "pmessage", channel=f"__keyevent@0__:{event}", data=key)

        r.set("k", 1)
        happens("k", "set")
        r.expire("k", 1000)
        happens("k", "expire")
        r.rpush("l", 1)
        happens("l", "rpush")
        r.lpop("l")
        happens("l", "lpop", "del")
        r.rename("k", "m")
        happens("k", "rename_from")
        happens("m", "rename_to")
        r.set("m", 1, px=20)
        happens("m", "set", "expire", "expired")
        r.config_set("notify-keyspace-events", "Kgx")
        r.set("k", 1)
        r.delete("k")
        hears(talk, "pmessage", channel="__keyspace@0__:k", data="del")
        assert sorted(r.config_get("notify-keyspace-events")["notify-keyspace-events"]) == list("Kgx")
    finally:
        r.config_set("notify-keyspace-events", "")


@test
def copies_are_kept_until_somebody_writes(r):
    keeper = connect(protocol=3, cache_config=CacheConfig(max_size=100))
    cache = keeper.get_cache()
    r.set("k", "one")
    assert keeper.get("k") == "one" and cache.size == 1
    assert int(r.info("clients")["tracking_clients"]) >= 1
    # What is asked again is answered by the copy, until the server says that it has changed.
    before = int(r.info("commandstats")["cmdstat_get"]["calls"])
    assert [keeper.get("k") for _ in range(50)] == ["one"] * 50
    assert int(r.info("commandstats")["cmdstat_get"]["calls"]) == before
    for n in range(100):
        r.set("k", n)
        until(lambda: keeper.get("k") == str(n))
    r.hset("h", "f", 1)
    assert keeper.hget("h", "f") == "1" and keeper.mget("k", "none") == ["99", None]
    r.delete("h")
    until(lambda: keeper.hget("h", "f") is None)
    r.set("soon", "x", px=30)
    keeper.get("soon")
    until(lambda: keeper.get("soon") is None)
    r.flushall()
    until(lambda: keeper.get("k") is None)
    keeper.close()


@test
def users(r):
    try:
        assert r.acl_setuser("ann", enabled=True, passwords=["+secret"], keys=["app:*"], channels=["news*"],
                             categories=["+@read", "+@connection", "+@pubsub"], commands=["+set", "+acl|whoami"])
        raises(redis.AuthenticationError, "invalid username-password pair",
               connect(username="ann", password="guess").ping)
        for protocol in (2, 3):
            ann = connect(username="ann", password="secret", protocol=protocol)
            assert ann.acl_whoami() == "ann"
            assert ann.set("app:1", "x") and ann.get("app:1") == "x"
            raises(redis.exceptions.NoPermissionError, "No permissions to access a key", ann.get, "other")
            raises(redis.exceptions.NoPermissionError, "has no permissions to run the 'del' command",
                   ann.delete, "app:1")
            raises(redis.exceptions.NoPermissionError, "No permissions to access a channel", ann.publish, "secret", "x")
            assert ann.publish("news.a", "x") == 0
            ann.close()
        assert r.acl_dryrun("ann", "GET", "app:1") == "OK"
        assert "access the 'other' key" in str(r.acl_dryrun("ann", "GET", "other"))
        told = r.acl_getuser("ann")
        assert "on" in told["flags"] and told["keys"] == ["~app:*"] and told["channels"] == ["&news*"], told
        assert told["commands"] == ["+set", "+acl|whoami"] and "+@read" in told["categories"], told
        assert any(line.startswith("user ann on ") for line in r.acl_list()) and "ann" in r.acl_users()
        log = r.acl_log()
        assert {"auth", "key", "command", "channel"} <= {entry["reason"] for entry in log}, log
        assert r.acl_log_reset()
        # A user is changed, then removed, while somebody is logged in.
        ann = connect(username="ann", password="secret", single_connection_client=True)
        talk = connect(username="ann", password="secret").pubsub()
        talk.subscribe("news")
        hears(talk, "subscribe")
        assert ann.get("app:1") == "x"
        r.acl_setuser("ann", enabled=True, categories=["-@read"], keys=["app:*"], channels=["news*"])
        raises(redis.exceptions.NoPermissionError, "has no permissions to run the 'get' command", ann.get, "app:1")
        assert r.acl_deluser("ann") == 1
        raises(redis.RedisError, "", ann.ping)
        raises(redis.ConnectionError, "", talk.get_message, timeout=PATIENCE_S)
        assert r.acl_whoami() == "default" and len(r.acl_genpass()) == 64 and "string" in r.acl_cat()
        assert "set" in r.acl_cat("string")
    finally:
        r.acl_deluser("ann")


@test
def selectors_and_reading_apart_from_writing(r):
    try:
        assert r.execute_command("ACL", "SETUSER", "bob", "on", ">p", "+ping", "+@connection", "%R~in:*", "+get",
                                 "(+set ~out:*)") in (True, "OK")
        r.set("in:1", "x")
        bob = connect(username="bob", password="p")
        assert bob.get("in:1") == "x" and bob.set("out:1", "y")
        raises(redis.exceptions.NoPermissionError, "No permissions to access a key", bob.set, "in:1", "z")
        raises(redis.exceptions.NoPermissionError, "No permissions to access a key", bob.get, "out:1")
        pipe = bob.pipeline(transaction=True)
        raises(redis.RedisError, "", pipe.set("out:2", 1).execute)
        r.execute_command("ACL", "SETUSER", "bob", "+multi", "+exec", "+discard")
        assert bob.pipeline(transaction=True).set("out:2", 1).get("in:1").execute() == [True, "x"]
        bob.close()
    finally:
        r.acl_deluser("bob")


@test
def greetings(r):
    for protocol in (2, 3):
        client = connect(protocol=protocol, single_connection_client=True, client_name="me", db=3)
        info = client.client_info()
        assert (info["name"], int(info["db"]), int(info["resp"])) == ("me", 3, protocol), info
        told = client.execute_command("HELLO")
        told = told if isinstance(told, dict) else dict(zip(told[::2], told[1::2]))
        told = {key.decode() if isinstance(key, bytes) else key: value for key, value in told.items()}
        assert int(told["proto"]) == protocol and told["mode"] in ("standalone", b"standalone"), told
        client.close()


def main():
    chosen = [t for t in TESTS if not sys.argv[2:] or t.__name__ in sys.argv[2:]]
    assert chosen, "no such test"
    for function in chosen:
        client = connect()
        client.flushall()
        started = time.monotonic()
        function(client)
        client.close()
        print(f"ok {function.__name__} {time.monotonic() - started:.2f} s", flush=True)


main()
