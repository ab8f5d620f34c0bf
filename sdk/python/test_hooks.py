"""Tests of the hooks for transformers and vLLM, with stand-ins that are called like the real classes.
test_torch.py runs the hooks in torch."""

import abc
import os
import sys
import types
import unittest

import llmtop
from test_llmtop import Case


EXPERTS, USED, LAYERS, EOS, PAD = 8, 2, 3, 1, 0


class Tensor:
    """A list of lists with the parts of a tensor's interface that the hooks use."""

    def __init__(self, rows, floats=False):
        self.rows, self.floats = rows, floats
        self.shape = (len(rows), len(rows[0])) if rows and isinstance(rows[0], list) else (len(rows),)

    def tolist(self):
        return self.rows

    def __getitem__(self, rows):
        return Tensor(self.rows[rows], self.floats)

    def is_floating_point(self):
        return self.floats

    def topk(self, k, dim):
        assert dim == -1
        picked = [sorted(range(len(row)), key=lambda e: -row[e])[:k] for row in self.rows]
        return None, Tensor(picked)


class Module:
    """The part of torch.nn.Module's interface that the hooks use."""

    def __init__(self, **children):
        self.children, self.hooks = children, []
        self.__dict__.update(children)

    def __call__(self, *args, **kwargs):
        output = self.forward(*args, **kwargs)
        for hook in self.hooks:
            hook(self, args, output)
        return output

    def register_forward_hook(self, hook):
        self.hooks.append(hook)
        return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.children.items():
            yield from child.named_modules(prefix + "." + name if prefix else name)


def choice(layer, token):
    return [(token + layer) % EXPERTS, (3 * token + layer + 1) % EXPERTS if (2 * token + 1) % EXPERTS else (token + layer + 2) % EXPERTS]


def logits_of(picks):
    return Tensor([[10.0 - p.index(e) if e in p else 0.0 for e in range(EXPERTS)] for p in picks], True)


ORDERS = {
    "logits, weights, indices": lambda p: (logits_of(p), Tensor([[0.6, 0.4]] * len(p), True), Tensor(p)),
    "indices, weights, logits": lambda p: (Tensor(p), Tensor([[0.6, 0.4]] * len(p), True), logits_of(p)),
    "indices, weights": lambda p: (Tensor(p), Tensor([[0.6, 0.4]] * len(p), True)),
    "scores, indices": lambda p: (logits_of(p), Tensor(p)),
    "scores, logits": lambda p: (logits_of(p), logits_of(p)),
    "logits": logits_of,
    "sorted, batch, gates, sizes, logits": lambda p: (Tensor([0]), Tensor([0]), Tensor([0.5], True), [1] * EXPERTS, logits_of(p)),
}
FAMILIES = [  # class, block, name, order of the output, dense layers
    ("MixtralTopKRouter", "mlp", "gate", "logits, weights, indices", 0),
    ("MixtralTopKRouter", "block_sparse_moe", "gate", "logits, weights, indices", 0),
    ("Linear", "block_sparse_moe", "gate", "logits", 0),
    ("Qwen2MoeTopKRouter", "mlp", "gate", "logits, weights, indices", 0),
    ("Qwen3MoeTopKRouter", "mlp", "gate", "logits, weights, indices", 0),
    ("Linear", "mlp", "gate", "logits", 0),
    ("OlmoeTopKRouter", "mlp", "gate", "logits, weights, indices", 0),
    ("DeepseekV3TopkRouter", "mlp", "gate", "logits, weights, indices", 1),
    ("DeepseekV3TopkRouter", "mlp", "gate", "indices, weights", 1),
    ("Glm4MoeTopkRouter", "mlp", "gate", "logits, weights, indices", 1),
    ("GptOssTopKRouter", "mlp", "router", "logits, weights, indices", 0),
    ("GptOssTopKRouter", "mlp", "router", "scores, indices", 0),
    ("GraniteMoeTopKRouter", "block_sparse_moe", "router", "indices, weights, logits", 0),
    ("GraniteMoeTopKGating", "block_sparse_moe", "router", "sorted, batch, gates, sizes, logits", 0),
    ("Llama4Router", "feed_forward", "router", "scores, logits", 0),
]


