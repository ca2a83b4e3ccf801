"""A queue of Celery under the harness of crates/testkit/src/queues, which kills its processes and the server.

    celery_queue.py add|work|watch HOST PORT SEED JOBS HOLD NEXT DONE hasty|patient

What is written on standard output and read from standard input is told in crates/testkit/src/queues/mod.rs.

Tasks are drawn from the seed: plain ones, some with a priority, some for later, some that fail once or twice and
are tried again, chains, and chords, whose body waits for the tasks of the header. Redis is broker and backend;
tasks are acknowledged late, so those of a killed worker come back when the visibility timeout has passed. What a
worker has popped and not noted as unacknowledged when it is killed is lost: Celery does that in two steps. The
harness asks for such a task again (`resend`), and counts them.
"""

import glob
import os
import pickle
import random
import signal
import sys
import threading
import time
import warnings

import redis
from celery import Celery, Task, chain, chord, signals
from celery.worker.request import Request

ROLE, HOST, PORT = sys.argv[1:4]
SEED, JOBS, HOLD, NEXT = (int(text) for text in sys.argv[4:8])
SKIPPED = {int(unit) for unit in sys.argv[8].split(",") if unit}
IS_HASTY = sys.argv[9] == "hasty"
URL = f"redis://{HOST}:{PORT}/0"
VISIBLE_S = 3 if IS_HASTY else 20
PRIORITIES = (0, 3, 6, 9)
MOMENT_S = 0.05
AWAY = (redis.ConnectionError, redis.TimeoutError, OSError)

# It warns of being run by root.
warnings.simplefilter("ignore")
app = Celery("queue", broker=URL, backend=URL)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={
        "visibility_timeout": VISIBLE_S, "unacked_mutex_expire": 5, "priority_steps": list(PRIORITIES)},
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    result_backend_always_retry=True,
    task_publish_retry_policy={"max_retries": None, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.5},
    result_expires=86400,
    result_extended=False,
    worker_hijack_root_logger=False,
)


def tell(line):
    # One call to the kernel: processes of a pool write into the same pipe.
    os.write(1, f"{line}\n".encode())


def listen(hear):
    """Calls with every line that the harness writes, and ends the process when there is nobody to write."""
    # Not `sys.stdin`: a process of a pool closes it first of all, and would wait for ever for the lock that this
    # thread held while it read, at the moment of the fork.
    for line in open(0, closefd=False):
        hear(line.split())
    if os.getpgrp() == os.getpid():
        # With the processes of its pool.
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


class Watched(Request):
    """Tells when the broker has noted the end of a task, or of a try."""

    def acknowledge(self):
        super().acknowledge()
        tell(f"kept {self.id}")


class Job(Task):
    Request = Watched
    max_retries = None


def begin(task, is_held):
    is_again = bool((task.request.delivery_info or {}).get("redelivered"))
    if is_again:
        tell(f"again {task.request.id}")
    is_held = is_held and not is_again
    tell(f"begin {task.request.id}{' hold' if is_held else ''}")
    while is_held:
        time.sleep(3600)
    time.sleep(len(task.request.id) % 4 / 1000)


@app.task(base=Job, bind=True)
def job(task, fails=0, hold=False):
    begin(task, hold)
    if task.request.retries < fails:
        tell(f"fail {task.request.id}")
        raise task.retry(countdown=0.02)
    tell(f"done {task.request.id}")
    return task.request.id


@app.task(base=Job, bind=True)
def after(task, before):
    """The end of a chain, or the body of a chord: it gets what was done before it."""
    begin(task, False)
    unit = task.request.id
    if sorted(before if isinstance(before, list) else [before]) != members(int(unit[1:])):
        tell(f"wrong {unit} begins with {before}")
    tell(f"done {unit}")
    return unit


def draw(unit):
    return random.Random(SEED * 1_000_003 + unit)


def is_held(unit):
    return unit % HOLD == SEED % HOLD


def members(unit):
    """What comes before the end of a chain or chord."""
    kind = draw(unit).randrange(20)
    count = {18: 1, 19: 3}.get(kind, 0) if not is_held(unit) else 0
    return [f"u{unit}-c{n}" for n in range(count)]


def add_unit(unit):
    """Adds a task, chain or chord; the ids of what is in it."""
    chance, ident = draw(unit), f"u{unit}"
    kind = chance.randrange(20)
    before = members(unit)
    if is_held(unit):
        job.apply_async(kwargs={"hold": True}, task_id=ident)
    elif kind < 8:
        job.apply_async(task_id=ident)
    elif kind < 11:
        job.apply_async(task_id=ident, priority=chance.choice(PRIORITIES))
    elif kind < 14:
        job.apply_async(task_id=ident, countdown=chance.random())
    elif kind < 18:
        job.apply_async(kwargs={"fails": 1 + chance.randrange(2)}, task_id=ident)
    elif kind == 18:
        chain(job.s().set(task_id=before[0]), after.s().set(task_id=ident)).apply_async()
    else:
        chord([job.s().set(task_id=name) for name in before])(after.s().set(task_id=ident))
    return before + [ident]


