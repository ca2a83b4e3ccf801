"""A job queue whose workers are killed at any moment, and other recipes of redis-py, with every job accounted for.

    jobs.py PORT JOBS [SEED]

PORT is of 127.0.0.1, where a server is empty. It passes on a real redis-server too. What is played, JOBS times each:

queue     Producers push jobs in a transaction with a count of what they have pushed. A worker takes a job with BLMOVE
          or BRPOPLPUSH into a list of its own, and takes it off that list when it is done. Processes are ended by
          SIGKILL, connections by CLIENT KILL; the jobs in a dead worker's list go back to the queue, once the
          server lists no connection of that worker any more. Where a job is taken off in the transaction that
          counts its effect, every job has exactly one effect. Where the effect comes first, as in Sidekiq, a job has
          one more at most for each time that it was handed out again.
lock      A lock (SET NX PX, let go under WATCH) around a counter that is read and then written.
transfer  Pipelines under WATCH that are tried again until they succeed: no money comes or goes.
messages  Publishers and subscribers to channels, patterns and shard channels, in both protocols: each subscriber
          gets every message of each publisher, in its order.
"""

import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter

import redis
from redis.backoff import NoBackoff
from redis.lock import Lock
from redis.retry import Retry

PORT = int(sys.argv[1])
JOBS = int(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
STYLES = ("exact", "sidekiq")
WORKERS = 8
PRODUCERS = 2
BATCH = 50
PATIENCE_S = 120
LOST = (redis.ConnectionError, redis.TimeoutError)
FORK = multiprocessing.get_context("fork")


def connect(**options):
    options.setdefault("retry", Retry(NoBackoff(), 0))
    options.setdefault("socket_timeout", PATIENCE_S)
    return redis.Redis(host="127.0.0.1", port=PORT, decode_responses=True, **options)


def until_connected(work):
    """Begins anew where the connection was lost, as a supervised program does."""
    while True:
        try:
            return work()
        except LOST:
            continue


def producer(number, name):
    style = STYLES[number % len(STYLES)]
    mine = JOBS // PRODUCERS + (number < JOBS % PRODUCERS)
    r = connect(client_name=name)

    def push():
        begun = int(r.get(f"pushed:{number}") or 0)
        while begun < mine:
            end = min(begun + BATCH, mine)
            pipe = r.pipeline(transaction=True)
            pipe.lpush(f"queue:{style}", *(f"{number}:{job}" for job in range(begun, end)))
            pipe.set(f"pushed:{number}", end)
            pipe.execute()
            begun = end

    until_connected(push)


class Worker:
    def __init__(self, style, name):
        self.style, self.own = style, f"taken:{name}"
        self.r = connect(client_name=name)

    def run(self):
        # After a lost connection nobody knows what was the last that the server did: the list tells.
        for job in reversed(self.r.lrange(self.own, 0, -1)):
            self.r.hincrby("again", job)
            self.work(job)
        while True:
            job = self.take()
            if job is not None:
                self.work(job)
            elif self.r.exists("finished"):
                return

    def take(self):
        if self.style == "exact":
            return self.r.blmove(f"queue:{self.style}", self.own, 1, src="RIGHT", dest="LEFT")
        return self.r.brpoplpush(f"queue:{self.style}", self.own, timeout=1)

    def work(self, job):
        self.r.hincrby("begun", job)
        if self.style == "exact":
            pipe = self.r.pipeline(transaction=True)
            removed, _ = pipe.lrem(self.own, 1, job).hincrby("done:exact", job).execute()
        else:
            self.r.hincrby("done:sidekiq", job)
            removed = self.r.lrem(self.own, 1, job)
        assert removed == 1, f"{job} was not in {self.own}"


def worker(style, name):
    it = Worker(style, name)
    until_connected(it.run)


class Queue:
    """Starts, kills and buries the processes."""

    def __init__(self):
        self.r, self.chance = connect(), random.Random(SEED)
        self.alive, self.dying, self.recovered = {}, [], Counter()
        self.kills, self.cuts, self.generation = 0, 0, 0
        for number in range(PRODUCERS):
            self.start(producer, number)
        for number in range(WORKERS):
            self.start(worker, STYLES[number % len(STYLES)])

    def start(self, role, what):
        self.generation += 1
        name = f"{role.__name__}-{self.generation}"
        process = FORK.Process(target=role, args=(what, name), daemon=True)
        process.start()
        self.alive[name] = (process, role, what)

    def harm(self):
        name = self.chance.choice(sorted(self.alive))
        process, role, what = self.alive[name]
        if self.chance.random() < 0.3:
            ids = [client["id"] for client in self.r.client_list() if client["name"] == name]
            self.cuts += sum(self.r.client_kill_filter(_id=client) for client in ids)
            return
        if not process.is_alive():
            return
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        self.kills += process.exitcode == -signal.SIGKILL
        del self.alive[name]
        if role is worker:
            self.dying.append((name, what))
        if process.exitcode != 0:
            self.start(role, what)

    def bury(self):
        """Gives back what the dead had taken, when the server has noticed their deaths."""
        listed = {client["name"] for client in self.r.client_list()}
        for name, style in [dead for dead in self.dying if dead[0] not in listed]:
            while (job := self.r.lmove(f"taken:{name}", f"queue:{style}", "RIGHT", "RIGHT")) is not None:
                self.recovered[job] += 1
            self.dying.remove((name, style))

    def done(self):
        return sum(self.r.hlen(f"done:{style}") for style in STYLES)

    def run(self):
        step = max(JOBS // 400, 20)
        next_harm, last, moved = step, 0, time.monotonic()
        while True:
            done = self.done()
            self.bury()
            if done >= JOBS and not self.dying:
                break
            if done > last:
                last, moved = done, time.monotonic()
            assert time.monotonic() < moved + PATIENCE_S, f"nothing moves: {done} of {JOBS} are done"
            if done >= next_harm:
                next_harm += step
                self.harm()
            time.sleep(0.002)
        self.finish()

    def finish(self):
        self.r.set("finished", 1)
        for name, (process, _, _) in self.alive.items():
            process.join(PATIENCE_S)
            assert process.exitcode == 0, f"{name} ended with {process.exitcode}"

    def account(self):
        jobs = {f"{number}:{job}" for number in range(PRODUCERS)
                for job in range(JOBS // PRODUCERS + (number < JOBS % PRODUCERS))}
        again = Counter({job: int(count) for job, count in self.r.hgetall("again").items()})
        begun = {job: int(count) for job, count in self.r.hgetall("begun").items()}
        exact, sidekiq = (
            {job: int(count) for job, count in self.r.hgetall(f"done:{style}").items()} for style in STYLES)
        assert exact.keys() | sidekiq.keys() == jobs and not exact.keys() & sidekiq.keys(), "jobs were lost"
        twice = {job: count for job, count in exact.items() if count != 1}
        assert not twice, f"effects that are not one: {twice}"
        allowed = {job: 1 + self.recovered[job] + again[job] for job in jobs}
        for counts in (sidekiq, begun):
            beyond = {job: count for job, count in counts.items() if not 1 <= count <= allowed[job]}
            assert not beyond and counts.keys() <= jobs, f"effects beyond what was handed out: {beyond}"
        assert begun.keys() == jobs
        left = sorted(self.r.keys("queue:*") + self.r.keys("taken:*"))
        assert not left, f"left: {left}"
        assert self.kills >= 3 and sum(self.recovered.values()) >= 1, "too few processes were killed in their work"
        doubled = sum(sidekiq.values()) - len(sidekiq)
        return (f"{len(jobs)} jobs, {self.kills} processes killed, {self.cuts} connections cut, "
                f"{sum(self.recovered.values())} jobs handed back, {sum(again.values())} found again, "
                f"{doubled} effects repeated as the protocol allows")


def queue():
    it = Queue()
    try:
        it.run()
        return it.account()
    finally:
        for process, _, _ in it.alive.values():
            process.kill()


def in_processes(role, count):
    """Runs role(0) ... role(count - 1) at once, each in its process."""
    processes = [FORK.Process(target=role, args=(number,), daemon=True) for number in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert all(process.exitcode == 0 for process in processes), f"{role.__name__}: {[p.exitcode for p in processes]}"


def share(number, count):
    return JOBS // count + (number < JOBS % count)


class WatchedLock(Lock):
    """redis-py's lock, let go in a transaction instead of a script."""

    def register_scripts(self):
        pass

    def do_release(self, expected_token):
        def release(pipe):
            held = pipe.get(self.name)
            held = held.encode() if isinstance(held, str) else held
            if held != expected_token:
                raise redis.exceptions.LockNotOwnedError("somebody else holds it")
            pipe.multi()
            pipe.delete(self.name)

        assert self.redis.transaction(release, self.name) == [1]


LOCKS, HOLDERS = 2, 4


def hold(number):
    r, chance = connect(), random.Random(SEED + number)
    for _ in range(share(number, HOLDERS)):
        which = chance.randrange(LOCKS)
        with WatchedLock(r, f"lock:{which}", timeout=PATIENCE_S, sleep=0.0005):
            count = int(r.get(f"counter:{which}") or 0)
            r.set(f"counter:{which}", count + 1)
            r.rpush(f"seen:{which}", count)


def lock():
    in_processes(hold, HOLDERS)
    r = connect()
    counts = [int(r.get(f"counter:{which}") or 0) for which in range(LOCKS)]
    assert sum(counts) == JOBS, f"{counts} of {JOBS}"
    for which, count in enumerate(counts):
        assert r.lrange(f"seen:{which}", 0, -1) == [str(n) for n in range(count)], "two have held one lock"
        assert not r.exists(f"lock:{which}")
    return f"{JOBS} times held by {HOLDERS} processes"


ACCOUNTS, CLERKS = 12, 4


def clerk(number):
    r, chance = connect(), random.Random(SEED + number)
    tries = 0
    for _ in range(share(number, CLERKS)):
        source, target = (f"account:{n}" for n in chance.sample(range(ACCOUNTS), 2))
        amount = chance.randrange(1, 20)

        def move(pipe):
            nonlocal tries
            tries += 1
            left, there = int(pipe.get(source) or 0), int(pipe.get(target) or 0)
            pipe.multi()
            pipe.set(source, left - amount)
            pipe.set(target, there + amount)
            pipe.hincrby(f"moved:{number}", source, -amount)
            pipe.hincrby(f"moved:{number}", target, amount)

        r.transaction(move, source, target)
    r.set(f"tries:{number}", tries)


def transfer():
    in_processes(clerk, CLERKS)
    r = connect()
    moved = Counter()
    for number in range(CLERKS):
        for account, amount in r.hgetall(f"moved:{number}").items():
            moved[account] += int(amount)
    for account, amount in moved.items():
        assert int(r.get(account) or 0) == amount, f"{account}: {r.get(account)}, and not {amount}"
    assert sum(moved.values()) == 0
    tries = sum(int(r.get(f"tries:{number}")) for number in range(CLERKS))
    assert tries >= JOBS
    return f"{JOBS} transfers in {tries} tries"


PUBLISHERS, CHANNELS, LISTENERS = 3, 4, 5


def publish(number):
    r = connect()
    mine = share(number, PUBLISHERS)
    for begun in range(0, mine, BATCH):
        pipe = r.pipeline(transaction=False)
        for n in range(begun, min(begun + BATCH, mine)):
            pipe.publish(f"channel:{number}:{n % CHANNELS}", n)
            pipe.spublish(f"shard:{number}", n)
        replies = pipe.execute()
        assert replies == [LISTENERS - 1, 1] * (len(replies) // 2), f"heard by {set(replies)}"


def listen(number):
    talk = connect(protocol=3 if number % 2 else 2).pubsub()
    if number == LISTENERS - 1:
        names = [f"shard:{p}" for p in range(PUBLISHERS)]
        talk.ssubscribe(*names)
    elif number % 4 < 2:
        names = [f"channel:{p}:{c}" for p in range(PUBLISHERS) for c in range(CHANNELS)]
        talk.subscribe(*names)
    else:
        names = ["chan*:[0-9]:?"]
        talk.psubscribe(*names)
    for name in names:
        confirmed = talk.get_message(timeout=PATIENCE_S)
        assert confirmed["type"].endswith("subscribe") and confirmed["channel"] == name, confirmed
    connect().rpush("ready", number)
    expected = [0] * PUBLISHERS
    while sum(expected) < JOBS:
        message = talk.get_message(timeout=PATIENCE_S)
        assert message is not None, f"listener {number} waits for {JOBS - sum(expected)} messages"
        publisher = int(message["channel"].split(":")[1])
        n = int(message["data"])
        assert n == expected[publisher], f"listener {number}: {n} of {publisher}, and not {expected[publisher]}"
        expected[publisher] += 1
    assert talk.get_message(timeout=0.05) is None, "a message too many"


def messages():
    listeners = [FORK.Process(target=listen, args=(number,), daemon=True) for number in range(LISTENERS)]
    for process in listeners:
        process.start()
    r = connect()
    for _ in listeners:
        assert r.blpop("ready", PATIENCE_S)
    try:
        in_processes(publish, PUBLISHERS)
        for number, process in enumerate(listeners):
            process.join(PATIENCE_S)
            assert process.exitcode == 0, f"listener {number} ended with {process.exitcode}"
    finally:
        for process in listeners:
            process.kill()
    return f"{JOBS} messages on channels and as many on shard channels, to {LISTENERS} listeners"


for play in (queue, lock, transfer, messages):
    connect().flushall()
    started = time.monotonic()
    told = play()
    print(f"ok {play.__name__}: {told}, {time.monotonic() - started:.1f} s", flush=True)
connect().flushall()
