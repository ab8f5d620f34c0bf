"""Tests of the emitter: python3 -m unittest, in this folder. No packages are needed."""

import asyncio
import gc
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

import llmtop
from reader import SCHEMA, Reader, tokens_of, valid

_here = os.path.dirname(os.path.abspath(__file__))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="llmtop", dir="/tmp" if os.path.isdir("/tmp") else None)
        self.address = "unix:" + os.path.join(self.folder, "e.sock")
        self.addCleanup(shutil.rmtree, self.folder)

    def serve(self, listen=None, name="test", **options):
        top = llmtop.serve(name, listen or self.address, **options)
        self.addCleanup(top.close, timeout=0)
        return top

    def reader(self, top):
        """A reader that the emitter has accepted: from now on it receives events, not state."""
        before = list(top._peers)  # of which the emitter may remove some meanwhile
        reader = Reader(top.address)
        self.addCleanup(reader.__exit__)
        deadline = time.monotonic() + 20
        while all(p in before for p in top._peers) and time.monotonic() < deadline:
            time.sleep(0.001)
        return reader

    def right(self, *readers):
        for r in readers:
            self.assertEqual(r.problems, [])


class Schema(unittest.TestCase):
    def test_checker_finds_errors(self):
        for wrong in ({"t": "tok", "a": 1}, {"t": "tok", "a": "x", "r": 1}, {"t": "req", "a": 1, "r": 1}, {"a": 1}, {"t": "stage", "a": 1, "dur": -1, "stage": "x"}):
            self.assertFalse(valid(wrong, SCHEMA), wrong)
        for right in ({"t": "tok", "a": 1, "r": 1}, {"t": "whatever"}, {"t": "tok", "a": [1, 2], "r": 3, "i": [0, 1], "d": [5, None]}):
            self.assertTrue(valid(right, SCHEMA), right)


