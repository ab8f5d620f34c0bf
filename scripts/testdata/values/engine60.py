import time

import llmtop, work

LAYERS, EXPERTS, USED = 4, 8, 2
about = {
    "name": "tiny", "architecture": "own", "layers": LAYERS, "width": 64, "heads": 4, "kv_heads": 4, "head_dim": 16, "context": 1024,
    "parameters": 1_000_000, "experts": EXPERTS, "experts_used": USED, "feed_forward": 128, "vocabulary": 4096,
    "quantisation": "F32", "weight_bytes": 4_000_000, "kv_bytes": 2048,
}  # fmt: skip
device = {"name": "CPU", "host": True, "threads": 1}
caps = ("queue", "kv", "steps", "experts", "picks", "host")
top = llmtop.serve("my-engine", model=about, slots=1, device=device, caps=caps)
with top.stage("model_load"):
    with top.stage("load_weights"):
        work.prefill(40)
picks = {"prompt": [0] * (LAYERS * EXPERTS), "decode": [0] * (LAYERS * EXPERTS)}
passed = {"prompt": 0, "decode": 0}


def route(phase, tokens):
    picked = [[(work.some() + layer + 3 * u) % EXPERTS for u in range(USED)] for layer in range(LAYERS)]
    for layer, experts in enumerate(picked):
        for e in experts:
            picks[phase][layer * EXPERTS + e] += tokens
    passed[phase] += tokens
    return picked


def step(dur, **tokens):
    parts = [dur // 20, dur // 4, dur // 20, dur // 2, dur // 10, dur // 20]
    top.step(dur, parts=parts, number=sum(passed.values()), **tokens)


cold = True
while work.goes_on():
    with top.request(prompt_tokens=40, max_tokens=30, cold=cold, label="story") as r:
        cold = None
        r.dispatch()
        r.cached = 0
        with r.stage("tokenize"):
            work.some()
        with r.stage("prompt", tokens=40):
            began = time.perf_counter_ns()
            work.prefill(40)
            route("prompt", 40)
            step(time.perf_counter_ns() - began, prompt=40)
        for i in range(30):
            began = time.perf_counter_ns()
            token = work.decode()
            picked = route("decode", 1)
            step(time.perf_counter_ns() - began, decode=1)
            r.token(token, logprob=-1.5, step=sum(passed.values()), sampling=20_000, picks=picked)
            top.kv(41 + i, 1024, page=16)
            top.experts(LAYERS, EXPERTS, USED, picks["prompt"], picks["decode"], passed["prompt"], passed["decode"])
        r.finish("length")
    top.count(ticks=passed["decode"])
top.close()
