"""Runs the code in README.md."""

import glob
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import types

import llmtop
from test_hooks import EOS, Tensor, build, generate
from reader import tokens_of
from test_llmtop import Case, _here

sys.path.insert(0, os.path.join(_here, "testdata"))
import run

with open(os.path.join(_here, "README.md"), encoding="utf-8") as f:
    SNIPPETS = re.findall(r"^```(\w+)\n(.*?)^```$", f.read(), re.M | re.S)


class Readme(Case):
    def run_python(self, snippet, **names):
        """Runs a snippet with a reader attached from the start, and returns what the reader received."""
        was, readers, serve = os.environ.get("LLMTOP_LISTEN"), [], llmtop.serve

        def watched(*args, **options):
            top = serve(*args, **options)
            self.addCleanup(top.close, timeout=0)
            readers.append(self.reader(top))
            readers[0].until("synced")
            names["top"] = top
            return top

        os.environ["LLMTOP_LISTEN"], llmtop.serve = self.address, watched
        try:
            exec(compile(snippet, "README.md", "exec"), names)
        finally:
            llmtop.serve = serve
            os.environ.pop("LLMTOP_LISTEN") if was is None else os.environ.update(LLMTOP_LISTEN=was)
        names["top"].close()
        readers[0].rest()
        self.right(readers[0])
        return readers[0]

    def snippet(self, language, word):
        (found,) = [s for of, s in SNIPPETS if of == language and word in s]
        return found

    def test_each_snippet_has_a_test(self):
        self.assertEqual([language for language, _ in SNIPPETS], ["sh", "python", "python", "python", "python", "sh"])

    def engine(self, lines, source=run.TEXTS):
        """Runs the engine with that many lines, and returns what a reader received."""
        used = [line for line in run.engine(lines).splitlines() if re.search(r"\b(llmtop|top|r|s|timed|submit)\b[.(]|^import llmtop|on_\w+=|prompt_tokens", line)]
        self.assertLessEqual(len(used), lines, used)
        with tempfile.TemporaryDirectory() as folder:
            run.toy.write(folder)
            names = {"load": run.toy.Toy, "folder": folder, "texts": source() if callable(source) else source}
            return self.run_python(run.engine(lines), **names)

    def test_5_lines(self):
        r = self.engine(5)
        self.assertEqual([q["state"] for q in r.of("req")], ["queued", "finished"] * 3)
        self.assertEqual(([q["in"] for q in r.of("req")[1::2]], r.tokens), ([len(t) for t in run.TEXTS], {1: 32, 2: 32, 3: 32}))
        self.assertEqual([(s.get("m"), s.get("n")) for s in r.of("step")[:3]], [(len(run.TEXTS[0]), None), (None, 1), (None, 1)])
        self.assertEqual([s["stage"] for s in r.of("stage")], ["prompt", "first_token"] * 3)
        self.assertTrue(os.path.isabs(r.lines[0]["model"]["path"]))

    def test_20_lines(self):
        r = self.engine(20)
        self.assertEqual([q["state"] for q in r.of("req")], ["queued", "dispatched", "finished"] * 3)
        self.assertEqual([(q["cached"], q["pad"], q["why"]) for q in r.of("req")[2::3]], [(0, 0, "length")] * 3)
        names = {s["stage"] for s in r.of("stage")}
        self.assertEqual(names, {"model_load", "tokenize", "embed", "prompt", "attention", "router", "experts", "first_token"})
        picks, prompts = r.of("experts")[-1], sum(map(len, run.TEXTS))
        self.assertEqual((sum(picks["p"]), picks["pt"]), (prompts * run.toy.LAYERS * run.toy.USED, prompts))
        tokens = [t for line in r.of("tok") for t in tokens_of(line)]
        self.assertEqual({len(t["e"]) for t in tokens}, {run.toy.LAYERS * run.toy.USED})
        self.assertEqual((picks["dt"], len(tokens)), (31 * 3, 32 * 3))
        self.assertEqual((r.of("model")[-1]["architecture"], r.of("model")[-1]["context"]), ("toy_moe", run.toy.CONTEXT))
        self.assertEqual(max(k["used"] for k in r.of("kv")), max(map(len, run.TEXTS)) + 31)
        self.assertTrue(all(all(s["x"][:5]) for s in r.of("step")))

    def test_60_lines(self):
        asked = []

        def texts():
            """Asks for a prompt as llmtop does, and cancels it."""
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(self.address[5:])
                sock.sendall(b'{"t":"generate","c":1,"prompt":"from llmtop"}\n')
                for line in sock.makefile():
                    if '"reply"' in line:
                        asked.append(json.loads(line)["r"])
                        break
            yield from [run.TEXTS[0], run.TEXTS[0] + " a cat"]

        r = self.engine(60, texts)
        queued = [q for q in r.of("req") if q["state"] == "queued"]
        self.assertEqual([q.get("label") for q in queued], ["llmtop", None, None])
        self.assertEqual((queued[0]["r"], queued[0]["prompt"]), (asked[0], "from llmtop"))
        ends = [q for q in r.of("req") if q["state"] == "finished"]
        self.assertEqual([(q["out"], q["cached"]) for q in ends], [(32, 0), (32, 0), (32, 8)])
        self.assertEqual(ends[-1]["reuse"], {"with": queued[1]["r"], "why": "tokens", "at": 8})
        self.assertEqual({s.get("n") for s in r.of("step")}, {None, 1, 2})
        self.assertTrue(all(t.get("p") for line in r.of("tok") for t in tokens_of(line)))
        self.assertEqual(r.of("ops")[-1]["ops"], ["attention"])
        self.assertEqual(set(r.lines[0]["caps"]) & {"generate", "cancel", "pause"}, {"generate", "cancel", "pause"})

    def test_transformers_with_a_stand_in(self):
        model = build()
        model.generate = lambda ids, max_new_tokens, streamer: generate(model, ids.tolist(), steps=[[20], [EOS]], streamer=streamer)
        r = self.run_python(self.snippet("python", "watch(model)"), model=model, inputs={"ids": Tensor([[4, 5, 6]])})
        self.assertEqual((r.of("experts")[-1]["pt"], r.of("experts")[-1]["dt"], r.tokens), (3, 1, {1: 2}))

    def test_transformers(self):
        try:
            from test_transformers import FAMILIES, Transformers, torch
        except Exception as e:
            self.skipTest("the snippet for transformers ran with a stand-in only: %s" % e)
        model, _ = Transformers().build(next(iter(FAMILIES)))
        ids = torch.tensor([[5, 6, 7]])
        r = self.run_python(self.snippet("python", "watch(model)"), model=model, inputs={"input_ids": ids, "attention_mask": torch.ones_like(ids)})
        self.assertEqual(r.of("experts")[-1]["pt"], 3)
        self.assertGreater(r.tokens[1], 0)

    def test_vllm_finds_the_installed_module(self):
        self.assertEqual(self.snippet("sh", "pip"), "pip install ./sdk/python\n")
        for needed in ("pip", "setuptools", "wheel"):
            if importlib.util.find_spec(needed) is None:
                self.skipTest("%s is not installed: llmtop.py was not installed with pip" % needed)
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, "sdk"), os.path.join(folder, "site")
            os.mkdir(source)
            for name in ("llmtop.py", "pyproject.toml"):
                shutil.copy(os.path.join(_here, name), source)  # building leaves files in the folder
            pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", "--no-deps", "--target", target, source]
            done = subprocess.run(pip, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout.decode())
            (installed,) = importlib.metadata.distributions(path=[target])
            self.assertEqual((installed.metadata["Name"], installed.version), ("llmtop", llmtop.__version__))
            (point,) = installed.entry_points
            self.assertEqual((point.group, point.name), ("vllm.stat_logger_plugins", "llmtop"))
            self.assertTrue(issubclass(point.load(), llmtop._VLLMStats))
            self.assertEqual(len(glob.glob(os.path.join(target, "*.py"))), 1)

    def test_vllm(self):
        self.assertEqual(self.snippet("sh", "vllm"), "vllm serve MODEL\n")
        if importlib.util.find_spec("vllm") is None:
            self.skipTest("vllm is not installed: its statistics come from stand-ins in test_hooks.py")
        from vllm.v1.metrics.loggers import StatLoggerBase

        self.assertTrue(issubclass(llmtop.VLLMStatLogger, StatLoggerBase))
        config = types.SimpleNamespace(model_config=types.SimpleNamespace(model="m", max_model_len=64))
        os.environ["LLMTOP_LISTEN"] = self.address
        try:
            logger = llmtop.VLLMStatLogger(config, 0)  # it has no abstract methods
            logger.log_engine_initialized()
        finally:
            del os.environ["LLMTOP_LISTEN"]
        self.addCleanup(logger.top.close)
        self.assertEqual(self.reader(logger.top).next()["model"]["name"], "m")
