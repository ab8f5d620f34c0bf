"""What telling a token costs the engine, in µs of its thread: python3 bench.py. A reader in a process of its own is attached,
stalled, or absent; rounds of the kinds alternate, and medians are printed."""

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


def flat_out(request, count):
    """µs a token of tokens told one after another, with what the writing thread takes of the interpreter meanwhile."""
    began = time.perf_counter_ns()
    for i in range(count):
        request.token(i)
    return (time.perf_counter_ns() - began) / count / 1000


def paced(request, count, pause=0.001):
    """µs a call where tokens come at the pace of an engine: the median call."""
    took = []
    for i in range(count):
        time.sleep(pause)
        began = time.perf_counter_ns()
        request.token(i)
        took.append(time.perf_counter_ns() - began)
    return statistics.median(took) / 1000


def main():
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(5):
            for kind in ("absent", "attached", "stalled"):
                with llmtop.serve("bench", "unix:%s/%s.sock" % (folder, kind)) as top:
                    reader = attach(top, kind)
                    with top.request() as request:
                        flat_out(request, 1000)
                        for name, cost in (("flat out", flat_out(request, 200_000)), ("paced", paced(request, 300))):
                            results.setdefault((kind, name), []).append(cost)
                    if reader is not None:
                        reader.kill()
                        reader.communicate()
    for (kind, name), costs in results.items():
        print("reader %-8s  %-8s  %6.2f µs a token (median of %d, %.2f to %.2f)" % (kind, name, statistics.median(costs), len(costs), min(costs), max(costs)))


def attach(top, kind):
    if kind == "absent":
        return None
    reader = subprocess.Popen([sys.executable, "-c", READER, top.address[5:]], stdout=subprocess.PIPE, cwd=_here)
    reader.stdout.readline()
    if kind == "stalled":
        reader.send_signal(signal.SIGSTOP)
    return reader


if __name__ == "__main__":
    main()
