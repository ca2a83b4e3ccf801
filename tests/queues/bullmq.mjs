// A queue of BullMQ under the harness of crates/testkit/src/queues, which kills its processes and the server.
//
//     node bullmq.mjs add|work|watch FOLDER HOST PORT SEED JOBS HOLD NEXT DONE hasty|patient
//
// FOLDER has the node_modules. What is written on standard output and read from standard input is told in
// crates/testkit/src/queues/mod.rs.
//
// Jobs are drawn from the seed: plain ones, some with a delay or a priority, some that come in bulk or to the
// front, some that fail once or twice and are tried again, and flows, whose parent waits for its children.
import { writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [role, folder, host, port, seed, jobs, hold, next, done] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { Queue, FlowProducer, Worker } = require("bullmq");
const Redis = require("ioredis");

const NAME = "sardine";
const EVENTS_MAX = 100_000_000;
const WINDOW = 64;
const BULK = 5;
const connection = { host, port: Number(port), maxRetriesPerRequest: null, retryStrategy: () => 50 };
// A killed server closes connections: that is no news, and the library connects anew.
const LOST = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT"]);

const tell = (line) => writeSync(1, `${line}\n`);
const note = (error) => LOST.has(error.code) || tell(`note ${String(error.message).replaceAll("\n", " ")}`);
const queueOf = () => {
  const queue = new Queue(NAME, { connection, streams: { events: { maxLen: EVENTS_MAX } } });
  queue.on("error", note);
  return queue;
};

/** A number that depends on the seed, the unit and what it is for. */
function draw(unit, what, below) {
  let x = (Number(seed) * 0x9e3779b1 + unit * 0x85ebca6b + what * 0xc2b2ae35) >>> 0;
  for (const by of [0x7feb352d, 0x846ca68b]) x = Math.imul(x ^ (x >>> 15), by) >>> 0;
  return ((x ^ (x >>> 16)) >>> 0) % below;
}

const RETRIED = () => ({ attempts: 4, backoff: { type: "exponential", delay: 20 } });
/** A job as addBulk takes it. */
const job = (id, data = {}, opts = {}) => ({ name: "job", data, opts: { jobId: id, ...opts } });
const failing = (id, times) => job(id, { fails: times }, RETRIED());

/** What is added in one step: the jobs, or the flow with them. Ids begin with the unit's number. */
function unitOf(unit) {
  const id = `u${unit}`;
  if (unit % Number(hold) === draw(0, 9, Number(hold))) return { list: [job(id, { hold: true })] };
  const kind = draw(unit, 1, 20);
  if (kind < 8) return { list: [job(id)] };
  if (kind < 11) return { list: [job(id, {}, { delay: 20 + draw(unit, 2, 1000) })] };
  if (kind < 14) return { list: [failing(id, 1 + draw(unit, 2, 2))] };
  if (kind < 16) return { list: [job(id, {}, { priority: 1 + draw(unit, 2, 5) })] };
  if (kind === 16) return { list: [job(id, {}, { lifo: true })] };
  if (kind === 17) return { list: [...Array(BULK).keys()].map((n) => job(`${id}-b${n}`)) };
  const children = [job(`${id}-c0`), job(`${id}-c1`, {}, { delay: 30 }), failing(`${id}-c2`, 1)];
  const parent = { ...job(id, { parent: true }), queueName: NAME };
  return { flow: { ...parent, children: children.map((child) => ({ ...child, queueName: NAME })) } };
}

const idsOf = ({ list, flow }) => (list ?? [flow, ...flow.children]).map((one) => one.opts.jobId);

/** Calls back with every line that the harness writes, and ends the process when there is nobody to write. */
function listen(words) {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => words[line.split(" ")[0]]?.());
  lines.on("close", () => process.exit(0));
}

async function add() {
  const queue = queueOf();
  const flows = new FlowProducer({ connection });
  flows.on("error", note);
  const skipped = new Set(done.split(",").filter(Boolean).map(Number));
  let isPaused = false;
  let hasTold = false;
  let wake = () => {};
  const changed = () => wake();
  const change = () => new Promise((resolve) => (wake = resolve));
  const going = new Set();
  const pause = () => {
    isPaused = true;
    changed();
  };
  const go = () => {
    isPaused = false;
    // The next pause is to be told, even if its word comes with this one.
    hasTold = false;
    changed();
  };
  listen({ pause, go });
  const addUnit = async (unit, it) => {
    if (it.flow) await flows.add(it.flow);
    else if (it.list.length > 1) await queue.addBulk(it.list);
    else await queue.add(it.list[0].name, it.list[0].data, it.list[0].opts);
    tell(`added ${unit} ${idsOf(it).join(" ")}`);
  };
  for (let unit = 0, count = 0; count < Number(jobs); unit += 1) {
    const it = unitOf(unit);
    count += idsOf(it).length;
    if (unit < Number(next) || skipped.has(unit)) continue;
    while (isPaused || going.size >= WINDOW) {
      if (isPaused && going.size === 0 && !hasTold) tell("paused");
      hasTold = isPaused && going.size === 0;
      await change();
    }
    const step = addUnit(unit, it).finally(() => {
      going.delete(step);
      changed();
    });
    going.add(step);
  }
  await Promise.all(going);
  tell("all");
}

