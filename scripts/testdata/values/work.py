"""The model of the engines here: work on a core for the time that a small model would take."""

import sys
import time

_end = time.monotonic() + float(sys.argv[1])


def goes_on():
    time.sleep(0.1)
    return time.monotonic() < _end


def some(seconds=0.0002):
    end, x = time.perf_counter() + seconds, 0.5
    while time.perf_counter() < end:
        for _ in range(100):
            x = 3.9 * x * (1 - x)
    return int(x * 4096)


def prefill(tokens):
    return some(0.001 * tokens)


def decode():
    return some(0.008)
