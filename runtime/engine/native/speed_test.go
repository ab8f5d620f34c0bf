package native_test

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// BenchmarkPrefill measures a prompt of 256 tokens of the built-in model, with logits after the last one.
func BenchmarkPrefill(b *testing.B) {
	e := openDemo(b, native.Options{Context: 512})
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	s := sequence{tokens: text(1, 256, 4096)}
	batch := engine.Batch{Rows: s.next(256, true, false)}
	for b.Loop() {
		if err := e.Forward(&batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(256*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
}

// BenchmarkDecode measures single tokens of the built-in model at positions 256 to 383, greedy, for one text and for
// four concurrent ones.
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

// decoder generates 128 tokens greedily after a prompt of 256, repeatedly, in all slots of an engine.
type decoder struct {
	engine *native.Engine
	batch  engine.Batch
}

const decodeFrom, decodeTo = 256, 384

func newDecoder(tb testing.TB, opt native.Options) *decoder {
	tb.Helper()
	d := &decoder{engine: openDemo(tb, opt)}
	for slot := range max(opt.Slots, 1) {
		prompt := sequence{tokens: text(1+slot, decodeFrom, 4096), slot: int32(slot)}
		b := engine.Batch{Rows: prompt.next(decodeFrom, true, false)}
		if err := d.engine.Forward(&b); err != nil {
			tb.Fatal(err)
		}
		d.batch.Rows = append(d.batch.Rows, engine.Row{Token: argmax(b.Logits[0]), Pos: decodeFrom, Slot: int32(slot), Logits: true})
	}
	return d
}

// step generates a token in each slot and returns their number.
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

// BenchmarkHooks compares decoding with and without hooks, alternating: the median of the pairs' time ratios. It
// measures the router counts; these and the stage times, as in the program; and these and the picks of single tokens.
func BenchmarkHooks(b *testing.B) {
	const tokens = decodeTo - decodeFrom // per measurement, so that all are at the same positions
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	d := newDecoder(b, native.Options{Context: 512})
	measure := func(h engine.Hooks) float64 {
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
			off := measure(engine.Hooks{})
			experts = append(experts, measure(engine.Hooks{Experts: true})/off)
			off = measure(engine.Hooks{})
			program = append(program, measure(engine.Hooks{Split: true, Experts: true})/off)
			off = measure(engine.Hooks{})
			all = append(all, measure(engine.Hooks{Split: true, Experts: true, Picks: true})/off)
		}
	}
	b.ReportMetric(100*(median(experts)-1), "%-experts")
	b.ReportMetric(100*(median(program)-1), "%-program")
	b.ReportMetric(100*(median(all)-1), "%-all")
}

// BenchmarkLoad opens the built-in model, including warm-up.
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
