package cmd

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/runtime/source/discover"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// TestBlocked checks that an engine that needs a key can be watched with one, and that a server that may not be an
// engine cannot.
func TestBlocked(t *testing.T) {
	vllm := discover.Found{Kind: engine.VLLM, Address: "http://127.0.0.1:8000", How: discover.ByProcess}
	with := func(change func(*discover.Found)) *discover.Found {
		f := vllm
		change(&f)
		return &f
	}
	for name, tt := range map[string]struct {
		f            *discover.Found
		key, message string // message "": can be watched
	}{
		"ready":          {&vllm, "", ""},
		"locked":         {with(func(f *discover.Found) { f.State = discover.NeedsKey }), "", "LLMTOP_API_KEY"},
		"unlocked":       {with(func(f *discover.Found) { f.State = discover.NeedsKey }), "secret", ""},
		"wants a token":  {with(func(f *discover.Found) { f.State, f.How = discover.NeedsKey, discover.BySocket }), "secret", "--token-file"},
		"maybe none":     {with(func(f *discover.Found) { f.State, f.Kind = discover.NeedsKey, "" }), "secret", "may not be an engine"},
		"silent":         {with(func(f *discover.Found) { f.State, f.Why = discover.Silent, "it hangs" }), "", "it hangs"},
		"not to be had":  {with(func(f *discover.Found) { f.State, f.Address = discover.Elsewhere, "" }), "", "not reachable"},
		"by probes only": {with(func(f *discover.Found) { f.State, f.Address = discover.NeedsRoot, "pid:12" }), "", "sudo "},
		"still loading":  {with(func(f *discover.Found) { f.State = discover.Loading }), "", ""},
		"without a door": {with(func(f *discover.Found) { f.Address = "" }), "", "ready"},
	} {
		t.Setenv("LLMTOP_API_KEY", tt.key)
		got := blocked(tt.f)
		if (got == "") != (tt.message == "") || !strings.Contains(got, tt.message) {
			t.Errorf("%s: %q, want %q", name, got, tt.message)
		}
	}
}

func TestCandidates(t *testing.T) {
	found := someEngines()
	rows, notes := candidates(&found)
	if len(rows) != 4 || len(notes) != 1 {
		t.Fatalf("%d rows, notes %q", len(rows), notes)
	}
	first, all := rows[0], strings.Join(rows[0].Details, "\n")
	if first.Name != "Ollama" || !first.Running.OK() || first.Decode.OK() || first.Blocked != "" {
		t.Errorf("%+v", first)
	}
	for _, want := range []string{"process 100 (ollama serve)", "version 0.33.0", "process 101", "llmtop attach http://127.0.0.1:41233", "by probes, every forward pass and token: ", " attach pid:101"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q lacks %q", all, want)
		}
	}
	if rows[3].Name != "unknown" || rows[3].Blocked == "" {
		t.Errorf("%+v", rows[3])
	}
	if words := builtinReason(found.Engines[3:]); !strings.Contains(words, "http://127.0.0.1:1234") {
		t.Errorf("for a server that needs a key: %q", words)
	}
}

// TestDiscoverWanted checks that no engines are searched with a flag for running the built-in model, or without a
// terminal.
func TestDiscoverWanted(t *testing.T) {
	root := NewRoot()
	s := discoverFlags{discover: address.DiscoverAll}
	if s.wanted(root.Flags(), &screen.View{}) {
		t.Error("engines are looked for without a terminal")
	}
	if err := (&discoverFlags{discover: "some"}).check(new(pflag.FlagSet)); err == nil {
		t.Error("--discover takes anything")
	}
	for flags, want := range map[string]bool{"": true, "--theme=light --fps=5": true, "--pace=3": false, "--record=x": false, "--discover=sockets": true, "-n 3": false} {
		root := NewRoot()
		if err := root.ParseFlags(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		if got := !hasRunFlag(root.Flags()); got != want {
			t.Errorf("%q: looks: %t", flags, got)
		}
	}
}
