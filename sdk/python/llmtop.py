"""Emits the events of a Python inference engine to llmtop: opens an event socket and writes to it.

    import llmtop

    top = llmtop.serve("my-engine", path="model.gguf")
    with top.request(prompt_tokens=12) as r:
        with top.step(prompt=12, request=r) as s:
            ...
        r.token(token, step=s)

Hugging Face transformers:  watch = top.watch(model);  with watch.streamer() as s: model.generate(..., streamer=s)
vLLM: point an entry point of the group "vllm.stat_logger_plugins" at llmtop:VLLMStatLogger.

One file, Python 3.9 and later, no dependencies; torch and vLLM are imported only where they are used. The engine never
waits for a reader: it appends a tuple to a queue, and a thread of this module encodes and writes. Events that a slow
reader misses are dropped, oldest first, and counted by kind. docs/event-protocol.md of llmtop describes the lines.
All times are ns of time.perf_counter_ns, which is monotonic.
"""

import asyncio
import atexit
import contextlib
import hmac
import itertools
import json
import math
import os
import queue
import re
import selectors
import socket
import stat
import struct
import sys
import threading
import time
import weakref
from collections import OrderedDict, deque

try:
    import fcntl
except ImportError:  # Windows, where Python has no Unix sockets
    fcntl = None

__all__ = ["Error", "Emitter", "Request", "Step", "Streamer", "VLLMStatLogger", "Watch", "model_from", "serve"]
__version__ = "1.0"

PROTOCOL = "1.0"
BUFFER = 4 << 20  # bytes kept for one reader before the oldest are dropped
QUEUE = 65536  # events kept for the writer thread before the oldest are dropped
LIVE = 8192  # live requests in the state for late joiners
MAX_LINE = 4 << 20  # longest line that a reader accepts
MAX_CONTROL = 1 << 20  # longest line accepted from a reader
MAX_AUTH = 1 << 10
MAX_READERS = 64
MAX_PATH = 103  # bytes in the path of a socket, on all systems
BATCH = 256  # maximum tokens per line: a line is dropped as a whole
CHUNK = 1 << 16  # bytes passed to a socket at a time
SECOND = 1_000_000_000
STARTED = time.time_ns()

_CONTROLS = ("generate", "cancel", "pause", "resume", "hooks", "sample")
_KIND_CAPS = {"stage": "stages", "token": "tokens", "experts": "experts", "kv": "kv", "step": "steps", "host": "host", "counters": "counters", "ops": "ops"}
_PARTS = {"embed": 0, "attention": 1, "router": 2, "experts": 3, "lm_head": 4, "sample": 5}
_TOTALS = {"finished": "requests_finished", "cancelled": "requests_cancelled", "failed": "requests_failed"}
_now = time.perf_counter_ns


class Error(OSError):
    """The event socket could not be opened."""


def serve(name=None, listen=None, **options):
    """Opens the event socket and returns the Emitter, which is also a context manager that closes it.

    listen is "unix:PATH" or "tcp:HOST:PORT"; default: $LLMTOP_LISTEN, or NAME-PID.sock in the folder in which
    llmtop looks for engines. options are those of Emitter. Raises Error if a live engine holds the socket.
    """
    return Emitter(name, listen, **options)


# Addresses


def folder():
    """The folder in which llmtop looks for engines."""
    if sys.platform == "win32":
        return os.path.join(os.environ.get("LOCALAPPDATA", os.path.expanduser("~")), "llmtop")
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isabs(base):
        return os.path.join(base, "llmtop")
    base = "/tmp" if sys.platform == "linux" else os.environ.get("TMPDIR", "/tmp")
    return os.path.join(base, "llmtop-%d" % os.getuid())


def _default_address(name):
    if not hasattr(socket, "AF_UNIX"):
        return "tcp:127.0.0.1:0"
    return "unix:" + os.path.join(folder(), "%s-%d.sock" % (re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:32].lstrip("."), os.getpid()))


def _listen(address, token):
    """Returns the listening socket, its address and a function that removes its file."""
    scheme, _, rest = address.partition(":")
    if scheme == "unix" and rest and hasattr(socket, "AF_UNIX"):
        return _listen_unix(rest)
    if scheme == "tcp" and rest:
        return _listen_tcp(rest, token)
    raise Error("listen on %r: want unix:PATH or tcp:HOST:PORT" % address)


def _listen_tcp(rest, token):
    host, _, port = rest.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit() or int(port) > 65535:
        raise Error("listen on tcp:%s: want tcp:HOST:PORT" % rest)
    try:
        family, _, _, _, where = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        loopback = where[0].startswith("127.") or where[0] == "::1"
        if not loopback and not token:
            raise Error("listen on tcp:%s: not a loopback address, which needs a token" % rest)
        sock = socket.create_server(where[:2], family=family)
    except (OSError, OverflowError) as e:
        raise e if isinstance(e, Error) else Error("listen on tcp:%s: %s" % (rest, e)) from e
    bound = sock.getsockname()
    return sock, "tcp:%s:%d" % ("[%s]" % bound[0] if ":" in bound[0] else bound[0], bound[1]), lambda: None


def _listen_unix(path):
    if len(os.fsencode(path)) > MAX_PATH:
        raise Error("listen on unix:%s: the path of a socket is limited to %d bytes" % (path, MAX_PATH))
    parent = os.path.dirname(os.path.abspath(path))
    _make_folder(parent)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    lock = _lock_folder(parent)
    try:
        _reclaim(path)
        if sys.platform == "linux":
            os.fchmod(sock.fileno(), 0o600)  # Linux applies the mode: the file is never accessible to other users
        sock.bind(path)
        os.chmod(path, 0o600)
        sock.listen(16)  # nobody can connect before this
        inode = os.stat(path).st_ino
    except OSError as e:
        sock.close()
        raise e if isinstance(e, Error) else Error("listen on unix:%s: %s" % (path, e)) from e
    finally:
        if lock is not None:
            os.close(lock)
    return sock, "unix:" + path, lambda: _unlink(path, inode)


def _make_folder(parent):
    """Creates the folder of a socket. The default one must belong to this user: in /tmp anybody can create it first."""
    try:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        s = os.lstat(parent)
    except OSError as e:
        raise Error("make folder %s: %s" % (parent, e)) from e
    if parent != os.path.abspath(folder()):
        return
    if not stat.S_ISDIR(s.st_mode):
        raise Error("%s is not a folder: remove it, or set XDG_RUNTIME_DIR to a folder of your own" % parent)
    if s.st_uid != os.geteuid():
        raise Error("folder %s belongs to user %d: set XDG_RUNTIME_DIR to a folder of your own" % (parent, s.st_uid))
    if s.st_mode & 0o022:
        raise Error("other users may write to folder %s: chmod 700 %s" % (parent, parent))


def _lock_folder(parent):
    """Prevents two engines from replacing the same socket concurrently. Gives up waiting for the lock after a second."""
    if fcntl is None:
        return None
    fd = os.open(parent, os.O_RDONLY)
    for _ in range(100):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            time.sleep(0.01)
    return fd


def _reclaim(path):
    """Removes the socket of an engine that has exited; raises Error if a live one holds it."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Error("listen on unix:%s: the file exists and is not a socket" % path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except FileNotFoundError:
            return
        except OSError:  # its backlog is full: an engine listens
            raise Error("listen on unix:%s: held by a live engine" % path) from None
        pid = _pid_of(probe)
    raise Error("listen on unix:%s: held by a live engine%s" % (path, " (pid %d)" % pid if pid else ""))


def _pid_of(probe):
    """The pid of the process at the other end: from the system if available, otherwise from the engine's hello."""
    if hasattr(socket, "SO_PEERCRED"):
        return struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    try:
        return int(json.loads(probe.makefile().readline(MAX_CONTROL)).get("pid", 0))
    except (OSError, ValueError, AttributeError):
        return 0


def _unlink(path, inode):
    try:
        if os.stat(path).st_ino == inode:
            os.unlink(path)
    except OSError:
        pass


# Lines


def _line(fields):
    """A dict as a line of JSON. Values that JSON cannot represent become null or a string."""
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except ValueError:
        text = json.dumps(_finite(fields), ensure_ascii=False, separators=(",", ":"), default=_plain)
    return text.encode("utf-8", "replace") + b"\n"


def _line_or_none(fields):
    """The line, or None if it cannot be encoded, for example because it contains itself."""
    try:
        return _line(fields)
    except (TypeError, ValueError, RecursionError):
        return b""


def _plain(value):
    if isinstance(value, (bytes, bytearray)):
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    for method in ("tolist", "item"):  # arrays and scalars of numpy and torch
        if hasattr(value, method):
            return getattr(value, method)()
    return str(value)


def _finite(value):
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value


def _differences(values):
    return [values[0]] + [b - a for a, b in zip(values, values[1:])]


def _token_line(run, origin):
    """Tokens (at, request, position, id) as one line."""
    if len(run) == 1:
        at, r, i, d = run[0]
        if d is None:
            return b'{"t":"tok","a":%d,"r":%d,"i":%d}\n' % (at - origin, r, i)
        return b'{"t":"tok","a":%d,"r":%d,"i":%d,"d":%d}\n' % (at - origin, r, i, d)
    at, rs, i, d = zip(*run)
    fields = {"t": "tok", "a": _differences(at), "r": rs[0] if rs.count(rs[0]) == len(rs) else rs, "i": _differences(i)}
    fields["a"][0] -= origin
    if d.count(None) < len(d):
        fields["d"] = d
    return _line(fields)


def _text(piece):
    """A text for a line: bytes that are not UTF-8 become a list of numbers."""
    if isinstance(piece, (bytes, bytearray)):
        try:
            return piece.decode("utf-8")
        except UnicodeDecodeError:
            return list(piece)
    return piece


def _given(**fields):
    return {k: v for k, v in fields.items() if v is not None}


# State, for late joiners


class _Live:
    """A live request."""

    __slots__ = ("lines", "first", "last", "out", "id")

    def __init__(self, fields):
        self.lines = [fields]  # queued and dispatched lines, and its first stages
        self.first = self.last = self.out = 0  # stamps of the first and last token; number of tokens
        self.id = None  # id of the first token

    def events(self, r, origin):
        yield from self.lines
        if self.out:
            yield _given(t="tok", a=self.first - origin, r=r, i=0, d=self.id)
        if self.out > 1:
            yield {"t": "tok", "a": self.last - origin, "r": r, "i": 1, "n": self.out - 1}


