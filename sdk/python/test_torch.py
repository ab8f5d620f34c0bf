"""Runs the hooks in torch, on tiny mixtures of experts that really compute: routers, experts, a cache, sampling. Modules have the
names, the paths and the call shapes of those of transformers, and choose by the same rules; test_transformers.py has the
real ones. Skipped where torch is not installed."""

import types
import unittest

import llmtop
from test_llmtop import Case

try:
    import torch
    from torch import nn
except ImportError:
    raise unittest.SkipTest("torch is not installed: the hooks are tested against stand-ins only") from None

EXPERTS, USED, LAYERS, WIDTH, WORDS, EOS, PAD = 8, 2, 4, 16, 50, 1, 0
GROUPS, GROUPS_USED = 4, 2


def likeliest(router, logits):
    return torch.topk(torch.softmax(logits.float(), -1), USED, dim=-1)


def by_groups(router, logits):
    """DeepSeek-V3's choice: the best experts, in any order, of the groups with the best pair of experts."""
    scores = logits.float().sigmoid() + router.bias
    best = scores.view(-1, GROUPS, EXPERTS // GROUPS).topk(2, -1)[0].sum(-1).topk(GROUPS_USED, -1, sorted=False)[1]
    mask = torch.zeros(len(scores), GROUPS).scatter_(1, best, 1).repeat_interleave(EXPERTS // GROUPS, -1)
    return scores.masked_fill(mask == 0, 0.0).topk(USED, -1, sorted=False)


class Router(nn.Module):
    """Returns its output in the order of its family, and stores its choice in chosen."""

    def __init__(self):
        super().__init__()
        self.num_experts = EXPERTS
        self.weight = nn.Parameter(torch.randn(EXPERTS, WIDTH))
        self.bias = nn.Parameter(torch.randn(EXPERTS) / 10)

    def forward(self, states):
        logits = nn.functional.linear(states.reshape(-1, WIDTH), self.weight)
        weights, self.chosen = self.choose(logits)
        return self.order(logits, weights, self.chosen)


def logits_weights_indices(router, logits, weights, indices):
    return logits, weights, indices


def indices_weights_logits(router, logits, weights, indices):
    return indices, weights, logits


def indices_weights(router, logits, weights, indices):
    return indices, weights


def scores_indices(router, logits, weights, indices):
    return torch.zeros(logits.shape).scatter_(1, indices, weights.float()), indices


def scores_logits(router, logits, weights, indices):
    return torch.zeros(logits.shape).scatter_(1, indices, weights.float()), logits


def logits_alone(router, logits, weights, indices):
    return logits


def gating(router, logits, weights, indices):
    """Granite-MoE before version 5: experts of all tokens in order, their tokens, weights, tokens of each expert, logits."""
    order = indices.flatten().sort(0)[1]
    sizes = torch.bincount(indices.flatten(), minlength=EXPERTS).tolist()
    return order, order.div(USED, rounding_mode="trunc"), weights.flatten()[order], sizes, logits


FAMILIES = [  # class, block, name, choice, order of the output, dense layers
    ("MixtralTopKRouter", "mlp", "gate", likeliest, logits_weights_indices, 0),
    ("Linear", "block_sparse_moe", "gate", likeliest, logits_alone, 0),  # Mixtral before version 5
    ("Qwen2MoeTopKRouter", "mlp", "gate", likeliest, logits_weights_indices, 0),
    ("Qwen3MoeTopKRouter", "mlp", "gate", likeliest, logits_weights_indices, 0),
    ("Linear", "mlp", "gate", likeliest, logits_alone, 0),  # Qwen2-MoE, Qwen3-MoE and OLMoE before version 5
    ("OlmoeTopKRouter", "mlp", "gate", likeliest, logits_weights_indices, 0),
    ("DeepseekV3TopkRouter", "mlp", "gate", by_groups, logits_weights_indices, 1),
    ("DeepseekV3TopkRouter", "mlp", "gate", by_groups, indices_weights, 1),
    ("DeepseekV3TopkRouter", "mlp", "gate", by_groups, logits_alone, 1),  # the block chooses
    ("Glm4MoeTopkRouter", "mlp", "gate", by_groups, logits_weights_indices, 1),
    ("GptOssTopKRouter", "mlp", "router", likeliest, logits_weights_indices, 0),
    ("GptOssTopKRouter", "mlp", "router", likeliest, scores_indices, 0),
    ("GraniteMoeTopKRouter", "block_sparse_moe", "router", likeliest, indices_weights_logits, 0),
    ("GraniteMoeTopKGating", "block_sparse_moe", "router", likeliest, gating, 0),
    ("Llama4Router", "feed_forward", "router", likeliest, scores_logits, 0),
]


class Block(nn.Module):
    def __init__(self, family):
        super().__init__()
        kind, _, self.name, choice, order, _ = family
        setattr(self, self.name, type(kind, (Router,), {"choose": choice, "order": order})())
        self.experts = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) / WIDTH)
        self.picked = []  # the reference: the experts of each pass
        if choice is by_groups and order is logits_alone:
            self.n_group = GROUPS
            self.route_tokens_to_experts = lambda logits: by_groups(self.gate, logits)[::-1]

    def forward(self, states):
        router = getattr(self, self.name)
        router(states)
        self.picked.append(router.chosen.clone())
        flat = states.reshape(-1, WIDTH)
        out = sum(torch.einsum("ti,tio->to", flat, self.experts[router.chosen[:, k]]) for k in range(router.chosen.shape[1]))
        return states + out.reshape(states.shape)