async function work() {
  // How often it has lost its connection.
  let losses = 0;
  const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const run = async (it) => {
    const isHeld = it.data.hold && it.attemptsStarted <= 1;
    tell(`begin ${it.id}${isHeld ? " hold" : ""}`);
    if (isHeld) await new Promise(() => {});
    if (it.data.parent) {
      const before = losses;
      const results = Object.keys(await it.getChildrenValues());
      // A server that was killed in between may have forgotten what made the parent ready, and hands it out again.
      if (results.length !== 3 && losses === before) {
        tell(`wrong ${it.id} begins with the results of ${results.length} children`);
      }
    }
    await rest(it.id.length % 4);
    if (it.attemptsMade < (it.data.fails ?? 0)) {
      tell(`fail ${it.id}`);
      throw new Error("as planned");
    }
    tell(`done ${it.id}`);
    return it.id;
  };
  const times = { lockDuration: 2000, stalledInterval: 1000, maxStalledCount: 1000, drainDelay: 1 };
  const worker = new Worker(NAME, run, { connection, concurrency: 20, ...times });
  worker.on("completed", (it) => tell(`kept ${it.id}`));
  worker.on("failed", (it) => it && tell(`kept ${it.id}`));
  worker.on("error", note);
  worker.on("ioredis:close", () => (losses += 1));
  listen({});
}

/** Every event of the queue in order: the number of its entry, and its fields. */
async function* events(client) {
  let from = "-";
  for (;;) {
    const page = await client.xrange(`bull:${NAME}:events`, from, "+", "COUNT", 10_000);
    for (const [, fields] of page) {
      yield Object.fromEntries(fields.flatMap((field, at) => (at % 2 ? [] : [[field, fields[at + 1]]])));
    }
    if (page.length === 0) return;
    from = `(${page.at(-1)[0]}`;
  }
}

/** What the queue's own events say of each job. */
async function histories(client) {
  const known = new Map();
  const of = (id) => known.get(id) ?? known.set(id, { completed: 0, failed: 0, stalled: 0 }).get(id);
  for await (const { event, jobId } of events(client)) {
    if (event === "stalled") of(jobId).stalled += 1;
    if (event === "failed") of(jobId).failed += 1;
    if (event === "completed") of(jobId).completed += 1;
    if (event === "active" && !jobId.includes("-")) {
      const children = [0, 1, 2].map((n) => known.get(`${jobId}-c${n}`)).filter(Boolean);
      if (children.some((child) => child.completed === 0)) tell(`wrong ${jobId} is active before its children are completed`);
    }
  }
  return known;
}

/** One line for each job, and what is wrong with it beside. */
async function account(queue, client) {
  const known = await histories(client);
  const ids = await client.zrange(`bull:${NAME}:completed`, 0, -1);
  for (let at = 0; at < ids.length; at += 1000) {
    const page = ids.slice(at, at + 1000);
    const pipeline = client.pipeline();
    page.forEach((id) => pipeline.hmget(`bull:${NAME}:${id}`, "atm", "data", "returnvalue", "failedReason"));
    const answers = await pipeline.exec();
    page.forEach((id, n) => {
      const [atm, data, result] = answers[n][1];
      const tries = 1 + (JSON.parse(data).fails ?? 0);
      if (Number(atm) !== tries) tell(`wrong ${id} took ${atm} tries, and not ${tries}`);
      if (result !== JSON.stringify(id)) tell(`wrong ${id} has the result ${result}`);
      const { completed, stalled } = known.get(id) ?? { completed: 0, stalled: 0 };
      tell(`job ${id} ${completed} ${stalled}`);
    });
  }
  const locks = await client.keys(`bull:${NAME}:*:lock`);
  if (locks.length) tell(`wrong locks are left: ${locks.slice(0, 5)}`);
  tell("accounted");
}

function watch() {
  const queue = queueOf();
  const client = new Redis(connection);
  client.on("error", note);
  const status = async () => {
    const counts = await queue.getJobCounts();
    const { completed, failed, ...others } = counts;
    const left = Object.values(others).reduce((sum, count) => sum + count, 0);
    const words = Object.entries(counts).map(([name, count]) => `${name}=${count}`);
    tell(`status ${completed} ${left} ${failed} ${words.join(" ")}`);
  };
  listen({ status, revive: () => tell("revived"), account: () => account(queue, client) });
}

await { add, work, watch }[role]();