def add():
    turn, is_paused = threading.Lock(), False

    def run():
        unit = count = 0
        while count < JOBS:
            ids = members(unit) + [f"u{unit}"]
            count += len(ids)
            if unit >= NEXT and unit not in SKIPPED:
                if unit == NEXT > 0:
                    # The adder before may have come so far, and nobody refuses a task that is there already.
                    for ident in ids:
                        tell(f"again {ident}")
                with turn:
                    tell(f"added {unit} {' '.join(add_unit(unit))}")
            unit += 1
        tell("all")

    def hear(words):
        nonlocal is_paused
        if words[0] == "pause" and not is_paused:
            is_paused = True
            turn.acquire()
            tell("paused")
        elif words[0] == "go" and is_paused:
            is_paused = False
            turn.release()
        elif words[0] == "resend":
            resend(words[1:])

    threading.Thread(target=run, daemon=True).start()
    listen(hear)


@signals.before_task_publish.connect
def remember(body=None, headers=None, properties=None, exchange=None, routing_key=None, **_):
    """Every message that somebody sends is kept in a file of his, for `resend`."""
    record = (time.time(), headers["id"], body, dict(headers), properties, exchange, routing_key)
    with open(f"sent-{os.getpid()}", "ab") as file:
        file.write(pickle.dumps(record))


def sent():
    """The last message of each id."""
    last = {}
    for path in glob.glob("sent-*"):
        with open(path, "rb") as file:
            try:
                while True:
                    at, ident, *message = pickle.load(file)
                    last[ident] = max(last.get(ident, (0.0, None)), (at, message), key=lambda record: record[0])
            except (EOFError, pickle.UnpicklingError):
                # Its writer was killed.
                pass
    return last


def resend(ids):
    last = sent()
    with app.connection_for_write() as connection:
        producer = connection.Producer(serializer="json")
        for ident in ids:
            if ident in last:
                body, headers, properties, exchange, routing_key = last[ident][1]
                producer.publish(
                    body, headers=headers, exchange=exchange or "", routing_key=routing_key or "celery",
                    correlation_id=properties.get("correlation_id"), reply_to=properties.get("reply_to"),
                    priority=properties.get("priority"), delivery_mode=2)
            else:
                # What came before it is done, and nobody has sent it for that.
                after.apply_async((members(int(ident[1:])),), task_id=ident)
    tell("resent")


def work():
    threading.Thread(target=listen, args=(lambda words: None,), daemon=True).start()
    # One in two runs its tasks in processes beside, as Celery does where nobody says otherwise.
    pool = ["--pool=solo"] if IS_HASTY or os.getpid() % 2 else ["--pool=prefork", "--concurrency=2"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR"]
    app.worker_main(["--quiet", "worker", f"--hostname=w{os.getpid()}@harness", *pool, *quiet])


def until(ask):
    """Asks again while the server is away."""
    while True:
        try:
            return ask()
        except AWAY:
            time.sleep(MOMENT_S)


def results(r):
    """The state of every task with a result."""
    names = list(r.scan_iter("celery-task-meta-*", count=1000))
    for at in range(0, len(names), 500):
        for name, text in zip(names[at:at + 500], r.mget(names[at:at + 500])):
            yield name.removeprefix("celery-task-meta-"), app.backend.decode(text)


def status(r):
    queues = ["celery"] + [f"celery\x06\x16{priority}" for priority in PRIORITIES[1:]]
    waiting, unacked = sum(r.llen(name) for name in queues), r.hlen("unacked")
    states = [result["status"] for _, result in results(r)] if waiting + unacked == 0 else []
    done, failed = states.count("SUCCESS"), states.count("FAILURE")
    tell(f"status {done} {waiting + unacked} {failed} waiting={waiting} unacked={unacked}")


def account(r):
    for ident, result in until(lambda: list(results(r))):
        # A retry is a result too, until the next try.
        if result["status"] == "SUCCESS":
            tell(f"job {ident} 1 0")
            if result["result"] != ident:
                tell(f"wrong {ident} has the result {result['result']}")
    tell("accounted")


def restore():
    """Looks for what has been invisible for too long, as workers do every hundred seconds."""
    while True:
        try:
            with app.connection_for_write() as connection:
                connection.default_channel.qos.restore_visible(interval=1)
        except AWAY + app.connection_for_write().connection_errors:
            pass
        time.sleep(0.5)


def watch():
    r = redis.Redis(host=HOST, port=int(PORT), decode_responses=True)
    if IS_HASTY:
        threading.Thread(target=restore, daemon=True).start()
    words = {"status": lambda: until(lambda: status(r)), "account": lambda: account(r),
             "revive": lambda: tell("revived")}
    listen(lambda line: words[line[0]]())


{"add": add, "work": work, "watch": watch}[ROLE]()
