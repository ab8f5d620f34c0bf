"""A reader of event sockets for tests: validates each line with the schema and counts received and dropped events."""

import json
import os
import re
import socket

_here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(_here, "..", "..", "docs", "event.schema.json"), encoding="utf-8") as f:
    SCHEMA = json.load(f)
KINDS = {"tok": "token", "req": "request", "stage": "stage", "step": "step", "experts": "experts", "kv": "kv", "count": "counters",
         "engine": "engine", "model": "model", "host": "host", "log": "log", "ops": "ops", "draft": "speculation", "usage": "usage"}  # fmt: skip
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def valid(value, schema):
    """Whether a value is valid for a JSON schema, for the keywords that the protocol's schema uses."""
    if schema is True or schema is False:
        return schema
    if "$ref" in schema and not valid(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]):
        return False
    if "type" in schema and not any(_is(value, t) for t in _list(schema["type"])):
        return False
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        return False
    if "anyOf" in schema and not any(valid(value, s) for s in schema["anyOf"]):
        return False
    if not all(valid(value, s) for s in schema.get("allOf", ())):
        return False
    if "if" in schema and valid(value, schema["if"]) and not valid(value, schema.get("then", True)):
        return False
    return _valid_parts(value, schema)


def _valid_parts(value, schema):
    if isinstance(value, dict):
        known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        return (
            all(k in value for k in schema.get("required", ()))
            and len(value) <= schema.get("maxProperties", len(value))
            and all(valid(v, known.get(k, more)) for k, v in value.items())
        )
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        ok = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return ok and all(map(valid, value, first)) and all(valid(v, schema.get("items", True)) for v in value[len(first) :])
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return True


def _list(value):
    return value if isinstance(value, list) else [value]


def _is(value, kind):
    if kind in ("number", "integer"):
        return isinstance(value, (int, float) if kind == "number" else int) and not isinstance(value, bool)
    return isinstance(value, _TYPES[kind])


def tokens_of(line):
    """The tokens of a tok line, each as a dict with absolute numbers."""
    if not isinstance(line["a"], list):
        return [line]
    many = len(line["a"])
    columns = {k: list(v) if isinstance(v, list) else [v] * many for k, v in line.items() if k != "t"}
    for key in ("a", "i", "s"):
        if isinstance(line.get(key), list):
            total, column = 0, columns[key]
            for n in range(many):
                total += column[n]
                column[n] = total
    assert all(len(c) == many for c in columns.values()), line
    return [dict({k: c[n] for k, c in columns.items()}, t="tok") for n in range(many)]


class Reader:
    """A connection to an emitter. problems lists errors in the received lines."""

    def __init__(self, address, timeout=20):
        scheme, _, rest = address.partition(":")
        if scheme == "unix":
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(timeout)
            self.sock.connect(rest)
        else:
            host, _, port = rest.rpartition(":")
            self.sock = socket.create_connection((host.strip("[]"), int(port)), timeout)
        self.file = self.sock.makefile("rb")
        self.lines = []
        self.problems = []
        self.came = {}  # kind -> events that are not part of the state
        self.lost = {}
        self.tokens = {}  # request -> tokens, of state and events alike
        self.syncing = False
        self.bytes = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()
        self.sock.close()

    def send(self, message):
        self.sock.sendall(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    def next(self):
        """The next line as a dict, None at the end of the connection."""
        raw = self.file.readline()
        if not raw:
            return None
        self.bytes += len(raw)
        line = json.loads(raw)
        if not raw.endswith(b"\n") or not valid(line, SCHEMA):
            self.problems.append(raw[:300])
        self._account(line)
        self.lines.append(line)
        return line

    def _account(self, line):
        t = line["t"]
        if t == "sync":
            self.syncing, self.tokens = True, {}
        elif t == "synced":
            self.syncing = False
        elif t in KINDS and not self.syncing:
            self.came[KINDS[t]] = self.came.get(KINDS[t], 0) + (len(line["a"]) if isinstance(line["a"], list) else 1)
        elif t == "lost":
            self.lost = line["by"]
        if t in ("lost", "clock") and sum(self.came.values()) + sum(self.lost.values()) != line["q"]:
            self.problems.append("%s came and %s were lost, but q is %d" % (self.came, self.lost, line["q"]))
        if t == "tok":
            for token in tokens_of(line):
                self.tokens[token["r"]] = self.tokens.get(token["r"], 0) + token.get("n", 1)

    def until(self, wanted):
        """Reads up to a line for which wanted is true, or of that type, and returns it; None at the end."""
        while True:
            line = self.next()
            if line is None or (line["t"] == wanted if isinstance(wanted, str) else wanted(line)):
                return line

    def rest(self):
        """Reads to the end."""
        self.until(lambda line: False)
        return self.lines

    def of(self, t):
        return [line for line in self.lines if line["t"] == t]
