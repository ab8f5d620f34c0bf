"""An example engine that emits events of simulated work, for a test: engine.py ADDRESS. It prints its address. At the first number
on standard input it begins a request without end. For each number of tokens it generates them in each request, and prints what it did as JSON."""

import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import llmtop

done = {"requests": 0, "tokens": 0, "prompt_tokens": 0, "picks": [0] * 8, "picked": 0}
lock = threading.Lock()


def work(top, tokens, group):
    with top.request(prompt_tokens=12, group=group, max_tokens=tokens) as r:
        r.cached, r.pad = 4, 2
        r.dispatch()
        with r.stage("prompt", tokens=8):
            pass
        for i in range(tokens):
            r.token(i)
        r.finish("length")
    with lock:
        done["requests"] += 1
        done["tokens"] += tokens
        done["prompt_tokens"] += 12
        done["picked"] += tokens
        for i in range(tokens):
            done["picks"][i % 4] += 1
            done["picks"][4 + i % 3] += 1


def generate(message):
    r = top.request(prompt_tokens=1, label=message.get("label"))
    for i in range(message["max"]):
        r.token(i)
    r.finish("length")
    done["tokens"] += message["max"]
    return r


def refuse(request):
    raise ValueError("no request %d" % request)


top = llmtop.serve("python-test", sys.argv[1], version="1.5", model={"name": "tiny", "architecture": "moe", "layers": 2, "experts": 4, "experts_used": 1, "parameters": 1000},
                   on_generate=generate, on_cancel=refuse)  # fmt: skip
print(top.address, flush=True)
live = None
for line in sys.stdin:
    count = int(line)
    if live is None:
        with top.stage("model_load"):
            pass
        live = top.request(group="endless")
        live.token(1)
    threads = [threading.Thread(target=work, args=(top, count, "group-%d" % n)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    top.experts(2, 4, 1, decode=done["picks"], decode_tokens=done["picked"])
    top.kv(64, 256, 16)
    time.sleep(0.2)  # the writer thread has run, so a reader that attaches after the answer is a late joiner
    print(json.dumps(done), flush=True)
top.close()
