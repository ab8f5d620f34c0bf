package native_test

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/native"
	"github.com/llmtop/llmtop/runtime/native/demo"
)

// computer is what both engines offer to a bare loop.
type computer interface {
	forward(tokens []int32, pos int) ([]float32, error)
	reset()
}

// ours drives the native engine as libllama is driven.
type ours struct {
	engine *native.Engine
	batch  runtime.Batch
}

func (o *ours) forward(tokens []int32, pos int) ([]float32, error) {
	o.batch.Rows = o.batch.Rows[:0]
	for i, token := range tokens {
		o.batch.Rows = append(o.batch.Rows, runtime.Row{
			Token: token, Pos: int32(pos + i), Prompt: len(tokens) > 1, Logits: i == len(tokens)-1,
		})
	}
	if err := o.engine.Forward(&o.batch); err != nil {
		return nil, err
	}
	return o.batch.Logits[0], nil
}

func (o *ours) reset() { o.engine.Release(0) }

const (
	peerPrefill = 256 // tokens of the prompt
	peerDecode  = 128 // tokens generated greedily after it
	peerRounds  = 9   // measurements of each engine, interleaved

	// peerRest lets the threads of the engine that was measured before fall asleep: libllama's poll for work a while after a batch.
	peerRest = 200 * time.Millisecond
)

// speed measures one engine once: prefill, the second of two, and decode in tokens/s, as llama-bench defines them but for the logits
// of every decoded token being read.
func speed(b *testing.B, c computer, prompt []int32) (prefill, decode float64) {
	b.Helper()
	var logits []float32
	var err error
	time.Sleep(peerRest)
	for range 2 { // the first one wakes the threads
		c.reset()
		began := time.Now()
		if logits, err = c.forward(prompt, 0); err != nil {
			b.Fatal(err)
		}
		prefill = float64(len(prompt)) / time.Since(began).Seconds()
	}
	next := []int32{argmax(logits)}
	began := time.Now()
	for i := range peerDecode {
		if logits, err = c.forward(next, len(prompt)+i); err != nil {
			b.Fatal(err)
		}
		next[0] = argmax(logits)
	}
	return prefill, peerDecode / time.Since(began).Seconds()
}

// BenchmarkPeer compares the native engine with libllama on the built-in model, on this machine and in this run: the same prompt,
// measurements interleaved, medians of the rounds' ratios. libllama runs with one thread and with as many as the native engine, with its
// own choice of flash attention and without, and each ratio is to the fastest of the four: which one that is differs between prefill and
// decode, and small models do not always gain from threads there.
func BenchmarkPeer(b *testing.B) {
	path := filepath.Join(b.TempDir(), demo.Name)
	if err := os.WriteFile(path, demo.Model(), 0o600); err != nil {
		b.Fatal(err)
	}
	threads := goruntime.GOMAXPROCS(0)
	var peers []*libllama
	for _, flash := range []int32{flashAuto, flashOff} {
		peers = append(peers, openLibllama(b, path, 1024, 512, 1, flash), openLibllama(b, path, 1024, 512, threads, flash))
	}
	engine, err := native.OpenDemo(native.Options{Context: 1024, Threads: threads})
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	goruntime.LockOSThread() // as the scheduler does
	defer goruntime.UnlockOSThread()
	own := &ours{engine: engine}
	prompt := make([]int32, peerPrefill)
	for i := range prompt {
		prompt[i] = int32(1 + (i*2654435761)%4000)
	}
	measure := func() (prefill, decode, peerPrefill, peerDecode float64) {
		for _, p := range peers {
			fill, gen := speed(b, p, prompt)
			peerPrefill, peerDecode = max(peerPrefill, fill), max(peerDecode, gen)
		}
		prefill, decode = speed(b, own, prompt)
		return prefill, decode, peerPrefill, peerDecode
	}
	measure() // warm up
	for b.Loop() {
		var fill, gen, peerFill, peerGen, fillRatio, genRatio []float64
		for range peerRounds {
			f, g, pf, pg := measure()
			fill, gen, peerFill, peerGen = append(fill, f), append(gen, g), append(peerFill, pf), append(peerGen, pg)
			fillRatio, genRatio = append(fillRatio, f/pf), append(genRatio, g/pg)
		}
		b.ReportMetric(median(peerGen), "libllama-decode-tok/s")
		b.ReportMetric(median(gen), "native-decode-tok/s")
		b.ReportMetric(median(genRatio), "decode-ratio")
		b.ReportMetric(median(peerFill), "libllama-prefill-tok/s")
		b.ReportMetric(median(fill), "native-prefill-tok/s")
		b.ReportMetric(median(fillRatio), "prefill-ratio")
	}
}
