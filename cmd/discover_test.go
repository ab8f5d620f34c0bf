package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// someEngines returns a possible result of discovery.
func someEngines() discover.Result {
	return discover.Result{Took: 12 * time.Millisecond, Notes: []string{"12 processes could not be read: not permitted"}, Engines: []discover.Found{
		{
			Kind: engine.Ollama, Version: "0.33.0", Model: "qwen3:30b-a3b", Address: "http://127.0.0.1:11434", PID: 100, Program: "ollama serve",
			How: discover.ByProcess, Load: engine.Load{Running: event.Reading{Origin: event.Reported}},
			Runners: []discover.Runner{{PID: 101, Address: "http://127.0.0.1:41233", Model: "sha256-0b28110b7a33" + strings.Repeat("7", 52), Probes: discover.Probes{Address: "pid:101"}}},
		},
		{
			Kind: "mine", Address: "unix:/run/llmtop/mine.sock", Other: "http://127.0.0.1:8000", PID: 5, Model: "evil\x1b[31m\nname",
			Probes: discover.Probes{Why: "its symbols are stripped"},
		},
		{Kind: engine.VLLM, Address: "http://127.0.0.1:8001", State: discover.NeedsKey, How: discover.ByProcess},
		{Address: "http://127.0.0.1:1234", State: discover.NeedsKey, How: discover.ByPort},
	}}
}

func TestDiscoveredTable(t *testing.T) {
	var out bytes.Buffer
	if err := listDiscovered(&out, someEngines()); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, want := range []string{
		"Ollama ", "qwen3:30b-a3b", "http://127.0.0.1:11434", "process (ollama serve)", "its llama-server  sha256-0b28110b7a33  ", "http://127.0.0.1:41233", "  also ",
		"needs a key", "unknown ", "usual port", "socket, HTTP, not probes: its symbols are stripped", "HTTP, probes", " attach pid:101\n", "note: 12 processes could not be read: not permitted",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") || strings.Count(got, "\n") != 9 {
		t.Errorf("the table has control characters of a name: %q", got)
	}
	out.Reset()
	if err := listDiscovered(&out, discover.Result{}); err != nil || out.String() != "no engine found; llmtop without arguments runs the built-in model\n" {
		t.Errorf("without engines: %q, %v", out.String(), err)
	}
}

func TestDiscoveredJSON(t *testing.T) {
	var out bytes.Buffer
	if err := writeDiscovered(&out, someEngines()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Engines []discoveredEngine `json:"engines"`
		Notes   []string           `json:"notes"`
		TookMS  float64            `json:"took_ms"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	first := got.Engines[0]
	switch {
	case len(got.Engines) != 4 || got.TookMS != 12 || len(got.Notes) != 1:
		t.Errorf("%+v", got)
	case first.Running == nil || *first.Running != 0 || first.Waiting != nil:
		t.Errorf("a reported 0 and a missing value: %+v", first)
	case len(first.Runners) != 1 || first.Runners[0].Address != "http://127.0.0.1:41233":
		t.Errorf("runners %+v", first.Runners)
	case !slices.Equal(first.Runners[0].Watch, []discover.Way{{By: "HTTP", Address: "http://127.0.0.1:41233"}, {By: "probes", Address: "pid:101", Root: true}}):
		t.Errorf("ways to watch a runner: %+v", first.Runners[0].Watch)
	}
	out.Reset()
	if err := writeDiscovered(&out, discover.Result{}); err != nil || !strings.Contains(out.String(), `"engines": [],`) {
		t.Errorf("without engines: %s, %v", out.String(), err)
	}
	if err := writeDiscovered(refusing{}, someEngines()); err == nil {
		t.Error("no error for a list that cannot be written")
	}
	if err := listDiscovered(refusing{}, someEngines()); err == nil {
		t.Error("no error for a table that cannot be written")
	}
}

// refusing is a writer on a full disk.
type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
