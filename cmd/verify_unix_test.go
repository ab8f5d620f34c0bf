//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

// TestVerifyWithLlamaBench runs the real llama-bench, which has no faster device here.
func TestVerifyWithLlamaBench(t *testing.T) {
	out, notes, err := llmtop(t, "experts", "verify", picked(t), "--model", demoModel, "--budget", "25%", "--repeats", "2", "-n", "32",
		"--llama-bench", peer.Path(t, peer.LlamaBenchEnv))
	if err != nil {
		t.Fatalf("%v: %s", err, notes)
	}
	for _, want := range []string{"faster device  none", "--n-cpu-moe 8\n", "--n-cpu-moe 6\n", "times as fast with the plan", "no faster device here"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// fakeBench writes a llama-bench with a device, on which the experts of two layers double the speed.
func fakeBench(t *testing.T, lines string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "llama-bench")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+lines+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

const deviceBench = `case "$*" in
--list-devices) printf 'Available devices:\n  TEST0: a device\033[31m\n  TEST1: another\n' ;;
*"-n 7 "*"-t 1 "*"--n-cpu-moe 8") echo '[{"avg_ts": 10.5}]' ;;
*"-n 7 "*"-t 1 "*"--n-cpu-moe 6") echo '[{"avg_ts": 21}]' ;;
*) exit 9 ;;
esac`

// TestVerifyWithDevice checks the arguments and the numbers of both sides.
func TestVerifyWithDevice(t *testing.T) {
	out, notes, err := llmtop(t, "experts", "verify", picked(t), "--model", demoModel, "--budget", "25%", "--repeats", "3", "-n", "7", "--threads", "1",
		"--llama-bench", fakeBench(t, deviceBench))
	if err != nil {
		t.Fatalf("%v: %s", err, notes)
	}
	for _, want := range []string{"faster device  TEST0: a device", "10.5 tokens/s (10.5 to 10.5, 3 turns)", "21.0 tokens/s", "\n2.00 times as fast with the plan (2.00 to 2.00)\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestGainWords plants gains of three turns.
func TestGainWords(t *testing.T) {
	for want, c := range map[string]struct {
		device string
		gains  []float64
	}{
		"1.41 times as fast with the plan (1.35 to 1.42)":                                                    {"GPU", []float64{1.41, 1.35, 1.42}},
		"0.700 times as fast with the plan (0.690 to 0.710)":                                                 {"GPU", []float64{0.7, 0.71, 0.69}},
		"1.01 times as fast with the plan (0.980 to 1.02): no difference that these turns show":              {"GPU", []float64{0.98, 1.01, 1.02}},
		"1.41 times as fast with the plan (0.990 to 1.42): no difference that these turns show":              {"GPU", []float64{1.41, 0.99, 1.42}},
		"1.01 times as fast with the plan (0.980 to 1.02): llama.cpp has no faster device here, so the":      {"", []float64{0.98, 1.01, 1.02}},
		"0.700 times as fast with the plan (0.690 to 0.710): llama.cpp has no faster device here, but store": {"", []float64{0.7, 0.71, 0.69}},
	} {
		if got := gainWords(c.device, c.gains); !strings.HasPrefix(got, want) || c.device != "" && got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	file := picked(t)
	for want, c := range map[string]struct {
		bench string
		args  []string
		usage bool
	}{
		"add --budget 8GB":           {deviceBench, nil, true},
		"--repeats 0":                {deviceBench, []string{"--budget", "25%", "--repeats", "0"}, true},
		"name it with --llama-bench": {"", []string{"--budget", "25%", "--llama-bench", "/nowhere/llama-bench"}, true},
		"add --model FILE.gguf":      {deviceBench, []string{"--budget", "25%", "--model", ""}, true},
		"cannot load the model":      {"echo first >&2; echo cannot load the model >&2; exit 1", []string{"--budget", "25%"}, false},
		"no speed in it":             {"echo '[{}]'", []string{"--budget", "25%"}, false},
		"read answer of":             {"echo not JSON", []string{"--budget", "25%"}, false},
	} {
		_, _, err := llmtop(t, append([]string{"experts", "verify", file, "--model", demoModel, "--llama-bench", fakeBench(t, c.bench)}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), want) || exit.IsUsage(err) != c.usage {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// FuzzLlamaBench checks that no answer of llama-bench panics, or has a speed that no engine can have.
func FuzzLlamaBench(f *testing.F) {
	f.Add([]byte(`[{"avg_ts": 10.5}]`))
	f.Add([]byte("Available devices:\n  (none)\n"))
	f.Add([]byte("devices:\n  A: b\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if v, err := benchSpeed(raw); err == nil && !(v > 0) {
			t.Errorf("%v tokens/s", v)
		}
		if d := firstDevice(raw); strings.ContainsAny(d, "\x1b\n") {
			t.Errorf("device %q", d)
		}
	})
}
