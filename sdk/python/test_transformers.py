"""Runs the hooks in tiny Hugging Face transformers models with random weights, and compares the routers' picks with those computed from
their inputs. Skipped if transformers is not installed."""

import unittest

import llmtop
from test_llmtop import Case

try:
    import torch
    from torch.nn import functional
    from transformers import AutoConfig, AutoModelForCausalLM
except ImportError as e:
    raise unittest.SkipTest("%s is not installed: test_torch.py has modules of the same structure" % e.name) from None

EXPERTS, USED, LAYERS, GROUPS = 8, 2, 3, 4
BASE = dict(
    vocab_size=64, hidden_size=32, intermediate_size=32, moe_intermediate_size=16, num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=4,
    head_dim=8, max_position_embeddings=128, num_experts_per_tok=USED, bos_token_id=2, eos_token_id=1, pad_token_id=0,
)  # fmt: skip
LATENT = dict(kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8)
GROUPED = dict(n_routed_experts=EXPERTS, n_shared_experts=1, n_group=GROUPS, topk_group=2, first_k_dense_replace=1)
FAMILIES = {  # model type -> additional configuration
    "mixtral": dict(num_local_experts=EXPERTS),
    "qwen2_moe": dict(num_experts=EXPERTS, shared_expert_intermediate_size=16),
    "qwen3_moe": dict(num_experts=EXPERTS),
    "olmoe": dict(num_experts=EXPERTS),
    "deepseek_v3": dict(GROUPED, **LATENT),
    "glm4_moe": GROUPED,
    "gpt_oss": dict(num_local_experts=EXPERTS),
    "granitemoe": dict(num_local_experts=EXPERTS),
}


def chosen(router, states):
    """The experts that a router must pick for the given states."""
    linear = getattr(router, "layer", router)  # of Granite-MoE before version 5
    states = states.reshape(-1, states.shape[-1])
    logits = functional.linear(states.float(), linear.weight.float(), getattr(linear, "bias", None))
    if not hasattr(router, "e_score_correction_bias"):
        return logits.topk(USED, -1)[1]
    scores = logits.sigmoid() + router.e_score_correction_bias
    best = scores.view(-1, GROUPS, EXPERTS // GROUPS).topk(2, -1)[0].sum(-1).topk(2, -1)[1]
    mask = torch.zeros(len(scores), GROUPS).scatter_(1, best, 1).repeat_interleave(EXPERTS // GROUPS, -1)
    return scores.masked_fill(mask == 0, 0.0).topk(USED, -1)[1]


class Transformers(Case):
    def build(self, family):
        """Returns a model, and for each router a list that receives its picks in each pass."""
        torch.manual_seed(3)
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **dict(BASE, **FAMILIES[family]))).eval()
        picked = {}
        for layer, router, _ in llmtop._routers(model):
            picks = picked[layer] = []
            router.register_forward_pre_hook(lambda module, args, picks=picks: picks.append(chosen(module, args[0])))
        return model, picked

    def counts(self, picked, passes):
        """Counts of the picks in passes, given as pairs of pass number and token mask."""
        total = torch.zeros(LAYERS, EXPERTS, dtype=torch.long)
        for layer, picks in picked.items():
            for n, mask in passes:
                total[layer] += torch.bincount(picks[n][mask].flatten(), minlength=EXPERTS)
        return total.flatten().tolist()

    def test_counts_are_those_of_the_model(self):
        for family in FAMILIES:
            with self.subTest(family=family):
                model, picked = self.build(family)
                self.assertEqual(sorted(picked), list(range(1 if "first_k_dense_replace" in FAMILIES[family] else 0, LAYERS)))
                top = self.serve()
                r = self.reader(top)
                watch = top.watch(model)
                ids = torch.tensor([[0, 0, 5, 6], [7, 8, 9, 10]])
                with watch.streamer(max_new_tokens=4) as s:
                    model.generate(ids, attention_mask=(ids != 0).long(), max_new_tokens=4, suppress_tokens=[0, 1], do_sample=False, streamer=s)
                watch.close()
                top.close()
                r.rest()
                self.right(r)
                self.assertEqual(r.of("log"), [])
                last, every = r.of("experts")[-1], torch.ones(2, dtype=torch.bool)
                self.assertEqual(last["p"], self.counts(picked, [(0, (ids != 0).flatten())]))
                self.assertEqual(last["d"], self.counts(picked, [(n, every) for n in (1, 2, 3)]))
                self.assertEqual((last["layers"], last["experts"], last["used"], last["pt"], last["dt"]), (LAYERS, EXPERTS, USED, 6, 6))
                self.assertEqual([(q["in"], q.get("pad"), q["out"]) for q in r.of("req") if q["state"] == "finished"], [(2, 2, 4), (4, 0, 4)])
                self.assertEqual([s["stage"] for s in r.of("stage")], ["prompt", "first_token"] * 2)
                self.assertEqual(r.of("model")[-1]["architecture"], family)


if __name__ == "__main__":
    unittest.main()
