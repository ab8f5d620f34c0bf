import time

import llmtop, work

about = {"name": "tiny", "layers": 4, "width": 64, "heads": 4, "kv_heads": 4, "context": 1024, "parameters": 1_000_000}
top = llmtop.serve("my-engine", model=about, slots=1, device={"name": "CPU", "host": True, "threads": 1})
while work.goes_on():
    with top.request(prompt_tokens=40, max_tokens=30) as r:
        r.dispatch()
        r.cached = 0
        with r.stage("tokenize"):
            work.some()
        with r.stage("prompt", tokens=40):
            work.prefill(40)
        for i in range(30):
            began = time.perf_counter_ns()
            token = work.decode()
            top.step(time.perf_counter_ns() - began, decode=1)
            r.token(token, logprob=-1.5)
            top.kv(41 + i, 1024)
        r.finish("length")
top.close()
