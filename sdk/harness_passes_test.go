package sdk

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// passes checks passes that are timed while they run, and the lines that only some engines send. With PASSES=1 an
// engine processes request 8000 with them: a prompt of 4 tokens that takes at least 1 ms in each of its parts, a token
// of a pass of two requests, and a pass that fails.
func (s Suite) passes(t *testing.T) {
	r := s.watched(t, "PASSES=1", "REQUESTS=0")
	steps := r.Of("step", 0)
	if len(steps) != 3 {
		t.Fatalf("%d passes", len(steps))
	}
	first := steps[0].Keys
	for i, want := range []struct{ n, m any }{{nil, 4.0}, {2.0, nil}, {nil, nil}} {
		if k := steps[i].Keys; k["n"] != want.n || k["m"] != want.m || k["s"] != first["s"].(float64)+float64(i) {
			t.Errorf("pass %d: %s", i, steps[i].Raw)
		}
	}
	const ms = 1e6
	split := first["x"].([]any)
	for i, measured := range []bool{true, true, false, false, true, false} {
		if ns := split[i].(float64); measured != (ns >= ms) || !measured && ns != 0 {
			t.Errorf("part %d takes %v ns", i, ns)
		}
	}
	took, names := map[string]float64{}, []string{}
	for _, l := range r.Of("stage", 8000) {
		name := l.Keys["stage"].(string)
		took[name] = l.Keys["dur"].(float64)
		names = append(names, fmt.Sprint(name, l.Keys["l"], l.Keys["n"]))
	}
	slices.Sort(names)
	if want := []string{"attention0 4", "embed<nil> 4", "first_token<nil> <nil>", "prompt<nil> 4", "rotary<nil> <nil>"}; !slices.Equal(names, want) {
		t.Errorf("stages %q, want %q", names, want)
	}
	if whole := took["embed"] + took["prompt"] + split[4].(float64); whole != first["dur"] || took["prompt"] < took["attention"]+took["rotary"] || took["embed"] != split[0] {
		t.Errorf("stages %v of a pass of %v ns: %v", took, first["dur"], split)
	}
	tokens := r.Of("tok", 8000)
	if k := tokens[0].Keys; fmt.Sprint(k["e"]) != "[1 3 0 2]" || k["s"] != first["s"] || k["w"].(float64) < ms || took["first_token"] < split[4].(float64)+k["w"].(float64) {
		t.Errorf("the first token: %s", tokens[0].Raw)
	}
	if k := tokens[1].Keys; k["s"] != steps[1].Keys["s"] || k["w"] != nil || k["e"] != nil {
		t.Errorf("the second token: %s", tokens[1].Raw)
	}
	s.reports(t, r)
}

// reports checks lines that only some engines send.
func (s Suite) reports(t *testing.T, r *Reader) {
	t.Helper()
	for kind, keys := range map[string]map[string]any{
		"ops": {
			"passes": 120, "slowdown": []any{2.5, "derived"}, "ops": []any{"MUL_MAT", "ROPE"},
			"k": []any{0, 0, 1}, "l": []any{0, -1, 0}, "n": []any{480, 120, 240}, "d": []any{540000, 90000, 81000},
		},
		"draft": {
			"drafted": []any{10, 8}, "accepted": []any{9, 6}, "time": 800000, "s": []any{1, 0}, "r": []any{1, 1}, "n": []any{4, 1},
			"p": []any{8, 5}, "d": []any{960000, 400000}, "k": []any{24, 5},
		},
		"usage":   {"interval": 200000, "run": 381000, "cores": []any{2, "derived"}},
		"host":    {"interval": 100000, "cores": []any{0.25, 0.75}, "cpu": []any{0.5, "derived"}},
		"req":     {"r": 8000, "state": "finished", "in": 4, "cached": 2, "reuse": map[string]any{"with": 7999, "at": 3, "why": "tokens"}},
		"experts": {"p": []any{0, 1, 0, 1, 1, 0, 1, 0}},
	} {
		if _, err := r.find(kind, keys); err != nil {
			t.Error(err)
		}
	}
	if rss := r.Of("host", 0)[0].Keys["engine"].(map[string]any)["rss"]; rss != 137438953472.0 {
		t.Errorf("a reading of 128 GiB is %v", rss)
	}
	var caps []any
	for _, l := range r.Lines {
		if c, ok := l.Keys["caps"].([]any); ok {
			caps = c
		}
	}
	for _, want := range []string{"steps", "stages", "picks", "ops", "host", "experts"} {
		if !slices.Contains(caps, any(want)) {
			t.Errorf("the capabilities %v lack %s", caps, want)
		}
	}
}

// sampled checks samples of the machine by the engine itself.
func (s Suite) sampled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/proc exists only on Linux")
	}
	p := Start(t, s.Binary, "ADDRESS=unix:"+Socket(t), "SAMPLED=1")
	r := Connect(t, p.Address, check)
	k := r.Read("host").Keys
	p.Go()
	p.Done()
	p.End()
	value := func(of map[string]any, name string) float64 {
		switch v := of[name].(type) {
		case []any:
			return v[0].(float64)
		case float64:
			return v
		}
		t.Errorf("a sample has no %s: %v", name, of)
		return -1
	}
	engine := k["engine"].(map[string]any)
	if engine["pid"] != float64(p.PID()) || len(k["cores"].([]any)) < runtime.NumCPU() {
		t.Errorf("a sample of process %v with %v", engine["pid"], k["cores"])
	}
	for _, name := range []string{"cpu", "steal", "load1", "runnable", "mem_total", "mem_used"} {
		if v := value(k, name); v < 0 || name == "cpu" && v > 1 {
			t.Errorf("%s is %v", name, v)
		}
	}
	for _, name := range []string{"cpu", "rss", "peak", "threads", "run_wait", "faults", "minor_faults"} {
		if v := value(engine, name); v < 0 || (name == "rss" || name == "threads") && v == 0 {
			t.Errorf("%s of the engine is %v", name, v)
		}
	}
	if value(k, "mem_used") >= value(k, "mem_total") || value(engine, "peak") < value(engine, "rss") {
		t.Errorf("implausible: %v", k)
	}
}