class _State:
    """The state after all events so far. Used while holding the emitter's lock."""

    def __init__(self):
        self.live = OrderedDict()
        self.latest = {}  # newest line of types that replace each other
        self.load = deque(maxlen=64)  # stages of the engine itself
        self.count = {}  # the counters of both kinds below
        self.totals = dict.fromkeys(
            ("requests_queued", "requests_finished", "requests_cancelled", "requests_failed", "generated_tokens"), 0
        )
        self.own = set()  # counters that the engine reports itself
        self.kinds = set()
        self.new_totals = False

    def fold(self, item):
        """Applies an event."""
        if len(item) > 2:
            self._fold_token(item[0], item[1], item[3], item[4].get("n", 1) if len(item) == 5 else 1)
            return
        kind, fields = item
        self.kinds.add(kind)
        if kind == "request":
            self._fold_request(fields)
        elif kind == "stage":
            self._fold_stage(fields)
        elif kind == "counters":
            self.own.update(fields["c"])
            self.count.update(fields["c"])
        elif kind in ("model", "experts", "kv", "host", "ops", "speculation"):
            self.latest[kind] = fields

    def _fold_token(self, at, r, d, n):
        self.kinds.add("token")
        self.totals["generated_tokens"] += n
        self.new_totals = True
        live = self.live.get(r)
        if live is not None:
            if not live.out:
                live.first, live.id = at, None if isinstance(d, str) else d
            live.out += n
            live.last = at

    def _fold_request(self, fields):
        r, state = fields["r"], fields["state"]
        self.new_totals = True
        if state == "queued":
            self.live[r] = _Live(fields)
            self.totals["requests_queued"] += 1
            if len(self.live) > LIVE:
                self.live.popitem(last=False)
        elif state == "dispatched":
            if r in self.live:
                self.live[r].lines.append(fields)
        else:
            self.live.pop(r, None)
            self.totals[_TOTALS[state]] += 1
            for name, key in (("prompt_tokens", "in"), ("cached_tokens", "cached")):
                if key in fields:
                    self.totals[name] = self.totals.get(name, 0) + fields[key]

    def _fold_stage(self, fields):
        if "r" not in fields:
            self.load.append(fields)
        elif fields["r"] in self.live and len(self.live[fields["r"]].lines) < 64:
            self.live[fields["r"]].lines.append(fields)

    def counters(self):
        """All counters; those that the engine reports itself take precedence over those counted here."""
        return dict({k: v for k, v in self.totals.items() if k not in self.own}, **self.count)

    def lines(self, origin):
        """The lines from sync to synced."""
        events = [{"t": "sync"}]
        events += [self.latest[k] for k in ("model",) if k in self.latest]
        events += self.load
        events += [self.latest[k] for k in ("experts", "kv", "host", "ops", "speculation") if k in self.latest]
        events.append({"t": "count", "a": _now() - origin, "c": self.counters()})
        for r, live in self.live.items():
            events += live.events(r, origin)
        events.append({"t": "synced"})
        return b"".join(map(_line_or_none, events))


# Readers


class _Peer:
    """A reader: the data waiting for it, and its drops. Only the writer thread uses it.

    sent and lost count events since hello, so that sent + sum(lost) is q at the position of the next line.
    """

    def __init__(self, sock, limit, wants_token):
        self.sock = sock
        self.limit = limit
        self.open = not wants_token  # the token, if one is required, was accepted
        self.waiting = deque()  # (line, kind, events) of complete lines
        self.size = 0  # bytes in waiting
        self.urgent = []  # lines that are not counted as events: replies
        self.tail = b""  # bytes being sent
        self.sent = 0
        self.lost = {}
        self.lost_new = False
        self.stale = True  # needs the state
        self.synced_at = -SECOND
        self.clock_at = _now()
        self.since = _now()
        self.input = bytearray()
        self.ending = False  # close after sending tail
        self.events = selectors.EVENT_READ

    def put(self, line, kind, n):
        self.waiting.append((line, kind, n))
        self.size += len(line)
        while self.size > self.limit and len(self.waiting) > 1:
            line, kind, n = self.waiting.popleft()
            self.size -= len(line)
            self.lose(kind, n)

    def lose(self, kind, n):
        self.lost[kind] = self.lost.get(kind, 0) + n
        self.lost_new = self.stale = True

    def q(self):
        return self.sent + sum(self.lost.values())

    def compose(self, top):
        """Puts the next lines into tail: complete ones, so that a reader never gets another line after a truncated one."""
        now, parts = _now(), self.urgent
        self.urgent = []
        if self.lost_new:
            self.lost_new = False
            parts.append(_line({"t": "lost", "a": now - top.origin, "by": self.lost, "q": self.q()}))
        if now - self.clock_at >= SECOND:
            self.clock_at = now
            parts.append(_line({"t": "clock", "a": now - top.origin, "wall": time.time_ns(), "q": self.q()}))
        size = 0
        while self.waiting and size < CHUNK:
            line, _, n = self.waiting.popleft()
            self.sent += n
            size += len(line)
            parts.append(line)
        self.size -= size
        if self.stale and not self.waiting and now - self.synced_at >= SECOND:
            self.stale, self.synced_at = False, now
            parts.append(top.state_lines())
        self.tail = b"".join(parts)

    def due(self, now):
        """Reports whether compose has data to send."""
        if self.tail or self.ending or not self.open:
            return False
        rested = self.stale and now - self.synced_at >= SECOND
        return bool(self.waiting or self.urgent or self.lost_new or rested or now - self.clock_at >= SECOND)


# The emitter


