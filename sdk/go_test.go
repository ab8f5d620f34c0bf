package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/source/socket"
	llmtop "github.com/llmtop/llmtop/sdk/go"
)

// check decodes a line as llmtop does.
func check(line []byte) error {
	_, err := new(wire.Decoder).Decode(line, func(event.Event) {})
	return err
}

// TestEnginesOfReadmeInGo watches the engines with 5, 20 and 60 lines.
func TestEnginesOfReadmeInGo(t *testing.T) {
	t.Parallel()
	if why := Supported(); why != "" {
		t.Skip(why)
	}
	model, err := os.ReadFile("go/testdata/model.go")
	if err != nil {
		t.Fatal(err)
	}
	for lines, want := range Engines {
		program := Readme(t, lines, "go", `\b(llmtop\.Serve|(top|r|s)\.([ABD-Z]\w*|Count|Cancel)\b)`)
		dir := t.TempDir()
		files := map[string]string{"main.go": program, "model.go": string(model)}
		args := []string{"build", "-o", filepath.Join(dir, "engine")}
		for name, text := range files {
			name = filepath.Join(dir, name)
			args = append(args, name)
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("%d lines: %v\n%s", lines, err, out)
		}
		WatchReadme(t, filepath.Join(dir, "engine"), check, want)
	}
}

func serve(t *testing.T, o llmtop.Options) (*llmtop.Emitter, *Reader) {
	t.Helper()
	if why := Supported(); why != "" {
		t.Skip(why)
	}
	o.Address = "unix:" + Socket(t)
	top, err := llmtop.Serve("test", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = top.Close() })
	r := Connect(t, top.Address(), check)
	r.Read("synced")
	return top, r
}

func end(t *testing.T, top *llmtop.Emitter, r *Reader) {
	t.Helper()
	if err := top.Close(); err != nil {
		t.Error(err)
	}
	r.Rest()
}

func TestPassGivesStages(t *testing.T) {
	t.Parallel()
	top, r := serve(t, llmtop.Options{Model: event.Model{Layers: 2, Experts: 4, ExpertsUsed: 2}})
	q := top.Request(5, event.Request{})
	q.Dispatch()
	s := top.Step(0, 0, q)
	work := func() { time.Sleep(time.Millisecond) }
	for name, layer := range map[string]int{"embed": -1, "attention": 0, "rotary": -1, "lm_head": -1} {
		s.Part(name, layer, work)
	}
	top.Picks(true, 0, []uint16{1, 3})
	top.Picks(true, 1, []uint16{0, 2, 9})
	s.End()
	s.Part("sample", -1, work)
	q.TokenWith(event.Event{ID: 7, Picks: []uint16{1, 3, 0, 2}}, s)
	q.Token(8, top.Step(0, 0, q))
	top.Step(2, 0, nil).Fail()
	q.Finish("stop")
	q.Cancel() // has no effect
	end(t, top, r)
	steps := r.Of("step", 0)
	first := steps[0].Keys
	if first["m"] != 5.0 || steps[1].Keys["n"] != 1.0 || steps[2].Keys["n"] != nil || len(steps) != 3 {
		t.Errorf("passes %v", steps)
	}
	took, names := map[string]float64{}, []string{}
	for _, l := range r.Of("stage", 0) {
		name := l.Keys["stage"].(string)
		took[name] = l.Keys["dur"].(float64)
		names = append(names, fmt.Sprint(name, l.Keys["l"], l.Keys["n"]))
	}
	slices.Sort(names)
	if want := []string{"attention0 5", "embed<nil> 5", "first_token<nil> <nil>", "prompt<nil> 5", "rotary<nil> <nil>"}; !slices.Equal(names, want) {
		t.Errorf("stages %q, want %q", names, want)
	}
	split := first["x"].([]any)
	if took["embed"]+took["prompt"]+split[4].(float64) != first["dur"] || took["embed"] < 1e6 || took["first_token"] < split[4].(float64)+1e6 {
		t.Errorf("stages %v of a pass of %v ns: %v", took, first["dur"], split)
	}
	if k := r.Of("tok", 0)[0].Keys; fmt.Sprint(k["e"]) != "[1 3 0 2]" || k["s"] != first["s"] || k["x"].([]any)[5].(float64) < 1e6 {
		t.Errorf("the first token: %v", k)
	}
	x := r.Of("experts", 0)
	if k := x[len(x)-1].Keys; fmt.Sprint(k["p"], k["pt"]) != "[0 1 0 1 1 0 1 0] 1" {
		t.Errorf("picks %v", k)
	}
	if ends := r.Of("req", 0); ends[2].Keys["in"] != 5.0 || ends[2].Keys["out"] != 2.0 || ends[0].Keys["in"] != 5.0 || len(ends) != 3 {
		t.Errorf("requests %v", ends)
	}
	var caps []any
	for _, l := range r.Of("engine", 0) {
		caps = l.Keys["caps"].([]any)
	}
	for _, want := range []string{"steps", "stages", "tokens", "queue", "picks", "experts"} {
		if !slices.Contains(caps, any(want)) {
			t.Errorf("the capabilities %v lack %s", caps, want)
		}
	}
}

