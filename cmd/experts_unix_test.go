//go:build unix

package cmd

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"

	"github.com/llmtop/llmtop/runtime/source/peer"
)

// demoModel is the file of the built-in model.
const demoModel = "../runtime/engine/native/demo/llmtop-demo-moe-q8_0.gguf"

// picked returns the report of a run of the built-in model.
func picked(t *testing.T) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "run.json")
	if _, notes, err := llmtop(t, "run", "--headless", "-n", "80", "-p", "Call me Ishmael.", "-p", "12 + 30 =", "--json", file); err != nil {
		t.Fatalf("%v: %s", err, notes)
	}
	return file
}

// planned returns what experts plan prints for the picks of a run of the built-in model.
func planned(t *testing.T, args ...string) (plan, notes string) {
	t.Helper()
	plan, notes, err := llmtop(t, append([]string{"experts", "plan", picked(t)}, args...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, notes)
	}
	return strings.TrimSpace(plan), notes
}

// TestLlamaServerAcceptsPlans starts a real llama.cpp with the arguments that experts plan prints: the first layers on the
// CPU, and other layers.
func TestLlamaServerAcceptsPlans(t *testing.T) {
	for want, args := range map[string][]string{"--n-cpu-moe 6": {"--model", demoModel}, "--override-tensor": {"--model", demoModel, "--batch", "8"}} {
		plan, notes := planned(t, append(args, "--for", "llamacpp", "--budget", "25%")...)
		if !strings.Contains(plan, want) || !strings.Contains(notes, "experts of 2 of 8 layers") || !strings.Contains(notes, "25 % of the recorded routing") {
			t.Errorf("%q with %q, want %q", plan, notes, want)
		}
		fields, err := shell.Fields(plan, nil)
		if err != nil {
			t.Fatal(err)
		}
		peer.LlamaServer(t, "", fields...)
	}
}

// TestPlanOfCounts checks the counts for SGLang and ktransformers: those of the report, in one pass.
func TestPlanOfCounts(t *testing.T) {
	for target, want := range map[string]string{"sglang": "a budget does not apply", "ktransformers": "32 of 128 experts on the faster device: 2.51 MB (budget 25%)"} {
		plan, notes := planned(t, "--for", target, "--budget", "25%", "--model", demoModel)
		var counts map[string][][][]uint64
		if err := json.Unmarshal([]byte(plan), &counts); err != nil || !strings.Contains(notes, want) {
			t.Fatalf("%s: %v: %q, want %q", target, err, notes, want)
		}
		passes := counts["logical_count"]
		if len(passes) != 1 || len(passes[0]) != 8 || slices.ContainsFunc(passes[0], func(row []uint64) bool { return len(row) != 16 || slices.Max(row) == 0 }) {
			t.Errorf("%s: %v", target, counts)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"must be llamacpp, ik_llama, ktransformers or sglang": {"x.json", "--for", "vllm"},
		"add --for llamacpp":       {"x.json", "--budget", "1GB"},
		"add --budget 8GB":         {"x.json", "--for", "llamacpp"},
		"--batch 0: must be 1":     {"x.json", "--for", "llamacpp", "--budget", "1GB", "--batch", "0"},
		"needs one report":         {},
		"no such file":             {"nothing.json", "--for", "sglang"},
		"share like 25% or a size": {"x.json", "--budget", "much"},
	} {
		if _, _, err := llmtop(t, append([]string{"experts", "plan"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