def build(router="MixtralTopKRouter", block="mlp", name="gate", order="logits, weights, indices", dense=0, tensor=Tensor):
    """A model whose routers pick by token id and layer, with modules that are called like those of transformers."""

    def gate(layer):
        def forward(ids):
            return ORDERS[order]([choice(layer, t) for t in ids])

        made = type(router, (Module,), {})()
        made.forward, made.num_experts, made.top_k = forward, EXPERTS, USED
        return made

    layers = []
    for n in range(LAYERS):
        inner = Module(**{name: gate(n), "experts": Module()}) if n >= dense else Module(gate_proj=Module())
        layers.append(Module(**{block: inner}))
    stack = Module(layers=Module(**{str(n): layer for n, layer in enumerate(layers)}))
    model = Module(model=stack)
    model.config = types.SimpleNamespace(
        num_hidden_layers=LAYERS, num_experts_per_tok=USED, num_experts=EXPERTS, eos_token_id=EOS, pad_token_id=PAD, model_type="standin", _name_or_path="tiny/standin"
    )

    def forward(input_ids=None, attention_mask=None):
        ids = [t for row in input_ids.tolist() for t in row]
        for layer in layers[dense:]:
            getattr(getattr(layer, block), name)(ids)
        return "result"

    model.forward = forward
    return model


def generate(model, rows, mask=None, steps=(), streamer=None):
    """Simulates generate() of transformers: rows are the prompts, steps the sampled tokens."""
    if streamer is not None:
        streamer.put(Tensor(rows))
    fed = rows
    for sampled in steps:
        mask_now = None if mask is None else Tensor([m + [1] * (0 if fed is rows else 1) for m in mask])
        model(input_ids=Tensor(fed), attention_mask=mask_now)
        if streamer is not None:
            streamer.put(Tensor(list(sampled)))
        fed = [[t] for t in sampled]
    if streamer is not None:
        streamer.end()


def counted(tokens, dense=0):
    counts = [0] * (LAYERS * EXPERTS)
    for layer in range(dense, LAYERS):
        for t in tokens:
            for e in choice(layer, t):
                counts[layer * EXPERTS + e] += 1
    return counts


