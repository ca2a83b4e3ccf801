"""redis-py used in anger: everything an application does with it, against a server that starts empty.

    redis_py.py PORT SOCKET [NAME ...]

PORT is of 127.0.0.1, SOCKET the path of the same server's Unix socket; NAMEs choose among the tests. With a folder in
the variable CERTIFICATES (ca.crt, client.crt, client.key) the port is for TLS. It passes on a real redis-server too,
which is how its expectations were checked. A failing assertion ends it with its traceback.
"""

import os
import random
import sys
import threading
import time
import traceback

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

PORT = int(sys.argv[1])
SOCKET = sys.argv[2]
FOLDER = os.environ.get("CERTIFICATES")
SECURE = {
    "ssl_ca_certs": f"{FOLDER}/ca.crt",
    "ssl_certfile": f"{FOLDER}/client.crt",
    "ssl_keyfile": f"{FOLDER}/client.key",
} if FOLDER else {}
TESTS = []
ONCE = Retry(ConstantBackoff(0), 0)


def test(function):
    TESTS.append(function)
    return function


def connect(**options):
    options.setdefault("socket_timeout", 60)
    return redis.Redis(host="127.0.0.1", port=PORT, ssl=bool(SECURE), **SECURE, **options)


def raises(kind, text, function, *args, **options):
    """The error and the beginning of what it says, which redis-py shows without the code of common ones."""
    try:
        function(*args, **options)
    except kind as error:
        assert text in str(error), f"{error!r} does not say {text!r}"
        return
    raise AssertionError(f"no {kind.__name__}")


@test
def strings_and_options_of_set(r):
    assert r.set("k", "v") is True
    assert r.get("k") == b"v"
    assert r.set("k", "w", nx=True) is None
    assert r.set("k", "w", xx=True, get=True) == b"v"
    assert r.set("absent", "w", xx=True) is None
    assert r.set("absent", "w", get=True) is None
    assert r.set("k", "x", ex=100) and 98 <= r.ttl("k") <= 100
    assert r.set("k", "y", keepttl=True) and 98 <= r.ttl("k") <= 100
    assert r.set("k", "z") and r.ttl("k") == -1
    assert r.set("k", "z", px=100_000) and 98_000 <= r.pttl("k") <= 100_000
    assert r.set("k", "z", exat=4_000_000_000) and r.expiretime("k") == 4_000_000_000
    assert r.set("k", "z", pxat=4_000_000_000_123) and r.pexpiretime("k") == 4_000_000_000_123
    assert r.getex("k", persist=True) == b"z" and r.ttl("k") == -1
    assert r.getex("k", ex=50) == b"z" and 48 <= r.ttl("k") <= 50
    assert r.getdel("k") == b"z" and r.get("k") is None
    assert r.setnx("n", 1) and not r.setnx("n", 2)
    assert r.incr("n", 41) == 42 and r.decr("n", 2) == 40 and r.incrbyfloat("n", 0.5) == 40.5
    assert r.append("s", "Hello") == 5 and r.append("s", " World") == 11
    assert r.getrange("s", 0, 4) == b"Hello" and r.getrange("s", -5, -1) == b"World"
    assert r.setrange("s", 6, "Redis") == 11 and r.strlen("s") == 11
    assert r.setrange("padded", 3, "x") == 4 and r.get("padded") == b"\0\0\0x"
    assert r.mset({"a": 1, "b": 2}) and r.mget("a", "b", "none") == [b"1", b"2", None]
    assert not r.msetnx({"b": 3, "c": 4}) and r.exists("c") == 0
    assert r.getset("a", "new") == b"1"
    assert r.execute_command("SETEX", "e", 10, "v") and r.execute_command("PSETEX", "p", 10_000, "v")
    assert r.ttl("e") in (9, 10) and r.ttl("p") in (9, 10)
    assert r.lcs("s", "s", len=True) == 11