class Lines(Case):
    def test_all_events(self):
        top = self.serve(version="2.1", model={"name": "tiny", "layers": 4}, slots=2, text=True)
        r = self.reader(top)
        hello = r.next()
        self.assertEqual((hello["t"], hello["v"], hello["name"], hello["version"], hello["pid"]), ("hello", "1.0", "test", "2.1", os.getpid()))
        self.assertEqual((hello["model"], hello["slots"]), ({"name": "tiny", "layers": 4}, 2))
        r.until("synced")
        with top.stage("model_load"):
            pass
        with top.request(prompt_tokens=3, group="adapter", label="chat", name="id-1", max_tokens=9, prompt="Grüße\n\u2028") as q:
            q.cached, q.pad = 2, 1
            q.dispatch()
            with q.stage("prompt", tokens=3, layer=1):
                pass
            q.staged("sample", 1500)
            q.token(11)
            q.token(12, logprob=float("-inf"), text=b"\xe2\x96", sampling=5, step=3, picks=[1, 2], top=[[7, -0.5]])
            q.token(text="\ud800 x")
            q.tokens([5, 6, 7])
            q.finish("stop")
        top.step(2000, decode=1, prompt=3, parts=[1, 2, 3, 4, 5, 6], fpm={"worker_id": "w"})
        top.experts(2, 4, 2, [1] * 8, [2] * 8, 4, 8)
        top.kv(10, 100, 16, pinned=top.origin)
        top.count(cache_hit_ratio=0.5, own=float("nan"))
        top.host(interval=1, cores=[0.5], cpu=[0.5, "derived"])
        top.engine(state="paused")
        top.log("line")
        top.close("done")
        r.rest()
        self.right(r)
        self.assertEqual({line["t"] for line in r.lines}, {"hello", "sync", "synced", "model", "stage", "req", "tok", "step", "experts", "kv", "count", "host", "engine", "log", "bye"})
        queued, dispatched, finished = r.of("req")
        self.assertEqual({k: queued[k] for k in ("group", "label", "name", "max", "prompt")},
                         {"group": "adapter", "label": "chat", "name": "id-1", "max": 9, "prompt": "Grüße\n\u2028"})  # fmt: skip
        self.assertEqual(dispatched["state"], "dispatched")
        self.assertEqual({k: finished[k] for k in ("state", "why", "in", "cached", "pad", "out")},
                         {"state": "finished", "why": "stop", "in": 3, "cached": 2, "pad": 1, "out": 6})  # fmt: skip
        self.assertEqual(r.of("tok")[1]["p"], [226, 150])
        self.assertEqual(r.of("tok")[-1]["n"], 3)
        self.assertEqual(r.lines[-1], {"t": "bye", "why": "done"})
        self.assertIn("queue", r.of("engine")[-1]["caps"])
        self.assertFalse(os.path.exists(self.address[5:]))

    def test_only_what_the_engine_reports_is_sent(self):
        top = self.serve()
        r = self.reader(top)
        r.until("synced")
        with top.request(prompt_tokens=3) as q:
            with q.stage("prompt", tokens=3):
                pass
            q.token(1)
        top.close()
        r.rest()
        self.right(r)
        self.assertEqual([line["state"] for line in r.of("req")], ["queued", "finished"])
        self.assertNotIn("queue", r.lines[0]["caps"])
        self.assertNotIn("cached", r.of("req")[-1])
        self.assertNotIn("cached_tokens", r.of("count")[-1]["c"])
        self.assertEqual(r.of("count")[-1]["c"]["prompt_tokens"], 3)

    def test_text_is_off_by_default(self):
        top = self.serve()
        r = self.reader(top)
        with top.request(prompt="secret") as q:
            q.token(1, text="secret")
        with top.request(prompt="visible", text=True) as q:
            q.token(1, text="visible")
        top.close()
        r.rest()
        self.right(r)
        sent = json.dumps(r.lines)
        self.assertNotIn("secret", sent)
        self.assertEqual(sent.count("visible"), 2)

    def test_first_request_starts_the_device(self):
        class Torch:
            class cuda:
                @staticmethod
                def is_initialized():
                    return started

        for started in (False, True):
            top = self.serve()
            r = self.reader(top)
            before = sys.modules.get("torch")
            sys.modules["torch"] = Torch
            try:
                for _ in range(2):
                    with top.request() as q:
                        q.token(1)
            finally:
                sys.modules.pop("torch")
                if before:
                    sys.modules["torch"] = before
            top.close()
            r.rest()
            self.right(r)
            self.assertEqual([x.get("device_start", False) for x in r.of("req") if x["state"] == "queued"], [started, False])

    def test_block_ends_request(self):
        top = self.serve()
        r = self.reader(top)
        with self.assertRaises(ZeroDivisionError), top.request():
            1 / 0
        with self.assertRaises(KeyboardInterrupt), top.request():
            raise KeyboardInterrupt
        with top.request():
            pass
        top.close()
        r.rest()
        ends = [(q["state"], q.get("why")) for q in r.of("req") if q["state"] != "queued"]
        self.assertEqual(ends, [("failed", "ZeroDivisionError: division by zero"), ("cancelled", "cancelled"), ("finished", None)])
        count = r.of("count")[-1]["c"]
        self.assertEqual([count["requests_" + n] for n in ("queued", "finished", "cancelled", "failed")], [3, 1, 1, 1])

    def test_events_that_cannot_be_encoded_are_counted(self):
        top = self.serve()
        r = self.reader(top)
        with top.request() as q:
            q.token("not a number")
        loop = {}
        loop["x"] = loop
        top.count(x=loop)
        top.close()
        r.rest()
        self.right(r)
        self.assertEqual(r.lost, {"token": 1, "counters": 1})

    def test_invalid_values_do_not_end_the_emitter(self):
        top = self.serve()
        r = self.reader(top)
        q = top.request(prompt_tokens="many")
        q.finish()
        loop = {}
        loop["x"] = loop
        top.kv(used=loop, total=1)
        live = top.request(group=loop)
        live.token("not a number", at=float(top.origin + 5))
        top.count(own=loop)
        while top._queue:
            time.sleep(0.001)
        late = self.reader(top)  # a line that cannot be encoded is not part of the state
        late.until("synced")
        live.token(7)
        top.close()
        for reader in (r, late):
            reader.rest()
        self.right(late)
        self.assertEqual(late.of("tok")[-1]["d"], 7)
        self.assertEqual(r.of("tok")[-1]["d"], 7)
        self.assertEqual(late.of("kv"), [])

    def test_hundred_thousand_tokens_take_few_bytes(self):
        top = self.serve(buffer=1 << 26)
        r = self.reader(top)
        thread = threading.Thread(target=r.rest)
        thread.start()
        with top.request() as q:
            for i in range(100_000):
                q.token(100_000 + i % 50_000)
        top.close(timeout=20)
        thread.join()
        self.right(r)
        self.assertEqual(r.came["token"] + r.lost.get("token", 0), 100_000)
        self.assertLess(r.bytes, 6_000_000 * (100_000 - r.lost.get("token", 0)) / 100_000 + 10_000)

    def test_batches_contain_all_events(self):
        top = self.serve()
        r = self.reader(top)
        r.until("synced")
        a, b = top.request(), top.request()
        for i in range(40):
            top.tokens([(a, i), (b, 100 + i)], at=top.origin + 1000 * (i + 1))
        top.close()
        r.rest()
        self.right(r)
        got = [(t["a"], t["r"], t["i"], t["d"]) for line in r.of("tok") for t in tokens_of(line)]
        self.assertEqual(got, [(1000 * (i + 1), q.id, i, d) for i in range(40) for q, d in ((a, i), (b, 100 + i))])