class Emitter:
    """An open event socket. All methods may be called from any thread and return immediately.

    name, version, model (a dict with the keys of the protocol's model), device, slots: describe the engine in hello.
    path: the model's file, or its folder: llmtop on the same machine reads the model's description from it.
    token: required from readers; mandatory beyond loopback. text: send the text of prompts and tokens.
    buffer: bytes kept for one reader. queue: events kept for the writer thread.
    on_generate(message), on_cancel(request), on_pause(), on_resume(), on_hooks(names), on_sample(every): handlers of
    control messages, called one after another on a separate thread; they should return soon. An exception is sent to
    the reader. on_generate returns the Request, or its id.
    """

    def __init__(self, name=None, listen=None, *, version="", token=None, model=None, path=None, device=None, slots=None, text=False, caps=(),
                 buffer=BUFFER, queue=QUEUE, on_generate=None, on_cancel=None, on_pause=None, on_resume=None, on_hooks=None, on_sample=None):  # fmt: skip
        name = name or os.path.basename(sys.argv[0] or "") or "python"
        self.origin = _now()
        self.text = text
        self._about = _given(name=name, version=version or None, sdk="python", pid=os.getpid(), device=device, slots=slots, state="ready")
        self._run_id = "%x-%x" % (time.time_ns(), os.getpid())
        self._caps = {"tokens", "stages", "counters"} | set(caps) | ({"text"} if text else set())
        handlers = (on_generate, on_cancel, on_pause, on_resume, on_hooks, on_sample)
        self._handlers = {n: f for n, f in zip(_CONTROLS, handlers) if f is not None}
        self._token = token if token is not None else os.environ.get("LLMTOP_TOKEN") or None
        self._buffer = buffer
        self._limit = queue
        self._queue = deque()
        self._put = self._queue.append
        self._lock = threading.Lock()  # guards _state, _shed and the order in which the queue is applied
        self._state = _State()
        self._shed = {}  # events dropped from the queue since the last turn of the writer thread
        self._ids = itertools.count(1)
        self._steps = itertools.count(1)
        self._peers = []
        self._replies = deque()
        self._controls = None
        self._picks = None
        self._complained = set()  # kinds of calls that have failed
        self._shape = {}  # keys of the model
        self._tickers = []
        self._ticked = self._counted = 0
        self._closing = None  # reason, once close was called
        self._listener, self.address, self._remove = _listen(listen or os.environ.get("LLMTOP_LISTEN") or _default_address(name), self._token)
        self._trusted = self.address.startswith("unix:") or self._token is not None  # may control
        self._offered = self._offers()
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        if model or path is not None:
            self.model(**dict(model or {}, **_given(path=path)))
            self._take(1)  # included in hello
        self._thread = threading.Thread(target=self._run, name="llmtop", daemon=True)
        self._thread.start()
        _emitters.add(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close(None if kind is None else "%s: %s" % (kind.__name__, error))

    def close(self, why=None, timeout=1.0):
        """Sends bye to all readers after their waiting data (for at most timeout seconds), and removes the socket."""
        if self._closing is None:
            self._deadline = _now() + int(timeout * SECOND)
            self._closing = why or "the engine has ended"
        if self._thread is not threading.current_thread():
            self._thread.join(timeout + 1)

    # What the engine emits

    def request(self, prompt_tokens=None, **options):
        """Creates a Request, queued now. prompt_tokens is its length; options are those of Request."""
        return Request(self, prompt_tokens, **options)

    def stage(self, name, tokens=None, layer=None):
        """A context manager that times work that belongs to no request, such as model_load."""
        return _Stage(self, None, name, tokens, layer)

    def tokens(self, pairs, at=None):
        """One token each of several requests, from one forward pass with one stamp: pairs of Request and token id."""
        at = _now() if at is None else at
        for r, token in pairs:
            r.token(token, at=at)

    def step(self, dur=None, decode=None, prompt=None, number=None, parts=None, fpm=None, at=None, request=None):
        """Without dur: a context manager that times a forward pass over decode tokens and prompt tokens, see Step.

        With dur: a pass that ended now, or at at, and took dur ns. parts: ns of [embed, attention, router, experts,
        lm_head, sample]. number: from 1; default: the next one. fpm: forward-pass metrics with SGLang's names. request:
        the Request, if the pass works for that one only; without decode and prompt: for its whole prompt before its
        first token, and then for one token.
        """
        if dur is None:
            if request is not None and decode is None and prompt is None:
                decode, prompt = (1, None) if request.out else (None, request._whole())
            return Step(self, decode, prompt, number or next(self._steps), request, fpm)
        self._emit("step", at, _given(t="step", a=0, dur=int(dur), s=number or next(self._steps), n=decode, m=prompt, x=parts, fpm=fpm))
        return None

    def picks(self, layer, ids, phase="decode"):
        """Counts the experts that the router of a layer picked: ids of one token, or tokens x experts used, as a list or
        an array of numpy or torch. phase: prompt or decode. Needs layers and experts of the model.

        Tensors stay on their device: they are copied there, counted there, and read ten times a second. Returns the copy.
        Step.picks also keeps it for Step.picked.
        """
        try:
            if self._picks is None:
                self._picks = _Picks(self)
            return self._picks.add(layer, _copied(ids), phase)
        except Exception as e:
            return self._complain("picks", e)

    def ops(self, passes, rows, slowdown=None):
        """Times of operations in passes forward passes, cumulative: rows of (operation, layer or -1, calls, ns), the
        longest first. slowdown: time of a timed pass / time of one that is not timed."""
        try:
            rows = list(rows)
            place = {name: n for n, name in enumerate(list(OrderedDict.fromkeys(row[0] for row in rows))[:256])}
            rows = [(place[name], layer, calls, int(ns)) for name, layer, calls, ns in rows if name in place][:4096]
        except (TypeError, ValueError, IndexError) as e:
            return self._complain("ops", e)
        columns = dict(zip("klnd", zip(*rows))) if rows else dict.fromkeys("klnd", ())
        slowdown = None if slowdown is None else [slowdown, "derived"]
        self._emit("ops", None, dict(_given(t="ops", a=0, passes=passes, slowdown=slowdown), ops=list(place), **columns))

    def draft(self, drafted, accepted, time=0, passes=()):
        """Speculative decoding, cumulative: drafted tokens, and those of them that were accepted, by position in the
        draft. time: ns in which drafts were computed. passes: (whether drafts were computed, requests, computed tokens,
        passes, ns, generated tokens) of each shape of decode pass."""
        try:
            rows = [(int(s), r, n, p, int(d), k) for s, r, n, p, d, k in passes][:256]
        except (TypeError, ValueError) as e:
            return self._complain("draft", e)
        columns = dict(zip("srnpdk", zip(*rows))) if rows else dict.fromkeys("srnpdk", ())
        self._emit("speculation", None, dict(t="draft", a=0, drafted=list(drafted), accepted=list(accepted), time=int(time), **columns))

    def usage(self, interval, **readings):
        """What the engine's threads did in the last interval ns, with the keys of the protocol's usage."""
        self._emit("usage", None, dict({"t": "usage", "a": 0, "interval": int(interval)}, **readings))

    def experts(self, layers, experts, used=None, prompt=None, decode=None, prompt_tokens=None, decode_tokens=None, every=None):
        """Router picks: layers x experts counts in one list, cumulative since the model was loaded."""
        p, d = (None if c is None else list(c) for c in (prompt, decode))
        self._emit("experts", None, _given(t="experts", a=0, layers=layers, experts=experts, used=used, p=p, d=d, pt=prompt_tokens, dt=decode_tokens, every=every))

    def kv(self, used, total, page=None, pinned=None, freed=None, held=None):
        """The KV cache, in cells of one token. page: cells per page. pinned: since when the oldest cells are in use."""
        pinned = None if pinned is None else pinned - self.origin
        self._emit("kv", None, _given(t="kv", a=0, used=used, total=total, page=page, pinned=pinned, freed=freed, held=held))

    def count(self, **counters):
        """Counters of the engine, cumulative. They replace counters of the same name that this module keeps."""
        if counters:
            self._emit("counters", None, {"t": "count", "a": 0, "c": counters})

    def host(self, **readings):
        """A sample of the machine, with the keys of the protocol's host."""
        self._emit("host", None, dict({"t": "host", "a": 0}, **readings))

    def sample_host(self):
        """Samples the machine and this process once a second from now on, from /proc. For engines on another machine:
        llmtop samples engines on its own."""
        if not any(isinstance(getattr(t, "__self__", None), _HostSampler) for t in self._tickers):
            self._tickers.append(_HostSampler(self).tick)

    def model(self, **about):
        """A model was loaded. about has the keys of the protocol's model; see model_from."""
        about = _given(**about)
        if "path" in about:
            about["path"] = os.path.abspath(os.fspath(about["path"]))
        self._shape, self._picks = about, None
        self._emit("model", None, dict({"t": "model", "a": 0}, **about))

    def engine(self, **about):
        """Changes of the engine's description or state, for example state="paused"."""
        self._about.update(about)
        self._emit("engine", None, None)

    def log(self, message):
        """A line of the engine log."""
        self._emit("log", None, {"t": "log", "a": 0, "m": str(message)})

    def on(self, control, handler):
        """Offers a control message from now on; handler as in __init__."""
        self._handlers[control] = handler
        self.engine()

    def watch(self, model, **options):
        """Hooks a Hugging Face model to count router picks and forward passes. See Watch."""
        return Watch(self, model, **options)

    def streamer(self, **options):
        """A streamer for generate() of transformers that stamps tokens, see Streamer. watch(model).streamer() does more."""
        return Streamer(self, **options)

    def _complain(self, what, error):
        """Logs an error in a call of the engine, once for each kind of call: it must not end the engine."""
        if what not in self._complained:
            self._complained.add(what)
            self.log("llmtop: %s: %s: %s" % (what, type(error).__name__, error))

    def _emit(self, kind, at, fields):
        if fields is not None:
            fields["a"] = (_now() if at is None else int(at)) - self.origin
        self._put((kind, fields))
        if len(self._queue) > self._limit:
            self._drop()

    def _drop(self):
        """Drops the oldest event, unless the writer thread is emptying the queue. It still updates the state."""
        if self._closing is not None:
            self._queue.clear()
        elif self._lock.acquire(blocking=False):
            try:
                while len(self._queue) > self._limit:
                    kind = self._fold(self._queue.popleft())
                    self._shed[kind] = self._shed.get(kind, 0) + 1
            except IndexError:
                pass
            finally:
                self._lock.release()

    def _fold(self, item):
        """Applies an event and returns its kind, also if its values are invalid."""
        kind = "token" if len(item) > 2 else item[0]
        if item[1] is not None:  # except engine, which is written from the current state
            try:
                self._state.fold(item)
            except (TypeError, ValueError, KeyError):
                pass
        return kind

    # The writer thread

    def _run(self):
        wait = 0.05
        try:
            while self._closing is None:
                for key, events in self._selector.select(wait):
                    self._ready(key, events)
                busy = self._turn()
                wait = 0 if busy > 1 else 0.01 if busy and self._peers else 0.05
            self._finish()
        finally:
            self._remove()
            for sock in [self._listener] + [p.sock for p in self._peers]:
                sock.close()
            self._selector.close()
            self._limit = 0  # later events are discarded

    def _turn(self):
        """Moves events to the readers. Returns 0 if there were none, 2 if there are more."""
        now = _now()
        self._blame()
        items = self._take(2048)
        peers = [p for p in self._peers if p.open]
        if peers and items:
            self._spread(peers, items)
        if now - self._ticked > SECOND // 10:
            self._tick(now)
        while self._replies:
            peer, line = self._replies.popleft()
            peer.urgent.append(line)
        for p in list(self._peers):
            self._flush(p, now)
        return 2 if len(items) == 2048 else 1 if items else 0

    def _take(self, most):
        with self._lock:
            pop = self._queue.popleft
            items = [pop() for _ in range(min(most, len(self._queue)))]
            for item in items:
                self._fold(item)
        return items

    def _blame(self):
        """Reports events dropped from the queue to the readers."""
        with self._lock:
            shed, self._shed = self._shed, {}
        for p in self._peers:
            for kind, n in shed.items() if p.open else ():
                p.lose(kind, n)

    def _spread(self, peers, items):
        """Encodes events, consecutive tokens as one line, and passes the lines to the readers."""
        run = []
        for item in items:
            if len(item) == 4:
                run.append(item)
                if len(run) < BATCH:
                    continue
            if run:
                self._give(peers, "token", len(run), _token_line, run, self.origin)
                run = []
            if len(item) == 5:
                self._give(peers, "token", 1, self._rich_line, item)
            elif len(item) == 2:
                self._give(peers, item[0], 1, _line, item[1] or self._engine())
        if run:
            self._give(peers, "token", len(run), _token_line, run, self.origin)

    def _give(self, peers, kind, n, encode, *args):
        """Encodes a line and passes it to the readers. Drops and counts a line that cannot be encoded (token id: a str)."""
        try:
            line = encode(*args)
        except Exception:
            line = b""
        for p in peers:
            if line and len(line) <= MAX_LINE:
                p.put(line, kind, n)
            else:
                p.lose(kind, n)

    def _rich_line(self, item):
        at, r, i, d, more = item
        return _line(dict(_given(t="tok", a=at - self.origin, r=r, i=i, d=d), **more))

    def _engine(self, t="engine"):
        return dict({"t": t, "a": _now() - self.origin, "wall": time.time_ns()}, caps=self._offers(), **self._about)

    def _offers(self):
        """The capabilities of the engine and the control messages that it accepts."""
        caps = self._caps | {_KIND_CAPS[k] for k in tuple(self._state.kinds) if k in _KIND_CAPS}
        if self._trusted:
            caps |= self._handlers.keys() - {"resume"}
        return sorted(caps)

    def state_lines(self):
        """The lines of the state for a late joiner."""
        with self._lock:
            return self._state.lines(self.origin)

    def _tick(self, now):
        """Runs ten times a second."""
        self._ticked = now
        for ticker in list(self._tickers):
            try:
                ticker()
            except Exception as e:
                self._tickers.remove(ticker)
                self.log("llmtop: %s: %s" % (type(e).__name__, e))
        offers = self._offers()
        if offers != self._offered:
            self._put(("engine", None))
        self._offered = offers
        if now - self._counted > SECOND and self._state.new_totals:
            self._counted = now
            with self._lock:
                self._state.new_totals = False
                totals = {k: v for k, v in self._state.totals.items() if k not in self._state.own}
            line = _line({"t": "count", "a": now - self.origin, "c": totals})
            for p in self._peers:
                if p.open and totals:
                    p.put(line, "counters", 1)

    def _finish(self):
        """Empties the queue and sends bye, also to readers that are just connecting."""
        while self._accept():
            pass
        while self._turn() == 2 and _now() < self._deadline:
            pass
        self._counted = 0
        self._tick(_now())  # final counters
        self._turn()
        bye = _line({"t": "bye", "why": self._closing})
        while self._peers and _now() < self._deadline:
            for p in list(self._peers):
                if not p.ending and not p.tail and not p.waiting:
                    p.tail, p.ending = bye, True
                self._flush(p, _now())
            if any(p.tail or p.waiting for p in self._peers):
                self._selector.select(0.01)

    # Connections

    def _ready(self, key, events):
        if key.fileobj is self._listener:
            self._accept()
        elif events & selectors.EVENT_READ and key.data in self._peers:
            self._read(key.data)

    def _accept(self):
        """Accepts a waiting connection. Returns whether there was one."""
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return False
        if len(self._peers) >= MAX_READERS:
            sock.close()
            return True
        sock.setblocking(False)
        peer = _Peer(sock, self._buffer, self._token is not None)
        self._peers.append(peer)
        self._selector.register(sock, selectors.EVENT_READ, peer)
        if peer.open:
            self._greet(peer)
        else:
            peer.tail = _line({"t": "auth"})
        return True

    def _greet(self, peer):
        """Sends hello and the state. Events still in the queue are not part of it: the reader gets them as events."""
        self._blame()
        hello = dict(self._engine("hello"), v=PROTOCOL, run=self._run_id)
        model = self._state.latest.get("model")
        if model:
            hello["model"] = {k: v for k, v in model.items() if k not in ("t", "a")}
        peer.open = True
        peer.tail += _line(hello) + self.state_lines()
        peer.stale, peer.synced_at = False, _now()

    def _read(self, peer):
        try:
            data = peer.sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._forget(peer)
            return
        if peer.ending:
            return
        peer.input += data
        while not peer.ending:
            line, newline, rest = peer.input.partition(b"\n")
            if len(line) > (MAX_CONTROL if peer.open else MAX_AUTH):
                self._end(peer, "a line is too long")
            if not newline:
                return
            peer.input = rest
            if line.strip():
                self._control(peer, bytes(line))

    def _control(self, peer, line):
        try:
            message = json.loads(line)
            kind = message["t"]
        except (ValueError, TypeError, KeyError, RecursionError):
            self._end(peer, "malformed line" if peer.open else "wrong token")
            return
        if not peer.open:
            given = message.get("token") if kind == "auth" else None
            if isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
                self._greet(peer)
            else:
                self._end(peer, "wrong token")
        elif kind not in _CONTROLS:
            if kind != "auth":  # sent to an engine that did not request it
                self._end(peer, "unknown message")
        elif not self._trusted:
            self._reply(peer, message, why="no control over TCP without a token")
        elif kind not in self._handlers:
            self._reply(peer, message, why="this engine does not offer %s" % kind)
        else:
            self._hand_over(peer, message)

    def _hand_over(self, peer, message):
        if self._controls is None:
            self._controls = queue.Queue(64)
            threading.Thread(target=self._obey, name="llmtop-control", daemon=True).start()
        try:
            self._controls.put_nowait((peer, message))
        except queue.Full:
            self._reply(peer, message, why="the queue of control messages is full")

    def _obey(self):
        while True:
            peer, message = self._controls.get()
            try:
                result = self._handlers[message["t"]](*_arguments(message))
                self._reply(peer, message, r=getattr(result, "id", result) if message["t"] == "generate" else None)
            except Exception as e:
                self._reply(peer, message, why=str(e) or type(e).__name__)

    def _reply(self, peer, message, why=None, r=None):
        self._replies.append((peer, _line(_given(t="reply", c=message.get("c"), ok=why is None, why=why, r=r))))

    def _end(self, peer, why):
        """Sends bye and closes after that. Waiting data is discarded."""
        peer.tail += _line({"t": "bye", "why": why})
        peer.ending = True
        peer.since = _now()

    def _forget(self, peer):
        self._selector.unregister(peer.sock)
        peer.sock.close()
        self._peers.remove(peer)

    def _flush(self, peer, now):
        """Writes as much as the socket accepts without waiting."""
        if not peer.open and not peer.ending and now - peer.since > 5 * SECOND:
            self._end(peer, "no token")
        try:
            for _ in range(16):
                if peer.due(now):
                    peer.compose(self)
                if not peer.tail:
                    break
                peer.tail = peer.tail[peer.sock.send(peer.tail):]  # fmt: skip
        except BlockingIOError:
            pass
        except OSError:
            self._forget(peer)
            return
        if peer.ending and (not peer.tail or now - peer.since > SECOND):
            self._forget(peer)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.tail else 0)
        if events != peer.events:
            peer.events = events
            self._selector.modify(peer.sock, events, peer)

    def _orphan(self):
        """In a forked child, the socket belongs to the parent and there is no writer thread."""
        self._closing = "forked"
        self._limit = 0
        self._lock = threading.Lock()
        if self._picks is not None:
            self._picks.lock = threading.Lock()  # another thread may have held it
        self._thread = threading.current_thread()
        for sock in [self._listener] + [p.sock for p in self._peers]:
            sock.close()