@test
def binary_values_of_megabytes(r):
    chance = random.Random(1)
    for size in (1, 1023, 65_536, 1 << 20, (8 << 20) + 3):
        value = chance.randbytes(size)
        assert r.set(b"\x00bin\xff\r\n", value)
        assert r.get(b"\x00bin\xff\r\n") == value
        assert r.strlen(b"\x00bin\xff\r\n") == size
        assert r.getrange(b"\x00bin\xff\r\n", size // 2, -1) == value[size // 2 :]
    elements = [chance.randbytes(300_000) for _ in range(20)]
    assert r.rpush("big", *elements) == 20
    assert r.lrange("big", 0, -1) == elements
    assert r.lindex("big", 13) == elements[13]
    assert r.lpop("big", 20) == elements and r.exists("big") == 0
    assert r.keys() == [b"\x00bin\xff\r\n"]


@test
def pipelines_of_thousands(r):
    pipe = r.pipeline(transaction=False)
    for i in range(20_000):
        pipe.set(f"key:{i}", i)
        pipe.incr("counter")
        pipe.get(f"key:{i}")
    replies = pipe.execute()
    assert len(replies) == 60_000
    assert replies[0::3] == [True] * 20_000
    assert replies[1::3] == list(range(1, 20_001))
    assert replies[2::3] == [str(i).encode() for i in range(20_000)]
    assert r.dbsize() == 20_001
    pipe = r.pipeline(transaction=False)
    pipe.set("text", "x").incr("text").lpush("text", 1).get("text")
    replies = pipe.execute(raise_on_error=False)
    assert replies[0] is True and replies[3] == b"x"
    assert isinstance(replies[1], redis.ResponseError) and isinstance(replies[2], redis.ResponseError)
    raises(redis.ResponseError, "Command # 2", pipe.set("text", "x").incr("text").execute)


@test
def texts_in_and_out(r):
    texts = connect(decode_responses=True)
    assert texts.set("ключ", "значение ☃ 🐟") and texts.get("ключ") == "значение ☃ 🐟"
    assert texts.rpush("список", "α", "β") == 2 and texts.lrange("список", 0, -1) == ["α", "β"]
    assert sorted(texts.scan_iter()) == ["ключ", "список"]
    assert texts.type("список") == "list" and texts.object("encoding", "список") in ("listpack", "quicklist")
    assert r.get("ключ".encode()) == "значение ☃ 🐟".encode()
    texts.close()


@test
def hashes(r):
    assert r.hset("h", mapping={"name": "sardine", "age": 3, "weight": 0.5}) == 3
    assert r.hgetall("h") == {b"name": b"sardine", b"age": b"3", b"weight": b"0.5"}
    assert r.hget("h", "age") == b"3" and r.hget("h", "none") is None and r.hexists("h", "name")
    assert r.hincrby("h", "age", 4) == 7 and r.hincrbyfloat("h", "weight", 0.25) == 0.75
    assert r.hmget("h", "age", "none") == [b"7", None] and r.hlen("h") == 3 and r.hstrlen("h", "name") == 7
    assert r.hkeys("h") == [b"name", b"age", b"weight"] and r.hvals("h") == [b"sardine", b"7", b"0.75"]
    assert not r.hsetnx("h", "age", 1) and r.hdel("h", "age", "none") == 1
    big = {f"field:{i}": f"value:{i}" for i in range(5_000)}
    assert r.hset("big", mapping=big) == 5_000 and r.object("encoding", "big") == b"hashtable"
    assert {k.decode(): v.decode() for k, v in r.hscan_iter("big", count=300)} == big
    assert set(r.hrandfield("big", 100)) <= {k.encode() for k in big} and len(r.hrandfield("big", -50)) == 50
    assert r.hdel("big", *list(big)[:4_999]) == 4_999 and r.hlen("big") == 1
    if r.info("server")["redis_version"] >= "7.4":
        assert r.hexpire("h", 1_000, "name", "none") == [1, -2] and r.httl("h", "name", "weight")[1] == -1
        assert r.hpersist("h", "name") == [1] and r.hpexpire("h", 1, "name") == [1]
        time.sleep(0.05)
        assert r.hgetall("h") == {b"weight": b"0.75"}


@test
def sets(r):
    assert r.sadd("a", 1, 2, 3, "x") == 4 and r.sadd("a", 3) == 0 and r.scard("a") == 4
    assert r.sadd("b", 2, 3, 4) == 3 and r.object("encoding", "b") == b"intset"
    assert r.smembers("a") == {b"1", b"2", b"3", b"x"} and r.sismember("a", 2) and not r.sismember("a", 9)
    assert r.smismember("a", [1, 9, "x"]) == [1, 0, 1]
    assert r.sinter("a", "b") == {b"2", b"3"} and r.sunion("a", "b") == {b"1", b"2", b"3", b"4", b"x"}
    assert r.sdiff("a", "b") == {b"1", b"x"} and r.sintercard(2, ["a", "b"]) == 2 and r.sintercard(2, ["a", "b"], 1) == 1
    assert r.sinterstore("c", "a", "b") == 2 and r.smove("a", "c", "x") and r.smembers("c") == {b"2", b"3", b"x"}
    many = {b"%d" % (i * 7_919) for i in range(20_000)}
    assert r.sadd("many", *many) == 20_000 and set(r.sscan_iter("many", count=1_000)) == many
    popped = set(r.spop("many", 100))
    assert len(popped) == 100 and popped <= many and r.scard("many") == 19_900
    assert set(r.srandmember("many", 50)) <= many - popped and r.srem("many", *many) == 19_900 and not r.exists("many")


@test
def sorted_sets(r):
    assert r.zadd("z", {"a": 1, "b": 2.5, "c": 3}) == 3 and r.zadd("z", {"a": 5, "d": 0}, nx=True) == 1
    assert r.zadd("z", {"a": 5}, gt=True, ch=True) == 1 and r.zadd("z", {"a": 1}, gt=True, ch=True) == 0
    assert r.zrange("z", 0, -1, withscores=True) == [(b"d", 0.0), (b"b", 2.5), (b"c", 3.0), (b"a", 5.0)]
    assert r.zscore("z", "b") == 2.5 and r.zmscore("z", ["a", "none"]) == [5.0, None] and r.zincrby("z", 1, "d") == 1.0
    assert r.zrank("z", "c") == 2 and r.zrevrank("z", "c") == 1 and r.zrank("z", "none") is None
    assert r.zrangebyscore("z", "(1", "+inf") == [b"b", b"c", b"a"] and r.zcount("z", 1, 3) == 3
    assert r.zrange("z", "(5", 1, desc=True, byscore=True) == [b"c", b"b", b"d"]
    assert r.zpopmin("z") == [(b"d", 1.0)] and r.zpopmax("z", 2) == [(b"a", 5.0), (b"c", 3.0)]
    assert r.zadd("lex", dict.fromkeys("abcdef", 0)) == 6 and r.zrangebylex("lex", "[b", "(e") == [b"b", b"c", b"d"]
    board = {f"player:{i}": (i * 7_919) % 20_000 for i in range(20_000)}
    assert r.zadd("board", board) == 20_000 and r.zcard("board") == 20_000
    order = sorted(board.items(), key=lambda pair: pair[1])
    assert r.zrange("board", 10_000, 10_009) == [name.encode() for name, _ in order[10_000:10_010]]
    assert r.zrank("board", "player:77") == board["player:77"]
    assert {name.decode(): score for name, score in r.zscan_iter("board", count=500)} == board
    assert r.zremrangebyrank("board", 0, 19_989) == 19_990 and r.zremrangebyscore("board", "-inf", "+inf") == 10
    assert r.zadd("y", {"b": 1, "c": 1}) == 2 and r.zadd("z", {"b": 2.5, "c": 3}) == 1
    assert r.zunionstore("u", {"z": 2, "y": 1}, aggregate="SUM") == 2 and r.zscore("u", "c") == 7.0
    assert r.zinter(["z", "y"], withscores=True) == [(b"b", 3.5), (b"c", 4.0)] and r.zdiff(["z", "y"]) == []


@test
def streams(r):
    first = r.xadd("x", {"temperature": 20, "unit": "C"}, id="1-1")
    assert first == b"1-1" and r.xadd("x", {"temperature": 21, "unit": "C"}, id="1-2") == b"1-2" and r.xlen("x") == 2
    assert r.xrange("x") == [(b"1-1", {b"temperature": b"20", b"unit": b"C"}), (b"1-2", {b"temperature": b"21", b"unit": b"C"})]
    raises(redis.ResponseError, "equal or smaller", r.xadd, "x", {"a": 1}, id="1-2")
    pipe = r.pipeline(transaction=False)
    for i in range(10_000):
        pipe.xadd("log", {"host": f"web-{i % 7}", "number": i}, id=f"{i + 1}-0")
    assert len(pipe.execute()) == 10_000 and r.xlen("log") == 10_000
    assert [int(fields[b"number"]) for _, fields in r.xrange("log", "5001", "+", count=3)] == [5_000, 5_001, 5_002]
    assert r.xrevrange("log", count=1)[0][0] == b"10000-0" and r.xtrim("log", maxlen=100, approximate=False) == 9_900
    assert r.xgroup_create("log", "workers", id="0") and r.xinfo_groups("log")[0]["name"] == b"workers"
    taken = r.xreadgroup("workers", "anna", {"log": ">"}, count=10)
    entries = taken[0][1] if isinstance(taken, list) else taken[b"log"][0]
    assert len(entries) == 10 and r.xpending("log", "workers")["pending"] == 10
    assert r.xack("log", "workers", *[entry for entry, _ in entries[:4]]) == 4
    assert len(r.xclaim("log", "workers", "otto", 0, [entry for entry, _ in entries[4:6]])) == 2
    assert len(r.xautoclaim("log", "workers", "otto", 0)[1]) == 6
    assert r.xdel("log", entries[0][0]) == 1 and r.xlen("log") == 99 and r.xinfo_stream("log")["length"] == 99


@test
def sketches_and_places(r):
    assert r.pfadd("visitors", *range(1_000)) == 1 and r.pfadd("visitors", 7) == 0
    assert abs(r.pfcount("visitors") - 1_000) < 30 and r.type("visitors") == b"string"
    assert r.pfadd("others", *range(500, 1_500)) and r.pfmerge("all", "visitors", "others")
    assert r.pfcount("all") == r.pfcount("visitors", "others") and abs(r.pfcount("all") - 1_500) < 45
    assert r.set("moved", r.get("all")) and r.pfcount("moved") == r.pfcount("all")
    assert r.geoadd("sicily", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")) == 2
    assert r.geodist("sicily", "Palermo", "Catania", unit="km") == 166.2742
    assert r.geohash("sicily", "Palermo", "none") in ([b"sqc8b49rny0", None], ["sqc8b49rny0", None])
    lon, lat = r.geopos("sicily", "Palermo")[0]
    assert abs(lon - 13.361389) < 1e-5 and abs(lat - 38.115556) < 1e-5
    assert r.geosearch("sicily", longitude=15, latitude=37, radius=200, unit="km", sort="ASC") == [b"Catania", b"Palermo"]
    found = r.geosearch("sicily", member="Palermo", width=400, height=400, unit="km", withdist=True, withcoord=True)
    assert [one[0] for one in found] in ([b"Palermo", b"Catania"], [b"Catania", b"Palermo"])
    assert r.geosearchstore("near", "sicily", longitude=15, latitude=37, radius=100, unit="km", storedist=True) == 1
    assert abs(r.zscore("near", "Catania") - 56.4413) < 1e-3


@test
def both_protocols(r):
    for protocol in (2, 3):
        client = connect(protocol=protocol, decode_responses=True)
        assert client.set("k", "v") is True and client.get("none") is None
        hello = client.execute_command("HELLO", protocol)
        fields = hello if isinstance(hello, dict) else dict(zip(hello[::2], hello[1::2]))
        assert fields["proto"] == protocol and fields["role"] == "master" and fields["mode"] == "standalone"
        assert client.config_get("maxclients") == {"maxclients": "10000"}
        assert client.delete("l") == (protocol == 3) and client.rpush("l", "a", "b", "a") == 3
        assert client.lmpop(2, "none", "l", direction="LEFT") == ["l", ["a"]] and client.lpush("l", "a") == 3
        assert client.lpos("l", "a", count=0) == [0, 2] and client.lpos("l", "z") is None
        info = client.info("server")
        assert info["redis_mode"] == "standalone" and info["process_id"] > 0
        assert "get" in client.command() and client.command_count() > 50
        assert client.command_getkeys("MSET", "a", 1, "b", 2) == ["a", "b"]
        client.close()


@test
def scans_see_every_key_that_stays(r):
    r.mset({f"user:{i}": i for i in range(3000)})
    for i in range(100):
        r.rpush(f"queue:{i}", i)
    assert {key for key in r.scan_iter(count=37)} == set(r.keys())
    assert len(set(r.scan_iter(match="user:29*"))) == len(r.keys("user:29*")) == 111
    assert set(r.scan_iter(_type="list")) == {b"queue:%d" % i for i in range(100)}
    assert not list(r.scan_iter(_type="zset")) and not list(r.scan_iter(match="nothing*"))
    seen = set()
    for step, key in enumerate(r.scan_iter(match="user:*", count=50)):
        seen.add(key)
        r.set(f"new:{step}", 1)
        r.delete(f"queue:{step % 100}")
    assert seen == {b"user:%d" % i for i in range(3000)}
    assert r.randomkey() is not None and r.touch("user:1", "user:2", "none") == 2


@test
def lists(r):
    words = [b"%d" % i if i % 3 else b"word-%d" % i for i in range(5000)]
    assert r.rpush("l", *words) == 5000 and r.llen("l") == 5000
    assert r.lrange("l", 0, -1) == words and r.lrange("l", -10, -1) == words[-10:]
    assert r.lrange("l", 4990, 9999) == words[4990:] and r.lrange("l", 7, 3) == []
    assert [r.lindex("l", i) for i in (0, 2500, 4999, -1, -5000)] == [words[i] for i in (0, 2500, 4999, -1, 0)]
    assert r.lindex("l", 5000) is None
    assert r.linsert("l", "BEFORE", "word-300", "inserted") == 5001 and r.lindex("l", 300) == b"inserted"
    assert r.linsert("l", "AFTER", "no such", "x") == -1 and r.linsert("none", "AFTER", "a", "b") == 0
    assert r.lset("l", 300, "replaced") and r.lrem("l", 0, "replaced") == 1 and r.lrange("l", 0, -1) == words
    assert r.ltrim("l", 10, -11) and r.lrange("l", 0, -1) == words[10:-10]
    assert r.lpop("l") == words[10] and r.rpop("l") == words[-11] and r.lpop("l", 3) == words[11:14]
    assert r.lpop("none") is None and r.lpop("none", 2) is None and r.rpop("l", 0) == []
    assert r.rpoplpush("l", "m") == words[-12] and r.lmove("l", "m", "LEFT", "RIGHT") == words[14]
    assert r.lrange("m", 0, -1) == [words[-12], words[14]]
    assert r.lpushx("none", 1) == 0 and r.rpushx("m", "a", "b") == 4
    assert r.lmove("m", "m", "LEFT", "RIGHT") == words[-12]
    assert r.lpush("n", 1, 2, 3, 2, 1, 2) == 6
    assert r.lpos("n", 2) == 0 and r.lpos("n", 2, rank=2) == 2 and r.lpos("n", 2, rank=-1) == 4
    assert r.lpos("n", 2, count=0) == [0, 2, 4] and r.lpos("n", 2, count=0, maxlen=3) == [0, 2]
    assert r.lrem("n", -2, 2) == 2 and r.lrange("n", 0, -1) == [b"2", b"1", b"3", b"1"]
    assert r.ltrim("n", 5, 9) and r.exists("n") == 0 and r.type("n") == b"none"
    queue = [r.rpush("q", i) for i in range(1000)]
    assert queue == list(range(1, 1001)) and [int(r.lpop("q")) for _ in range(1000)] == list(range(1000))


@test
def times_to_live(r):
    r.mset({"a": 1, "b": 2, "c": 3})
    assert r.expire("a", 100) and r.ttl("a") in (99, 100) and not r.expire("none", 100)
    assert not r.expire("a", 50, gt=True) and r.expire("a", 50, lt=True) and r.expire("a", 200, gt=True)
    assert not r.expire("a", 9, nx=True) and not r.expire("b", 9, xx=True) and r.persist("a") and not r.persist("a")
    assert r.expireat("b", 4_000_000_000) and r.expiretime("b") == 4_000_000_000
    assert r.pexpireat("b", 4_000_000_000_001) and r.pexpiretime("b") == 4_000_000_000_001
    assert r.ttl("none") == -2 and r.ttl("c") == -1 and r.pttl("none") == -2
    assert r.pexpire("c", 20) and r.expire("b", -1) and r.exists("b") == 0
    r.set("gone", "v", px=20)
    r.rpush("l", 1)
    r.pexpire("l", 20)
    time.sleep(0.1)
    assert r.get("gone") is None and r.exists("c", "l") == 0 and r.keys() == [b"a"] and r.dbsize() == 1
    assert r.info("stats")["expired_keys"] >= 3


@test
def threads_share_a_blocking_pool(r):
    pool = redis.BlockingConnectionPool(
        host="127.0.0.1", port=PORT, max_connections=5, timeout=60, socket_timeout=60,
        connection_class=redis.SSLConnection if SECURE else redis.Connection, **SECURE
    )
    client = redis.Redis(connection_pool=pool)
    failures = []

    def work(number):
        try:
            for i in range(200):
                client.incr("total")
                client.rpush(f"list:{number}", i)
                assert client.set(f"own:{number}", i) and client.get(f"own:{number}") == b"%d" % i
            with client.pipeline(transaction=False) as pipe:
                for i in range(200):
                    pipe.lpop(f"list:{number}")
                assert pipe.execute() == [b"%d" % i for i in range(200)]
        except BaseException:
            failures.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures[0]
    assert int(client.get("total")) == 16 * 200 and client.exists(*(f"list:{n}" for n in range(16))) == 0
    assert sum(1 for c in r.client_list() if c["cmd"] != "client|list") <= 5
    pool.disconnect()


@test
def clients_have_names_and_can_be_listed_and_killed(r):
    named = connect(client_name="worker-1", retry=Retry(ConstantBackoff(0.01), 20))
    assert named.client_getname() == "worker-1" or named.client_getname() == b"worker-1"
    number = named.client_id()
    card = next(c for c in r.client_list() if int(c["id"]) == number)
    assert card["name"] == "worker-1" and card["lib-name"].startswith("redis-py") and card["lib-ver"]
    assert card["db"] == "0" and card["user"] == "default" and card["addr"].startswith("127.0.0.1:")
    assert named.client_info()["id"] == number
    assert named.client_setname("worker-2") and named.client_setinfo("LIB-NAME", "mine")
    assert named.client_info()["lib-name"] == "mine"
    assert r.client_list(_type="normal") and not r.client_list(_type="pubsub")
    assert [int(c["id"]) for c in r.client_list(client_id=[number])] == [number]
    raises(redis.ResponseError, "Client names cannot contain spaces", named.client_setname, "two words")
    raises(redis.ResponseError, "No such client", r.client_kill, "1.1.1.1:1")
    # The library notices that its connection is gone, connects anew and says its name again.
    assert r.client_kill_filter(_id=number) == 1 and r.client_kill_filter(_id=number) == 0
    assert named.set("after", "kill") and named.get("after") == b"kill"
    assert named.client_id() != number and named.client_getname() in ("worker-1", b"worker-1")
    address = named.client_info()["addr"]
    assert r.client_kill(address) is True and named.ping()
    # One that does not try again sees the end of its connection.
    plain = connect(retry=ONCE, single_connection_client=True)
    r.client_kill_filter(_id=plain.client_id())
    raises(redis.ConnectionError, "", plain.ping)
    assert plain.ping()
    named.close()
    plain.close()


@test
def clients_are_held_back_and_let_go(r):
    writer, done = connect(), []
    writer.set("k", "old")
    thread = threading.Thread(target=lambda: done.append(writer.set("k", "new")))
    r.client_pause(60_000, all=False)
    thread.start()
    while r.info("clients")["blocked_clients"] == 0:
        time.sleep(0.01)
    assert r.get("k") == b"old" and not done
    assert r.client_unpause()
    thread.join()
    assert done == [True] and r.get("k") == b"new"
    start = time.monotonic()
    # The server's clock counts whole milliseconds: the one that had begun counts as over.
    r.client_pause(52)
    assert r.ping() and time.monotonic() - start >= 0.05
    raises(redis.ResponseError, "timeout is negative", r.client_pause, -1)
    raises(redis.ResponseError, "should be TIMEOUT or ERROR", r.execute_command, "CLIENT", "UNBLOCK", 1, "x")
    assert r.client_getredir() == -1 and r.client_unblock(999_999) in (0, False)


@test
def errors_become_exceptions(r):
    r.set("s", "text")
    r.rpush("l", 1)
    raises(redis.ResponseError, "WRONGTYPE Operation against a key", r.lpush, "s", 1)
    raises(redis.ResponseError, "WRONGTYPE Operation against a key", r.get, "l")
    raises(redis.ResponseError, "value is not an integer or out of range", r.incr, "s")
    raises(redis.ResponseError, "wrong number of arguments for 'get' command", r.execute_command, "GET")
    raises(redis.ResponseError, "unknown command 'NOSUCH', with args beginning with: 'a' 'b'",
           r.execute_command, "NOSUCH", "a", "b")
    raises(redis.ResponseError, "syntax error", r.execute_command, "SET", "k", "v", "MAYBE")
    raises(redis.ResponseError, "index out of range", r.lset, "l", 5, "x")
    raises(redis.ResponseError, "no such key", r.lset, "none", 0, "x")
    raises(redis.ResponseError, "invalid expire time in 'set' command", r.execute_command, "SET", "k", "v", "EX", 0)
    raises(redis.ResponseError, "unknown subcommand 'NOSUCH'. Try CONFIG HELP", r.execute_command, "CONFIG", "NOSUCH")
    raises(redis.ResponseError, "DB index is out of range", r.execute_command, "SELECT", 16)
    raises(redis.ResponseError, "Unknown option or number of arguments", r.config_set, "no-such-setting", 1)
    assert r.ping() is True


@test
def databases_are_apart(r):
    other = connect(db=3)
    r.set("k", 0)
    other.set("k", 3)
    assert r.get("k") == b"0" and other.get("k") == b"3"
    assert r.info("keyspace")["db3"]["keys"] == 1
    assert other.flushdb() and r.dbsize() == 1 and other.dbsize() == 0
    assert other.set("k", 4) and r.flushall(asynchronous=True) and other.get("k") is None
    other.close()


@test
def settings_and_information(r):
    assert r.config_get("list-max-*")["list-max-listpack-size"] == "-2"
    assert r.config_get("list-compress-depth", "timeout") == {"list-compress-depth": "0", "timeout": "0"}
    r.config_set("list-max-listpack-size", 10, "list-compress-depth", 1)
    assert r.config_get("list-compress-depth")["list-compress-depth"] == "1"
    texts = [b"some text that compresses " * 4 + b"%d" % i for i in range(500)]
    r.rpush("l", *texts)
    assert r.lrange("l", 0, -1) == texts and r.object("encoding", "l") == b"quicklist"
    assert r.debug_object("l")["encoding"] in ("quicklist", b"quicklist")
    r.config_set("list-max-listpack-size", -2, "list-compress-depth", 0)
    info = r.info()
    assert info["redis_version"].split(".")[0] in ("7", "8") and info["connected_clients"] >= 1
    assert info["used_memory"] > 0 and info["used_memory_human"] and info["role"] == "master"
    assert info["db0"]["keys"] == 1 and isinstance(info["db0"]["avg_ttl"], int)
    assert r.info("commandstats")["cmdstat_rpush"]["calls"] >= 1
    assert r.info("all")["tcp_port"] == PORT and "keyspace_hits" in r.info("stats")
    assert r.config_resetstat() and "cmdstat_rpush" not in r.info("commandstats")
    assert r.memory_usage("l") > 500 and r.memory_usage("none") is None
    r.set("number", 12345)
    assert r.object("encoding", "number") == b"int" and r.object("refcount", "number") >= 1
    assert r.echo("hello") == b"hello" and r.ping() is True


@test
def unix_sockets(r):
    local = redis.Redis(unix_socket_path=SOCKET, socket_timeout=60)
    assert local.set("k", "v" * 3_000_000) and len(r.get("k")) == 3_000_000 and len(local.get("k")) == 3_000_000
    assert SOCKET in local.client_info()["addr"]
    local.close()


@test
def passwords(r):
    r.config_set("requirepass", "s3cret")
    try:
        raises(redis.AuthenticationError, "Authentication required", connect(protocol=2, retry=ONCE).ping)
        raises(redis.AuthenticationError, "HELLO must be called", connect(protocol=3, retry=ONCE).ping)
        wrong = connect(password="guess", retry=ONCE)
        raises(redis.AuthenticationError, "invalid username-password pair", wrong.ping)
        for protocol in (2, 3):
            for user in (None, "default"):
                friend = connect(username=user, password="s3cret", protocol=protocol)
                assert friend.ping() and friend.set("k", "v")
                friend.close()
        scheme = "rediss" if SECURE else "redis"
        assert redis.Redis.from_url(f"{scheme}://:s3cret@127.0.0.1:{PORT}/2", **SECURE).ping()
    finally:
        connect(password="s3cret").config_set("requirepass", "")
    assert connect().ping()


@test
def resets(r):
    client = connect(protocol=2, single_connection_client=True, decode_responses=True)
    client.execute_command("SELECT", 5)
    client.client_setname("x")
    assert client.execute_command("RESET") in ("RESET", b"RESET")
    assert client.client_info()["db"] in (0, "0") and not client.client_getname()
    client.close()


def main():
    chosen = [t for t in TESTS if not sys.argv[3:] or t.__name__ in sys.argv[3:]]
    assert chosen, "no such test"
    for function in chosen:
        client = connect()
        client.flushall()
        started = time.monotonic()
        function(client)
        client.close()
        print(f"ok {function.__name__} {time.monotonic() - started:.2f} s", flush=True)


main()
