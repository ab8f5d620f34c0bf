package native_test

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// computer is the interface of both engines in the benchmark loop.
type computer interface {
	forward(tokens []int32, pos int) ([]float32, error)
	reset()
}

// ours calls the native engine like libllama is called.
type ours struct {
	engine *native.Engine
	batch  engine.Batch
}

func (o *ours) forward(tokens []int32, pos int) ([]float32, error) {
	o.batch.Rows = o.batch.Rows[:0]
	for i, token := range tokens {
		o.batch.Rows = append(o.batch.Rows, engine.Row{
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
	peerRounds  = 9   // interleaved measurements of each engine

	// peerRest lets the threads of the previously measured engine go to sleep: libllama's threads poll for some time
	// after a batch.
	peerRest = 200 * time.Millisecond
)

// speed measures one engine once: prefill (the second of two) and decode in tokens/s, as llama-bench defines them,
// except that the logits of every decoded token are read.
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

// BenchmarkPeer compares the native engine with libllama on the built-in model, on the same machine in the same run:
// same prompt, interleaved measurements, medians of the ratios per round. libllama runs with one thread and with the
// native engine's number of threads, with its default flash attention and without. Each ratio is relative to the
// fastest of these four, which differs between prefill and decode: small models are not always faster with more
// threads.
func BenchmarkPeer(b *testing.B) {
	path := filepath.Join(b.TempDir(), native.DemoName)
	if err := os.WriteFile(path, native.DemoModel(), 0o600); err != nil {
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
