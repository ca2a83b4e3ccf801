"""Locks and rate limiters of Python's libraries, as they are: each is a script or two.

    locks.py HOST PORT
"""

import sys
import threading

import redis
from limits import RateLimitItemPerYear, storage, strategies
from redis.exceptions import LockError, LockNotOwnedError

HOST, PORT = sys.argv[1], int(sys.argv[2])
PATIENCE_S = 120


def connect():
    return redis.Redis(host=HOST, port=PORT)


def raises(kind, call):
    try:
        call()
    except kind:
        return True
    return False


def lock_keeps_others_out():
    r, counts = connect(), [0]

    def hold():
        mine = connect()
        for _ in range(20):
            with mine.lock("counter", timeout=PATIENCE_S, sleep=0.001, blocking_timeout=PATIENCE_S):
                seen = counts[0]
                mine.ping()
                counts[0] = seen + 1

    in_threads(4, hold)
    assert counts == [80], counts
    assert not r.exists("counter")


def lock_waits_until_it_is_released():
    first, second = (connect().lock("waited", timeout=PATIENCE_S, sleep=0.001) for _ in range(2))
    assert first.acquire() and not second.acquire(blocking=False)
    got = []
    waiter = threading.Thread(target=lambda: got.append(second.acquire(blocking_timeout=PATIENCE_S)))
    waiter.start()
    first.release()
    waiter.join()
    assert got == [True]
    connect().delete("waited")


def lock_is_extended():
    r = connect()
    lock = r.lock("extended", timeout=PATIENCE_S)
    assert lock.acquire()
    assert lock.extend(1000) and PATIENCE_S * 1000 < r.pttl("extended") <= (PATIENCE_S + 1000) * 1000
    assert lock.extend(5000, replace_ttl=True) and 4000_000 < r.pttl("extended") <= 5000_000
    assert lock.reacquire() and 0 < r.pttl("extended") <= PATIENCE_S * 1000
    assert lock.owned() and lock.locked()
    lock.release()
    assert raises(LockError, lock.release) and not r.exists("extended")


def lock_is_not_released_by_a_stranger():
    r = connect()
    mine, stranger = (r.lock("owned", timeout=PATIENCE_S) for _ in range(2))
    assert mine.acquire()
    for call in (stranger.release, lambda: stranger.extend(10), stranger.reacquire):
        stranger.local.token = b"nobody's"
        assert raises(LockNotOwnedError, call)
    assert mine.owned() and not stranger.owned()
    r.delete("owned")
    for call in (lambda: mine.extend(10), mine.reacquire, mine.release):
        assert raises(LockNotOwnedError, call)


def in_threads(count, work):
    failed = []

    def run():
        try:
            work()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def limits_hold(strategy):
    """As many hits as are allowed, from one thread and from several, and again after a reset."""
    limiter = strategy(storage.RedisStorage(f"redis://{HOST}:{PORT}"))
    item, passed = RateLimitItemPerYear(10), []
    assert limiter.test(item, "one") and limiter.hit(item, "one", cost=4)
    assert limiter.get_window_stats(item, "one").remaining == 6
    assert [limiter.hit(item, "one") for _ in range(8)] == [True] * 6 + [False] * 2
    assert not limiter.test(item, "one") and limiter.get_window_stats(item, "one").remaining == 0
    assert limiter.hit(item, "other")
    limiter.clear(item, "one")
    assert limiter.hit(item, "one")
    wide = RateLimitItemPerYear(50)
    in_threads(4, lambda: passed.extend(limiter.hit(wide, "many") for _ in range(25)))
    assert passed.count(True) == 50 and len(passed) == 100, passed
    limiter.storage.reset()
    assert not connect().keys("LIMITS*")


def registered_script_survives_a_flush():
    r = connect()
    compare = r.register_script("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0")
    r.set("unique:job", "mine")
    assert compare(keys=["unique:job"], args=["other"]) == 0
    r.script_flush()
    assert compare(keys=["unique:job"], args=["mine"]) == 1
    pipe = r.pipeline()
    r.script_flush()
    compare(keys=["unique:job"], args=["mine"], client=pipe)
    assert pipe.execute() == [0]


TESTS = {
    "lock keeps others out": lock_keeps_others_out,
    "lock waits until it is released": lock_waits_until_it_is_released,
    "lock is extended and reacquired": lock_is_extended,
    "lock is not released by a stranger": lock_is_not_released_by_a_stranger,
    "fixed windows": lambda: limits_hold(strategies.FixedWindowRateLimiter),
    "moving windows": lambda: limits_hold(strategies.MovingWindowRateLimiter),
    "sliding windows": lambda: limits_hold(strategies.SlidingWindowCounterRateLimiter),
    "registered scripts": registered_script_survives_a_flush,
}
for name, test in TESTS.items():
    test()
    print(f"ok {name}", flush=True)
