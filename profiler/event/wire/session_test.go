package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestHelloRoundTrip(t *testing.T) {
	engine := &event.EngineInfo{Name: "e", Version: "2", PID: 7, Epoch: 1787400001000000000, Caps: event.CapTokens, State: event.EngineReady}
	model := &event.Model{Name: "m", Layers: 3, Parameters: 1 << 40}
	line := AppendHello(nil, 250, "abc", engine, model, 9)
	var got []event.Event
	s, err := new(Decoder).Decode(line, func(e event.Event) { got = append(got, e) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Session{Type: Hello, Version: "1.0", Run: "abc", At: 250, Wall: engine.Epoch + 250}, s); diff != "" {
		t.Error(diff)
	}
	want := []event.Event{
		{Kind: event.KindEngine, Layer: -1, At: 250, Data: engine}, {Kind: event.KindModel, Layer: -1, At: 250, Dur: 9, Data: model},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestVersions(t *testing.T) {
	for v, want := range map[string]error{
		"1.0": nil, "1.99": nil, "0.3": nil, "1": nil, "2.0": ErrVersion, "10.1": ErrVersion, "": ErrMalformed, "new": ErrMalformed, "-1.0": ErrMalformed,
	} {
		_, err := new(Decoder).Decode([]byte(`{"t":"hello","v":"`+v+`","a":1,"name":"e"}`), func(event.Event) {})
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", v, err, want)
		}
	}
}

func TestSessionLinesRoundTrip(t *testing.T) {
	lost := event.Drops{event.KindToken: 3, event.KindLog: 1}
	for _, s := range []Session{
		{Type: Auth},
		{Type: Sync},
		{Type: Synced},
		{Type: Bye, Reason: "the end"},
		{Type: Clock, At: 5, Wall: 6, Events: 7, HasEvents: true},
		{Type: Dropped, At: 5, Events: 1 << 59, HasEvents: true},
		{Type: Reply, Call: 9, OK: true, Req: 4},
		{Type: Reply, Call: 9, Reason: "no"},
	} {
		var got []event.Event
		back, err := new(Decoder).Decode(AppendSession(nil, &s, &lost), func(e event.Event) { got = append(got, e) })
		if diff := cmp.Diff(s, back); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
		if s.Type != Dropped {
			if len(got) > 0 {
				t.Errorf("%v gives events %v", s, got)
			}
			continue
		}
		if diff := cmp.Diff([]event.Event{{Kind: event.KindDrops, At: 5, Layer: -1, Data: &lost}}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// TestDropsOfUnknownKindsAreCounted checks that drops of unknown kinds count as log lines.
func TestDropsOfUnknownKindsAreCounted(t *testing.T) {
	got := decode(t, new(Decoder), []byte(`{"t":"lost","a":1,"by":{"token":2,"dream":5,"log":1,"kv":-3}}`))
	if diff := cmp.Diff(&event.Drops{event.KindToken: 2, event.KindLog: 6, event.KindKV: 0}, got[0].Data); diff != "" {
		t.Error(diff)
	}
}

func TestControlsRoundTrip(t *testing.T) {
	for _, c := range controls() {
		line, err := AppendControl(nil, &c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := new(Decoder).DecodeControl(line)
		if diff := cmp.Diff(c, got); diff != "" || err != nil {
			t.Errorf("%v: %s\n%s", err, line, diff)
		}
	}
	if _, err := AppendControl(nil, &Control{Type: Generate, Generation: Generation{Prompt: strings.Repeat("x", MaxControl)}}); err == nil {
		t.Error("a prompt above MaxControl was encoded")
	}
	for _, prompt := range []string{strings.Repeat("é", MaxString), strings.Repeat("\xff", 2*MaxString)} {
		line, err := AppendControl(nil, &Control{Type: Generate, Generation: Generation{Prompt: prompt}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := new(Decoder).DecodeControl(line); err != nil || got.Generation.Prompt != prompt {
			t.Errorf("prompt of %d bytes decoded to %d bytes, %v", len(prompt), len(got.Generation.Prompt), err)
		}
	}
}

func TestInvalidControls(t *testing.T) {
	for _, line := range []string{
		"", "GET / HTTP/1.1", `{"t":"tok","a":1,"r":1}`, `{"t":"destroy","c":1}`, `{"c":1}`, `{"t":"pause"`, `{"t":"pause"} x`, `[]`,
		strings.Repeat(" ", MaxControl) + `{"t":"pause"}`,
	} {
		if c, err := new(Decoder).DecodeControl([]byte(line)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%.40q decoded to %+v, %v", line, c, err)
		}
	}
}
