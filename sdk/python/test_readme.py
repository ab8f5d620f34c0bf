"""Runs the code in README.md."""

import glob
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types

import llmtop
from test_hooks import EOS, Tensor, build, generate
from test_llmtop import Case, _here

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
        self.assertEqual([language for language, _ in SNIPPETS], ["sh", "python", "python", "sh"])

    def test_own_engine(self):
        snippet = self.snippet("python", "my-engine")
        self.assertLessEqual(len(snippet.strip().splitlines()), 10)
        r = self.run_python(snippet)
        self.assertEqual([q["state"] for q in r.of("req")], ["queued", "finished"])
        self.assertEqual((r.of("req")[0]["group"], r.of("req")[-1]["in"], r.of("req")[-1]["why"]), ("my-adapter", 12, "length"))
        self.assertEqual((r.tokens, [s["stage"] for s in r.of("stage")]), ({1: 3}, ["prompt"]))

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
