"""Serves a saved page of vLLM's metrics on a port, with counters that grow by 1 % of their value per second, like a
server under constant load: server.py PORT FILE"""

import http.server
import sys
import time

text, start = open(sys.argv[2]).read().splitlines(), time.monotonic()
kinds = {line.split()[2]: line.split()[3] for line in text if line.startswith("# TYPE")}


def grows(name):
    base = name.rsplit("_", 1)[0]
    return kinds.get(name, kinds.get(base)) in ("counter", "histogram") or kinds.get(name + "_total") == "counter"


def page():
    factor = 1 + (time.monotonic() - start) / 100
    for line in text:
        name, _, value = line.rpartition(" ")
        moves = not line.startswith("#") and grows(name.split("{")[0])
        yield "%s %r" % (name, float(int(float(value) * factor)) if "_sum" not in name else float(value) * factor) if moves else line


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answers = {
            "/metrics": lambda: "\n".join(page()) + "\n",
            "/version": lambda: '{"version":"0.11.2"}',
            "/v1/models": lambda: '{"object":"list","data":[{"id":"Qwen/Qwen3-30B-A3B","object":"model","owned_by":"vllm","max_model_len":4096}]}',
        }
        body = answers.get(self.path.split("?")[0], lambda: "")().encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/plain; version=0.0.4" if self.path == "/metrics" else "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