class Model(nn.Module):
    """A state is the sum of all states so far, so that decoding with a cache depends on the previous tokens."""

    def __init__(self, family=FAMILIES[0]):
        super().__init__()
        torch.manual_seed(3)
        self.model = nn.Module()
        self.model.embed = nn.Embedding(WORDS, WIDTH)
        self.model.layers = nn.ModuleList(nn.Module() for _ in range(LAYERS))
        for n, layer in enumerate(self.model.layers):
            setattr(layer, family[1], Block(family) if n >= family[5] else nn.Linear(WIDTH, WIDTH))
        self.name, self.dense = family[1], family[5]
        self.lm_head = nn.Linear(WIDTH, WORDS)
        with torch.no_grad():
            self.lm_head.bias[[EOS, PAD]] = -1e6  # neither is ever sampled
        self.config = types.SimpleNamespace(num_hidden_layers=LAYERS, num_experts_per_tok=USED, num_local_experts=EXPERTS, eos_token_id=EOS, pad_token_id=PAD, top_k=50)
        self.device = torch.device("cpu")

    def forward(self, input_ids=None, attention_mask=None, past=None):
        states = self.model.embed(input_ids)
        if attention_mask is not None:
            states = states * attention_mask[:, -states.shape[1] :, None].to(states.dtype)
        states = states.cumsum(1) + (0 if past is None else past)
        past = states[:, -1:]
        for layer in self.model.layers:
            states = getattr(layer, self.name)(states)
        return self.lm_head(states[:, -1]), past

    def generate(self, input_ids, attention_mask, max_new_tokens, streamer, ends={}):
        """The loop of transformers: ended rows get padding. ends: the step at which a row samples its end token."""
        streamer.put(input_ids.cpu())
        ids, past, going = input_ids, None, torch.ones(len(input_ids), dtype=torch.bool)
        for step in range(max_new_tokens):
            logits, past = self(input_ids=ids, attention_mask=attention_mask, past=past)
            sampled = logits.argmax(-1)
            for row in range(len(ids)):
                sampled[row] = EOS if ends.get(row) == step else sampled[row] if going[row] else PAD
            streamer.put(sampled.cpu())
            going &= sampled != EOS
            ids = sampled[:, None]
            attention_mask = torch.cat([attention_mask, attention_mask.new_ones(len(ids), 1)], 1)
            if not going.any():
                break
        streamer.end()

    def picks(self, passes, real=None):
        """The picks that the blocks made in some passes, as counts; real: token masks per pass."""
        counts = []
        for layer in self.model.layers:
            block, total = getattr(layer, self.name), torch.zeros(EXPERTS, dtype=torch.long)
            for n in passes if isinstance(block, Block) else ():
                picked = block.picked[n] if real is None else block.picked[n][real[n]]
                total += torch.bincount(picked.reshape(-1), minlength=EXPERTS)
            counts += total.tolist()
        return counts