class Hooks(Case):
    def finish(self, top, watch):
        watch.close()
        top.close()
        r = self.opened
        r.rest()
        self.right(r)
        return r

    def start(self, model, **options):
        top = self.serve()
        self.opened = self.reader(top)
        self.opened.until("synced")
        return top, top.watch(model, **options)

    def test_every_family(self):
        for family in FAMILIES:
            with self.subTest(family=family):
                top, watch = self.start(build(*family))
                generate(watch.model, [[4, 5, 6, 7]], steps=[[9], [11]])
                r = self.finish(top, watch)
                last = r.of("experts")[-1]
                self.assertEqual((last["layers"], last["experts"], last["used"], last["pt"], last["dt"]), (LAYERS, EXPERTS, USED, 4, 1))
                self.assertEqual(last["p"], counted([4, 5, 6, 7], family[4]))
                self.assertEqual(last["d"], counted([9], family[4]))
                self.assertEqual(r.of("model")[-1]["experts"], EXPERTS)
                self.assertEqual({"experts", "picks"} & set(r.of("engine")[-1]["caps"]), {"experts"} if family[4] else {"experts", "picks"})
                self.assertEqual(r.of("log"), [])

    def test_block_picks_if_router_returns_logits(self):
        model = build("DeepseekV3TopkRouter", order="logits", dense=1)
        for n, layer in enumerate(model.model.layers.children.values()):
            if n >= 1:
                layer.mlp.route_tokens_to_experts = lambda logits: (Tensor([[7, 6]] * len(logits.rows)), None)
        top, watch = self.start(model)
        generate(model, [[4, 5]], steps=[[9]])
        last = self.finish(top, watch).of("experts")[-1]
        self.assertEqual([last["p"][EXPERTS + e] for e in range(EXPERTS)], [0] * 6 + [2, 2])

    def test_unknown_picks_are_not_invented(self):
        model = build("DeepseekV3TopkRouter", order="logits")
        for layer in model.model.layers.children.values():
            layer.mlp.n_group = 4
        top, watch = self.start(model)
        generate(model, [[4, 5]], steps=[[9], [3]])
        r = self.finish(top, watch)
        self.assertEqual(r.of("experts"), [])
        self.assertEqual(len(r.of("log")), 1)

    def test_padding_is_counted_separately(self):
        model = build()
        top, watch = self.start(model)
        rows, mask = [[PAD, PAD, 5], [7, 8, 9]], [[0, 0, 1], [1, 1, 1]]
        with watch.streamer(max_new_tokens=4) as s:
            generate(model, rows, mask, steps=[[20, 21], [EOS, 22], [PAD, 23], [PAD, 24]], streamer=s)
        r = self.finish(top, watch)
        last = r.of("experts")[-1]
        self.assertEqual((last["pt"], last["dt"]), (4, 4))
        self.assertEqual(last["p"], counted([5, 7, 8, 9]))
        self.assertEqual(last["d"], counted([20, 21, 22, 23]))
        self.assertEqual(watch.padding, 4)
        self.assertEqual([c["c"]["padding_tokens"] for c in r.of("count") if "padding_tokens" in c["c"]][-1], 4)
        ends = {q["r"]: q for q in r.of("req") if q["state"] == "finished"}
        self.assertEqual([(q["why"], q["in"], q.get("pad"), q["out"]) for q in ends.values()], [("stop", 1, 2, 2), ("length", 3, 0, 4)])
        self.assertEqual([(s["n"], s["m"]) if "m" in s else s["n"] for s in r.of("step")[1:]], [2, 1, 1])
        self.assertEqual(r.of("step")[0]["m"], 4)

    def test_streamer_stamps_tokens_and_parts_of_time_to_first_token(self):
        model = build()
        top, watch = self.start(model)
        seen = []
        also = types.SimpleNamespace(put=lambda v: seen.append(v.tolist()), end=lambda: seen.append("end"))
        with watch.streamer(also=also, max_new_tokens=3, label="chat") as s:
            generate(model, [[4, 5, 6]], steps=[[20], [21], [22]], streamer=s)
        r = self.finish(top, watch)
        self.assertEqual([q["state"] for q in r.of("req")], ["queued", "finished"])  # generate() has no queue: nothing says when it left one
        self.assertNotIn("queue", r.lines[0]["caps"])
        self.assertEqual((r.of("req")[0]["max"], r.of("req")[0]["label"], r.of("req")[1]["in"], r.of("req")[1]["why"]), (3, "chat", 3, "length"))
        prompt, first = r.of("stage")
        token = next(t for t in r.of("tok"))
        start = token["a"][0] if isinstance(token["a"], list) else token["a"]
        self.assertEqual((prompt["stage"], prompt["n"], first["stage"]), ("prompt", 3, "first_token"))
        self.assertEqual(first["a"] - first["dur"], prompt["a"])
        self.assertEqual(first["a"], start)
        self.assertGreaterEqual(prompt["a"] - prompt["dur"], r.of("req")[0]["a"])
        self.assertEqual(seen, [[[4, 5, 6]], [20], [21], [22], "end"])
        self.assertEqual(r.of("req")[1]["cached"], 0)  # the pass computed all columns

    def test_one_token_prompt_and_cache(self):
        model = build()
        top, watch = self.start(model)
        with watch.streamer() as s:  # without max_new_tokens the reason is not available
            generate(model, [[4]], steps=[[20], [21]], streamer=s)
        with watch.streamer() as s:
            s.put(Tensor([[4, 5, 6, 7]]))
            model(input_ids=Tensor([[6, 7]]))
            s.put(Tensor([EOS]))
            s.end()
        r = self.finish(top, watch)
        self.assertEqual((r.of("experts")[-1]["pt"], r.of("experts")[-1]["dt"]), (3, 1))
        self.assertEqual([(q["in"], q.get("cached"), q.get("why")) for q in r.of("req") if q["state"] == "finished"], [(1, 0, None), (4, 2, "stop")])

    def test_reason_why_a_row_ended(self):
        model = build()
        model.config.eos_token_id = [EOS, 33]
        top, watch = self.start(model)
        steps = [[20, 20, 20, 20], [EOS, 21, 21, 21], [PAD, 33, PAD, 22]]  # PAD without an end: a stop string ended the row
        with watch.streamer(max_new_tokens=3) as s:
            generate(model, [[4]] * 4, steps=steps, streamer=s)
        with watch.streamer(max_new_tokens=9) as s:
            generate(model, [[4]], steps=[[20], [21]], streamer=s)
        with watch.streamer(eos=20) as s:
            generate(model, [[4]], steps=[[20]], streamer=s)
        r = self.finish(top, watch)
        ends = [(q["why"], q["out"]) for q in sorted(r.of("req"), key=lambda q: q["r"]) if q["state"] == "finished"]
        self.assertEqual(ends, [("stop", 2), ("stop", 3), ("stop", 2), ("length", 3), ("stop", 2), ("stop", 1)])

    def test_assistant_model_returns_several_tokens_per_step(self):
        model = build()
        top, watch = self.start(model)
        with watch.streamer(max_new_tokens=6) as s:
            s.put(Tensor([[4, 5]]))
            model(input_ids=Tensor([[4, 5]]))
            s.put(Tensor([20]))
            model(input_ids=Tensor([[20, 21, 22]]))
            s.put(Tensor([[21, 22, 23]]))
            s.end()
        r = self.finish(top, watch)
        self.assertEqual([(t["i"], t["d"], t.get("n")) for t in r.of("tok")], [(0, 20, None), (1, 21, 3)])
        self.assertEqual(r.of("req")[-1]["out"], 4)

    def test_generation_that_fails_is_reported(self):
        model = build()
        top, watch = self.start(model)
        with self.assertRaises(RuntimeError), watch.streamer() as s:
            s.put(Tensor([[4, 5]]))
            raise RuntimeError("out of memory")
        r = self.finish(top, watch)
        self.assertEqual((r.of("req")[-1]["state"], r.of("req")[-1]["why"]), ("failed", "RuntimeError: out of memory"))
        self.assertEqual(watch._streams, {})

    def test_adapter_is_the_group(self):
        model = build()
        peft = types.SimpleNamespace(get_base_model=lambda: model, peft_config={"fr": 1}, active_adapters=["fr"])
        top, watch = self.start(peft)
        s = watch.streamer()
        generate(model, [[4, 5]], steps=[[20]], streamer=s)
        peft.active_adapters = ["fr", "de"]
        generate(model, [[4, 5]], steps=[[20]], streamer=watch.streamer())
        generate(model, [[4, 5]], steps=[[20]], streamer=watch.streamer(group="tenant"))
        generate(model, [[4, 5], [6, 7]], steps=[[20, 21]], streamer=watch.streamer(group=["de", "fr", "it"]))
        generate(model, [[4, 5], [6, 7]], steps=[[20, 21]], streamer=watch.streamer(group=["de"]))
        peft.active_adapters = []
        generate(model, [[4, 5]], steps=[[20]], streamer=watch.streamer())
        r = self.finish(top, watch)
        self.assertEqual([q.get("group") for q in r.of("req") if q["state"] == "queued"], ["fr", "fr+de", "tenant", "de", "fr", "de", None, None])

    def test_adapter_of_transformers_itself(self):
        def active():
            if not loaded:
                raise ValueError("No adapter loaded")
            return loaded

        loaded = []
        model = build()
        model.peft_config, model.active_adapters = {"fr": 1}, active
        top, watch = self.start(model)
        self.assertIsNone(watch.adapter())
        loaded.append("fr")
        self.assertEqual(watch.adapter(), "fr")
        self.finish(top, watch)

    def test_sampling_and_hooks_are_controlled(self):
        model = build()
        top, watch = self.start(model)
        self.opened.send({"t": "sample", "c": 1, "every": 2})
        self.assertTrue(self.opened.until("reply")["ok"])
        generate(model, [[4, 5]], steps=[[9], [10], [11], [12]])  # passes over the prompt, 9, 10 and 11, two of which count
        self.opened.send({"t": "hooks", "c": 2, "on": ["picks"]})
        self.assertTrue(self.opened.until("reply")["ok"])
        with watch.streamer() as s:
            generate(model, [[4, 5]], steps=[[9], [10]], streamer=s)
        r = self.finish(top, watch)
        last = r.of("experts")[-1]
        self.assertEqual((last["pt"], last["dt"], last["every"], last["d"]), (2, 1, 2, counted([10])))
        self.assertEqual([t["e"] for t in r.of("tok")], [[e for n in range(LAYERS) for e in choice(n, t)] for t in (5, 9)])

    def test_counts_stay_sampled_while_picks_are_emitted(self):
        model = build()
        top, watch = self.start(model, every=2)
        watch.on = {"experts", "picks"}
        with watch.streamer() as s:
            generate(model, [[4, 5]], steps=[[9], [10], [11], [12]], streamer=s)
        r = self.finish(top, watch)
        last = r.of("experts")[-1]
        self.assertEqual((last["pt"], last["dt"], last["every"], last["d"]), (2, 1, 2, counted([10])))
        self.assertEqual(len([t for t in r.of("tok") if "e" in t]), 4)

    def test_changed_output_form_does_not_fail_the_engine(self):
        model = build()
        top, watch = self.start(model)
        gate = model.model.layers.children["1"].mlp.gate
        was = gate.forward
        model(input_ids=Tensor([[4, 5]]))
        for form in ("indices, weights", "logits"):
            gate.forward = lambda ids, form=form: ORDERS[form]([choice(1, t) for t in ids])
            model(input_ids=Tensor([[4, 5]]))
        gate.forward = was
        model(input_ids=Tensor([[4, 5]]))
        r = self.finish(top, watch)
        self.assertEqual(r.of("experts")[-1]["p"], counted([4, 5] * 4))

    def test_compiled_graph_contains_no_hooks(self):
        compiling = []
        had = sys.modules.get("torch")
        sys.modules["torch"] = types.SimpleNamespace(compiler=types.SimpleNamespace(is_compiling=lambda: bool(compiling)))
        try:
            model = build()
            top, watch = self.start(model)
        finally:
            sys.modules.pop("torch")
            if had is not None:
                sys.modules["torch"] = had
        compiling.append(True)
        self.assertEqual(model(input_ids=Tensor([[4, 5]])), "result")
        compiling.clear()
        self.assertEqual(model(input_ids=Tensor([[6]])), "result")
        r = self.finish(top, watch)
        self.assertEqual((r.of("experts")[-1]["pt"], r.of("experts")[-1]["d"], len(r.of("step"))), (0, counted([6]), 1))

    def test_hooks_are_removed_and_forward_keeps_its_signature(self):
        import inspect

        model = build()
        was = model.forward
        top, watch = self.start(model)
        self.assertEqual(list(inspect.signature(model.forward).parameters), ["input_ids", "attention_mask"])
        self.assertEqual(model(input_ids=Tensor([[4, 5]])), "result")
        self.finish(top, watch)
        self.assertIs(model.forward, was)
        self.assertFalse(any(m.hooks for _, m in model.named_modules()))

    def test_exception_in_a_hook_does_not_fail_the_engine(self):
        model = build()
        top, watch = self.start(model)
        watch._count = lambda *args: 1 / 0
        for _ in range(3):
            self.assertEqual(model(input_ids=Tensor([[4, 5]])), "result")
        r = self.finish(top, watch)
        self.assertEqual([m["m"] for m in r.of("log")], ["llmtop: watching Module failed: ZeroDivisionError: division by zero"])

    def test_model_without_known_routers_is_logged(self):
        top, watch = self.start(build("Other", name="chooser"))
        self.assertIn("no router", self.finish(top, watch).of("log")[0]["m"])


