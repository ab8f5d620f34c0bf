package native_test

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/native"
)

// BenchmarkPrefill is the built-in model's speed on a prompt of 256 tokens of which the last one asks for logits.
func BenchmarkPrefill(b *testing.B) {
	e := openDemo(b, native.Options{Context: 512})
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	s := sequence{tokens: text(1, 256, 4096)}
	batch := runtime.Batch{Rows: s.next(256, true, false)}
	for b.Loop() {
		if err := e.Forward(&batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(256*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
}

// BenchmarkDecode is the built-in model's speed on single tokens at positions 256 to 383, greedy, and that of four texts side by side.
func BenchmarkDecode(b *testing.B) {
	for _, slots := range []int{1, 4} {
		b.Run(fmt.Sprintf("texts=%d", slots), func(b *testing.B) {
			goruntime.LockOSThread() // as the scheduler does
			defer goruntime.UnlockOSThread()
			d := newDecoder(b, native.Options{Context: 512, Slots: slots})
			tokens := 0
			for b.Loop() {
				tokens += d.step(b)
			}
			b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}

// decoder generates greedily after a prompt of 256 tokens, 128 tokens over and over, in all slots of an engine.
type decoder struct {
	engine *native.Engine
	batch  runtime.Batch
}

const decodeFrom, decodeTo = 256, 384

func newDecoder(tb testing.TB, opt native.Options) *decoder {
	tb.Helper()
	d := &decoder{engine: openDemo(tb, opt)}
	for slot := range max(opt.Slots, 1) {
		prompt := sequence{tokens: text(1+slot, decodeFrom, 4096), slot: int32(slot)}
		b := runtime.Batch{Rows: prompt.next(decodeFrom, true, false)}
		if err := d.engine.Forward(&b); err != nil {
			tb.Fatal(err)
		}
		d.batch.Rows = append(d.batch.Rows, runtime.Row{Token: argmax(b.Logits[0]), Pos: decodeFrom, Slot: int32(slot), Logits: true})
	}
	return d
}

// step generates a token in each slot and says how many that were.
func (d *decoder) step(tb testing.TB) int {
	if err := d.engine.Forward(&d.batch); err != nil {
		tb.Fatal(err)
	}
	for i := range d.batch.Rows {
		row := &d.batch.Rows[i]
		row.Token, row.Pos = argmax(d.batch.Logits[i]), row.Pos+1
		if row.Pos == decodeTo {
			row.Pos = decodeFrom
		}
	}
	return len(d.batch.Rows)
}

// BenchmarkHooks compares decoding with hooks and without, in turns: the median of the pairs' ratios of time. The router's picks
// counted; that and the time of each stage, as the program has it; and the picks of single tokens besides.
func BenchmarkHooks(b *testing.B) {
	const tokens = decodeTo - decodeFrom // of each measurement, so that all are at the same positions
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	d := newDecoder(b, native.Options{Context: 512})
	measure := func(h runtime.Hooks) float64 {
		d.engine.SetHooks(h)
		began := time.Now()
		for range tokens {
			d.step(b)
		}
		return time.Since(began).Seconds()
	}
	var experts, program, all []float64
	for b.Loop() {
		for range 32 {
			off := measure(runtime.Hooks{})
			experts = append(experts, measure(runtime.Hooks{Experts: true})/off)
			off = measure(runtime.Hooks{})
			program = append(program, measure(runtime.Hooks{Split: true, Experts: true})/off)
			off = measure(runtime.Hooks{})
			all = append(all, measure(runtime.Hooks{Split: true, Experts: true, Picks: true})/off)
		}
	}
	b.ReportMetric(100*(median(experts)-1), "%-experts")
	b.ReportMetric(100*(median(program)-1), "%-program")
	b.ReportMetric(100*(median(all)-1), "%-all")
}

// BenchmarkLoad opens the built-in model, warm-up included.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		e, err := native.OpenDemo(native.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
