"""A small mixture of experts that really computes, in plain Python, for the engines of README.md. toy.py FOLDER writes one with
random weights."""

import itertools
import json
import math
import os
import random
import struct
import sys

LAYERS, EXPERTS, USED, WIDTH, WORDS, CONTEXT = 2, 4, 2, 12, 64, 128


def times(m, x):
    return [sum(a * b for a, b in zip(row, x)) for row in m]


def softmax(x):
    most = max(x)
    e = [math.exp(v - most) for v in x]
    total = sum(e)
    return [v / total for v in e]


class Cache(list):
    """Keys and values of a sequence in a layer."""


class Layer:
    def __init__(self, weights, n):
        at = "model.layers.%d." % n
        self.q, self.k, self.v, self.o = (weights["%sself_attn.%s_proj.weight" % (at, p)] for p in "qkvo")
        self.gate = weights[at + "mlp.gate.weight"]
        self.up, self.down = ([weights["%smlp.experts.%d.%s_proj.weight" % (at, e, p)] for e in range(EXPERTS)] for p in ("up", "down"))

    def attention(self, states, caches):
        """caches: that of all states, or of each."""
        out = []
        for x, cache in zip(states, itertools.repeat(caches) if isinstance(caches, Cache) else caches):
            cache.append((times(self.k, x), times(self.v, x)))
            q = times(self.q, x)
            weights = softmax([sum(a * b for a, b in zip(q, k)) / math.sqrt(WIDTH) for k, _ in cache])
            mixed = [sum(w * v[n] for w, (_, v) in zip(weights, cache)) for n in range(WIDTH)]
            out.append([a + b for a, b in zip(x, times(self.o, mixed))])
        return out

    def router(self, states):
        logits = [times(self.gate, x) for x in states]
        picked = [sorted(range(EXPERTS), key=lambda e: -row[e])[:USED] for row in logits]
        return picked, [softmax([row[e] for e in of]) for row, of in zip(logits, picked)]

    def experts(self, states, picked, weights):
        out = []
        for x, of, shares in zip(states, picked, weights):
            for e, share in zip(of, shares):
                hidden = [max(h, 0) for h in times(self.up[e], x)]
                x = [a + share * b for a, b in zip(x, times(self.down[e], hidden))]
            out.append(x)
        return out


CONFIG = {"model_type": "toy_moe", "torch_dtype": "float32", "num_hidden_layers": LAYERS, "hidden_size": WIDTH, "num_attention_heads": 1,
          "num_key_value_heads": 1, "vocab_size": WORDS, "num_experts": EXPERTS, "num_experts_per_tok": USED, "moe_intermediate_size": 2 * WIDTH,
          "max_position_embeddings": CONTEXT}  # fmt: skip


def shapes():
    yield "model.embed_tokens.weight", WORDS, WIDTH
    for n in range(LAYERS):
        at = "model.layers.%d." % n
        for p in "qkvo":
            yield "%sself_attn.%s_proj.weight" % (at, p), WIDTH, WIDTH
        yield at + "mlp.gate.weight", EXPERTS, WIDTH
        for e in range(EXPERTS):
            yield "%smlp.experts.%d.up_proj.weight" % (at, e), 2 * WIDTH, WIDTH
            yield "%smlp.experts.%d.down_proj.weight" % (at, e), WIDTH, 2 * WIDTH
    yield "lm_head.weight", WORDS, WIDTH


def write(folder):
    """Writes a model with random weights: config.json and model.safetensors."""
    os.makedirs(folder, exist_ok=True)
    random.seed(1)
    header, data = {}, bytearray()
    for name, rows, columns in shapes():
        began = len(data)
        data += struct.pack("<%df" % (rows * columns), *(random.gauss(0, 1 / math.sqrt(columns)) for _ in range(rows * columns)))
        header[name] = {"dtype": "F32", "shape": [rows, columns], "data_offsets": [began, len(data)]}
    header = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(CONFIG, f)


def read(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    for name, about in header.items():
        rows, columns = about["shape"]
        values = struct.unpack_from("<%df" % (rows * columns), data, about["data_offsets"][0])
        yield name, [list(values[r * columns : (r + 1) * columns]) for r in range(rows)]


class Toy:
    """The model in a folder."""

    def __init__(self, folder):
        weights = dict(read(os.path.join(folder, "model.safetensors")))
        self.embedding, self.output = weights["model.embed_tokens.weight"], weights["lm_head.weight"]
        self.layers = [Layer(weights, n) for n in range(LAYERS)]
        self.context = CONTEXT
        self.kv_bytes = 2 * LAYERS * WIDTH * 8  # of a token

    def tokenize(self, text):
        return [ord(c) % WORDS for c in text]

    def piece(self, token):
        return chr(64 + token)

    def new_cache(self):
        return [Cache() for _ in self.layers]

    def embed(self, ids):
        return [self.embedding[i] for i in ids]

    def head(self, state):
        return times(self.output, state)

    def sample(self, logits):
        """A token and its log probability."""
        probabilities = softmax(logits)
        token = random.choices(range(WORDS), probabilities)[0]
        return token, math.log(probabilities[token])

    def forward(self, ids, cache):
        """A pass: the next token."""
        x = self.embed(ids)
        for layer, of_layer in zip(self.layers, cache):
            x = layer.attention(x, of_layer)
            x = layer.experts(x, *layer.router(x))
        return self.sample(self.head(x[-1]))[0]


if __name__ == "__main__":
    write(sys.argv[1])
