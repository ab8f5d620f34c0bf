"""Runs the hooks in torch, on a tiny mixture of experts that really computes: routers, experts, a cache, sampling.
Its modules have the names and the call shapes of those of transformers. Skipped where torch is not installed."""

import types
import unittest

from test_llmtop import Case

try:
    import torch
    from torch import nn
except ImportError:
    raise unittest.SkipTest("torch is not installed: the hooks are tested against stand-ins only") from None

EXPERTS, USED, LAYERS, WIDTH, WORDS, EOS, PAD = 8, 2, 4, 16, 50, 1, 0


class MixtralTopKRouter(nn.Module):
    """(logits, weights, indices)"""

    def __init__(self):
        super().__init__()
        self.top_k, self.num_experts = USED, EXPERTS
        self.weight = nn.Parameter(torch.randn(EXPERTS, WIDTH))

    def forward(self, states):
        logits = nn.functional.linear(states.reshape(-1, WIDTH), self.weight)
        weights, indices = torch.topk(torch.softmax(logits.float(), -1), USED, dim=-1)
        return logits, weights / weights.sum(-1, keepdim=True), indices


class GraniteMoeTopKRouter(MixtralTopKRouter):
    """(indices, weights, logits)"""

    def forward(self, states):
        logits, weights, indices = super().forward(states)
        return indices, weights, logits


class GptOssTopKRouter(MixtralTopKRouter):
    """(scores, indices), as in older versions"""

    def forward(self, states):
        logits, weights, indices = super().forward(states)
        return torch.zeros_like(logits).scatter_(1, indices, weights), indices


class Block(nn.Module):
    def __init__(self, router, name):
        super().__init__()
        self.name = name
        setattr(self, name, router())
        self.experts = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) / WIDTH)
        self.picked = []  # what the test compares with: indices of each pass

    def forward(self, states):
        output = getattr(self, self.name)(states)
        indices = next(p for p in output if not p.is_floating_point())
        self.picked.append(indices.clone())
        flat = states.reshape(-1, WIDTH)
        out = sum(torch.einsum("ti,tio->to", flat, self.experts[indices[:, k]]) for k in range(USED))
        return states + out.reshape(states.shape)


class Layer(nn.Module):
    def __init__(self, router, block, name):
        super().__init__()
        setattr(self, block, Block(router, name))
        self.block = block

    def forward(self, states):
        return getattr(self, self.block)(states)


class Model(nn.Module):
    """A state is the sum of those before it and its own: enough of a cache that decoding one token at a time means something."""

    def __init__(self, router=MixtralTopKRouter, block="mlp", name="gate"):
        super().__init__()
        self.model = nn.Module()
        self.model.embed = nn.Embedding(WORDS, WIDTH)
        self.model.layers = nn.ModuleList(Layer(router, block, name) for _ in range(LAYERS))
        self.lm_head = nn.Linear(WIDTH, WORDS)
        self.config = types.SimpleNamespace(num_hidden_layers=LAYERS, num_experts_per_tok=USED, num_local_experts=EXPERTS, eos_token_id=EOS, pad_token_id=PAD)
        self.device = torch.device("cpu")

    def forward(self, input_ids=None, attention_mask=None, past=None):
        states = self.model.embed(input_ids)
        if attention_mask is not None:
            states = states * attention_mask[:, -states.shape[1] :, None].to(states.dtype)
        states = states.cumsum(1) + (0 if past is None else past)
        past = states[:, -1:]
        for layer in self.model.layers:
            states = layer(states)
        return self.lm_head(states[:, -1]), past

    def generate(self, input_ids, attention_mask, max_new_tokens, streamer):
        """The loop of transformers: rows that have ended are padded on."""
        streamer.put(input_ids.cpu())
        ids, past, going = input_ids, None, torch.ones(len(input_ids), dtype=torch.bool)
        for _ in range(max_new_tokens):
            logits, past = self(input_ids=ids, attention_mask=attention_mask, past=past)
            sampled = torch.where(going, logits.argmax(-1), torch.tensor(PAD))
            streamer.put(sampled.cpu())
            going &= sampled != EOS
            ids = sampled[:, None]
            attention_mask = torch.cat([attention_mask, attention_mask.new_ones(len(ids), 1)], 1)
            if not going.any():
                break
        streamer.end()

    def blocks(self):
        return [getattr(layer, layer.block) for layer in self.model.layers]