MODES = (torch.no_grad, torch.inference_mode, torch.enable_grad)


class Torch(Case):
    def generate(self, model, mode=torch.no_grad, **options):
        """Generates six tokens each for two prompts, one of which has two padding tokens."""
        top = self.serve()
        r = self.reader(top)
        watch = top.watch(model)
        ids = torch.tensor([[PAD, PAD, 5, 6], [7, 8, 9, 10]])
        mask = (ids != PAD).long()
        with mode(), watch.streamer(max_new_tokens=6) as s:
            model.generate(ids, mask, 6, s, **options)
        watch.close()
        top.close()
        r.rest()
        self.right(r)
        self.assertEqual(r.of("log"), [])
        return r, mask.bool().reshape(-1)

    def test_counts_are_those_of_the_model(self):
        for family in FAMILIES:
            for mode in MODES:
                with self.subTest(family=family, mode=mode.__name__):
                    model = Model(family)
                    r, mask = self.generate(model, mode)
                    last = r.of("experts")[-1]
                    self.assertEqual(last["p"], model.picks([0], [mask]))
                    self.assertEqual(last["d"], model.picks(range(1, 6)))
                    self.assertEqual((last["layers"], last["experts"], last["used"], last["pt"], last["dt"]), (LAYERS, EXPERTS, USED, 6, 10))
                    self.assertEqual(sum(last["p"]), 6 * USED * (LAYERS - family[5]))
                    self.assertEqual([(q["why"], q["in"], q.get("pad"), q["out"]) for q in r.of("req") if q["state"] == "finished"],
                                     [("length", 2, 2, 6), ("length", 4, 0, 6)])  # fmt: skip

    def test_rows_that_have_ended_do_not_count(self):
        model = Model()
        r, _ = self.generate(model, ends={0: 2})
        going = [torch.tensor([n <= 2, True]) for n in range(6)]
        self.assertEqual(r.of("experts")[-1]["d"], model.picks(range(1, 6), going))
        self.assertEqual(r.of("experts")[-1]["dt"], 2 + 5)
        self.assertEqual([(q["why"], q["out"]) for q in r.of("req") if q["state"] == "finished"], [("stop", 3), ("length", 6)])

    def test_passes_of_all_lengths_are_counted(self):
        """The picks of many passes are counted together, and those of a long pass layer by layer."""
        self.addCleanup(setattr, llmtop._TorchCounts, "KEPT", llmtop._TorchCounts.KEPT)
        for kept, mode in zip((0, 300, 4000, 1 << 16), MODES + MODES[:1]):
            with self.subTest(kept=kept, mode=mode.__name__), mode():
                llmtop._TorchCounts.KEPT = kept
                model, generator = Model(), torch.Generator().manual_seed(kept)
                watch = self.serve("tcp:127.0.0.1:0").watch(model)
                most = 0
                for n in range(60):
                    rows, columns = 1 + n % 3, (1, 1, 7, 1, 40)[n % 5]
                    model(input_ids=torch.randint(2, WORDS, (rows, columns), generator=generator))
                    waiting = watch._counts.kept.values()
                    most = max(most, sum(i.numel() for passes in waiting for indices, _ in passes for i in indices))
                self.assertLessEqual(most, kept)
                prompt, decode = watch._counts.lists()
                self.assertEqual(prompt, model.picks([n for n in range(60) if n % 5 in (2, 4)]))
                self.assertEqual(decode, model.picks([n for n in range(60) if n % 5 not in (2, 4)]))

    def test_layers_may_use_different_numbers_of_experts(self):
        model = Model()
        model.model.layers[2].mlp.gate.choose = lambda logits: torch.topk(logits, 1)
        watch = self.serve().watch(model)
        for _ in range(3):
            model(input_ids=torch.tensor([[4, 5], [6, 7]]))
        self.assertEqual(watch._counts.lists()[0], model.picks(range(3)))

    def test_index_out_of_range_is_ignored(self):
        model = Model()
        model.model.layers[1].mlp.gate.order = lambda logits, weights, indices: (logits, weights, indices * 0 + EXPERTS)
        model.model.layers[2].mlp.gate.order = lambda logits, weights, indices: (logits, weights, indices * 0 - 1)
        watch = self.serve().watch(model)
        model(input_ids=torch.tensor([[4, 5]]))
        counts, _ = watch._counts.lists()
        self.assertEqual(counts[EXPERTS : 3 * EXPERTS], [0] * (2 * EXPERTS))
        self.assertEqual(sum(counts), 2 * USED * (LAYERS - 2))

    def test_half_precision_and_picks_of_tokens(self):
        model = Model().to(torch.bfloat16)
        top = self.serve()
        r = self.reader(top)
        watch = top.watch(model)
        watch.on = {"picks", "experts"}
        with torch.no_grad(), watch.streamer() as s:
            model.generate(torch.tensor([[7, 8, 9, 10], [11, 12, 13, 14]]), torch.ones(2, 4, dtype=torch.long), 3, s)
        top.close()
        r.rest()
        self.right(r)
        blocks = [layer.mlp for layer in model.model.layers]
        want = [[e for b in blocks for e in b.picked[n].view(2, -1, USED)[row, -1].tolist()] for n in range(3) for row in range(2)]
        self.assertEqual([t["e"] for t in r.of("tok")], want)

    def test_picks_of_an_engine(self):
        """Tensors, arrays and lists, of one token and of many, in buffers that the engine uses again."""
        top = self.serve(model={"layers": LAYERS, "experts": EXPERTS, "experts_used": USED})
        r = self.reader(top)
        want = {"prompt": torch.zeros(LAYERS, EXPERTS, dtype=torch.int64), "decode": torch.zeros(LAYERS, EXPERTS, dtype=torch.int64)}
        kinds = [lambda ids: ids, lambda ids: ids.tolist(), lambda ids: ids.view(1, -1, USED), lambda ids: ids.to(torch.int32)]
        try:
            kinds.append(torch.Tensor.numpy)
            kinds[-1](torch.zeros(1))
        except RuntimeError:  # torch without numpy
            kinds.pop()
        tokens = {"prompt": 0, "decode": 0}
        buffer = torch.zeros(300, USED, dtype=torch.int64)
        for n, kind in enumerate(kinds * 3):
            for phase, rows in (("prompt", 300 if n % 2 else 7), ("decode", 1)):
                tokens[phase] += rows
                last = []
                with top.step(**{phase: rows}) as s:
                    for layer in range(LAYERS):
                        ids = buffer[:rows].random_(EXPERTS)
                        s.picks(layer, kind(ids))
                        want[phase][layer] += torch.bincount(ids.reshape(-1), minlength=EXPERTS)
                        last += sorted(ids[-1].tolist())
                self.assertEqual(s.picked(), last)
        top.close(timeout=10)
        r.rest()
        self.right(r)
        self.assertEqual(r.of("log"), [])
        picks = r.of("experts")[-1]
        self.assertEqual((picks["p"], picks["d"]), (want["prompt"].reshape(-1).tolist(), want["decode"].reshape(-1).tolist()))
        self.assertEqual((picks["pt"], picks["dt"]), (tokens["prompt"], tokens["decode"]))


if __name__ == "__main__":
    unittest.main()
