"""redis_py_lock.py PORT PASSWORD FILE TURNS: takes one lock again and again with redis-py, in the hand-over measure."""

import os
import sys
import time

import redis

hold = 0.005  # As in measures/stamps.hpp.


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


port, password, path, turns = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
client = redis.Redis(host="127.0.0.1", port=port, password=password)
stamps = os.open(path, os.O_WRONLY | os.O_APPEND)
for _ in range(turns):
    lock = client.lock("redis-py", timeout=30)
    asked = now()
    lock.acquire()
    begin = now()
    time.sleep(hold)
    os.write(stamps, b"%d %d %d\n" % (asked, begin, now()))
    lock.release()
    time.sleep(hold)
