// Locks, rate limiters and unique jobs of Node's libraries, as they are: each is a script or two.
//
//     node locks.mjs FOLDER HOST PORT
//
// FOLDER has the node_modules.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [folder, host, port] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const Redis = require("ioredis");
const { default: Redlock } = require("redlock");
const { RateLimiterRedis, BurstyRateLimiter } = require("rate-limiter-flexible");
const { RedisStore } = require("rate-limit-redis");
const { Queue } = require("bullmq");

const connect = (options = {}) => new Redis({ host, port: Number(port), ...options });
const [one, two] = [connect(), connect()];
const HOUR_S = 3600;
const HOUR_MS = HOUR_S * 1000;
const passes = async (tries) => {
  const told = await Promise.allSettled(tries);
  const errors = told.filter(({ reason }) => reason instanceof Error);
  assert.deepEqual(errors, []);
  return told.filter(({ status }) => status === "fulfilled").length;
};

const tests = {
  "rate-limiter-flexible allows as many points as it has": async () => {
    const limiter = new RateLimiterRedis({ storeClient: one, points: 5, duration: HOUR_S, keyPrefix: "few" });
    for (const left of [4, 3, 2, 1, 0]) assert.equal((await limiter.consume("me")).remainingPoints, left);
    const refused = await limiter.consume("me").catch((told) => told);
    assert.ok(refused.msBeforeNext > HOUR_MS / 2 && refused.consumedPoints === 6);
    assert.equal((await limiter.reward("me", 2)).consumedPoints, 4);
    assert.equal((await limiter.penalty("me", 1)).consumedPoints, 5);
    assert.equal((await limiter.get("me")).remainingPoints, 0);
    assert.equal(await limiter.delete("me"), true);
    assert.equal(await limiter.get("me"), null);
    await limiter.block("me", HOUR_S);
    await assert.rejects(limiter.consume("me"), ({ msBeforeNext }) => msBeforeNext > HOUR_MS / 2);
  },
  "rate-limiter-flexible counts what two clients take at once": async () => {
    const of = (storeClient) => new RateLimiterRedis({ storeClient, points: 20, duration: HOUR_S, keyPrefix: "many" });
    const limiters = [of(one), of(two)];
    assert.equal(await passes([...Array(60).keys()].map((n) => limiters[n % 2].consume("all"))), 20);
  },
  "rate-limiter-flexible lets bursts through a second limit": async () => {
    const of = (points, keyPrefix) => new RateLimiterRedis({ storeClient: one, points, duration: HOUR_S, keyPrefix });
    const limiter = new BurstyRateLimiter(of(2, "steady"), of(3, "burst"));
    let count = 0;
    for (let n = 0; n < 9; n += 1) count += await limiter.consume("me").then(() => 1, () => 0);
    assert.equal(count, 5);
  },
  "rate-limit-redis counts hits in its window": async () => {
    const store = new RedisStore({ sendCommand: (...words) => one.call(...words), prefix: "hits:" });
    await store.init({ windowMs: HOUR_MS });
    assert.equal((await store.increment("me")).totalHits, 1);
    const { totalHits, resetTime } = await store.increment("me");
    assert.ok(totalHits === 2 && resetTime.getTime() > Date.now() + HOUR_MS / 2);
    await store.decrement("me");
    assert.equal((await store.get("me")).totalHits, 1);
    await one.script("FLUSH");
    assert.equal((await store.increment("me")).totalHits, 2, "after its scripts were forgotten");
    await store.resetKey("me");
    assert.equal((await store.increment("me")).totalHits, 1);
  },
  "redlock keeps others out, extends, and lets go": async () => {
    const of = (client) => new Redlock([client], { retryCount: 0 });
    let lock = await of(one).acquire(["lock:a", "lock:b"], HOUR_MS);
    await assert.rejects(of(two).acquire(["lock:b"], HOUR_MS));
    lock = await lock.extend(2 * HOUR_MS);
    assert.ok((await one.pttl("lock:a")) > 1.5 * HOUR_MS);
    await lock.release();
    assert.equal(await one.exists("lock:a", "lock:b"), 0);
    const other = await of(two).acquire(["lock:b"], HOUR_MS);
    await one.set("lock:b", "a stranger's");
    await assert.rejects(other.release());
    assert.equal(await one.get("lock:b"), "a stranger's");
  },
  "redlock guards a counter": async () => {
    const locks = [one, two].map((client) => new Redlock([client], { retryCount: -1, retryDelay: 1, retryJitter: 2 }));
    const step = async (n) => {
      const lock = await locks[n % 2].acquire(["lock:counter"], HOUR_MS);
      const seen = Number(await one.get("counted:node"));
      await two.set("counted:node", seen + 1);
      await lock.release();
    };
    await Promise.all([...Array(30).keys()].map(step));
    assert.equal(await one.get("counted:node"), "30");
  },
  "bullmq keeps jobs unique": async () => {
    const connection = { host, port: Number(port), maxRetriesPerRequest: null };
    const queue = new Queue("unique", { connection });
    const add = (id, more = {}) => queue.add("job", {}, { deduplication: { id, ...more } });
    const added = await Promise.all([add("a"), add("a"), add("b"), add("a")]);
    const [first, second, other, third] = added.map(({ id }) => id);
    assert.ok(first === second && first === third && first !== other, added.map(({ id }) => id));
    assert.equal((await add("c", { ttl: HOUR_MS })).id, (await add("c", { ttl: HOUR_MS })).id);
    assert.equal(await queue.getDeduplicationJobId("a"), first);
    assert.equal(await queue.getWaitingCount(), 3);
    await queue.removeDeduplicationKey("a");
    assert.notEqual((await add("a")).id, first);
    await queue.obliterate({ force: true });
    await queue.close();
  },
};

for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log(`ok ${name}`);
}
one.disconnect();
two.disconnect();
