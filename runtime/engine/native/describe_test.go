package native_test

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// TestDescribeDemo compares the description of the built-in model with its model card.
func TestDescribeDemo(t *testing.T) {
	e := openDemo(t, native.Options{Context: 600, Slots: 3, Threads: 2})
	got := e.Model()
	if got.Parameters/10_000 != 1103 && got.Parameters/10_000 != 1104 {
		t.Errorf("%d parameters, the model card has 11.04 M", got.Parameters)
	}
	if got.Active >= got.Parameters || got.WeightBytes >= got.Bytes || got.Bytes > 11_943_744 {
		t.Errorf("active %d of %d, %d of %d bytes a token", got.Active, got.Parameters, got.WeightBytes, got.Bytes)
	}
	want := event.Model{
		Name: got.Name, Path: "(built in)", Architecture: "qwen3moe", Quantisation: "Q8_0",
		Layers: 8, Width: 192, Heads: 6, KVHeads: 2, HeadDim: 32, Vocab: 4096, Experts: 16, ExpertsUsed: 2, FeedForward: 128,
		Context: 600, TrainContext: 1024, KVBytes: 2 * 2 * 8 * 2 * 32,
		Parameters: got.Parameters, Active: got.Active, Bytes: got.Bytes, WeightBytes: got.WeightBytes,
	}
	if got != want || got.Name == "" {
		t.Errorf("described as %+v\nwant %+v", got, want)
	}
	info := e.Info()
	if info.Name != "native" || info.Slots != 3 || info.Device.Threads != 2 || !info.Device.Host || info.Device.Kernels == "" {
		t.Errorf("engine described as %+v", info)
	}
	if e.Slots() != 3 || e.Context() != 600 || e.MaxBatch() != native.DefaultBatch {
		t.Errorf("%d slots, context %d, batch %d", e.Slots(), e.Context(), e.MaxBatch())
	}
}

// TestDescribeCounts computes by hand what one token of a small model reads.
func TestDescribeCounts(t *testing.T) {
	const width, heads, kv, ffn, vocab = 16, 16, 8, 8, 262
	attention := 2*width + 2*width*heads + 2*width*kv
	expert := 3 * width * ffn
	router := 6 * width
	for _, c := range []struct {
		tied          bool
		experts       int
		total, active int
	}{
		{true, 6, vocab*width + width + 2*(attention+router+6*expert), vocab*width + width + 2*(attention+router+2*expert)},
		{false, 6, 2*vocab*width + width + 2*(attention+router+6*expert), width + vocab*width + width + 2*(attention+router+2*expert)},
		{true, 0, vocab*width + width + 2*(attention+expert), vocab*width + width + 2*(attention+expert)},
	} {
		p := tiny()
		p.tied, p.experts, p.set = c.tied, c.experts, map[string]any{"general.name": nil}
		if c.experts == 0 {
			p.used = 0
		}
		path := filepath.Join(t.TempDir(), "small.f32.gguf")
		if err := os.WriteFile(path, p.bytes(t), 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := native.Open(path, native.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		m := e.Model()
		if m.Parameters != int64(c.total) || m.Active != int64(c.active) || m.Bytes != 4*m.Parameters || m.WeightBytes != 4*m.Active {
			t.Errorf("%v: %d parameters of %d bytes, %d of %d bytes active; want %d and %d", p, m.Parameters, m.Bytes, m.Active, m.WeightBytes, c.total, c.active)
		}
		if m.Name != "small.f32" || m.Path != path || m.Quantisation != "F32" || m.Context != 32 {
			t.Errorf("named %q of %q, type %s, context %d", m.Name, m.Path, m.Quantisation, m.Context)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLoadStages expects each stage of a load, in order and without overlap.
func TestLoadStages(t *testing.T) {
	var stages []engine.LoadStage
	openDemo(t, native.Options{Report: func(s engine.LoadStage) { stages = append(stages, s) }})
	want := []event.Stage{event.StageLoadOpen, event.StageLoadMap, event.StageLoadTokenizer, event.StageLoadWeights, event.StageLoadWarmup}
	if len(stages) != len(want) {
		t.Fatalf("stages %+v", stages)
	}
	for i, s := range stages {
		if s.Stage != want[i] || s.Dur <= 0 || i > 0 && s.Start.Before(stages[i-1].Start.Add(stages[i-1].Dur)) {
			t.Errorf("stage %d: %+v", i, s)
		}
	}
}

// TestThreads expects one thread for each worker except the one that calls Forward.
func TestThreads(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(3))
	for _, threads := range []int{1, 3, 4} {
		want := threads - 1
		if goruntime.GOOS != "linux" || threads > 3 {
			want = 0
		}
		if ids := openDemo(t, native.Options{Threads: threads}).Threads(); len(ids) != want {
			t.Errorf("%d threads: %v", threads, ids)
		}
	}
	if tensor.Features() == "" {
		t.Error("no name for the kernels")
	}
}
