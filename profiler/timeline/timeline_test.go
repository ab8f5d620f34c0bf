package timeline

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// entry is an entry as viewers read it.
type entry struct {
	Name     string         `json:"name"`
	Category string         `json:"cat"`
	Phase    string         `json:"ph"`
	TS       *float64       `json:"ts"`
	Dur      *float64       `json:"dur"`
	PID      *int           `json:"pid"`
	TID      *int           `json:"tid"`
	Args     map[string]any `json:"args"`
}

// read parses a trace and checks it against the documented Chrome trace format: the members of each type of entry, and
// that the slices of each track nest, since viewers drop those that do not.
func read(t rapid.TB, trace *Trace) (all []entry) {
	t.Helper()
	var out bytes.Buffer
	if err := trace.Write(&out, "llmtop test"); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Events []entry           `json:"traceEvents"`
		Unit   string            `json:"displayTimeUnit"`
		Other  map[string]string `json:"otherData"`
	}
	in := json.NewDecoder(&out)
	in.DisallowUnknownFields()
	if err := in.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if doc.Unit != "ms" || doc.Other["program"] != "llmtop test" {
		t.Errorf("unit %q, %v", doc.Unit, doc.Other)
	}
	tracks := map[[2]int][]entry{}
	for _, e := range doc.Events {
		if e.Name == "" || e.TS == nil || e.PID == nil || e.TID == nil || *e.TS < 0 || *e.TS != float64(int64(*e.TS)) {
			t.Fatalf("incomplete: %+v", e)
		}
		switch e.Phase {
		case "X":
			if e.Dur == nil || *e.Dur < 0 || *e.TID == 0 {
				t.Fatalf("slice: %+v", e)
			}
			track := [2]int{*e.PID, *e.TID}
			tracks[track] = append(tracks[track], e)
		case "C":
			for _, v := range e.Args {
				if _, ok := v.(float64); !ok {
					t.Fatalf("counter: %+v", e)
				}
			}
		case "M":
			if !slices.Contains([]string{"process_name", "thread_name", "thread_sort_index"}, e.Name) || len(e.Args) != 1 {
				t.Fatalf("metadata: %+v", e)
			}
		default:
			t.Fatalf("unknown type: %+v", e)
		}
	}
	for track, slices := range tracks {
		nest(t, track, slices)
	}
	return doc.Events
}

// nest checks that no slice of a track begins in another and ends after it.
func nest(t rapid.TB, track [2]int, on []entry) {
	t.Helper()
	slices.SortStableFunc(on, func(a, b entry) int {
		if *a.TS != *b.TS {
			return int(*a.TS - *b.TS)
		}
		return int(*b.Dur - *a.Dur)
	})
	var open []entry
	for _, e := range on {
		for len(open) > 0 && *open[len(open)-1].TS+*open[len(open)-1].Dur <= *e.TS {
			open = open[:len(open)-1]
		}
		if len(open) > 0 && *e.TS+*e.Dur > *open[len(open)-1].TS+*open[len(open)-1].Dur {
			t.Fatalf("track %v: %s at %v for %v ends after %s", track, e.Name, *e.TS, *e.Dur, open[len(open)-1].Name)
		}
		open = append(open, e)
	}
}

// slicesNamed returns the slices and counters whose names begin with name.
func slicesNamed(all []entry, name string) (out []entry) {
	for _, e := range all {
		if e.Phase != "M" && strings.HasPrefix(e.Name, name) {
			out = append(out, e)
		}
	}
	return out
}

// session feeds a store and an engine of a trace.
type session struct {
	now    event.Time
	store  *store.Store
	engine *Engine
	trace  *Trace
}

func newSession() *session {
	s := &session{trace: New()}
	s.engine = s.trace.Engine("")
	s.store = store.New(store.Options{
		Now: func() event.Time { return s.now }, Wall: func() time.Time { return time.Unix(1000, 0) }, Keep: store.DefaultKeep,
		Past: store.NewPastBudget(store.MaxPastBytes),
	})
	return s
}

func (s *session) emit(events ...event.Event) {
	for _, e := range events {
		s.now = max(s.now, e.At)
		s.store.Emit(e)
		s.engine.Emit(e)
	}
	s.store.Drain()
}

func (s *session) end() *Trace {
	s.engine.Snapshot(s.store.Snapshot())
	return s.trace
}

const ms = event.Time(time.Millisecond)

