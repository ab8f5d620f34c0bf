//go:build !nollama && (linux || darwin) && (amd64 || arm64)

package llama

import (
	"math"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/peer"
)

const (
	benchPrompt = 512 // tokens of llama-bench's pp512: one batch
	benchTokens = 128 // tokens of its tg128: one at a time, from an empty context
	benchRepeat = 3   // repeats of each per round
)

// rates holds samples of tokens/s as llama-bench defines them: of a prompt, over its computation; of a text, over the
// computation of one token after another, without sampling and from an empty context.
type rates struct{ prompt, text []float64 }

// promptRate computes a prompt as llama-bench does.
func (e *Engine) promptRate(tb testing.TB) float64 {
	b := engine.Batch{Rows: make([]engine.Row, benchPrompt)}
	for i := range b.Rows {
		b.Rows[i] = engine.Row{Token: benchToken(i), Pos: int32(i), Prompt: true, Logits: i == benchPrompt-1}
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
	b := engine.Batch{Rows: make([]engine.Row, 1)}
	e.Release(0)
	began := time.Now()
	for i := range benchTokens {
		b.Rows[0] = engine.Row{Token: benchToken(i), Pos: int32(i), Logits: true}
		if err := e.Forward(&b); err != nil {
			tb.Fatal(err)
		}
	}
	return benchTokens / time.Since(began).Seconds()
}

// benchToken returns an arbitrary token: llama-bench's are random.
func benchToken(i int) int32 { return int32(1 + i*7919%4000) }

// benched runs llama-bench's steps on an engine, including the warm-up.
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

// processors returns the CPU time of this process.
func processors(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestAgreesWithLlamaBench: for the same prompt and the same number of single tokens, the engine uses about the CPU
// time of llama-bench on one thread: the least of three runs of each, in turns, depends little on the machine's load.
// BenchmarkLlamaBench compares speeds.
func TestAgreesWithLlamaBench(t *testing.T) {
	path := peer.Path(t, peer.LlamaBenchEnv)
	e := openDemo(t, Options{Context: 1024})
	theirs := func(prompt, text int) time.Duration { // of ten runs: thirteen less three, without the start
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
		run(t) // warm-up
		began := processors(t)
		for range 10 {
			run(t)
		}
		return processors(t) - began
	}
	ratio := func(run func(testing.TB) float64, prompt, text int) float64 {
		own, other := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
		for range 3 {
			own, other = min(own, ours(run)), min(other, theirs(prompt, text))
		}
		return float64(own) / float64(other)
	}
	prompt, text := ratio(e.promptRate, benchPrompt, 0), ratio(e.textRate, 0, benchTokens)
	t.Logf("the engine's time over llama-bench's: pp%d %.3f, tg%d %.3f", benchPrompt, prompt, benchTokens, text)
	if max(prompt, text) > 1.25 || min(prompt, text) < 0.8 {
		t.Error("the engine's time is not near llama-bench's")
	}
}

// BenchmarkLlamaBench measures the engine's speed divided by llama-bench's for the same file, on one thread, hooks off:
// medians over rounds.
func BenchmarkLlamaBench(b *testing.B) {
	peer.Path(b, peer.LlamaBenchEnv)
	e, model := openDemo(b, Options{Context: 1024}), demoFile(b)
	var ratio, own rates
	for b.Loop() {
		for range 9 {
			var theirs rates
			theirs.prompt, theirs.text = peer.LlamaBench(b, model, 1, benchPrompt, benchTokens, benchRepeat)
			ours := e.benched(b)
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
