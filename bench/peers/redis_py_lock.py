"""redis_py_lock.py PORT PASSWORD FILE TURNS: takes one lock again and again with redis-py, in the hand-over measure."""

import os
import sys
import time

import redis

port, password, path, turns = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
client = redis.Redis(host="127.0.0.1", port=port, password=password)
stamps = os.open(path, os.O_WRONLY | os.O_APPEND)
for _ in range(turns):
    lock = client.lock("redis-py", timeout=30)
    lock.acquire()
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    os.write(stamps, b"%d %d\n" % (begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC)))
    lock.release()
    # It has no queue: who asked again at once would be faster than all who sleep, and nothing would be handed over.
    aside_until = time.monotonic() + 0.3
    while not client.exists("redis-py") and time.monotonic() < aside_until:
        time.sleep(0.001)