func TestRequestEndsWithItsFunction(t *testing.T) {
	t.Parallel()
	top, r := serve(t, llmtop.Options{})
	answer := func(err error) (_ error) {
		q := top.Request(1, event.Request{})
		defer q.End(&err)
		if err != nil && err.Error() == "panic" {
			panic(err)
		}
		return err
	}
	for _, err := range []error{nil, errors.New("out of memory"), fmt.Errorf("read prompt: %w", context.Canceled)} {
		_ = answer(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic has ended")
			}
		}()
		_ = answer(errors.New("panic"))
	}()
	end(t, top, r)
	var ends []string
	for _, l := range r.Of("req", 0) {
		if l.Keys["state"] != "queued" {
			ends = append(ends, fmt.Sprint(l.Keys["state"], " ", l.Keys["why"]))
		}
	}
	if want := []string{"finished <nil>", "failed out of memory", "cancelled cancelled", "failed panic"}; !slices.Equal(ends, want) {
		t.Errorf("requests ended %q, want %q", ends, want)
	}
}

func TestGoroutinesEmitTogether(t *testing.T) {
	t.Parallel()
	top, r := serve(t, llmtop.Options{Model: event.Model{Layers: 1, Experts: 2, ExpertsUsed: 1}})
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			q := top.Request(1, event.Request{})
			for i := range 100 {
				s := top.Step(1, 0, nil)
				top.Picks(false, 0, []uint16{1})
				top.KV(i, 100)
				q.Token(int32(i), s)
			}
			top.Count("own", 1)
			q.Finish("length")
		})
	}
	work.Wait()
	end(t, top, r)
	r.Expect(map[string]uint64{"token": 800, "step": 800, "kv": 800, "request": 16, "counters": 8})
	x := r.Of("experts", 0)
	if k := x[len(x)-1].Keys; fmt.Sprint(k["d"], k["dt"]) != "[0 800] 800" {
		t.Errorf("picks %v", k)
	}
}

func TestSampleHost(t *testing.T) {
	t.Parallel()
	top, r := serve(t, llmtop.Options{})
	top.SampleHost()
	if k := r.Read("host").Keys; k["engine"].(map[string]any)["pid"] != float64(os.Getpid()) {
		t.Errorf("sample %v", k)
	}
	end(t, top, r)
}

// TestWithoutSocket: an engine whose socket could not be opened continues.
func TestWithoutSocket(t *testing.T) {
	t.Parallel()
	top, err := llmtop.Serve("test", llmtop.Options{Address: "tcp:0.0.0.0:0"})
	if !errors.Is(err, socket.ErrToken) || top != nil {
		t.Fatalf("%v, %v", top, err)
	}
	top.SampleHost()
	top.Stage("model_load", func() {})
	top.Model(event.Model{Name: "tiny"}, time.Second)
	top.Engine(func(*event.EngineInfo) {})
	q := top.Request(1, event.Request{})
	q.Dispatch()
	q.Stage("tokenize", func() {})
	s := top.Step(0, 0, q)
	s.Part("attention", 0, func() {})
	q.Token(1, s)
	top.Picks(true, 0, []uint16{1})
	top.KV(1, 2)
	top.Count("own", 1)
	top.Log("line")
	q.Finish("stop")
	if err := top.Close(); err != nil || top.Address() != "" {
		t.Error(err)
	}
}

// BenchmarkGo measures what a token costs the engine, and a pass with its token, without a reader.
func BenchmarkGo(b *testing.B) {
	top, err := llmtop.Serve("bench", llmtop.Options{Address: "unix:" + Socket(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer top.Close()
	for name, emit := range map[string]func(*llmtop.Request, int){
		"token": func(r *llmtop.Request, i int) { r.Token(int32(i), nil) },
		"pass":  func(r *llmtop.Request, i int) { r.Token(int32(i), top.Step(1, 0, nil)) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := top.Request(1, event.Request{})
			for i := range b.N {
				emit(r, i)
			}
			r.Finish("length")
		})
	}
}
