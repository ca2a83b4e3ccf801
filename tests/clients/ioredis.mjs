// ioredis used in anger: what Node applications do with it, against a server that starts empty.
//
//     node ioredis.mjs PORT SOCKET FOLDER
//
// PORT is of 127.0.0.1, SOCKET the path of the same server's Unix socket, FOLDER where node_modules/ioredis lies. With a
// folder in the variable CERTIFICATES (ca.crt, client.crt, client.key) the port is for TLS. It passes on a real
// redis-server too. The first test that fails ends it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const [port, socket, folder] = process.argv.slice(2);
const Redis = createRequire(path.join(path.resolve(folder), "x.js"))("ioredis");
const certificates = process.env.CERTIFICATES;
const file = (name) => readFileSync(path.join(certificates, name));
const tls = certificates && { ca: file("ca.crt"), cert: file("client.crt"), key: file("client.key") };
const address = { host: "127.0.0.1", port: Number(port), ...(tls && { tls }) };
const connect = (options = {}) => new Redis({ ...address, ...options });

const tests = {
  async "strings, numbers and times"(r) {
    assert.equal(await r.set("k", "v"), "OK");
    assert.equal(await r.set("k", "w", "NX"), null);
    assert.equal(await r.set("k", "w", "EX", 100, "XX", "GET"), "v");
    assert.ok((await r.ttl("k")) > 97);
    assert.equal(await r.getex("k", "PERSIST"), "w");
    assert.equal(await r.ttl("k"), -1);
    assert.equal(await r.incrby("n", "9007199254740993"), 9007199254740992);
    assert.equal(await r.get("n"), "9007199254740993");
    assert.equal(await r.incrbyfloat("f", 1.25), "1.25");
    assert.deepEqual(await r.mget("k", "none", "f"), ["w", null, "1.25"]);
    await r.mset(new Map([["a", 1], ["b", 2]]));
    assert.equal(await r.del("a", "b", "none"), 2);
    await r.set("gone", "x", "PX", 10);
    await sleep(60);
    assert.equal(await r.exists("gone"), 0);
  },

  async "megabytes of binary"(r) {
    const value = randomBytes(5 * 1024 * 1024 + 1);
    await r.set("big", value);
    assert.ok((await r.getBuffer("big")).equals(value));
    const parts = Array.from({ length: 30 }, () => randomBytes(200_000));
    assert.equal(await r.rpush("parts", ...parts), 30);
    const back = await r.lrangeBuffer("parts", 0, -1);
    assert.ok(back.every((part, i) => part.equals(parts[i])));
  },

  async "thousands of requests at once"(r) {
    const pipeline = r.pipeline();
    for (let i = 0; i < 10_000; i++) pipeline.rpush("l", i).lindex("l", -1);
    const replies = await pipeline.exec();
    replies.forEach(([error, reply], i) => {
      assert.equal(error, null);
      assert.equal(reply, i % 2 ? String((i - 1) / 2) : i / 2 + 1);
    });
    const single = await Promise.all(Array.from({ length: 5_000 }, (_, i) => r.lindex("l", i)));
    assert.ok(single.every((reply, i) => reply === String(i)));
    const automatic = connect({ enableAutoPipelining: true });
    const sums = await Promise.all(Array.from({ length: 2_000 }, () => automatic.incr("sum")));
    assert.deepEqual(sums.sort((a, b) => a - b), Array.from({ length: 2_000 }, (_, i) => i + 1));
    automatic.disconnect();
    const mixed = await r.set("text", "x") && await r.pipeline().incr("text").get("text").exec();
    assert.match(mixed[0][0].message, /^ERR value is not an integer/);
    assert.deepEqual(mixed[1], [null, "x"]);
  },

  async "lists"(r) {
    assert.equal(await r.rpush("l", "a", "b", "c", "a"), 4);
    assert.deepEqual(await r.lpos("l", "a", "COUNT", 0), [0, 3]);
    assert.deepEqual(await r.lmpop(2, "none", "l", "RIGHT", "COUNT", 2), ["l", ["a", "c"]]);
    assert.equal(await r.linsert("l", "BEFORE", "b", "x"), 3);
    assert.equal(await r.lmove("l", "m", "LEFT", "LEFT"), "a");
    assert.deepEqual(await r.lpop("l", 9), ["x", "b"]);
    assert.equal(await r.lpop("l"), null);
    await assert.rejects(r.lset("none", 0, "x"), /^ReplyError: ERR no such key$/);
    await assert.rejects(r.get("m"), /^ReplyError: WRONGTYPE Operation against a key/);
  },

  async "hashes, sets and sorted sets"(r) {
    assert.equal(await r.hset("h", { name: "sardine", age: 3 }), 2);
    assert.deepEqual(await r.hgetall("h"), { name: "sardine", age: "3" });
    assert.equal(await r.hincrby("h", "age", 2), 5);
    assert.deepEqual(await r.hmget("h", "age", "none"), ["5", null]);
    const fields = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`f:${i}`, `v:${i}`]));
    await r.hset("big", fields);
    const seen = {};
    for await (const some of r.hscanStream("big", { count: 200 }))
      for (let i = 0; i < some.length; i += 2) seen[some[i]] = some[i + 1];
    assert.deepEqual(seen, fields);
    assert.equal(await r.sadd("s", 1, 2, "x"), 3);
    assert.equal(await r.sadd("t", 2, 3), 2);
    assert.deepEqual((await r.sunion("s", "t")).sort(), ["1", "2", "3", "x"]);
    assert.deepEqual(await r.sinter("s", "t"), ["2"]);
    assert.equal(await r.sismember("s", "x"), 1);
    assert.equal(await r.zadd("z", 1, "a", 2.5, "b", 3, "c"), 3);
    assert.deepEqual(await r.zrange("z", 0, -1, "WITHSCORES"), ["a", "1", "b", "2.5", "c", "3"]);
    assert.equal(await r.zincrby("z", 5, "a"), "6");
    assert.deepEqual(await r.zrangebyscore("z", "(2.5", "+inf", "LIMIT", 0, 1), ["c"]);
    assert.equal(await r.zrank("z", "a"), 2);
    assert.deepEqual(await r.zpopmin("z"), ["b", "2.5"]);
  },

  async "streams, sketches and places"(r) {
    assert.equal(await r.xadd("x", "1-1", "host", "a", "n", 1), "1-1");
    for (let i = 2; i < 1_000; i++) r.xadd("x", `1-${i}`, "host", `h${i % 5}`, "n", i);
    assert.deepEqual(await r.xrange("x", "1-998", "+"), [["1-998", ["host", "h3", "n", "998"]], ["1-999", ["host", "h4", "n", "999"]]]);
    assert.equal(await r.xgroup("CREATE", "x", "g", "1-990"), "OK");
    const [[name, entries]] = await r.xreadgroup("GROUP", "g", "anna", "COUNT", 5, "STREAMS", "x", ">");
    assert.deepEqual([name, entries.length], ["x", 5]);
    assert.equal(await r.xack("x", "g", ...entries.map(([id]) => id)), 5);
    assert.equal(await r.xtrim("x", "MAXLEN", 10), 989);
    assert.equal(await r.pfadd("p", "a", "b", "c"), 1);
    assert.equal(await r.pfcount("p"), 3);
    await r.geoadd("g", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania");
    assert.equal(await r.geodist("g", "Palermo", "Catania", "km"), "166.2742");
    assert.deepEqual(await r.geosearch("g", "FROMLONLAT", 15, 37, "BYRADIUS", 100, "km", "WITHDIST"), [["Catania", "56.4413"]]);
  },

  async "a stream of all keys"(r) {
    const keys = Array.from({ length: 2_500 }, (_, i) => `key:${i}`);
    await r.mset(...keys.flatMap((key) => [key, 1]));
    const seen = new Set();
    for await (const some of r.scanStream({ match: "key:*", count: 100 })) some.forEach((key) => seen.add(key));
    assert.equal(seen.size, 2_500);
    assert.equal((await r.keys("key:24*")).length, 111);
    assert.equal(await r.dbsize(), 2_500);
  },

  async "key prefixes, databases and the Unix socket"(r) {
    const prefixed = connect({ keyPrefix: "app:", db: 2 });
    await prefixed.rpush("l", 1, 2);
    assert.deepEqual(await prefixed.keys("*"), ["app:l"]);
    const local = new Redis(socket, { db: 2 });
    assert.deepEqual(await local.lrange("app:l", 0, -1), ["1", "2"]);
    assert.equal(await r.dbsize(), 0);
    await local.flushdb();
    assert.equal(await prefixed.exists("l"), 0);
    prefixed.disconnect();
    local.disconnect();
  },

  async "a killed client connects again and sends what was not answered"(r) {
    const victim = connect({ connectionName: "victim", retryStrategy: () => 5 });
    await victim.ping();
    const line = (await r.client("LIST")).split("\n").find((card) => card.includes(" name=victim "));
    assert.match(line, / lib-name=ioredis/);
    const ended = new Promise((resolve) => victim.once("close", resolve));
    assert.equal(await r.client("KILL", "ID", /^id=(\d+)/.exec(line)[1]), 1);
    await ended;
    assert.equal(await victim.set("k", "v"), "OK");
    assert.equal(await victim.client("GETNAME"), "victim");
    victim.disconnect();
  },

  async "the readiness check, information and settings"(r) {
    assert.match(await r.info("server"), /\r\nredis_version:[78]\./);
    assert.match(await r.info("persistence"), /\r\nloading:0\r\n/);
    assert.deepEqual(await r.config("GET", "maxclients"), ["maxclients", "10000"]);
    const [[name, arity, flags, first, last, step]] = await r.command("INFO", "lpush");
    assert.deepEqual([name, arity, first, last, step], ["lpush", -3, 1, 1, 1]);
    assert.ok(flags.includes("write") && flags.includes("denyoom"));
    assert.deepEqual(await r.command("GETKEYS", "lmpop", 2, "a", "b", "LEFT"), ["a", "b"]);
  },

  async "a password"(r) {
    await r.config("SET", "requirepass", "s3cret");
    try {
      const friend = connect({ password: "s3cret" });
      assert.equal(await friend.ping(), "PONG");
      friend.disconnect();
      const stranger = connect({ enableReadyCheck: false });
      stranger.on("error", () => {});
      await assert.rejects(stranger.get("k"), /^ReplyError: NOAUTH /);
      stranger.disconnect();
    } finally {
      await r.config("SET", "requirepass", "");
    }
  },

  async "transactions, and keys that are watched"(r) {
    assert.deepEqual(await r.multi().set("a", 1).incr("a").lpush("l", "x").exec(), [[null, "OK"], [null, 2], [null, 1]]);
    const [[none, ok], [error], [, text]] = await r.multi().set("t", "x").incr("t").get("t").exec();
    assert.deepEqual([none, ok, text], [null, "OK", "x"]);
    assert.match(error.message, /^ERR value is not an integer/);
    await assert.rejects(r.multi().set("t", "y").call("GET").exec(), /EXECABORT Transaction discarded/);
    assert.equal(await r.get("t"), "x");
    const other = connect();
    await r.watch("t");
    await other.set("t", "theirs");
    assert.equal(await r.multi().set("t", "mine").exec(), null);
    assert.equal(await r.get("t"), "theirs");
    // Four that read a number and write the next one; whoever was late tries again.
    const count = async () => {
      const client = connect();
      for (let done = 0; done < 50; ) {
        await client.watch("n");
        const next = Number(await client.get("n")) + 1;
        if (await client.multi().set("n", next).exec()) done++;
      }
      client.disconnect();
    };
    await Promise.all([count(), count(), count(), count()]);
    assert.equal(await r.get("n"), "200");
    other.disconnect();
  },

  async "clients that wait for keys"(r) {
    const clients = Array.from({ length: 6 }, () => connect());
    const wait = async (at, command, ...words) => {
      const id = await clients[at].client("ID");
      // As an object: a promise would be waited for at once.
      const waiting = { reply: clients[at].call(command, ...words) };
      while (!/ flags=\w*b/.test(await r.client("LIST", "ID", id))) await sleep(2);
      return waiting;
    };
    const first = await wait(0, "BLPOP", "none", "l", 0), second = await wait(1, "BRPOP", "l", 0);
    await r.rpush("l", "a", "b");
    assert.deepEqual([await first.reply, await second.reply], [["l", "a"], ["l", "b"]]);
    const move = await wait(0, "BLMOVE", "from", "over", "LEFT", "RIGHT", 0), push = await wait(1, "BRPOPLPUSH", "over", "to", 0);
    await r.multi().rpush("from", "x").set("k", 1).exec();
    assert.deepEqual([await move.reply, await push.reply, await r.lrange("to", 0, -1)], ["x", "x", ["x"]]);
    const least = await wait(2, "BZPOPMIN", "z", 0), most = await wait(3, "BZMPOP", 0, 1, "z", "MAX", "COUNT", 2);
    await r.zadd("z", 1, "a", 2, "b", 3, "c");
    assert.deepEqual(await least.reply, ["z", "a", "1"]);
    assert.deepEqual(await most.reply, ["z", [["c", "3"], ["b", "2"]]]);
    const read = await wait(4, "XREAD", "BLOCK", 0, "STREAMS", "x", "$");
    await r.xadd("x", "1-1", "f", "v");
    assert.deepEqual(await read.reply, [["x", [["1-1", ["f", "v"]]]]]);
    assert.equal(await r.blpop("none", 0.05), null);
    const unblocked = await wait(5, "BLPOP", "none", 0);
    const failed = assert.rejects(unblocked.reply, /^ReplyError: UNBLOCKED client unblocked via CLIENT UNBLOCK/);
    assert.equal(await r.client("UNBLOCK", await r.client("LIST").then((list) => /id=(\d+) .* flags=\w*b/.exec(list)[1]), "ERROR"), 1);
    await failed;
    clients.forEach((client) => client.disconnect());
  },

  async "messages and events of keys"(r) {
    const listener = connect(), heard = [];
    const come = async (count) => { while (heard.length < count) await sleep(2); return heard.splice(0); };
    listener.on("message", (channel, message) => heard.push([channel, message]));
    listener.on("pmessage", (pattern, channel, message) => heard.push([pattern, channel, message]));
    listener.on("smessage", (channel, message) => heard.push(["shard", channel, message]));
    assert.equal(await listener.subscribe("news", "other"), 2);
    assert.equal(await listener.psubscribe("n?ws*"), 3);
    assert.equal(await listener.ssubscribe("news"), 1);
    assert.deepEqual([await r.publish("news", "one"), await r.publish("newsletter", "two"), await r.spublish("news", "three")], [2, 1, 1]);
    assert.deepEqual(await come(4), [["news", "one"], ["n?ws*", "news", "one"], ["n?ws*", "newsletter", "two"], ["shard", "news", "three"]]);
    assert.deepEqual(await r.pubsub("NUMSUB", "news", "none"), ["news", 1, "none", 0]);
    assert.equal(await r.pubsub("NUMPAT"), 1);
    await assert.rejects(listener.get("k"), /subscriber mode/);
    await r.pipeline(Array.from({ length: 3_000 }, (_, n) => ["publish", "other", n])).exec();
    assert.deepEqual(await come(3_000), Array.from({ length: 3_000 }, (_, n) => ["other", String(n)]));
    assert.equal(await listener.unsubscribe("news", "other"), 1);
    assert.equal(await listener.punsubscribe("n?ws*"), 0);
    assert.equal(await r.publish("news", "nobody"), 0);
    await r.config("SET", "notify-keyspace-events", "KEA");
    await listener.psubscribe("__key*@0__:*");
    await r.multi().set("k", 1).expire("k", 100).del("k").exec();
    const events = (await come(6)).map(([, channel, message]) => [channel.split(":")[0], channel.split(":")[1], message]);
    assert.deepEqual(events, ["set", "expire", "del"].flatMap((event) => [["__keyspace@0__", "k", event], ["__keyevent@0__", event, "k"]]));
    await r.config("SET", "notify-keyspace-events", "");
    listener.disconnect();
  },

  async "invalidations for the copies of another connection"(r) {
    const listener = connect(), keeper = connect(), heard = [];
    const id = await listener.client("ID");
    listener.on("message", (channel, keys) => heard.push([channel, keys]));
    await listener.subscribe("__redis__:invalidate");
    assert.equal(await keeper.client("TRACKING", "ON", "REDIRECT", id), "OK");
    await r.set("k", 1);
    assert.equal(await keeper.get("k"), "1");
    assert.equal(await keeper.client("GETREDIR"), id);
    await r.set("k", 2);
    while (heard.length < 1) await sleep(2);
    assert.equal(heard[0][0], "__redis__:invalidate");
    assert.equal(String(heard[0][1]), "k");
    listener.disconnect();
    keeper.disconnect();
  },

  async "users"(r) {
    try {
      await r.call("ACL", "SETUSER", "ann", "on", ">secret", "~app:*", "%R~in:*", "&news*", "+@read", "+@connection", "+set", "+publish", "+info");
      const ann = connect({ username: "ann", password: "secret", enableReadyCheck: false });
      assert.equal(await ann.set("app:1", "x"), "OK");
      assert.equal(await ann.get("in:1"), null);
      await assert.rejects(ann.set("in:1", 1), /NOPERM No permissions to access a key/);
      await assert.rejects(ann.del("app:1"), /NOPERM User ann has no permissions to run the 'del' command/);
      await assert.rejects(ann.publish("secret", 1), /NOPERM No permissions to access a channel/);
      const stranger = connect({ username: "ann", password: "guess", enableReadyCheck: false, retryStrategy: null });
      const refused = new Promise((resolve) => stranger.on("error", resolve));
      assert.match(String(await refused), /WRONGPASS invalid username-password pair/);
      await r.call("ACL", "SETUSER", "ann", "-@read");
      await assert.rejects(ann.get("app:1"), /NOPERM User ann has no permissions to run the 'get' command/);
      ann.on("error", () => {});
      const ended = new Promise((resolve) => ann.once("close", resolve));
      assert.equal(await r.call("ACL", "DELUSER", "ann"), 1);
      await ended;
      ann.disconnect();
      assert.ok((await r.call("ACL", "LOG")).length >= 4);
    } finally {
      await r.call("ACL", "DELUSER", "ann");
      await r.call("ACL", "LOG", "RESET");
    }
  },

  async quitting() {
    const client = connect();
    await client.set("k", "v");
    assert.equal(await client.quit(), "OK");
  },
};

for (const [name, test] of Object.entries(tests)) {
  const client = connect();
  await client.flushall();
  await test(client);
  client.disconnect();
  console.log(`ok ${name}`);
}
