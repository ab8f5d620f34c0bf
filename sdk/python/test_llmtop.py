"""Tests of the emitter: python3 -m unittest, in this folder. No packages are needed."""

import gc
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import llmtop
from reader import SCHEMA, Reader, tokens_of, valid

_here = os.path.dirname(os.path.abspath(__file__))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="llmtop", dir="/tmp" if os.path.isdir("/tmp") else None)
        self.address = "unix:" + os.path.join(self.folder, "e.sock")
        self.addCleanup(lambda: [os.unlink(os.path.join(self.folder, f)) for f in os.listdir(self.folder)] and None)

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
        top = self.serve()
        r = self.reader(top)
        r.until("synced")
        pid = os.fork()
        if not pid:
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
