"""redis_py_lock.py PORT PASSWORD FILE HOLDS: takes one lock again and again with redis-py, in the hand-over measure,
until all who do so have held it so many times."""

import os
import sys
import time

import redis

hold = 0.005  # As in measures/stamps.hpp.


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def stay_away(count):
    """As in measures/stamps.hpp."""
    for _ in range(500):
        if os.fstat(begun).st_size > count:
            return
        time.sleep(0.0005)


port, password, path, enough = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
client = redis.Redis(host="127.0.0.1", port=port, password=password)
stamps = os.open(path, os.O_WRONLY | os.O_APPEND)
begun = os.open(path + ".begun", os.O_WRONLY | os.O_APPEND)
while os.fstat(begun).st_size < enough:
    lock = client.lock("redis-py", timeout=30)
    asked = now()
    lock.acquire()
    begin = now()
    os.write(begun, b".")
    count = os.fstat(begun).st_size
    time.sleep(hold)
    os.write(stamps, b"%d %d %d\n" % (asked, begin, now()))
    lock.release()
    stay_away(count)
