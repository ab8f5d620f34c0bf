"""Runs an engine of README.md, the one with that many lines: run.py LINES SECONDS. Its model is in toy.py; prompts come until the
time is over."""

import os
import re
import sys
import tempfile
import time

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [_here, os.path.join(_here, "..")]
import toy

TEXTS = ["Once upon a time there was", "The big dog", "One day a small cat sat by the door and"]


def engine(lines):
    """The source of an engine of README.md."""
    with open(os.path.join(_here, "..", "README.md"), encoding="utf-8") as f:
        (found,) = re.findall(r"^#+ %d lines\n.*?^```python\n(.*?)^```$" % lines, f.read(), re.M | re.S)
    return found


def texts(seconds):
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        yield TEXTS[n % len(TEXTS)]
        n += 1
        time.sleep(0.1)


def run(lines, source):
    """Runs an engine on the texts."""
    with tempfile.TemporaryDirectory() as place:
        folder = os.path.join(place, "toy-moe")
        os.mkdir(folder)
        toy.write(folder)
        exec(compile(engine(lines), "README.md, %d lines" % lines, "exec"), {"load": toy.Toy, "folder": folder, "texts": source})


if __name__ == "__main__":
    run(int(sys.argv[1]), texts(float(sys.argv[2])))