// twoRequests is a session of two requests on an engine with one slot: the second waits for the first, whose 20th token
// is late.
func twoRequests() *session {
	s := newSession()
	s.emit(
		event.Event{Kind: event.KindEngine, At: ms, Layer: -1, Data: &event.EngineInfo{Name: "native", Epoch: 1e18, Caps: event.CapQueue | event.CapTokens | event.CapStages | event.CapSteps}},
		event.Event{Kind: event.KindModel, At: ms, Layer: -1, Data: &event.Model{Name: "tiny", Architecture: "llama"}},
	)
	at := 10 * ms
	for id := event.RequestID(1); id <= 2; id++ {
		s.emit(event.Event{Kind: event.KindRequest, State: event.StateQueued, Req: id, At: 10 * ms, Layer: -1, Data: &event.Request{Label: "poem"}})
	}
	for id := event.RequestID(1); id <= 2; id++ {
		at += 2 * ms
		s.emit(event.Event{Kind: event.KindRequest, State: event.StateDispatched, Req: id, At: at, Layer: -1})
		s.emit(event.Event{Kind: event.KindStage, Stage: event.StageTokenize, Req: id, At: at + ms, Dur: int64(ms), Layer: -1, N: 8})
		at += 20 * ms
		s.emit(event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Req: id, At: at, Dur: int64(15 * ms), Layer: -1, N: 8})
		s.emit(event.Event{Kind: event.KindStep, At: at, Dur: int64(15 * ms), Step: uint64(id) * 100, Prompt: 8, Layer: -1})
		for i := range int32(40) {
			if i > 0 {
				at += 10 * ms
			}
			if i == 20 && id == 1 {
				at += 400 * ms
			}
			step := uint64(id)*100 + uint64(i) + 1
			s.emit(
				event.Event{Kind: event.KindStep, At: at, Dur: int64(9 * ms), Step: step, N: 1, Layer: -1, Split: event.Split{Attention: 5e6}},
				event.Event{Kind: event.KindToken, Req: id, At: at, Index: i, N: 1, ID: 7, Step: step, Layer: -1, Picks: []uint16{3, 1}},
				event.Event{Kind: event.KindKV, At: at, Layer: -1, Data: &event.KV{Used: int64(8 + i), Total: 64}},
			)
		}
		s.emit(event.Event{Kind: event.KindRequest, State: event.StateFinished, Req: id, At: at, Layer: -1, Data: &event.Outcome{Reason: "stop", Prompt: 8, Generated: 40}})
	}
	picks := func(at event.Time, n uint64) event.Event {
		return event.Event{Kind: event.KindExperts, At: at, Layer: -1, Data: &event.Experts{Layers: 1, Experts: 2, Used: 1, Prompt: []uint64{0, 0}, Decode: []uint64{n, 3 * n}, DecodeTokens: 4 * n}}
	}
	s.emit(
		picks(at, 10), picks(at+2e9, 20),
		event.Event{Kind: event.KindUsage, At: at, Layer: -1, Data: &event.Usage{Interval: int64(20 * ms), Running: event.MeasuredValue(1e7)}},
		event.Event{Kind: event.KindHost, At: at + 2e9, Layer: -1, Data: &event.Host{Interval: 1e9, CPU: event.MeasuredValue(0.5), MemUsed: event.MeasuredValue(1e9)}},
	)
	return s
}

func TestTimelineOfTwoRequests(t *testing.T) {
	all := read(t, twoRequests().end())
	one := func(name string) entry {
		t.Helper()
		got := slicesNamed(all, name)
		if len(got) != 1 {
			t.Fatalf("%d slices %q, want 1", len(got), name)
		}
		return got[0]
	}
	for name, want := range map[string]int{
		"request #": 2, "prefill": 4, "decode": 2 + 80, "tokenize": 2, "stall: ": 1, "router picks": 1, "sample": 1,
		"KV cells used": 80, "CPU [0..1]": 1, "CPU pressure": 0, "queue #": 2,
	} {
		if got := len(slicesNamed(all, name)); got != want {
			t.Errorf("%d slices %q, want %d", got, name, want)
		}
	}
	first, second := one("request #1"), one("request #2")
	if *first.TID != *second.TID || *first.TS != 12e3 || *second.TS != *first.TS+*first.Dur+2e3 {
		t.Errorf("requests of one slot: %+v, %+v", first, second)
	}
	if wait := one("queue #2"); *wait.TID == *first.TID || *wait.TS != 10e3 || *wait.TS+*wait.Dur != *second.TS {
		t.Errorf("wait: %+v, request %+v", wait, second)
	}
	if first.Args["prompt_tokens"] != 8.0 || first.Args["label"] != "poem" || first.Args["state"] != "finished" {
		t.Errorf("arguments: %v", first.Args)
	}
	if stall := one("stall: "); *stall.Dur != 410e3 || stall.Args["cause"] != "unknown" || stall.Args["pass"] != 121.0 || *stall.TID != *first.TID {
		t.Errorf("stall: %+v", stall)
	}
	if cpu := one("CPU [0..1]"); cpu.Args["value"] != 0.5 {
		t.Errorf("CPU: %+v", cpu)
	} else if memory := one("memory [B]"); *memory.TS-*cpu.TS != 1e6 {
		t.Errorf("the mean of a second is at %v, a reading at its end at %v", *cpu.TS, *memory.TS)
	}
	if picks := one("router picks"); picks.Args["layer 0"] != "1: 75.0 %, 0: 25.0 %" || *picks.Dur != 2e6 {
		t.Errorf("picks: %+v", picks)
	}
	if sample := one("sample"); sample.Args["on a core [s]"] != 0.01 || len(sample.Args) != 1 {
		t.Errorf("engine threads: %+v", sample)
	}
	tokens, total := slicesNamed(all, "tokens in 1 s"), 0.0
	for _, c := range tokens {
		total += c.Args["value"].(float64)
	}
	if last := tokens[len(tokens)-1]; total != 80 || last.Args["value"] != 0.0 {
		t.Errorf("%v tokens, last %+v", total, last)
	}
}