def bincounts(model, real):
    """The picks that the blocks have seen in the passes for which real has masks."""
    counts = []
    for block in model.blocks():
        kept = torch.cat([p[m] for p, m in zip(block.picked, real)])
        counts += torch.bincount(kept.reshape(-1), minlength=EXPERTS).tolist()
    return counts


class Torch(Case):
    def generate(self, model, mode, rows=2):
        top = self.serve()
        r = self.reader(top)
        watch = top.watch(model)
        ids = torch.tensor([[PAD, PAD, 5, 6], [7, 8, 9, 10]])[-rows:]
        mask = (ids != PAD).long()
        with mode(), watch.streamer() as s:
            model.generate(ids, mask, 6, s)
        watch.close()
        top.close()
        r.rest()
        self.right(r)
        self.assertEqual(r.of("log"), [])
        return r, watch, mask

    def test_counts_are_those_of_the_model(self):
        for router, block, name in ((MixtralTopKRouter, "mlp", "gate"), (GraniteMoeTopKRouter, "block_sparse_moe", "router"), (GptOssTopKRouter, "mlp", "router")):
            for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
                with self.subTest(router=router.__name__, mode=mode.__name__):
                    torch.manual_seed(3)
                    model = Model(router, block, name)
                    r, watch, mask = self.generate(model, mode)
                    last = r.of("experts")[-1]
                    everything = [mask.bool().reshape(-1)] + [torch.ones(2, dtype=torch.bool)] * (len(model.blocks()[0].picked) - 1)
                    if all(q["why"] == "length" for q in r.of("req") if q["state"] == "finished"):
                        decode = [torch.zeros(8, dtype=torch.bool)] + everything[1:]
                        self.assertEqual(last["d"], bincounts(model, decode))
                        self.assertEqual(last["dt"], 2 * 5)
                    self.assertEqual(last["p"], bincounts(model, everything[:1]))
                    self.assertEqual((last["pt"], last["used"], last["layers"]), (6, USED, LAYERS))
                    self.assertEqual(sum(last["p"]), 6 * USED * LAYERS)
                    self.assertEqual(sum(last["d"]), last["dt"] * USED * LAYERS)
                    self.assertEqual([q["pad"] for q in r.of("req") if q["state"] == "finished" and q["r"] == 1], [2])

    def test_rows_that_have_ended_do_not_count(self):
        torch.manual_seed(3)
        model = Model()
        with torch.no_grad():
            model.lm_head.bias[EOS] = 1e6  # each row ends with its first token
        r, watch, _ = self.generate(model, torch.no_grad)
        self.assertEqual(r.of("experts")[-1]["dt"], 0)
        self.assertEqual([(q["why"], q["out"]) for q in r.of("req") if q["state"] == "finished"], [("stop", 1)] * 2)

    def test_index_out_of_range_is_left_out(self):
        torch.manual_seed(3)
        model = Model()
        gate = model.model.layers[1].mlp.gate
        was = gate.forward
        gate.forward = lambda states: (*was(states)[:2], was(states)[2] * 0 + EXPERTS)
        watch = self.serve().watch(model)
        with self.assertRaises(IndexError), torch.no_grad():  # the model itself cannot use them
            model(input_ids=torch.tensor([[4, 5]]))
        model.model.layers[1].mlp.forward = lambda states: (gate(states), states)[1]
        with torch.no_grad():
            model(input_ids=torch.tensor([[4, 5]]))
        counts, _ = watch._counts.lists()
        self.assertEqual(counts[EXPERTS : 2 * EXPERTS], [0] * EXPERTS)
        self.assertEqual(sum(counts), 2 * USED * (LAYERS - 1))

    def test_half_precision_and_picks_of_tokens(self):
        torch.manual_seed(3)
        model = Model().to(torch.bfloat16)
        top = self.serve()
        r = self.reader(top)
        watch = top.watch(model)
        watch.on = {"picks", "experts"}
        with torch.no_grad(), watch.streamer() as s:
            model.generate(torch.tensor([[7, 8, 9, 10]]), torch.ones(1, 4, dtype=torch.long), 3, s)
        top.close()
        r.rest()
        self.right(r)
        want = [[e for b in model.blocks() for e in b.picked[n][-1].tolist()] for n in range(len(r.of("tok")))]
        self.assertEqual([t["e"] for t in r.of("tok")], want)


if __name__ == "__main__":
    unittest.main()