class VLLM(Case):
    def test_statistics_of_steps(self):
        os.environ["LLMTOP_LISTEN"] = self.address
        self.addCleanup(os.environ.pop, "LLMTOP_LISTEN")
        space = types.SimpleNamespace
        config = space(model_config=space(model="m/x", max_model_len=2048), cache_config=space(num_gpu_blocks=100, block_size=16), scheduler_config=space(max_num_seqs=8))
        logger = llmtop.VLLMStatLogger(config, 0)
        logger.log_engine_initialized()
        self.addCleanup(lambda: logger.top.close())
        r = self.reader(logger.top)
        hello = r.next()
        self.assertEqual((hello["name"], hello["model"], hello["slots"]), ("vllm", {"name": "m/x", "context": 2048}, 8))
        r.until("synced")
        cache = space(queries=10, hits=4)
        scheduler = space(num_running_reqs=1, num_waiting_reqs=3, kv_cache_usage=0.25, prefix_cache_stats=cache)
        logger.record(scheduler, space(num_generation_tokens=1, num_prompt_tokens=7, num_preempted_reqs=0, finished_requests=[], time_to_first_tokens_iter=[0.1], inter_token_latencies_iter=[]))
        done = space(finish_reason="length", e2e_latency=2.0, num_prompt_tokens=7, num_generation_tokens=5, max_tokens_param=5, queued_time=0.5, prefill_time=0.5, decode_time=1.0, num_cached_tokens=2)
        end = space(num_generation_tokens=4, num_prompt_tokens=0, num_preempted_reqs=1, finished_requests=[done], time_to_first_tokens_iter=[], inter_token_latencies_iter=[0.2])
        logger.record(space(num_running_reqs=0, num_waiting_reqs=0, kv_cache_usage=0.0, prefix_cache_stats=cache), end, None, engine_idx=0)
        logger.record(None, None)
        logger.log()
        logger.record_sleep_state(1, 0)
        logger.top.close()
        r.rest()
        self.right(r)
        self.assertEqual((r.of("kv")[0]["used"], r.of("kv")[0]["total"], r.of("kv")[0]["page"]), (400, 1600, 16))
        (step,) = r.of("step")
        self.assertEqual((step["n"], step["m"], step["fpm"]["scheduled_requests"]["num_decode_requests"]), (1, 0, 1))
        queued, dispatched, finished = r.of("req")
        self.assertEqual([finished["a"] - queued["a"], finished["a"] - dispatched["a"]], [2_000_000_000, 1_500_000_000])
        self.assertEqual({k: finished[k] for k in ("why", "in", "cached", "out")}, {"why": "length", "in": 7, "cached": 2, "out": 5})
        first, others = r.of("tok")
        self.assertEqual((others["a"] - first["a"], others["n"], others["i"]), (1_000_000_000, 4, 1))
        counters = {k: v for c in r.of("count") for k, v in c["c"].items()}
        self.assertEqual([counters[k] for k in ("prompt_tokens", "generated_tokens", "cache_lookups", "cache_hits", "preempted_requests", "requests_finished")], [7, 5, 20, 8, 1, 1])
        self.assertEqual(r.tokens, {1: 5})

    def test_a_socket_that_cannot_be_opened_does_not_stop_vllm(self):
        os.environ["LLMTOP_LISTEN"] = "unix:/proc/none/x"
        self.addCleanup(os.environ.pop, "LLMTOP_LISTEN")
        logger = llmtop.VLLMStatLogger(None)
        was, sys.stderr = sys.stderr, open(os.devnull, "w")
        try:
            logger.log_engine_initialized()
            logger.record(None, None)
        finally:
            sys.stderr.close()
            sys.stderr = was

    def test_engines_of_one_process_have_a_socket_each(self):
        was = os.environ.get("XDG_RUNTIME_DIR")
        os.environ.update(LLMTOP_LISTEN=self.address, XDG_RUNTIME_DIR=self.folder)
        try:
            loggers = [llmtop.VLLMStatLogger(types.SimpleNamespace(), n) for n in range(2)]
            for logger in loggers:
                logger.log_engine_initialized()
        finally:
            del os.environ["LLMTOP_LISTEN"]
            os.environ.pop("XDG_RUNTIME_DIR") if was is None else os.environ.update(XDG_RUNTIME_DIR=was)
        self.assertEqual([self.reader(logger.top).next()["name"] for logger in loggers], ["vllm", "vllm-1"])
        self.assertEqual(loggers[0].top.address, self.address)
        for logger in loggers:
            logger.top.close()
        if os.path.isdir(self.folder + "/llmtop"):
            os.rmdir(self.folder + "/llmtop")

    def test_base_class_is_that_of_vllm(self):
        class StatLoggerBase(abc.ABC):
            @abc.abstractmethod
            def __init__(self, vllm_config, engine_index=0): ...

            @abc.abstractmethod
            def record(self, scheduler_stats, iteration_stats, mm_cache_stats=None, engine_idx=0): ...

            @abc.abstractmethod
            def log_engine_initialized(self): ...

        names = ["vllm", "vllm.v1", "vllm.v1.metrics", "vllm.v1.metrics.loggers"]
        vars(llmtop).pop("VLLMStatLogger", None)
        for n in names:
            sys.modules[n] = types.ModuleType(n)
        sys.modules[names[-1]].StatLoggerBase = StatLoggerBase
        try:
            self.assertTrue(issubclass(llmtop.VLLMStatLogger, StatLoggerBase))
            llmtop.VLLMStatLogger(None, 0)  # it has no abstract methods
        finally:
            for n in names:
                del sys.modules[n]
            vars(llmtop).pop("VLLMStatLogger", None)


if __name__ == "__main__":
    unittest.main()