// TestAbsentTimes checks that a timeline shows no times that nobody reported.
func TestAbsentTimes(t *testing.T) {
	s := newSession()
	s.emit(
		event.Event{Kind: event.KindEngine, At: ms, Layer: -1, Data: &event.EngineInfo{Name: "server", Caps: event.CapTokens}},
		event.Event{Kind: event.KindRequest, State: event.StateQueued, Req: 1, At: 10 * ms, Layer: -1, Data: &event.Request{}},
		event.Event{Kind: event.KindToken, Req: 1, At: 20 * ms, N: 1, ID: -1, Index: -1, Layer: -1},
		event.Event{Kind: event.KindToken, Req: 1, At: 30 * ms, N: 3, ID: -1, Index: -1, Layer: -1},
		event.Event{Kind: event.KindRequest, State: event.StateDispatched, Req: 2, At: 25 * ms, Layer: -1}, // its start was missed
		event.Event{Kind: event.KindToken, Req: 2, At: 30 * ms, N: 1, ID: -1, Index: -1, Layer: -1},
		event.Event{Kind: event.KindToken, Req: 2, At: 40 * ms, N: 1, ID: -1, Index: -1, Layer: -1},
	)
	all := read(t, s.end())
	if got := slicesNamed(all, "prefill"); len(got) != 0 {
		t.Errorf("without dispatch: %+v", got)
	}
	if got := slicesNamed(all, "time to first token"); len(got) != 1 || *got[0].Dur != 10e3 {
		t.Errorf("time to first token: %+v", got)
	}
	if got := slicesNamed(all, "tokens"); len(got) == 0 || got[0].Args["tokens"] != 3.0 || got[0].Args["index"] != nil {
		t.Errorf("tokens: %+v", got)
	}
	if got := slicesNamed(all, "queue #"); len(got) != 0 {
		t.Errorf("no queue is reported: %+v", got)
	}
	joined := slicesNamed(all, "request #2")
	if len(joined) != 1 || joined[0].Args["start"] != "not reported" || joined[0].Args["ttft_s"] != nil {
		t.Errorf("a request whose start was missed: %+v", joined)
	}
}

// TestKeep keeps the named engine only.
func TestKeep(t *testing.T) {
	trace := New()
	for _, name := range []string{"a", "ab"} {
		trace.Engine(name).Emit(event.Event{Kind: event.KindKV, At: 5 * ms, Data: &event.KV{Used: int64(len(name))}})
	}
	trace.Keep("ab")
	if got := slicesNamed(read(t, trace), "KV"); len(got) != 1 || got[0].Args["value"] != 2.0 {
		t.Errorf("kept %+v", got)
	}
}

// TestFull checks that a full trace counts what it omits.
func TestFull(t *testing.T) {
	s := newSession()
	s.trace.bytes = maxBytes - 50
	s.emit(event.Event{Kind: event.KindKV, At: ms, Data: &event.KV{}}, event.Event{Kind: event.KindKV, At: 2 * ms, Data: &event.KV{}})
	if all := read(t, s.end()); len(slicesNamed(all, "KV")) != 1 || s.trace.Omitted() == 0 {
		t.Errorf("%d values, %d omitted", len(slicesNamed(all, "KV")), s.trace.Omitted())
	}
}