# Requests


def _computes_on_cuda():
    """Whether torch has started CUDA in this process: the first request then loads kernels, which takes a second or more."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        return bool(cuda and cuda.is_initialized())
    except Exception:  # another module of that name
        return False


class Request:
    """A live request, used by one thread at a time. As a context manager it ends with the block: finished, failed
    with the exception, or cancelled by KeyboardInterrupt and asyncio.CancelledError.

    prompt_tokens, cached (of these, those from a cache; 0 for an engine without one) and pad (padding tokens of a batch)
    are reported at the end and may be set until then. What is not set is shown as not reported.
    group: LoRA adapter or tenant. label: prompt kind. name: the engine's own id. max_tokens: limit of generated tokens.
    prompt: its text, sent if text is true (default: text of the Emitter). at: stamp of its arrival.
    """

    __slots__ = ("top", "id", "out", "prompt_tokens", "cached", "pad", "text", "state", "_put", "_queue", "_reuse", "_passed")

    def __init__(self, top, prompt_tokens=None, *, group=None, label=None, name=None, max_tokens=None, prompt=None, text=None, cold=None, probe=None,
                 at=None):  # fmt: skip
        self.top = top
        self.id = next(top._ids)
        self.out = 0  # tokens so far
        self.prompt_tokens, self.cached, self.pad = prompt_tokens, None, None
        self._reuse = None
        self._passed = False  # a pass over its whole prompt has begun
        self.text = top.text if text is None else text
        self._put, self._queue = top._put, top._queue
        about = _given(group=group, label=label, name=name, max=max_tokens, prompt=prompt if self.text else None, cold=cold, probe=probe,
                       device_start=True if cold is None and self.id == 1 and _computes_on_cuda() else None, **{"in": prompt_tokens})  # fmt: skip
        self._enter("queued", at, about)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.finish()
        elif issubclass(kind, (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)):
            self.cancel()
        else:
            self.fail("%s: %s" % (kind.__name__, error))

    def _enter(self, state, at=None, more=None):
        self.state = state
        self.top._emit("request", at, dict({"t": "req", "a": 0, "r": self.id, "state": state}, **(more or {})))

    def dispatch(self, at=None):
        """The scheduler has started it: llmtop then shows the time before as queue. Without this call, queue time is not
        reported."""
        self.top._caps.add("queue")
        if self.state == "queued":
            self._enter("dispatched", at)

    def stage(self, name, tokens=None, layer=None):
        """A context manager that times a stage: queue, tokenize, embed, prompt, first_token, or any other word. tokens:
        number that it works on, of a prompt those that are not cached."""
        return _Stage(self.top, self.id, name, tokens, layer)

    def staged(self, name, dur, tokens=None, layer=None, at=None):
        """A stage that ended now, or at at, and took dur ns."""
        self.top._emit("stage", at, _given(t="stage", a=0, dur=int(dur), stage=name, r=self.id, l=layer, n=tokens))

    def token(self, id=None, logprob=None, n=1, text=None, step=None, sampling=None, picks=None, top=None, at=None):
        """A token left the sampler. id: its vocabulary id. n: number of tokens with this stamp, of which id is the first.
        logprob: natural logarithm. step: the Step that made it, or its number. sampling: ns spent. picks: experts that the router
        picked, layer by layer. top: alternatives, as [[id, logprob], ...]. at: stamp, by default now."""
        i = self.out
        self.out = i + n
        if isinstance(step, Step):
            at = _now() if at is None else int(at)
            step, sampling = step._made(self, at, not i, sampling)
        if n == 1 and logprob is None and text is None and step is None and sampling is None and picks is None and top is None:
            self._put((_now() if at is None else int(at), self.id, i, id))
        else:
            piece = _text(text) if text is not None and self.text else None
            more = _given(n=n if n != 1 else None, l=logprob, p=piece, s=step, w=sampling, e=picks, o=top)
            self._put((_now() if at is None else int(at), self.id, i, id, more))
        if len(self._queue) > self.top._limit:
            self.top._drop()

    def tokens(self, ids, at=None):
        """Several tokens emitted at once."""
        ids = list(ids)
        if ids:
            self.token(ids[0], n=len(ids), at=at)

    def _whole(self):
        """The tokens of a pass over the whole prompt; None if they are unknown, as of the second part of a prompt."""
        if self._passed:
            return self.top._complain("step", ValueError("a prompt in several passes needs their numbers of tokens: step(prompt=...)"))
        self._passed = True
        return None if self.prompt_tokens is None else max(self.prompt_tokens - (self.cached or 0), 0)

    def reuse(self, cached, request=None, why=None, **where):
        """cached tokens of the prompt came from a cache. request: the earlier Request with the same beginning, or its
        id; why: the reason why no more was reused. where: other keys of the protocol's reuse."""
        self.cached = cached
        if request is not None or why is not None:
            self._reuse = _given(why=why, **{"with": getattr(request, "id", request)}, **where)

    def finish(self, why=None, at=None):
        """It has ended: why is "stop" if the model ended the text, "length" at the limit."""
        self._leave("finished", why, at)

    def cancel(self, at=None):
        """It was cancelled."""
        self._leave("cancelled", "cancelled", at)

    def fail(self, why, at=None):
        """It has failed; why: the cause."""
        self._leave("failed", str(why), at)

    def _leave(self, state, why, at):
        if self.state not in _TOTALS:
            counts = {"why": why, "in": self.prompt_tokens, "cached": self.cached, "pad": self.pad, "out": self.out, "reuse": self._reuse}
            self._enter(state, at, _given(**counts))


class _Stage:
    __slots__ = ("top", "fields", "began")

    def __init__(self, top, r, name, tokens, layer):
        self.top = top
        self.fields = _given(t="stage", a=0, stage=name, r=r, l=layer, n=tokens)

    def __enter__(self):
        self.began = _now()
        return self

    def __exit__(self, *error):
        now = _now()
        self.top._emit("stage", now, dict(self.fields, dur=now - self.began))


class Step:
    """A forward pass that is timed from the beginning to the end of its block, used by one thread at a time.

    number: as in the protocol. decode, prompt: its numbers of tokens; they may be set until the end of the block. request:
    the Request, if the pass works for that one only. Then its time is that request's prompt stage. On an accelerator the
    block, and each part, has to wait for the device, otherwise it measures only the launches: leave them out there.
    A pass that raises is reported without its numbers of tokens.
    """

    __slots__ = ("top", "number", "decode", "prompt", "request", "fpm", "began", "ended", "body", "ns", "layers", "picked_by", "token_at")

    def __init__(self, top, decode, prompt, number, request, fpm):
        self.top, self.decode, self.prompt, self.number, self.request, self.fpm = top, decode, prompt, number, request, fpm
        self.began = self.ended = self.body = self.token_at = None
        self.ns = [0] * 6  # of each part
        self.layers = {}  # (layer, name) -> ns
        self.picked_by = {}  # layer -> ids

    def __enter__(self):
        self.began = _now()
        return self

    def __exit__(self, kind, error, trace):
        now = self.ended = _now()
        self.body = now - self.ns[4] - self.ns[5]  # the end of the layers: the LM head and sampling come after them
        if kind is not None:
            self.decode = self.prompt = None
        parts = list(self.ns) if any(self.ns) else None
        self.top.step(now - self.began, self.decode, self.prompt, self.number, parts, self.fpm, now)
        if kind is None and self.request is not None and self.prompt:
            self._emit_stages()

    def part(self, name, layer=None):
        """A context manager that times a part of the pass: embed, attention, router, experts, lm_head or sample. With a
        layer, also that of the request. Any other name is a stage of its own."""
        return _Part(self, name, layer) if name in _PARTS else _Stage(self.top, getattr(self.request, "id", None), name, None, layer)

    def picks(self, layer, ids):
        """As Emitter.picks, for this pass."""
        self.picked_by[layer] = self.top.picks(layer, ids, "prompt" if self.prompt else "decode")

    def picked(self, row=-1):
        """The picks of a token, by default the last one, layer by layer, for picks of Request.token; None without. Reads
        those of torch with one copy from the device. Call it once the token is known: until then it waits."""
        try:
            rows = [self.picked_by[layer][row] for layer in sorted(self.picked_by)]
            if not rows or len({len(row) for row in rows}) > 1 or len(rows) != self.top._shape["layers"]:
                return None
            if hasattr(rows[0], "new_tensor"):
                rows = sys.modules["torch"].stack(rows).tolist()
            self.top._caps.add("picks")
            return [int(e) for row in rows for e in sorted(row)]
        except Exception as e:
            self.top._complain("picked", e)
            return None

    def _made(self, request, at, first, sampling):
        """The number of the pass, and the ns of sampling a token of a request that the pass has made."""
        alone = self.request is request or (self.decode or 0) == 1 and not self.prompt
        if sampling is None and alone and self.ns[5]:
            sampling = self.ns[5]
        if first and self.request is request and self.prompt:
            if self.ended is None:
                self.token_at = at
            else:
                request.staged("first_token", max(at - self.body, 0), at=at)
        return self.number, sampling

    def _emit_stages(self):
        """Emits the time to first token by components, as far as it is of this pass."""
        r, n, embed, ended = self.request, self.prompt, self.ns[0], self.body
        if embed:
            r.staged("embed", embed, n, at=self.began + embed)
        r.staged("prompt", max(ended - self.began - embed, 0), n, at=ended)
        for (layer, name), ns in self.layers.items():
            r.staged(name, ns, n, layer, ended)
        if self.token_at is not None:
            r.staged("first_token", max(self.token_at - ended, 0), at=self.token_at)


