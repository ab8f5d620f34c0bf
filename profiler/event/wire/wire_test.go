package wire

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

// decoded is what a decoder makes of a line.
func decoded(t testing.TB, d *Decoder, line []byte) []event.Event {
	t.Helper()
	var out []event.Event
	if _, err := d.Decode(line, func(e event.Event) { out = append(out, e) }); err != nil {
		t.Fatalf("%v in %.400s", err, line)
	}
	return out
}

// TestEveryEventComesBack: what is written is read again, whatever it is.
func TestEveryEventComesBack(t *testing.T) {
	var c Codec
	var line []byte
	rapid.Check(t, func(r *rapid.T) {
		e := anyEvent(r)
		var err error
		line, err = c.Append(line[:0], &e)
		if err != nil {
			r.Fatalf("%v: %+v", err, e)
		}
		if strings.ContainsAny(string(line), "\n\r") {
			r.Fatalf("more than one line: %s", line)
		}
		var got []event.Event
		if err := c.Decode(line, func(e event.Event) { got = append(got, e) }); err != nil {
			r.Fatalf("%v: %s", err, line)
		}
		if diff := cmp.Diff([]event.Event{e}, got); diff != "" {
			r.Fatalf("%s\n%s", line, diff)
		}
	})
}

// TestBatchesComeBack: so do many tokens in one line, after the line of the passes that made them.
func TestBatchesComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		first := rapid.Uint64Range(1, 1<<40).Draw(r, "first")
		var steps, tokens []event.Event
		for i := range rapid.IntRange(1, 40).Draw(r, "steps") {
			s := anyOf(r, event.KindStep)
			s.Step, s.Data = first+uint64(i), nil
			steps = append(steps, s)
			for range rapid.IntRange(0, 3).Draw(r, "tokens") {
				e := anyOf(r, event.KindToken)
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
		if diff := cmp.Diff(steps, decoded(t, &d, line)); diff != "" {
			r.Fatalf("%s\n%s", line, diff)
		}
		if len(tokens) == 0 {
			return
		}
		if line, err = AppendTokens(line[:0], tokens, steps); err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(tokens, decoded(t, &d, line)); diff != "" {
			r.Fatalf("%s\n%s", line, diff)
		}
	})
}

// TestEventsThatNoLineCanCarry are refused and leave what was written as it was.
func TestEventsThatNoLineCanCarry(t *testing.T) {
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
		"too many picks": {Kind: event.KindToken, Req: 1, Picks: make([]uint16, MaxLine)},
	} {
		out, err := Append([]byte("before"), &e)
		if err == nil || string(out) != "before" {
			t.Errorf("%s: %v, %.100q", name, err, out)
		}
	}
}

// TestNumbersThatAreNone do not reach the line.
func TestNumbersThatAreNone(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, e := range map[string]event.Event{
		"log-probability": {Kind: event.KindToken, Req: 1, LogP: float32(math.Inf(-1)), HasLogP: true},
		"duration":        {Kind: event.KindStage, Stage: event.StageQueue, Dur: -5, N: -1},
		"kv":              {Kind: event.KindKV, Data: &event.KV{Used: -1, Total: -1, Freed: -1, Page: -1}},
		"counters":        {Kind: event.KindCounters, Data: &event.Counters{Values: []event.Counter{{Name: "x", Value: nan}}}},
		"host": {Kind: event.KindHost, Data: &event.Host{
			Interval: -1, Cores: []float64{nan}, CPU: event.Of(inf), Load1: event.From(nan), GPUs: []event.GPU{{Power: event.Of(-inf)}},
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
		if n := len(decoded(t, new(Decoder), line)); n != 1 {
			t.Errorf("%s: %d events", name, n)
		}
	}
}
