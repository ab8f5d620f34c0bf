package wire

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

// decode returns the events of a line.
func decode(t testing.TB, d *Decoder, line []byte) []event.Event {
	t.Helper()
	var out []event.Event
	if _, err := d.Decode(line, func(e event.Event) { out = append(out, e) }); err != nil {
		t.Fatalf("%v in %.400s", err, line)
	}
	return out
}

// TestEventsRoundTrip checks that every event survives encoding and decoding.
func TestEventsRoundTrip(t *testing.T) {
	var d Decoder
	var line []byte
	rapid.Check(t, func(r *rapid.T) {
		e := anyEvent(r)
		var err error
		line, err = Append(line[:0], &e)
		if err != nil {
			r.Fatalf("%v: %+v", err, e)
		}
		if strings.ContainsAny(string(line), "\n\r") {
			r.Fatalf("more than one line: %s", line)
		}
		var got []event.Event
		if _, err := d.Decode(line, func(e event.Event) { got = append(got, e) }); err != nil {
			r.Fatalf("%v: %s", err, line)
		}
		if diff := cmp.Diff([]event.Event{e}, got); diff != "" {
			r.Fatalf("%s\n%s", line, diff)
		}
	})
}

// TestUnsetIsAbsent checks that cached tokens that a line lacks are unknown, and not 0.
func TestUnsetIsAbsent(t *testing.T) {
	var d Decoder
	for line, want := range map[string]event.Outcome{
		`{"t":"req","a":9,"r":1,"state":"finished","in":4}`:               {Prompt: 4, AnyCached: true},
		`{"t":"req","a":9,"r":1,"state":"finished","in":4,"cached":null}`: {Prompt: 4, AnyCached: true},
		`{"t":"req","a":9,"r":1,"state":"finished","in":4,"cached":-1}`:   {Prompt: 4, AnyCached: true},
		`{"t":"req","a":9,"r":1,"state":"finished","in":4,"cached":0}`:    {Prompt: 4},
		`{"t":"req","a":9,"r":1,"state":"failed","cached":3,"in":4}`:      {Prompt: 4, Cached: 3},
	} {
		if got := decode(t, &d, []byte(line)); len(got) != 1 || *got[0].Data.(*event.Outcome) != want {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// TestBatchesRoundTrip checks the same for many tokens in one line, after the line of their forward passes.
func TestBatchesRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		first := rapid.Uint64Range(1, 1<<40).Draw(r, "first")
		var steps, tokens []event.Event
		for i := range rapid.IntRange(1, 40).Draw(r, "steps") {
			s := anyOfKind(r, event.KindStep)
			s.Step, s.Data = first+uint64(i), nil
			steps = append(steps, s)
			for range rapid.IntRange(0, 3).Draw(r, "tokens") {
				e := anyOfKind(r, event.KindToken)
				if rapid.Bool().Draw(r, "same") {
					sample := e.Split.Sample
					e.Step, e.Split = s.Step, s.Split
					e.Split.Sample = sample
				}
				tokens = append(tokens, e)
			}
		}
		var d Decoder
		line, err := AppendSteps(nil, steps)
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(steps, decode(t, &d, line)); diff != "" {
			r.Fatalf("%s\n%s", line, diff)
		}
		if len(tokens) == 0 {
			return
		}
		if line, err = AppendTokens(line[:0], tokens, steps); err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(tokens, decode(t, &d, line)); diff != "" {
			r.Fatalf("%s\n%s", line, diff)
		}
	})
}

// TestInvalidEvents checks that events that no line can carry are rejected, and leave dst unchanged.
func TestInvalidEvents(t *testing.T) {
	for name, e := range map[string]event.Event{
		"no payload":     {Kind: event.KindKV},
		"wrong payload":  {Kind: event.KindKV, Data: &event.Host{}},
		"nil payload":    {Kind: event.KindKV, Data: (*event.KV)(nil)},
		"no request":     {Kind: event.KindRequest, State: event.StateQueued},
		"no state":       {Kind: event.KindRequest, Req: 1},
		"unknown state":  {Kind: event.KindRequest, Req: 1, State: event.NumStates},
		"unknown kind":   {Kind: event.NumKinds},
		"no experts":     {Kind: event.KindExperts, Data: &event.Experts{Layers: 2}},
		"counts missing": {Kind: event.KindExperts, Data: &event.Experts{Layers: 2, Experts: 2, Decode: make([]uint64, 3)}},
		"no passes":      {Kind: event.KindOps, Data: &event.Ops{}},
		"more drafted":   {Kind: event.KindSpeculation, Data: &event.Speculation{Drafted: []uint64{1}}},
		"no rows":        {Kind: event.KindSpeculation, Data: &event.Speculation{Shapes: []event.PassShape{{Requests: 1}}}},
		"too many picks": {Kind: event.KindToken, Req: 1, Picks: make([]uint16, MaxLine)},
	} {
		out, err := Append([]byte("before"), &e)
		if err == nil || string(out) != "before" {
			t.Errorf("%s: %v, %.100q", name, err, out)
		}
	}
}

// TestInvalidNumbers checks that NaN, infinities and negative counts are not encoded.
func TestInvalidNumbers(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, e := range map[string]event.Event{
		"log-probability": {Kind: event.KindToken, Req: 1, LogP: float32(math.Inf(-1)), HasLogP: true},
		"duration":        {Kind: event.KindStage, Stage: event.StageQueue, Dur: -5, N: -1},
		"kv":              {Kind: event.KindKV, Data: &event.KV{Used: -1, Total: -1, Freed: -1, Page: -1}},
		"counters":        {Kind: event.KindCounters, Data: &event.Counters{Values: []event.Counter{{Name: "x", Value: nan}}}},
		"host": {Kind: event.KindHost, Data: &event.Host{
			Interval: -1, Cores: []float64{nan}, CPU: event.MeasuredValue(inf), Load1: event.DerivedValue(nan), GPUs: []event.GPU{{Power: event.MeasuredValue(-inf)}},
		}},
		"model":   {Kind: event.KindModel, Dur: -1, Data: &event.Model{Parameters: -1, Layers: -1}},
		"outcome": {Kind: event.KindRequest, Req: 1, State: event.StateFailed, Data: &event.Outcome{Prompt: -1, Generated: -1}},
	} {
		line, err := Append(nil, &e)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s := string(line); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") || strings.Contains(s, ":-") {
			t.Errorf("%s: %s", name, line)
		}
		if n := len(decode(t, new(Decoder), line)); n != 1 {
			t.Errorf("%s: %d events", name, n)
		}
	}
}

// TestLinesAreSafeToPrint checks that lines contain no characters that affect a terminal, and round-trip.
func TestLinesAreSafeToPrint(t *testing.T) {
	const text = "a\x1b[2J\x7f\u009b0;x\u202e\u2066\u200b\u2028\U000E0041日本é\"\\\n"
	line, err := Append(nil, &event.Event{Kind: event.KindLog, At: 1, Layer: -1, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range string(line) {
		if !clean.Safe(r) {
			t.Errorf("%U in %q", r, line)
		}
	}
	var back []event.Event
	if _, err := new(Decoder).Decode(line, func(e event.Event) { back = append(back, e) }); err != nil || len(back) != 1 || back[0].Text != text {
		t.Errorf("%q decoded to %+v, %v", text, back, err)
	}
}