class _Part:
    """A part of a pass. ns: how long it took, after its end."""

    __slots__ = ("step", "name", "layer", "began", "ns")

    def __init__(self, step, name, layer):
        self.step, self.name, self.layer = step, name, layer

    def __enter__(self):
        self.began = _now()
        return self

    def __exit__(self, *error):
        self.ns = ns = _now() - self.began
        step = self.step
        step.ns[_PARTS[self.name]] += ns
        if self.layer is not None and step.prompt and step.request is not None:
            key = self.layer, self.name
            step.layers[key] = step.layers.get(key, 0) + ns


def _copied(ids):
    """A copy of picks, tokens x experts used, of one token, of several, or of several sequences. Engines compute into the
    same buffers again."""
    if hasattr(ids, "new_tensor"):
        return ids.detach().reshape(-1, ids.shape[-1]).clone()
    if hasattr(ids, "reshape"):
        return ids.reshape(-1, ids.shape[-1]).copy()
    while ids and isinstance(ids[0], (list, tuple)) and ids[0] and isinstance(ids[0][0], (list, tuple)):
        ids = [row for of in ids for row in of]
    return [tuple(row) for row in (ids if ids and isinstance(ids[0], (list, tuple)) else [ids] if ids else [])]


class _Picks:
    """Picks that an engine hands over layer by layer. The layers of a pass are counted together: it has ended when a layer
    comes that is not after the last one."""

    def __init__(self, top):
        self.top, self.lock = top, threading.Lock()
        self.layers, self.experts = top._shape.get("layers"), top._shape.get("experts")
        if not self.layers or not self.experts:
            raise ValueError("the model needs layers and experts: serve(..., model={'layers': ..., 'experts': ...})")
        self.used = top._shape.get("experts_used")
        self.rows = {"prompt": [0] * self.layers, "decode": [0] * self.layers}  # tokens by layer
        self.lists = _ListCounts(self.layers, self.experts)
        self.tensors = None  # _TorchCounts
        self.open = []  # (layer, ids) of tensors of the pass in progress
        self.phase = self.copy = self.stream = None
        self.layer = -1  # the last one
        self.flushed = self.last = 0
        self.dirty = False
        top._tickers.append(self.tick)

    def add(self, layer, ids, phase):
        """Counts a copy of the picks, and returns it."""
        if not 0 <= layer < self.layers or phase not in self.rows:
            raise ValueError("layer %r of %d, phase %r" % (layer, self.layers, phase))
        with self.lock:
            if self.open and (phase != self.phase or layer <= self.open[-1][0]):
                self._count()
            if layer <= self.layer and _now() - self.flushed > SECOND // 10:
                self._count()
                self._flush()
            self.layer, self.phase, self.dirty, self.last = layer, phase, True, _now()
            if hasattr(ids, "new_tensor"):
                self.open.append((layer, ids))
                if ids.is_cuda:
                    self.stream = sys.modules["torch"].cuda.current_stream(ids.device)
            else:
                self.lists.add(phase, [(layer, ids)], None)
            self.rows[phase][layer] += len(ids)
        return ids

    def _count(self):
        """Counts the tensors of the pass in progress."""
        picked, self.open = self.open, []
        if picked:
            self.tensors = self.tensors or _TorchCounts(self.layers, self.experts)
            self.tensors.add(self.phase, picked, None)

    def _flush(self, wait=False):
        """Emits the counts. Those on an accelerator are copied meanwhile, and emitted by tick; wait: now."""
        self.dirty, self.flushed = False, _now()
        tokens = {phase: max(rows) for phase, rows in self.rows.items()}
        of_lists = [list(counts) for counts in self.lists.lists()]
        copy = None if wait or self.tensors is None else self.tensors.begin_copy()
        self.copy = None if copy is None else (copy, of_lists, tokens)
        if copy is None:
            self._emit(None if self.tensors is None else self.tensors.lists(), of_lists, tokens)

    def _emit(self, of_tensors, of_lists, tokens):
        if of_tensors is not None:
            of_lists = [[a + b for a, b in zip(*pair)] for pair in zip(of_tensors, of_lists)]
        self.top.experts(self.layers, self.experts, self.used, *of_lists, tokens["prompt"], tokens["decode"])

    def tick(self):
        """Emits copies that have arrived, and the last counts of an idle engine."""
        if self.top._picks is not self:  # another model
            self.top._tickers.remove(self.tick)
            return
        with self.lock:
            closing = self.top._closing is not None
            if self.copy is not None and not closing:
                copy, of_lists, tokens = self.copy
                counts = self.tensors.end_copy(copy)
                if counts is not None:
                    self.copy = None
                    self._emit(counts, of_lists, tokens)
            elif self.dirty and _now() - self.last > SECOND // 5 or closing and (self.dirty or self.copy):
                with sys.modules["torch"].cuda.stream(self.stream) if self.stream else contextlib.nullcontext():
                    self._count()
                    self._flush(wait=True)


class _HostSampler:
    """Samples the machine and this process from /proc. What cannot be read is left out."""

    def __init__(self, top):
        self.top, self.was = top, None

    def tick(self):
        """Runs ten times a second, and samples once a second."""
        now = _now()
        if self.was is not None and now - self.was["at"] < SECOND - SECOND // 20:
            return
        if sys.platform != "linux":
            raise OSError("sample_host needs /proc, which only Linux has")
        sums = self._sums()
        sums["at"] = now
        if self.was is not None:
            self._report(sums, self.was, now - self.was["at"])
        self.was = sums

    def _sums(self):
        """What /proc counts, by name."""
        sums = {}
        for line in _read("/proc/stat").splitlines():
            if line.startswith("cpu"):
                name, *ticks = line.split()
                ticks = list(map(int, ticks[:8]))
                sums[name] = sum(ticks), ticks[3] + ticks[4], ticks[7]
            elif line.startswith("procs_running"):
                sums["runnable"] = int(line.split()[1])
        rows = [line.partition(":") for line in _read("/proc/net/dev").splitlines()[2:]]
        counts = [row.split() for name, _, row in rows if name.strip() != "lo"]
        if counts:
            sums["net_in"], sums["net_out"] = (sum(int(c[n]) for c in counts) for n in (0, 8))
        for name, of in (("cpu", "cpu"), ("mem", "memory"), ("io", "io")):
            found = re.search(r"some .*total=(\d+)", _read("/proc/pressure/" + of))
            if found:
                sums[name + "_pressure"] = int(found.group(1)) * 1000
        stat = _read("/proc/self/stat").rpartition(")")[2].split()
        sums["minor_faults"], sums["faults"], sums["threads"] = int(stat[7]), int(stat[9]), int(stat[17])
        sums["process"] = (int(stat[11]) + int(stat[12])) * SECOND // os.sysconf("SC_CLK_TCK")
        io = dict(re.findall(r"(\w+): (\d+)", _read("/proc/self/io")))
        for name, of in (("read", "read_bytes"), ("write", "write_bytes"), ("read_ops", "syscr"), ("write_ops", "syscw")):
            if of in io:
                sums[name] = int(io[of])
        sums["waits"] = self._waits()
        return sums

    def _waits(self):
        """ns that each thread waited for a core; None for a process with many threads, which are not read."""
        threads = os.listdir("/proc/self/task")
        if len(threads) > 256:
            return None
        rows = ((t, _read("/proc/self/task/%s/schedstat" % t).split()) for t in threads)
        return {t: int(row[1]) for t, row in rows if len(row) > 1}

    def _report(self, now, was, ns):
        def rate(name, unit=SECOND, digits="derived"):
            return {name: [(now[name] - was[name]) * unit / ns, digits]} if name in now and name in was else {}

        def share(name, n):
            spent = now[name][0] - was[name][0]
            part = now[name][n] - was[name][n]
            return min(max(part / spent, 0), 1) if spent > 0 else 0

        machine, engine = {}, {"pid": os.getpid(), "interval": ns, "cpu": [(now["process"] - was["process"]) / ns, "derived"]}
        if "cpu" in now and "cpu" in was:
            machine.update(cpu=[1 - share("cpu", 1), "derived"], steal=[share("cpu", 2), "derived"])
            machine["cores"] = [1 - share(c, 1) for c in now if c[3:].isdigit() and c in was]
        for name in ("cpu_pressure", "mem_pressure", "io_pressure"):
            machine.update(rate(name, 1))
        machine.update(rate("net_in"), **rate("net_out"))
        if "runnable" in now:
            machine["runnable"] = [now["runnable"], "reported"]
        machine["load1"] = [os.getloadavg()[0], "reported"]
        machine.update(_memory())
        for name in ("read", "write", "read_ops", "write_ops", "faults", "minor_faults"):
            engine.update(rate(name))
        for name in ("read", "write"):
            if name in now:
                engine[name + "_sum"] = [now[name], "reported"]
        status = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+)", _read("/proc/self/status")))
        engine.update({name: [int(status[of]) * 1024, "reported"] for name, of in (("rss", "VmRSS"), ("peak", "VmHWM")) if of in status})
        engine["threads"] = [now["threads"], "reported"]
        if now["waits"] is not None and was["waits"] is not None:
            waited = sum(max(waits - was["waits"].get(t, 0), 0) for t, waits in now["waits"].items())
            engine["run_wait"] = [waited / ns, "derived"]
        self.top.host(interval=ns, engine=engine, **machine)


