//go:build !nollama && (linux || darwin) && (amd64 || arm64)

package llama

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/peer"
)

const (
	benchPrompt = 512 // tokens of llama-bench's pp512: one batch
	benchTokens = 128 // of its tg128: one at a time, from an empty context on
	benchRepeat = 3   // of each in a round
)

// rates are samples of tokens/s as llama-bench defines them: those of a prompt over the time in which it is computed, and those of a text over
// the time in which each is computed after the other, none of them sampled, with an empty context at first.
type rates struct{ prompt, text []float64 }

// llamaBench runs the real llama-bench on the built-in model.
func llamaBench(tb testing.TB, threads int) (r rates) {
	tb.Helper()
	c := exec.Command(peer.Path(tb, peer.LlamaBenchEnv), "-m", demoFile(tb), "-p", strconv.Itoa(benchPrompt), "-n", strconv.Itoa(benchTokens),
		"-r", strconv.Itoa(benchRepeat), "-t", strconv.Itoa(threads), "-o", "json")
	out, err := c.Output()
	if err != nil {
		tb.Fatal(err)
	}
	var tests []struct {
		Prompt  int       `json:"n_prompt"`
		Text    int       `json:"n_gen"`
		Samples []float64 `json:"samples_ts"`
	}
	if err := json.Unmarshal(out, &tests); err != nil {
		tb.Fatal(err)
	}
	for _, t := range tests {
		switch {
		case t.Prompt == benchPrompt && t.Text == 0:
			r.prompt = t.Samples
		case t.Prompt == 0 && t.Text == benchTokens:
			r.text = t.Samples
		}
	}
	if len(r.prompt) != benchRepeat || len(r.text) != benchRepeat {
		tb.Fatalf("llama-bench says %s", out)
	}
	return r
}

// promptRate computes a prompt as llama-bench does.
func (e *Engine) promptRate(tb testing.TB) float64 {
	b := runtime.Batch{Rows: make([]runtime.Row, benchPrompt)}
	for i := range b.Rows {
		b.Rows[i] = runtime.Row{Token: benchToken(i), Pos: int32(i), Prompt: true, Logits: i == benchPrompt-1}
	}
	e.Release(0)
	began := time.Now()
	if err := e.Forward(&b); err != nil {
		tb.Fatal(err)
	}
	return benchPrompt / time.Since(began).Seconds()
}

// textRate computes a text as llama-bench does.
func (e *Engine) textRate(tb testing.TB) float64 {
	b := runtime.Batch{Rows: make([]runtime.Row, 1)}
	e.Release(0)
	began := time.Now()
	for i := range benchTokens {
		b.Rows[0] = runtime.Row{Token: benchToken(i), Pos: int32(i), Logits: true}
		if err := e.Forward(&b); err != nil {
			tb.Fatal(err)
		}
	}
	return benchTokens / time.Since(began).Seconds()
}

// benchToken is some token: llama-bench's are random.
func benchToken(i int) int32 { return int32(1 + i*7919%4000) }

// benched does with an engine what llama-bench does, the runs that warm up included.
func (e *Engine) benched(tb testing.TB) (r rates) {
	e.promptRate(tb)
	for range benchRepeat {
		r.prompt = append(r.prompt, e.promptRate(tb))
	}
	e.textRate(tb)
	for range benchRepeat {
		r.text = append(r.text, e.textRate(tb))
	}
	return r
}

// processors is the time that this process has spent on processors.
func processors(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestAgreesWithLlamaBench: for the same prompt and the same number of tokens one at a time the engine keeps its one thread as busy as llama-bench
// does. What counts is time on the processor, of which a busy machine takes little; how near the speeds are is said by BenchmarkLlamaBench.
func TestAgreesWithLlamaBench(t *testing.T) {
	path := peer.Path(t, peer.LlamaBenchEnv)
	e := openDemo(t, Options{Context: 1024})
	theirs := func(prompt, text int) time.Duration { // for ten runs: what thirteen take longer than three, and than the start
		var took [2]time.Duration
		for i, repeat := range []string{"3", "13"} {
			c := exec.Command(path, "-m", demoFile(t), "-p", strconv.Itoa(prompt), "-n", strconv.Itoa(text), "-r", repeat, "-t", "1")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			took[i] = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		}
		return took[1] - took[0]
	}
	ours := func(run func(testing.TB) float64) time.Duration {
		run(t) // warms up
		began := processors(t)
		for range 10 {
			run(t)
		}
		return processors(t) - began
	}
	for range 5 {
		prompt := float64(ours(e.promptRate)) / float64(theirs(benchPrompt, 0))
		text := float64(ours(e.textRate)) / float64(theirs(0, benchTokens))
		t.Logf("the engine's time over llama-bench's: pp%d %.3f, tg%d %.3f", benchPrompt, prompt, benchTokens, text)
		if max(prompt, text) < 1.25 && min(prompt, text) > 0.8 {
			return
		}
	}
	t.Error("in five tries the engine's time was never near llama-bench's")
}

// BenchmarkLlamaBench is the engine's speed over llama-bench's for the same file, on one thread, hooks off: the medians of rounds.
func BenchmarkLlamaBench(b *testing.B) {
	peer.Path(b, peer.LlamaBenchEnv)
	e := openDemo(b, Options{Context: 1024})
	var ratio, own rates
	for b.Loop() {
		for range 9 {
			theirs, ours := llamaBench(b, 1), e.benched(b)
			prompt, text := median(ours.prompt), median(ours.text)
			own = rates{append(own.prompt, prompt), append(own.text, text)}
			ratio = rates{append(ratio.prompt, prompt/median(theirs.prompt)), append(ratio.text, text/median(theirs.text))}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratio.prompt), "pp-ratio")
	b.ReportMetric(median(ratio.text), "tg-ratio")
	b.ReportMetric(median(own.prompt), "pp-tok/s")
	b.ReportMetric(median(own.text), "tg-tok/s")
}