class Passes(Case):
    def run_engine(self, work, **options):
        """The lines that a reader gets of an engine that does work."""
        top = self.serve(**options)
        r = self.reader(top)
        r.until("synced")
        work(top)
        top.close(timeout=10)
        r.rest()
        self.right(r)
        return r

    def test_step_of_a_request_gives_its_stages(self):
        def work(top):
            with top.request(prompt_tokens=5) as q:
                q.dispatch()
                with top.step(prompt=5, request=q) as s:
                    with s.part("embed"):
                        time.sleep(0.002)
                    for layer in range(2):
                        with s.part("attention", layer=layer):
                            time.sleep(0.003)
                        s.picks(layer, [[0, 1]] * 4 + [[3, 2]])
                    with s.part("lm_head"):
                        time.sleep(0.004)
                    with s.part("rotary"):  # one of the engine's own
                        pass
                with s.part("sample"):
                    time.sleep(0.001)
                q.token(7, step=s, picks=s.picked())
                with top.step(decode=1) as s:
                    s.picks(0, [1, 3])
                    with s.part("sample"):
                        pass
                q.token(8, step=s, picks=s.picked())  # not all layers

        r = self.run_engine(work, model={"layers": 2, "experts": 4, "experts_used": 2})
        first, second = r.of("step")
        self.assertEqual((first["m"], first.get("n"), second["n"], second.get("m"), second["s"]), (5, None, 1, None, first["s"] + 1))
        stages = [line for line in r.of("stage")]
        self.assertEqual([(line["stage"], line.get("l")) for line in stages],
                         [("rotary", None), ("embed", None), ("prompt", None), ("attention", 0), ("attention", 1), ("first_token", None)])  # fmt: skip
        _, embed, prompt, *layers, ended = (line["dur"] for line in stages)
        self.assertEqual(first["x"], [embed, sum(layers), 0, 0, first["x"][4], 0])
        self.assertEqual(embed + prompt + first["x"][4], first["dur"])
        self.assertGreaterEqual(prompt, sum(layers))
        tokens = [t for line in r.of("tok") for t in tokens_of(line)]
        self.assertEqual([(t["s"], t.get("e")) for t in tokens], [(first["s"], [2, 3, 2, 3]), (second["s"], None)])
        self.assertGreaterEqual(tokens[0]["w"], 1_000_000)
        self.assertEqual(tokens[0]["a"], stages[-1]["a"])
        self.assertGreaterEqual(ended, first["x"][4] + tokens[0]["w"])
        picks = r.of("experts")[-1]
        self.assertEqual((picks["p"], picks["d"], picks["pt"], picks["dt"], picks["used"]), ([4, 4, 1, 1] * 2, [0, 1, 0, 1, 0, 0, 0, 0], 5, 1, 2))
        self.assertIn("picks", r.of("engine")[-1]["caps"])

    def test_step_of_several_requests_has_no_stages(self):
        def work(top):
            a, b = top.request(prompt_tokens=3), top.request(prompt_tokens=4)
            with top.step(prompt=7) as s:
                with s.part("attention", layer=0), s.part("sample"):
                    pass
            for q in (a, b):
                q.token(1, step=s)
            with top.step() as s:
                s.decode = 2  # known only in the pass

        r = self.run_engine(work)
        self.assertEqual(r.of("stage"), [])
        self.assertEqual([t.get("w") for line in r.of("tok") for t in tokens_of(line)], [None, None])
        self.assertEqual(r.of("step")[1]["n"], 2)

    def test_chunked_prompts_add_up(self):
        def work(top):
            with top.request(prompt_tokens=6) as q:
                for _ in range(3):
                    with top.step(prompt=2, request=q) as s:
                        pass
                q.token(1, step=s)

        r = self.run_engine(work)
        self.assertEqual([(line["stage"], line.get("n")) for line in r.of("stage")], [("prompt", 2)] * 3 + [("first_token", None)])

    def test_whole_prompts_are_passed_once(self):
        def work(top):
            with top.request(prompt_tokens=6) as q:
                q.reuse(2)
                for _ in range(3):
                    with top.step(request=q) as s:
                        pass
                q.token(1, step=s)
                with top.step(request=q):
                    pass

        r = self.run_engine(work)
        self.assertEqual([(s.get("m"), s.get("n")) for s in r.of("step")], [(4, None), (None, None), (None, None), (None, 1)])
        self.assertIn("step(prompt=...)", r.of("log")[0]["m"])

    def test_step_that_raises_ends(self):
        def work(top):
            with self.assertRaises(ZeroDivisionError), top.request(prompt_tokens=4) as q:
                with top.step(prompt=4, request=q) as s:
                    with s.part("attention", layer=0):
                        1 / 0

        r = self.run_engine(work)
        (step,) = r.of("step")
        self.assertEqual((step.get("m"), step["x"][1] > 0, r.of("stage")), (None, True, []))
        self.assertEqual(r.of("req")[-1]["why"], "ZeroDivisionError: division by zero")

    def test_token_within_its_step(self):
        def work(top):
            with top.request(prompt_tokens=4) as q:
                with top.step(prompt=4, request=q) as s:
                    with s.part("sample"):
                        pass
                    q.token(1, step=s)

        r = self.run_engine(work)
        self.assertEqual({line["stage"] for line in r.of("stage")}, {"prompt", "first_token"})

    def test_asyncio(self):
        async def answer(top, n):
            with top.request(prompt_tokens=n) as q:
                with top.step(prompt=n, request=q) as s:
                    await asyncio.sleep(0.01)
                q.token(n, step=s)
                await asyncio.sleep(60 if n == 3 else 0)

        async def serve_all(top):
            tasks = [asyncio.ensure_future(answer(top, n)) for n in (1, 2, 3)]
            await asyncio.wait(tasks[:2])
            tasks[2].cancel()
            await asyncio.wait(tasks)

        r = self.run_engine(lambda top: asyncio.run(serve_all(top)))
        self.assertEqual(sorted((q["in"], q["state"], q["out"]) for q in r.of("req") if q["state"] != "queued"),
                         [(1, "finished", 1), (2, "finished", 1), (3, "cancelled", 1)])  # fmt: skip
        self.assertEqual({line["r"]: line["n"] for line in r.of("stage") if line["stage"] == "prompt"}, {1: 1, 2: 2, 3: 3})

    def test_picks_of_threads_add_up(self):
        def work(top):
            def decode():
                for _ in range(200):
                    for layer in range(3):
                        top.picks(layer, [layer, 3], "decode")

            threads = [threading.Thread(target=decode) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()

        picks = self.run_engine(work, model={"layers": 3, "experts": 4}).of("experts")[-1]
        self.assertEqual((picks["d"], picks["dt"], picks["pt"]), ([800, 0, 0, 800, 0, 800, 0, 800, 0, 0, 800, 800], 800, 0))

    def test_errors_of_the_engine_are_logged_once(self):
        def work(top):
            for _ in range(3):
                top.picks(0, [1])
                top.picks(5, [1], "decode")
            with top.step(prompt=1) as s:
                s.picks(0, [[[1, 99]]])
                s.picks(0, 7)
                s.picks(0, object())
            self.assertIsNone(s.picked())
            self.assertIsNone(s.picked(row=12))

        r = self.run_engine(work, model={"layers": 1, "experts": 4})
        self.assertEqual(r.of("experts")[-1]["p"], [0, 1, 0, 0])
        self.assertEqual(len(r.of("log")), 2)
        r = self.run_engine(lambda top: top.picks(0, [1]), name="without")
        self.assertIn("the model needs layers and experts", r.of("log")[0]["m"])

    def test_picks_arrive_while_an_accelerator_works(self):
        class Counts:  # of tensors on a device
            ready = False

            def begin_copy(self):
                return self

            def end_copy(self, copy):
                return ([1, 0], [2, 0]) if self.ready else None

            def lists(self):
                return [1, 0], [3, 0]

        top = self.serve(model={"layers": 1, "experts": 2})
        r = self.reader(top)
        top.picks(0, [1])
        top._picks.tensors = counts = Counts()
        top._picks.flushed = 0
        top.picks(0, [1])
        time.sleep(0.15)
        top.count(own=1)
        r.until(lambda line: "own" in line.get("c", ()))
        self.assertEqual([line for line in r.of("experts") if sum(line["p"])], [])
        counts.ready = True
        self.assertEqual(r.until(lambda line: line["t"] == "experts" and sum(line["p"]))["d"], [2, 1])
        counts.ready = False
        top.close()
        r.rest()
        self.right(r)
        self.assertEqual(r.of("experts")[-1]["d"], [3, 2])  # at the end it waits

    def test_ops_draft_usage_and_reuse(self):
        def work(top):
            top.ops(120, [("MUL_MAT", 0, 480, 5_400_000), ("MUL_MAT", -1, 120, 900_000), ("ROPE", 0, 240, 81_000)], slowdown=2.5)
            top.draft([10, 8], [9, 6], 800_000, [(True, 1, 4, 8, 9_600_000, 24), (False, 1, 1, 5, 4_000_000, 5)])
            top.draft([1], [0])
            for wrong in ([(1, 2)], [7], None, [("x", 0, 1, "ns")]):
                top.ops(1, wrong)
                top.draft([1], [0], 0, wrong)
            top.usage(20_000_000, run=[1, "derived"], wait=[2, "derived"])
            with top.request(prompt_tokens=9) as q:
                q.reuse(0)
            with top.request(prompt_tokens=9) as again:
                again.reuse(6, q, "tokens", at=6)

        r = self.run_engine(work)
        (ops,), (draft, short), (usage,) = r.of("ops"), r.of("draft"), r.of("usage")
        self.assertEqual((ops["ops"], ops["k"], ops["l"], ops["n"], ops["d"], ops["slowdown"]),
                         (["MUL_MAT", "ROPE"], [0, 0, 1], [0, -1, 0], [480, 120, 240], [5_400_000, 900_000, 81_000], [2.5, "derived"]))  # fmt: skip
        self.assertEqual(len(r.of("log")), 2)
        self.assertEqual([draft[k] for k in "srnpdk"], [[1, 0], [1, 1], [4, 1], [8, 5], [9_600_000, 4_000_000], [24, 5]])
        self.assertEqual((draft["accepted"], short["s"], usage["interval"], usage["run"]), ([9, 6], [], 20_000_000, [1, "derived"]))
        ends = [q for q in r.of("req") if q["state"] == "finished"]
        self.assertEqual([(q["cached"], q.get("reuse")) for q in ends], [(0, None), (6, {"with": ends[0]["r"], "why": "tokens", "at": 6})])
        self.assertIn("ops", r.of("engine")[-1]["caps"])

    def test_path_is_absolute(self):
        top = self.serve(path="model.gguf", model={"name": "m"})
        self.assertEqual(self.reader(top).next()["model"], {"name": "m", "path": os.path.abspath("model.gguf")})

    def test_sample_host(self):
        if sys.platform != "linux":
            self.skipTest("/proc exists only on Linux")
        top = self.serve()
        r = self.reader(top)
        r.until("synced")
        top.sample_host()
        top.sample_host()  # has no effect
        deadline = time.monotonic() + 20
        while not r.of("host") and time.monotonic() < deadline:
            sum(range(100_000))
            if r.next() is None:
                break
        (host,) = r.of("host")
        self.right(r)
        self.assertEqual((host["engine"]["pid"], host["engine"]["interval"]), (os.getpid(), host["interval"]))
        self.assertEqual(len(host["cores"]), os.cpu_count())
        for name in ("cpu", "steal", "load1", "mem_total", "mem_used", "runnable"):
            self.assertGreaterEqual(host[name][0], 0, name)
        self.assertLess(host["mem_used"][0], host["mem_total"][0])
        for name in ("cpu", "rss", "peak", "threads", "run_wait", "faults", "minor_faults"):
            self.assertGreaterEqual(host["engine"][name][0], 0, name)
        self.assertGreater(host["engine"]["rss"][0], 1 << 20)


class ModelFrom(Case):
    MOE = {"_name_or_path": "own/moe", "model_type": "qwen3_moe", "torch_dtype": "bfloat16", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8,
           "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 1000, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
           "intermediate_size": 256, "max_position_embeddings": 4096}  # fmt: skip

    def test_config(self):
        want = {"name": "own/moe", "architecture": "qwen3_moe", "quantisation": "bfloat16", "layers": 4, "width": 64, "heads": 8, "kv_heads": 2, "head_dim": 16,
                "vocabulary": 1000, "experts": 8, "experts_used": 2, "feed_forward": 32, "trained_context": 4096}  # fmt: skip
        self.assertEqual(llmtop.model_from(self.MOE), want)
        config = types.SimpleNamespace(text_config=types.SimpleNamespace(**self.MOE), model_type="x", name_or_path="own/moe")
        self.assertEqual(llmtop.model_from(config)["layers"], 4)
        model = types.SimpleNamespace(config=types.SimpleNamespace(**self.MOE), dtype="torch.float16", num_parameters=lambda: 12345)
        self.assertEqual({k: llmtop.model_from(model, kv_bytes=512)[k] for k in ("parameters", "quantisation", "kv_bytes")},
                         {"parameters": 12345, "quantisation": "float16", "kv_bytes": 512})  # fmt: skip

    def test_what_a_config_lacks_is_absent(self):
        self.assertEqual(llmtop.model_from({}), {})
        self.assertEqual(llmtop.model_from({"n_layer": 2, "n_embd": 12, "n_head": 3, "n_positions": 8}),
                         {"layers": 2, "width": 12, "heads": 3, "head_dim": 4, "trained_context": 8})  # fmt: skip
        latent = dict(self.MOE, kv_lora_rank=512)
        del latent["head_dim"]
        self.assertNotIn("head_dim", llmtop.model_from(latent))

    def test_folder(self):
        with open(self.folder + "/config.json", "w") as f:
            json.dump({k: v for k, v in self.MOE.items() if k != "_name_or_path"}, f)
        about = llmtop.model_from(self.folder)
        self.assertEqual((about["path"], about["name"], about["layers"]), (self.folder, os.path.basename(self.folder), 4))


class Sockets(Case):
    def test_socket_is_private(self):
        top = self.serve()
        self.assertEqual(stat.S_IMODE(os.stat(self.address[5:]).st_mode), 0o600)
        self.assertEqual(top.address, self.address)

    def test_default_folder(self):
        was = os.environ.get("XDG_RUNTIME_DIR")
        os.environ["XDG_RUNTIME_DIR"] = self.folder
        try:
            top = llmtop.serve("my engine/1")
        finally:
            os.environ.pop("XDG_RUNTIME_DIR") if was is None else os.environ.update(XDG_RUNTIME_DIR=was)
        if sys.platform == "linux":
            self.assertEqual(top.address, "unix:%s/llmtop/my-engine-1-%d.sock" % (self.folder, os.getpid()))
            self.assertEqual(stat.S_IMODE(os.stat(self.folder + "/llmtop").st_mode), 0o700)
        top.close()
        os.rmdir(self.folder + "/llmtop")

    def test_untrusted_folder(self):
        place = self.folder + "/llmtop"
        other = self.folder + "/other"

        def given():
            os.mkdir(place)
            os.chown(place, 12345, -1)

        cases = {
            "is not a folder: remove it": lambda: os.symlink(other, place),
            "make folder": lambda: open(place, "w").close(),  # there is a file
            "other users may write to folder .*: chmod 700": lambda: (os.mkdir(place), os.chmod(place, 0o777)),
        }
        if os.geteuid() == 0:
            cases["belongs to user 12345: set XDG_RUNTIME_DIR"] = given
        else:
            print("only root can give a folder to another user: that case is left out")
        os.mkdir(other)
        was = os.environ.get("XDG_RUNTIME_DIR")
        os.environ["XDG_RUNTIME_DIR"] = self.folder
        try:
            for why, make in cases.items():
                make()
                with self.subTest(why), self.assertRaisesRegex(llmtop.Error, why):
                    llmtop.serve("engine")
                self.assertEqual(os.listdir(other), [])
                os.rmdir(place) if os.path.isdir(place) and not os.path.islink(place) else os.unlink(place)
        finally:
            os.environ.pop("XDG_RUNTIME_DIR") if was is None else os.environ.update(XDG_RUNTIME_DIR=was)
            os.rmdir(other)

    def test_socket_of_a_live_engine_is_kept(self):
        top = self.serve()
        with self.assertRaisesRegex(llmtop.Error, r"held by a live engine \(pid %d\)" % os.getpid()):
            llmtop.serve("second", self.address)
        r = self.reader(top)
        self.assertEqual(r.next()["name"], "test")

    def test_socket_of_a_dead_engine_is_replaced(self):
        code = "import llmtop, sys, time; llmtop.serve('dead', sys.argv[1]); print('up', flush=True); time.sleep(60)"
        dead = subprocess.Popen([sys.executable, "-c", code, self.address], stdout=subprocess.PIPE, cwd=_here)
        self.assertEqual(dead.stdout.readline().strip(), b"up")
        dead.kill()
        dead.communicate()
        self.assertTrue(os.path.exists(self.address[5:]))
        self.assertEqual(self.reader(self.serve()).next()["name"], "test")

    def test_other_files_are_kept(self):
        with open(self.address[5:], "w") as f:
            f.write("precious")
        with self.assertRaisesRegex(llmtop.Error, "not a socket"):
            llmtop.serve("x", self.address)
        self.assertEqual(os.path.getsize(self.address[5:]), 8)

    def test_errors_name_invalid_addresses(self):
        for address in ("nonsense", "unix:", "tcp:x", "tcp:127.0.0.1:99999999", "tcp:0.0.0.0:0", "unix:/proc/none/x", "unix:/tmp/" + "x" * 200):
            with self.assertRaises(llmtop.Error, msg=address):
                llmtop.serve("x", address)

    def test_token(self):
        top = self.serve("tcp:127.0.0.1:0", token="sesame")
        for answer in ({"t": "auth", "token": "wrong"}, {"t": "auth"}, {"t": "cancel", "r": 1}, b"x" * 2000, b"\xff\n", {"t": "auth", "token": 7}):
            with Reader(top.address) as r:
                self.assertEqual(r.next(), {"t": "auth"})
                r.send(answer)
                r.rest()
                self.assertEqual([line["t"] for line in r.lines], ["auth", "bye"], answer)
        r = self.reader(top)
        r.send({"t": "auth", "token": "sesame"})
        self.assertEqual([r.next()["t"] for _ in range(3)], ["auth", "hello", "sync"])

    def test_forked_child_emits_nothing(self):
        if not hasattr(os, "fork"):
            self.skipTest("this system cannot fork")
        top = self.serve(model={"layers": 1, "experts": 2})
        r = self.reader(top)
        r.until("synced")
        top.picks(0, [1])
        with top._picks.lock:  # as by another thread
            pid = os.fork()
        if not pid:
            top.picks(0, [1])
            with top.request() as q:
                q.token(1)
            top.close()
            os._exit(0)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        with top.request() as q:
            q.token(2)
        top.close()
        r.rest()
        self.right(r)
        self.assertEqual([t["d"] for t in r.of("tok")], [2])


class Control(Case):
    def ask(self, r, message):
        r.send(message)
        return r.until("reply")

    def test_messages_reach_the_engine(self):
        got = []
        top = self.serve(
            on_generate=lambda m: got.append(m["prompt"]) or top.request(),
            on_cancel=lambda r: got.append(r),
            on_pause=lambda: got.append("pause"),
            on_resume=lambda: got.append("resume"),
            on_sample=lambda n: got.append(n),
        )
        r = self.reader(top)
        self.assertEqual(set(r.next()["caps"]) & set(llmtop._CONTROLS), {"generate", "cancel", "pause", "sample"})
        self.assertEqual(self.ask(r, {"t": "generate", "c": 1, "prompt": "hi"}), {"t": "reply", "c": 1, "ok": True, "r": 1})
        self.assertEqual(self.ask(r, {"t": "cancel", "c": 2, "r": 1}), {"t": "reply", "c": 2, "ok": True})
        self.assertTrue(self.ask(r, {"t": "pause", "c": 3})["ok"])
        self.assertTrue(self.ask(r, {"t": "resume", "c": 4})["ok"])
        self.assertTrue(self.ask(r, {"t": "sample", "c": 5, "every": 8})["ok"])
        self.assertEqual(got, ["hi", 1, "pause", "resume", 8])
        self.assertEqual(self.ask(r, {"t": "hooks", "c": 6, "on": []})["why"], "this engine does not offer hooks")
        self.assertFalse(self.ask(r, {"t": "cancel", "c": 7})["ok"])
        self.assertEqual(self.ask(r, {"t": "generate", "c": 8})["ok"], False)
        self.right(r)

    def test_tcp_without_token_offers_no_control(self):
        top = self.serve("tcp:127.0.0.1:0", on_pause=lambda: self.fail("paused"))
        r = self.reader(top)
        self.assertNotIn("pause", r.next()["caps"])
        self.assertFalse(self.ask(r, {"t": "pause", "c": 1})["ok"])

    def test_malformed_message_ends_only_its_connection(self):
        top = self.serve(on_pause=lambda: None)
        other = self.reader(top)
        for bad in (b"\x00\xff\x80\n", b"{]\n", b"[" * 100_000 + b"\n", b"7\n", b'{"x":1}\n', b'{"t":"launch","c":1}\n', b'{"t":[1]}\n', b"GET / HTTP/1.1\r\n\r\n"):
            with Reader(top.address) as r:
                r.send(bad)
                r.rest()
                self.assertEqual(r.lines[-1]["t"], "bye", bad[:20])
                self.right(r)
        with Reader(top.address) as r:
            with self.assertRaises(OSError):
                for _ in range(64):
                    r.send(b"x" * 65536)
                r.rest()
                raise OSError
        other.send(b"\n\r\n")
        self.assertTrue(self.ask(other, {"t": "pause", "c": 1})["ok"])
        self.right(other)


class Survival(Case):
    def test_drops_of_a_stalled_reader_are_counted(self):
        top = self.serve(buffer=1 << 18)
        stalled, other = self.reader(top), self.reader(top)
        thread = threading.Thread(target=other.rest)
        thread.start()
        old = top.request()
        for n in range(30):
            with top.request() as q:
                for i in range(4000):
                    q.token(i)
            while top._queue:
                time.sleep(0.001)
        old.token(1)
        time.sleep(0.15)
        thread2 = threading.Thread(target=stalled.rest)
        thread2.start()  # it reads again: first the drops, then the state after the waiting lines
        deadline = time.monotonic() + 15
        while len(stalled.of("sync")) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        top.close(timeout=10)
        thread2.join()
        thread.join()
        self.right(stalled, other)
        self.assertGreater(stalled.lost["token"], 10_000)
        self.assertEqual(len(stalled.of("sync")), 2)
        state = stalled.lines[max(i for i, line in enumerate(stalled.lines) if line["t"] == "sync") :]
        self.assertEqual({q["r"] for q in state if q["t"] == "req"}, {old.id})
        self.assertEqual(state[1]["c"]["generated_tokens"] if state[1]["t"] == "count" else None, 120_001)
        self.assertEqual(other.came["token"] + other.lost.get("token", 0), 120_001)

    def test_drops_of_a_full_queue_are_counted(self):
        top = self.serve(queue=64)
        r = self.reader(top)
        r.until("synced")
        thread = threading.Thread(target=r.rest)
        thread.start()
        with top.request() as q:
            for i in range(50_000):
                q.token(i)
        top.close(timeout=10)
        thread.join()
        self.right(r)
        self.assertGreater(r.lost["token"], 0)
        self.assertEqual(r.came.get("token", 0) + r.lost["token"], 50_000)
        self.assertEqual(r.of("count")[-1]["c"]["generated_tokens"], 50_000)
        self.assertEqual(r.of("count")[-1]["c"]["requests_finished"], 1)

    def test_memory_is_bounded_with_a_stalled_reader(self):
        top = self.serve(buffer=1 << 16)
        self.reader(top)
        for _ in range(200):
            with top.request() as q:
                for i in range(500):
                    q.token(i)
        deadline = time.monotonic() + 10
        while (top._queue or top._state.live) and time.monotonic() < deadline:
            time.sleep(0.01)
        peer = top._peers[0]
        self.assertLessEqual(peer.size, 1 << 16)
        self.assertLessEqual(len(peer.tail), llmtop.CHUNK * 2)
        self.assertLessEqual(len(top._queue), llmtop.QUEUE)
        self.assertFalse(top._state.live)

    def test_oldest_live_requests_are_evicted(self):
        top = self.serve()
        for _ in range(llmtop.LIVE + 500):
            top.request()
        r = self.reader(top)
        r.until("synced")
        self.assertLessEqual(len([q for q in r.of("req")]), llmtop.LIVE)
        self.right(r)

    def test_killed_reader_is_removed(self):
        top = self.serve()
        other = self.reader(top)
        code = "import sys; from reader import Reader; r = Reader(sys.argv[1]); r.until('synced'); print('up', flush=True); r.rest()"
        child = subprocess.Popen([sys.executable, "-c", code, top.address], stdout=subprocess.PIPE, cwd=_here)
        self.assertEqual(child.stdout.readline().strip(), b"up")
        if hasattr(signal, "SIGSTOP"):
            child.send_signal(signal.SIGSTOP)
        with top.request() as q:
            for i in range(1000):
                q.token(i)
            child.kill()
            child.communicate()
            for i in range(1000):
                q.token(i)
        deadline = time.monotonic() + 10
        while len(top._peers) > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(len(top._peers), 1)
        top.close()
        other.rest()
        self.right(other)
        self.assertEqual(other.came["token"], 2000)

    def test_late_joiner_gets_the_state(self):
        top = self.serve(model={"name": "m"})
        with top.stage("model_load"):
            pass
        top.experts(1, 2, 1, [3, 4], [5, 6], 7, 11)
        top.kv(1, 2)
        top.count(own=5)
        ended = top.request(prompt_tokens=4)
        ended.token(1)
        ended.finish()
        q = top.request(group="g")
        q.dispatch()
        with q.stage("prompt"):
            pass
        for i in range(10):
            q.token(50 + i)
        while top._queue:
            time.sleep(0.001)
        r = self.reader(top)
        r.until("synced")
        self.assertEqual([line["t"] for line in r.lines],
                         ["hello", "sync", "model", "stage", "experts", "kv", "count", "req", "req", "stage", "tok", "tok", "synced"])  # fmt: skip
        self.assertEqual({line["r"] for line in r.lines if "r" in line}, {q.id})
        self.assertEqual(r.tokens, {q.id: 10})
        self.assertEqual((r.of("tok")[0]["i"], r.of("tok")[0]["d"], r.of("tok")[1]["n"]), (0, 50, 9))
        self.assertLess(r.of("tok")[0]["a"], r.of("tok")[1]["a"])
        self.assertEqual((r.of("count")[0]["c"]["own"], r.of("count")[0]["c"]["generated_tokens"]), (5, 11))
        self.assertEqual((r.of("experts")[0]["p"], r.of("experts")[0]["dt"]), ([3, 4], 11))
        self.assertEqual(r.came, {})
        self.right(r)

    def test_readers_that_connect_at_any_time_agree(self):
        top = self.serve(buffer=1 << 26, queue=1 << 20)
        requests = [top.request() for _ in range(4)]
        stop = threading.Event()

        def work(q):
            while not stop.is_set():
                for i in range(50):
                    q.token(i)
                time.sleep(0.001)

        workers = [threading.Thread(target=work, args=(q,)) for q in requests]
        for w in workers:
            w.start()
        readers, threads = [], []
        for _ in range(12):
            readers.append(self.reader(top))
            threads.append(threading.Thread(target=readers[-1].rest))
            threads[-1].start()
            time.sleep(0.013)
        stop.set()
        for w in workers:
            w.join()
        top.close(timeout=20)
        for t in threads:
            t.join()
        want = {q.id: q.out for q in requests}
        for r in readers:
            self.assertEqual(r.lost, {})
            self.assertEqual(r.tokens, want)
        self.right(*readers)

    def test_heartbeat(self):
        top = self.serve()
        r = self.reader(top)
        first, second = r.until("clock"), r.until("clock")
        self.assertGreaterEqual(second["a"] - first["a"], 900_000_000)
        self.assertLess(abs((second["wall"] - first["wall"]) - (second["a"] - first["a"])), 1_000_000_000)
        self.right(r)

    def test_emitting_after_close_has_no_effect(self):
        top = self.serve()
        q = top.request()
        top.close()
        for i in range(1000):
            q.token(i)
        q.finish()
        self.assertLessEqual(len(top._queue), 1)

    def test_closed_emitters_leave_no_thread_or_file(self):
        for _ in range(3):
            llmtop.serve("x", self.address).close()
        gc.collect()
        self.assertEqual([t.name for t in threading.enumerate() if t.name == "llmtop" and not t.daemon], [])
        self.assertFalse(os.path.exists(self.address[5:]))


if __name__ == "__main__":
    if not hasattr(socket, "AF_UNIX"):
        sys.exit("these tests need Unix sockets")
    unittest.main()
