"""Measures the cost of an event for the engine, in µs: python3 bench.py [ROUNDS]. A reader in a separate process is attached, stalled,
or absent; rounds of the kinds alternate. It prints a line of JSON: for each kind and measure the median of the rounds.

burst: a token, emitted one after another, while the writer thread takes its share of the interpreter.
paced: a token, at the pace of an engine: the median call.
stage: a stage as a context manager, emitted one after another.
step: a forward pass as a context manager, and a token that is linked to it. part: a part of a pass. picks: see below.
whole: CPU time of the engine per token, including the writer thread, without drops.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import llmtop

_here = os.path.dirname(os.path.abspath(__file__))
READER = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('up', flush=True)\nwhile s.recv(1 << 20): pass"


def burst(top, request, count=100_000):
    began = time.perf_counter_ns()
    for i in range(count):
        request.token(i)
    return (time.perf_counter_ns() - began) / count / 1000


def paced(top, request, count=300, pause=0.001):
    took = []
    for i in range(count):
        time.sleep(pause)
        began = time.perf_counter_ns()
        request.token(i)
        took.append(time.perf_counter_ns() - began)
    return statistics.median(took) / 1000


def stage(top, request, count=10_000):
    began = time.perf_counter_ns()
    for _ in range(count):
        with request.stage("sample"):
            pass
    return (time.perf_counter_ns() - began) / count / 1000


def step(top, request, count=10_000):
    """A pass with a token that is linked to it."""
    began = time.perf_counter_ns()
    for i in range(count):
        with top.step(decode=1) as s:
            pass
        request.token(i, step=s)
    return (time.perf_counter_ns() - began) / count / 1000


def part(top, request, count=10_000):
    began = time.perf_counter_ns()
    with top.step(decode=1) as s:
        for layer in range(count):
            with s.part("attention", layer=layer):
                pass
    return (time.perf_counter_ns() - began) / count / 1000


def picks(top, request, count=4800):
    """The picks of a token in a layer, 8 of 128 experts."""
    began = time.perf_counter_ns()
    for i in range(count):
        top.picks(i % 48, [3, 17, 40, 41, 77, 90, 101, 127])
    return (time.perf_counter_ns() - began) / count / 1000


def whole(top, request, count=50_000):
    settle(top)
    began = time.process_time_ns()
    for i in range(count):
        request.token(i)
    settle(top)
    return (time.process_time_ns() - began) / count / 1000


def settle(top):
    """Waits until the writer thread has encoded all events."""
    while top._queue:
        time.sleep(0.001)


MEASURES = (burst, paced, stage, step, part, picks, whole)


MODEL = {"layers": 48, "experts": 128, "experts_used": 8}


def attach(top, kind):
    if kind == "absent":
        return None
    reader = subprocess.Popen([sys.executable, "-c", READER, top.address[5:]], stdout=subprocess.PIPE, cwd=_here)
    reader.stdout.readline()
    if kind == "stalled":
        reader.send_signal(signal.SIGSTOP)
    return reader


def main(rounds=5):
    costs = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for kind in ("absent", "attached", "stalled"):
                with llmtop.serve("bench", "unix:%s/%s.sock" % (folder, kind), model=MODEL) as top:
                    reader = attach(top, kind)
                    with top.request() as request:
                        for measure in MEASURES:
                            costs.setdefault(kind + "-" + measure.__name__, []).append(measure(top, request))
                    if reader is not None:
                        reader.kill()
                        reader.communicate()
    print(json.dumps({name: round(statistics.median(of), 3) for name, of in costs.items()}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