def _memory():
    """Memory in use and its limit: the lowest of the machine's and those of the process's control groups."""
    about = dict(re.findall(r"(MemTotal|MemAvailable):\s+(\d+)", _read("/proc/meminfo")))
    if len(about) < 2:
        return {}
    total, available = int(about["MemTotal"]) * 1024, int(about["MemAvailable"]) * 1024
    used, limited = total - available, None
    group = _read("/proc/self/cgroup").rpartition("0::")[2].strip()
    while group.startswith("/"):
        limit, current = (_read("/sys/fs/cgroup%s/memory.%s" % (group.rstrip("/"), of)).strip() for of in ("max", "current"))
        if limit.isdigit() and current.isdigit() and int(limit) < total:
            total, used, limited = int(limit), int(current), True
        group = group.rpartition("/")[0] or ("/" if group != "/" else "")
    return _given(mem_total=[total, "reported"], mem_used=[used, "derived"], limited=limited)


def _read(path):
    """A file of the system, empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def _arguments(message):
    """The arguments of the handler of a control message."""
    kind = message["t"]
    if kind == "generate":
        return (message,)
    if kind == "cancel":
        return (int(message["r"]),)
    if kind == "hooks":
        return ([n for n in message.get("on", ()) if isinstance(n, str)],)
    if kind == "sample":
        return (max(1, int(message["every"])),)
    return ()


_emitters = weakref.WeakSet()


def _close_all():
    for top in list(_emitters):
        top.close()


def _orphan_all():
    for top in list(_emitters):
        top._orphan()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_orphan_all)


# Hugging Face transformers


def model_from(source, **more):
    """The description of a model, for serve(model=...) and Emitter.model: a dict with the keys of the protocol's model.

    source: a config of Hugging Face transformers, its dict, a model that has one, or the path of a config.json or its
    folder. more: other keys, which take precedence. Keys that the config does not have are left out.
    """
    about = {}
    if isinstance(source, (str, os.PathLike)):
        about["path"] = os.fspath(source)
        name = os.path.join(source, "config.json") if os.path.isdir(source) else source
        about["name"] = os.path.basename(os.path.dirname(os.path.abspath(name)))
        with open(name, encoding="utf-8") as f:
            source = json.load(f)
    model, config = (source, source.config) if hasattr(source, "config") and not isinstance(source, dict) else (None, source)
    config = _Config(config) if isinstance(config, dict) else config
    text = getattr(config, "text_config", None) or config
    text = _Config(text) if isinstance(text, dict) else text
    quantised = getattr(config, "quantization_config", None)
    quantised = quantised.get("quant_method") if isinstance(quantised, dict) else getattr(quantised, "quant_method", None)
    dtype = quantised or getattr(model, "dtype", None) or getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)
    width, heads = (_first([text], *names) for names in (("hidden_size", "n_embd"), ("num_attention_heads", "n_head")))
    latent = _first([text], "kv_lora_rank") is not None  # then heads have other sizes
    about.update(_given(
        name=getattr(config, "_name_or_path", None) or (about.get("name") if model is None else type(model).__name__),
        architecture=getattr(config, "model_type", None),
        quantisation=str(dtype).replace("torch.", "") if dtype else None,
        parameters=model.num_parameters() if hasattr(model, "num_parameters") else None,
        layers=_first([text], "num_hidden_layers", "n_layer"),
        experts=_first([text], "n_routed_experts", "num_experts", "num_local_experts"),
        experts_used=_first([text], "num_experts_per_tok", "moe_top_k"),
        width=width,
        heads=heads,
        kv_heads=_first([text], "num_key_value_heads"),
        head_dim=_first([text], "head_dim") or (width // heads if width and heads and not width % heads and not latent else None),
        feed_forward=_first([text], "moe_intermediate_size", "intermediate_size"),
        vocabulary=_first([text], "vocab_size"),
        trained_context=_first([text], "max_position_embeddings", "n_positions"),
    ))  # fmt: skip
    return dict(about, **more)


class _Config:
    """A config.json with attributes."""

    def __init__(self, values):
        self.__dict__.update(values)


# Router modules: paths (Mixtral, Qwen2-MoE, Qwen3-MoE, OLMoE, MiniMax-M2, DeepSeek-V3 and GLM4-MoE: mlp.gate; Mixtral
# before version 5: block_sparse_moe.gate; GPT-OSS: mlp.router; Granite-MoE: block_sparse_moe.router; Llama 4:
# feed_forward.router) and class names. The order of their outputs differs between models and versions of transformers,
# so the tensor of indices is identified as the one of integers, tokens x experts used.
_ROUTER_PATH = re.compile(r"(?:^|\.)layers\.(\d+)\.(?:mlp|block_sparse_moe|feed_forward|moe)\.(?:gate|router)$")
_ROUTER_CLASS = re.compile(r"Top[Kk]Router$|TopKGating$|^Llama4Router$")


def _routers(model):
    """Yields (layer, module, its parent module) of each router. In older versions the gate is a plain Linear."""
    modules = dict(model.named_modules())
    for path, module in modules.items():
        found = _ROUTER_PATH.search(path)
        parent = modules.get(path.rpartition(".")[0])
        if found and (_ROUTER_CLASS.search(type(module).__name__) or hasattr(parent, "experts")):
            yield int(found.group(1)), module, parent


def _first(objects, *names):
    """The first of the named attributes that one of the objects has."""
    for o in objects:
        for name in names:
            value = getattr(o, name, None)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return None


def _is_tensor(value):
    return hasattr(value, "shape") and hasattr(value, "tolist")


def _picked(output, parent, used):
    """The indices tensor (tokens, experts used) in a router's output, None if it cannot be determined.

    For routers that return only logits, the parent block makes the choice: its method is called if it has one
    (DeepSeek-V3 and GLM4 choose by groups and a bias), otherwise the choice is the highest logits.
    """
    parts = [p for p in (output if isinstance(output, (tuple, list)) else (output,)) if _is_tensor(p) and len(p.shape) == 2]
    for p in parts:
        if not p.is_floating_point():
            return p
    if not parts:
        return None
    choose = getattr(parent, "route_tokens_to_experts", None)
    if choose is not None:
        return choose(parts[-1])[0]
    if hasattr(parts[-1], "topk") and used and not hasattr(parent, "n_group"):
        return parts[-1].topk(used, -1)[1]
    return None


def _place(output, indices):
    """The position of the indices in a router's output tuple; None if they are not in it."""
    parts = output if isinstance(output, tuple) and indices is not None else ()
    return next((n for n, part in enumerate(parts) if part is indices), None)


class _ListCounts:
    """Counts picks of lists, arrays of numpy, and tensors that offer only tolist()."""

    def __init__(self, layers, experts):
        self.experts = experts
        self.picks = {phase: [0] * (layers * experts) for phase in ("prompt", "decode")}

    def add(self, phase, picked, real):
        """Counts the picks of a pass: (layer, indices) pairs; real marks the tokens that are not padding, None: all."""
        counts = self.picks[phase]
        for layer, indices in picked:
            first = layer * self.experts
            if real is None and hasattr(indices, "ravel") and indices.size > 256:  # numpy's arrays
                flat = indices.ravel()
                for e, n in enumerate(sys.modules["numpy"].bincount(flat[(flat >= 0) & (flat < self.experts)], minlength=self.experts).tolist()):
                    counts[first + e] += n
                continue
            for t, row in enumerate(indices.tolist() if hasattr(indices, "tolist") else indices):
                if real is None or real[t]:
                    for e in row:
                        if 0 <= e < self.experts:
                            counts[first + e] += 1

    def lists(self):
        return self.picks["prompt"], self.picks["decode"]


