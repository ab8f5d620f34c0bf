"""Runs an engine of README.md, the one with that many lines: run.py LINES SECONDS FOLDER. Its model is in FOLDER, which toy.py has
written before: llmtop does not read a file that is newer than the engine. Prompts come until the time is over."""

import os
import re
import sys
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


if __name__ == "__main__":
    lines, seconds, folder = sys.argv[1:]
    names = {"load": toy.Toy, "folder": folder, "texts": texts(float(seconds))}
    exec(compile(engine(int(lines)), "README.md, %s lines" % lines, "exec"), names)