// TestRandomTimelines checks that whatever engines send, the trace is valid.
func TestRandomTimelines(t *testing.T) {
	at := rapid.Int64Range(-5, 3e9)
	kinds := []event.Kind{event.KindRequest, event.KindStage, event.KindToken, event.KindStep, event.KindUsage, event.KindExperts}
	rapid.Check(t, func(t *rapid.T) {
		s := newSession()
		s.now = 4e9
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			e := event.Event{
				Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), State: event.State(rapid.IntRange(1, int(event.NumStates)-1).Draw(t, "state")),
				Stage: event.Stage(rapid.IntRange(0, int(event.NumStages)-1).Draw(t, "stage")), Layer: int16(rapid.IntRange(-1, 1).Draw(t, "layer")),
				At: event.Time(at.Draw(t, "at")), Dur: at.Draw(t, "dur"), Req: event.RequestID(rapid.IntRange(1, 4).Draw(t, "request")),
				N: int32(rapid.IntRange(-1, 3).Draw(t, "n")), Index: int32(rapid.IntRange(-1, 9).Draw(t, "index")), Text: "x\x1b[31m",
			}
			switch e.Kind {
			case event.KindRequest:
				if e.State == event.StateQueued {
					e.Data = &event.Request{Label: "\x1b\xff", Retrospective: rapid.Bool().Draw(t, "retrospective")}
				} else if e.State.Final() {
					e.Data = &event.Outcome{Reason: "stop", Generated: 3}
				}
			case event.KindUsage:
				e.Data = &event.Usage{Interval: e.Dur, Running: event.MeasuredValue(1)}
			case event.KindExperts:
				n := uint64(rapid.IntRange(0, 9).Draw(t, "picks"))
				e.Data = &event.Experts{Layers: 1, Experts: 2, Used: 1, Decode: []uint64{n}, DecodeTokens: n}
			}
			s.emit(e)
		}
		read(t, s.end())
	})
}

// TestSnapshotsOfALongRequest adds a request whose first tokens only an earlier snapshot has.
func TestSnapshotsOfALongRequest(t *testing.T) {
	s := newSession()
	s.store = store.New(store.Options{Now: func() event.Time { return s.now }, Wall: func() time.Time { return time.Unix(1000, 0) }})
	s.emit(event.Event{Kind: event.KindRequest, State: event.StateQueued, Req: 1, At: 10 * ms, Layer: -1, Data: &event.Request{}})
	generate := func(n int32) {
		for range n {
			if s.now += 10 * ms; s.now%(50*ms) == 0 {
				s.emit(event.Event{Kind: event.KindStage, Stage: event.StagePace, Req: 1, At: s.now - 6*ms, Dur: int64(4 * ms), Layer: -1})
			}
			s.emit(event.Event{Kind: event.KindToken, Req: 1, At: s.now, N: 1, ID: -1, Index: -1, Layer: -1})
		}
	}
	generate(store.MaxTokens)
	early := s.store.Snapshot()
	generate(store.MaxTokens / 2)
	late := New()
	late.Engine("").Snapshot(s.store.Snapshot())
	s.engine.Snapshot(early)
	all := read(t, s.end())
	if n, lost := len(slicesNamed(all, "token")), s.trace.Omitted(); n != store.MaxTokens*3/2-1+len(slicesNamed(all, "tokens in")) || lost != 0 {
		t.Errorf("%d slices of tokens, %d omitted", n, lost)
	}
	paced := slicesNamed(all, "paced")
	if want := store.MaxTokens * 3 / 2 / 5; len(paced) < want-1 || len(paced) > want+1 || *paced[0].Dur != 4e3 {
		t.Errorf("%d pauses, want %d, the first %+v", len(paced), want, paced[0])
	}
	for _, e := range slicesNamed(read(t, late), "token") {
		if e.Phase == "X" && *e.Dur > 10e3 {
			t.Fatalf("a slice from before the tokens that are kept: %+v", e)
		}
	}
	if late.Omitted() == 0 {
		t.Error("the tokens that are no longer kept do not count as omitted")
	}
}

// TestTimelineOfThePast checks that the kept snapshots of a session have what its events have, except forward passes and
// what threads did.
func TestTimelineOfThePast(t *testing.T) {
	s := twoRequests()
	s.now += event.Time(time.Second)
	past := New()
	past.Engine("").Snapshots(append(s.store.Past().Until(s.now), s.store.Snapshot()))
	events, kept := read(t, s.end()), read(t, past)
	for _, name := range []string{"request #", "queue #", "tokenize", "stall: ", "token", "CPU [0..1]", "memory", "tokens in 1 s", "router picks"} {
		want, got := slicesNamed(events, name), slicesNamed(kept, name)
		if len(want) == 0 || len(got) != len(want) {
			t.Errorf("%d slices %q, of the events %d", len(got), name, len(want))
			continue
		}
		for i := range want {
			if *got[i].TS != *want[i].TS && name != "router picks" || got[i].Name != want[i].Name {
				t.Errorf("%+v, of the events %+v", got[i], want[i])
			}
		}
	}
	if n := len(slicesNamed(kept, "KV cells used")); n == 0 {
		t.Error("no KV cells")
	}
}