class _TorchCounts:
    """Counts picks on the device, without waiting for it: indices of several passes are kept, at most about KEPT in
    addition to those of one pass, and then counted with a few kernels. Each layer has one more column than experts, for
    indices out of range. A router's output must not be overwritten later; nothing in transformers does that.
    """

    KEPT = 1 << 16

    def __init__(self, layers, experts):
        self.layers, self.experts = layers, experts
        self.tables = {}  # (phase, device, layers) -> counts, offset of each layer, 1
        self.kept = {}  # (phase, layers, shape of the first of them, whether there is padding) -> [(indices of each layer, real)]
        self.size = 0  # number of indices in kept

    def add(self, phase, picked, real):
        layers, indices = zip(*picked)
        key = phase, layers, indices[0].shape, real is not None
        self.kept.setdefault(key, []).append((indices, real))
        self.size += indices[0].numel() * len(layers) + 64  # plus the overhead of a tensor
        if self.size > self.KEPT:
            self._settle()

    def _settle(self):
        kept, self.kept, self.size = self.kept, {}, 0
        for (phase, layers, _, _), passes in kept.items():
            groups = {}  # the layers of many passes are counted together, those of a long pass one by one, to save memory
            for n, i in enumerate(passes[0][0]):
                groups.setdefault((i.device, i.shape, n if i.numel() > self.KEPT // 8 else None), []).append(n)
            for group in groups.values():
                picked = [([indices[n] for n in group], real) for indices, real in passes]
                self._count(phase, tuple(layers[n] for n in group), picked)

    def _count(self, phase, layers, passes):
        """Counts the picks of some layers, all on one device and of one shape."""
        import torch

        indices = torch.stack([i for of_pass, _ in passes for i in of_pass]).to(torch.int64)
        table, first, weight = self._table(phase, indices.device, layers)
        indices = indices.reshape(len(passes), len(layers), *indices.shape[1:])
        indices = indices.masked_fill((indices < 0) | (indices >= self.experts), self.experts) + first
        if passes[0][1] is not None:
            weight = torch.stack([real for _, real in passes]).to(indices)[:, None, :, None]
        table.scatter_add_(0, indices.reshape(-1), weight.expand(indices.shape).reshape(-1))

    def _table(self, phase, device, layers):
        import torch

        key = phase, device, layers
        if key not in self.tables:
            with torch.inference_mode(False):  # otherwise they could be changed only in inference mode
                first = torch.tensor(layers, device=device)[:, None, None] * (self.experts + 1)
                zeros = torch.zeros(self.layers * (self.experts + 1), dtype=torch.int64, device=device)
                self.tables[key] = zeros, first, torch.ones(1, dtype=torch.int64, device=device)
        return self.tables[key]

    def lists(self):
        self._settle()
        return self._list("prompt"), self._list("decode")

    def begin_copy(self):
        """Begins to copy the counts from an accelerator: tables in the memory of the host by phase, and the events after
        which they are complete. None if that would wait for a device."""
        import torch

        self._settle()
        if any(device.type != "cuda" for _, device, _ in self.tables):
            return None
        copies, events = [], []
        for (phase, device, _), (table, _, _) in self.tables.items():
            with torch.cuda.device(device), torch.inference_mode(False):
                copies.append((phase, torch.empty(table.shape, dtype=table.dtype, pin_memory=True).copy_(table, non_blocking=True)))
                events.append(torch.cuda.Event())
                events[-1].record()
        return copies, events

    def end_copy(self, copy):
        """The counts of begin_copy, None if they have not arrived."""
        copies, events = copy
        return tuple(self._list(phase, copies) for phase in ("prompt", "decode")) if all(e.query() for e in events) else None

    def _list(self, phase, tables=None):
        """Waits for the device, unless tables are copies: (phase, table) pairs."""
        total = [0] * (self.layers * self.experts)
        for of, table in tables or [(of, table) for (of, _, _), (table, _, _) in self.tables.items()]:
            if of == phase:
                rows = table.reshape(self.layers, self.experts + 1)[:, : self.experts].reshape(-1).tolist()
                total = [a + b for a, b in zip(total, rows)]
        return total


class _Pass:
    """A forward pass in progress."""

    __slots__ = ("began", "stream", "phase", "rows", "columns", "real", "per_row", "count", "seen", "picked")

    def __init__(self, stream, rows, columns):
        self.began = _now()
        self.stream = stream  # the streamer that it works for, if available
        self.rows, self.columns = rows, columns  # of the tokens
        self.phase = "prompt" if columns > 1 or (stream is not None and stream.waits()) else "decode"
        self.real = self.per_row = None  # marks tokens that are not padding, and their number per row; None: all
        self.count = self.seen = False  # count: picks are counted; seen: routers are observed
        self.picked = []  # (layer, indices)

    def tokens(self):
        return self.rows * self.columns if self.per_row is None else sum(self.per_row)


class Watch:
    """Hooks a Hugging Face transformers model, or one of the same structure: counts the picks of its routers, per layer
    and expert, separately for prompts and decoding, and times its forward passes. Padding is not counted as picks if
    forward gets an attention mask of (rows, tokens); it is counted in padding.

    A pass with more than one token per row counts as prompt. Passes are timed only on a CPU: on other devices forward
    returns before the work is done. Passes through a compiled graph and routers inside a fused kernel are not observed.
    close() removes the hooks. group: adapter name for requests of streamer(); by default that of the active PEFT adapter.
    """

    def __init__(self, top, model, group=None, every=1):
        while hasattr(model, "get_base_model"):
            self._peft, model = model, model.get_base_model()
        self._peft = getattr(self, "_peft", model)
        self.top, self.model, self._group = top, model, group
        self.every = every
        self.on = {"experts"}  # as in the control message hooks
        self.tokens = {"prompt": 0, "decode": 0}  # tokens whose picks are counted
        self.padding = 0
        self._passes = self._flushed = self._last = 0
        self._dirty = self._complained = False
        self._counts = None
        self._lock = threading.Lock()
        self._under_way = threading.local()  # now is the current pass of the thread
        self._streams = {}  # thread -> Streamer
        # Torch calls this during compilation: the hooks must not be part of the graph, which would break it.
        self._compiling = getattr(getattr(sys.modules.get("torch"), "compiler", None), "is_compiling", bool)
        self._describe()
        self._hooks = [m.register_forward_hook(self._hook(layer)) for layer, m, _ in self._found]
        self._wrap()
        top._caps |= {"experts"} if self._found else set()
        top._caps |= {"picks"} if len(self._found) == self.layers else set()  # requires the picks of all layers
        top._tickers.append(self._tick)
        top._handlers.setdefault("hooks", self._set_hooks)
        top._handlers.setdefault("sample", self._set_every)
        top.model(**self.about)
        if self.experts and not self._found:
            self._complain("%s has experts, but no router of a known type" % type(model).__name__)

    def streamer(self, **options):
        """A streamer for generate() of this model: requests, exact token stamps, padding, adapter."""
        return Streamer(self.top, watch=self, **options)

    def close(self):
        """Removes the hooks."""
        self.flush()
        for hook in self._hooks:
            hook.remove()
        if self._was is None:
            del self.model.forward
        else:
            self.model.forward = self._was
        if self._tick in self.top._tickers:
            self.top._tickers.remove(self._tick)

    def _describe(self):
        """Finds the routers, and reads the model's description."""
        self._found = list(_routers(self.model))
        config = getattr(self.model, "config", None)
        text = getattr(config, "text_config", None) or config
        where = [m for _, m, _ in self._found[:1]] + [p for _, _, p in self._found[:1]] + [text]
        self.experts = _first(where, "n_routed_experts", "num_experts", "num_local_experts", "out_features") or 0
        self.used = _first([text], "num_experts_per_tok", "moe_top_k") or _first(where[:-1], "top_k")  # in a config, top_k is for sampling
        self.layers = max([_first([text], "num_hidden_layers") or 0] + [layer + 1 for layer, _, _ in self._found])
        self._parents = {layer: p for layer, _, p in self._found}
        configs = [config, getattr(self.model, "generation_config", None)]
        self.eos, self.pad = (set().union(*(_ids(getattr(c, n, None)) for c in configs)) for n in ("eos_token_id", "pad_token_id"))
        self.ends = sorted(self.eos | self.pad)  # inputs of rows of a batch that have ended
        device = getattr(self.model, "device", None)
        self.timed = device is None or str(device).startswith("cpu")
        about = model_from(self.model, **_given(layers=self.layers or None, experts=self.experts or None, experts_used=self.used))
        self.about = dict(about, **_given(context=about.get("trained_context")))

    def _wrap(self):
        """Replaces forward of the model: a hook would not get keyword arguments in older versions of torch, nor
        passes that fail."""
        inner, self._was = self.model.forward, self.model.__dict__.get("forward")
        compiling = self._compiling

        def forward(*args, **kwargs):
            if compiling():
                return inner(*args, **kwargs)
            outer = getattr(self._under_way, "now", None)
            self._under_way.now = now = self._safely(self._begin, args, kwargs)
            try:
                result = inner(*args, **kwargs)
                if now is not None:
                    self._safely(self._absorb, now)
                return result
            finally:
                self._under_way.now = outer

        forward.__wrapped__ = inner  # transformers reads the signature
        self.model.forward = forward

    def _hook(self, layer):
        """Returns the hook of a router."""
        place = None  # position of the indices in the output, once determined
        compiling = self._compiling

        def hook(module, args, output):
            nonlocal place
            if compiling():
                return
            now = getattr(self._under_way, "now", None)
            if now is None or not now.seen:
                return
            if place is None or not isinstance(output, tuple) or len(output) <= place:
                indices = self._safely(_picked, output, self._parents[layer], self.used)
                place = _place(output, indices)
            else:
                indices = output[place]
            now.picked.append((layer, indices))

        return hook

    def _safely(self, do, *args):
        """Calls do. An exception must not end the engine's pass: it is logged once."""
        try:
            return do(*args)
        except Exception as e:
            self._complain("watching %s failed: %s: %s" % (type(self.model).__name__, type(e).__name__, e))
            return None

    def _complain(self, message):
        if not self._complained:
            self._complained = True
            self.top.log("llmtop: " + message)

    def _begin(self, args, kwargs):
        ids = kwargs.get("input_ids", args[0] if args else None)
        if ids is None:
            ids = kwargs.get("inputs_embeds")
        if not _is_tensor(ids) or len(ids.shape) < 2:
            return None
        now = _Pass(self._streams.get(threading.get_ident()), ids.shape[0], ids.shape[1])
        if now.phase == "prompt":
            now.real = _unmasked(kwargs.get("attention_mask", args[1] if len(args) > 1 else None), now.columns)
        elif now.rows > 1 and self.ends and len(ids.shape) == 2:
            now.real = _going_on(ids, self.ends)
        if now.real is not None:
            now.per_row = _row_sums(now.real, now.rows, now.columns)
        now.count = "experts" in self.on and self._passes % self.every == 0
        now.seen = now.count or "picks" in self.on
        self._passes += 1
        return now

    def _absorb(self, now):
        """Reports a pass that has ended."""
        at = _now()
        real = now.tokens()
        picks = None
        with self._lock:
            self.padding += now.rows * now.columns - real
            if now.picked:
                picks = self._count(now, real)
        if self.timed:
            self.top.step(at - now.began, at=at, **{now.phase: real})
        if now.stream is not None:
            now.stream.passed(now, at, picks)
        if self._dirty and at - self._flushed > SECOND // 10:
            self.flush()

    def _count(self, now, real):
        """Counts the picks of a pass; returns those of the last token of each row, if requested."""
        many = now.rows * now.columns
        known = [p for p in now.picked if p[1] is not None and p[1].shape[0] == many]
        if len(known) < len(now.picked):
            self._complain("%d routers hand out no picks that are understood" % (len(now.picked) - len(known)))
        if not known:
            return None
        self.experts = self.experts or 1 + max(max(row) for _, i in known for row in i.tolist())
        self.used = self.used or known[0][1].shape[1]
        if self._counts is None:
            self._counts = (_TorchCounts if hasattr(known[0][1], "scatter_add_") else _ListCounts)(self.layers, self.experts)
        if now.count:
            self._counts.add(now.phase, known, now.real)
            self.tokens[now.phase] += real
            self._dirty = True
        self._last = _now()
        if "picks" in self.on and len(known) == self.layers:
            last = [indices[now.columns - 1 :: now.columns].tolist() for _, indices in known]
            return [[e for layer in last for e in layer[row]] for row in range(now.rows)]
        return None

    def flush(self):
        """Emits the current counts."""
        with self._lock:
            if self._dirty:
                self._dirty, self._flushed = False, _now()
                prompt, decode = self._counts.lists()
                self.top.experts(self.layers, self.experts, self.used, prompt, decode, self.tokens["prompt"], self.tokens["decode"],
                                 self.every if self.every > 1 else None)  # fmt: skip
                self.top.count(padding_tokens=self.padding)

    def _tick(self):
        """Emits the last counts when the model is idle. Otherwise its own thread does: here it would wait for the device."""
        if self._dirty and _now() - self._last > SECOND // 5:
            self.flush()

    def _set_hooks(self, names):
        self.on = set(names)

    def _set_every(self, every):
        self.every = every

    def adapter(self):
        """The name of the active adapter, None without one."""
        if self._group is not None:
            return self._group
        active = getattr(self._peft, "active_adapters", None) if getattr(self._peft, "peft_config", None) else None
        try:
            active = active() if callable(active) else active
        except ValueError:  # transformers has no adapter loaded
            return None
        return "+".join(active) if isinstance(active, (list, tuple)) and active else active or None


def _unmasked(mask, columns):
    """Whether an attention mask (rows, tokens) includes each of the rows' last tokens; None without a mask."""
    if not _is_tensor(mask) or len(mask.shape) != 2 or mask.shape[1] < columns:
        return None
    if hasattr(mask, "new_tensor"):
        return mask[:, -columns:].reshape(-1) != 0
    return [bool(m) for row in mask.tolist() for m in row[-columns:]]


def _going_on(ids, ends):
    """For each row of a decoding batch whether it is still active: rows that have ended get their end token and then
    padding as input, and their output is discarded."""
    if hasattr(ids, "new_tensor"):
        return (ids.reshape(-1)[:, None] != ids.new_tensor(ends)).all(-1)
    return [row[0] not in ends for row in ids.tolist()]


def _row_sums(real, rows, columns):
    """Number of real tokens per row. On an accelerator this waits for the device, so it is called before the pass."""
    flags = real.tolist() if hasattr(real, "tolist") else real
    return [sum(map(bool, flags[r * columns : (r + 1) * columns])) for r in range(rows)]


def _ids(value):
    """The set of token ids in a setting: none, one, or several."""
    return {i for i in (value if isinstance(value, (list, tuple, set)) else [value]) if isinstance(i, int)}


class Streamer:
    """A streamer for generate() of transformers: opens a request for each row of the batch when it gets the prompt,
    and stamps each token when generate() returns it.

    As a context manager it reports whether generate() failed. also: another streamer that gets all calls.
    max_new_tokens: that of generate(). eos, pad: ids that end a text and that pad ended rows; default: the model's.
    group: LoRA adapter or tenant; default: the model's; a list names one per row. Other options are those of Request.
    """

    def __init__(self, top, watch=None, also=None, max_new_tokens=None, eos=None, pad=None, group=None, **options):
        self.top, self.watch, self.also = top, watch, also
        self.options = dict(options, max_tokens=max_new_tokens)
        self.group = watch.adapter() if watch is not None and group is None else group
        self.eos = _ids(eos) or (watch.eos if watch is not None else set())
        self.pad = (_ids(pad) or (watch.pad if watch is not None else set())) - self.eos
        self.requests = []
        self._prompt = None  # (began, ended) of the passes over the prompt
        self._uncomputed = 0  # columns of the prompt that no pass has computed
        self._picks = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for r in self.requests:
            r.__exit__(kind, error, trace)
        self._leave()

    def put(self, value):
        """Called by generate(), first with the prompt, then with the tokens of each step."""
        at = _now()
        values = value.tolist() if hasattr(value, "tolist") else list(value)
        if not self.requests:
            self._start(values if values and isinstance(values[0], list) else [values], at)
        else:
            self._hand_out(values, at)
        if self.also is not None:
            self.also.put(value)

    def end(self):
        """Called by generate() at the end. Rows without an end token reached the limit, or were stopped otherwise."""
        most = self.options["max_tokens"]
        for r in self.requests:
            r.finish(None if most is None else "length" if r.out >= most else "stop")
        self._leave()
        if self.also is not None:
            self.also.end()

    def _start(self, rows, at):
        self._thread, self._began = threading.get_ident(), at
        self._uncomputed = len(rows[0])
        groups = self.group if isinstance(self.group, (list, tuple)) else [self.group] * len(rows)
        for row, group in itertools.zip_longest(rows, groups[: len(rows)]):
            r = self.top.request(prompt_tokens=len(row), at=at, group=group, **self.options)
            self.requests.append(r)
        if self.watch is not None:
            self.watch._streams[self._thread] = self

    def _leave(self):
        if self.requests and self.watch is not None:
            self.watch._streams.pop(self._thread, None)
            self.watch.flush()
        self.requests = []
        self._prompt = self._picks = None

    def waits(self):
        """Whether there is no token yet."""
        return bool(self.requests) and not any(r.out for r in self.requests)

    def passed(self, now, at, picks):
        """Called after a pass of the watched model in this thread."""
        self._picks = picks
        if now.phase != "prompt" or not self.waits():
            return
        self._prompt = (self._prompt[0] if self._prompt else now.began, at)
        self._uncomputed -= now.columns
        for r, real in zip(self.requests, now.per_row or ()):
            r.pad = (r.pad or 0) + now.columns - real
            r.prompt_tokens -= now.columns - real

    def _hand_out(self, values, at):
        rows = values if values and isinstance(values[0], list) else [[v] for v in values]
        if len(self.requests) == 1:
            rows = [[v for row in rows for v in row]]  # with an assistant model several at once
        for n, (r, row) in enumerate(zip(self.requests, rows)):
            if r.state in _TOTALS:
                continue  # ended and padded since
            if row[0] in self.pad:
                r.finish("stop", at)  # stopped by something other than an end token
                continue
            if not r.out:
                self._time_first(r, at)
            r.token(row[0], n=len(row), picks=self._picks[n] if self._picks else None, at=at)
            if row[-1] in self.eos:
                r.finish("stop", at)

    def _time_first(self, r, at):
        """Emits the components of time to first token: on a CPU the pass and the rest, elsewhere both together. Without
        a watched pass, all of it is the prompt's."""
        if not self._prompt:
            r.staged("prompt", at - self._began, at=at)
            return
        began, ended = self._prompt
        r.cached = max(self._uncomputed, 0)  # generate() was given a cache with the other columns
        tokens = max(r.prompt_tokens - r.cached, 0)
        if self.watch.timed:
            r.staged("prompt", ended - began, tokens=tokens, at=ended)
            r.staged("first_token", at - ended, at=at)
        else:
            r.staged("prompt", at - began, tokens=tokens, at=at)


# vLLM


class _VLLMStats:
    """Forwards the data that vLLM passes to its stat loggers after each step: see VLLMStatLogger.

    Emits steps with their forward-pass metrics and the interval since the previous step, the KV cache, counters, and
    each request after its end, with the times that vLLM measured. vLLM does not report single tokens: a request has its
    first token and, with one stamp, all others. Exceptions in this class never reach vLLM.
    """

    def __init__(self, vllm_config, engine_index=0):
        self.config, self.index = vllm_config, engine_index
        self.top = None
        self.failed = False
        self.totals = {}
        self.reported = self.last = 0  # stamps of the last counters and the last step
        self.running = 0

    def log_engine_initialized(self):
        if self.top is None and not self.failed:
            try:
                self.top = self._open()
            except Exception as e:
                self.failed = True
                print("llmtop: %s" % e, file=sys.stderr)

    def log(self):
        pass

    def record_sleep_state(self, *args):
        pass

    def record(self, scheduler_stats=None, iteration_stats=None, *args, **kwargs):
        self.log_engine_initialized()
        if self.top is not None:
            try:
                self._record(scheduler_stats, iteration_stats, _now())
            except Exception as e:
                if not self.failed:
                    self.failed = True
                    self.top.log("llmtop: recording failed: %s: %s" % (type(e).__name__, e))

    def _open(self):
        version = getattr(sys.modules.get("vllm"), "__version__", "")
        config = getattr(self.config, "model_config", None)
        about = _given(name=getattr(config, "model", None), context=_first([config], "max_model_len"))
        slots = _first([getattr(self.config, "scheduler_config", None)], "max_num_seqs")
        name, listen = "vllm", None
        if self.index:  # one of several engines of a process: $LLMTOP_LISTEN is for the first one
            name = "vllm-%d" % self.index
            listen = _default_address(name)
        return serve(name, listen, version=version, model=about, slots=slots, caps=("queue",))

    def _record(self, scheduler, iteration, now):
        if scheduler is not None:
            self._add("cache_lookups", scheduler, "prefix_cache_stats", "queries")
            self._add("cache_hits", scheduler, "prefix_cache_stats", "hits")
            self._emit_cache(scheduler)
        if iteration is not None:
            self._emit_step(scheduler, iteration, now)
            self._add("prompt_tokens", iteration, "num_prompt_tokens")
            self._add("generated_tokens", iteration, "num_generation_tokens")
            self._add("preempted_requests", iteration, "num_preempted_reqs")
            for f in getattr(iteration, "finished_requests", ()):
                self._emit_request(f, now)
        if scheduler is not None:
            self.running = getattr(scheduler, "num_running_reqs", 0)
        if now - self.reported > SECOND // 10 or not self.running:
            self.reported = now
            self.top.count(**self.totals)

    def _add(self, name, stats, *path):
        for part in path:
            stats = getattr(stats, part, None)
        if stats is not None:
            self.totals[name] = self.totals.get(name, 0) + stats

    def _emit_cache(self, scheduler):
        cache = getattr(self.config, "cache_config", None)
        blocks, page = _first([cache], "num_gpu_blocks"), _first([cache], "block_size")
        usage = getattr(scheduler, "kv_cache_usage", None)
        if blocks and page and usage is not None:
            self.top.kv(round(usage * blocks) * page, blocks * page, page)

    def _emit_step(self, scheduler, iteration, now):
        """The duration is the interval since the previous step, if requests ran without a gap."""
        firsts, gaps = (len(getattr(iteration, n, ())) for n in ("time_to_first_tokens_iter", "inter_token_latencies_iter"))
        prompt = getattr(iteration, "num_prompt_tokens", None)
        if self.last and self.running:
            fpm = {"scheduled_requests": _given(num_prefill_requests=firsts, sum_prefill_tokens=prompt, num_decode_requests=gaps)}
            waiting = getattr(scheduler, "num_waiting_reqs", None)
            if waiting is not None:
                fpm["queued_requests"] = {"num_prefill_requests": waiting}
            self.top.step(now - self.last, decode=gaps, prompt=prompt, fpm=fpm, at=now)
        self.last = now

    def _emit_request(self, f, now):
        """A request that has ended, with stamps computed from the durations that vLLM reports, in s."""

        def ns(name):
            return int(max(0, getattr(f, name, 0) or 0) * SECOND)

        out = getattr(f, "num_generation_tokens", 0)
        dispatched = now - ns("decode_time") - ns("prefill_time")
        r = self.top.request(getattr(f, "num_prompt_tokens", None), name=getattr(f, "request_id", None),
                             max_tokens=getattr(f, "max_tokens_param", None), at=now - max(ns("e2e_latency"), now - dispatched))  # fmt: skip
        r.cached = getattr(f, "num_cached_tokens", None)
        if ns("prefill_time"):
            r.dispatch(dispatched)
            first = dispatched + ns("prefill_time")
            r.staged("prompt", ns("prefill_time"), tokens=r.prompt_tokens, at=first)
            if out:
                r.token(at=first)
            if out > 1:
                r.token(n=out - 1, at=now)
        why = str(getattr(f, "finish_reason", "") or "") or None
        if why == "abort":
            r.cancel(now)
        elif why == "error":
            r.fail(why, now)
        else:
            r.finish(why, now)


def __getattr__(name):
    """Creates VLLMStatLogger on first use: vLLM accepts only subclasses of its own base class."""
    if name != "VLLMStatLogger":
        raise AttributeError("module llmtop has no attribute %r" % name)
    try:
        from vllm.v1.metrics.loggers import StatLoggerBase

        bases = (_VLLMStats, StatLoggerBase)
    except ImportError:
        bases = (_VLLMStats,)
    made = globals()[name] = type(name, bases, {"__doc__": _VLLMStats.__doc__})
    return made
