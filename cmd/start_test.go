package cmd

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/discover"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// TestWhatCanBeWatched: an engine that wants a key can be with one; what may be none cannot.
func TestWhatCanBeWatched(t *testing.T) {
	vllm := discover.Found{Kind: identify.VLLM, Address: "http://127.0.0.1:8000", How: discover.ByProcess}
	with := func(change func(*discover.Found)) *discover.Found {
		f := vllm
		change(&f)
		return &f
	}
	for name, tt := range map[string]struct {
		f         *discover.Found
		key, says string // says "": it can
	}{
		"ready":          {&vllm, "", ""},
		"locked":         {with(func(f *discover.Found) { f.State = discover.NeedsKey }), "", "LLMTOP_API_KEY"},
		"unlocked":       {with(func(f *discover.Found) { f.State = discover.NeedsKey }), "secret", ""},
		"wants a token":  {with(func(f *discover.Found) { f.State, f.How = discover.NeedsKey, discover.BySocket }), "secret", "--token-file"},
		"maybe none":     {with(func(f *discover.Found) { f.State, f.Kind = discover.NeedsKey, "" }), "secret", "may be no engine"},
		"silent":         {with(func(f *discover.Found) { f.State, f.Why = discover.Silent, "it hangs" }), "", "it hangs"},
		"not to be had":  {with(func(f *discover.Found) { f.State, f.Address = discover.Elsewhere, "" }), "", "not reachable"},
		"still loading":  {with(func(f *discover.Found) { f.State = discover.Loading }), "", ""},
		"without a door": {with(func(f *discover.Found) { f.Address = "" }), "", "ready"},
	} {
		t.Setenv("LLMTOP_API_KEY", tt.key)
		got := blocked(tt.f)
		if (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
			t.Errorf("%s: %q, want %q", name, got, tt.says)
		}
	}
}

func TestCandidatesTellWhatIsKnown(t *testing.T) {
	found := someEngines()
	rows, notes := candidates(&found)
	if len(rows) != 4 || len(notes) != 1 {
		t.Fatalf("%d rows, notes %q", len(rows), notes)
	}
	first, all := rows[0], strings.Join(rows[0].Details, "\n")
	if first.Name != "Ollama" || !first.Running.OK() || first.Decode.OK() || first.Blocked != "" {
		t.Errorf("%+v", first)
	}
	for _, want := range []string{"process 100 (ollama serve)", "version 0.33.0", "process 101", "http://127.0.0.1:41233"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q lacks %q", all, want)
		}
	}
	if rows[3].Name != "unknown" || rows[3].Blocked == "" {
		t.Errorf("%+v", rows[3])
	}
	if words := nothingFound(found.Engines[3:]); !strings.Contains(words, "http://127.0.0.1:1234") {
		t.Errorf("of what needs a key it says %q", words)
	}
}

// TestFlagsThatSayHowToRun: engines are not looked for where somebody has said how the built-in model should run, or without a terminal.
func TestFlagsThatSayHowToRun(t *testing.T) {
	root := newRootCommand()
	s := starting{discover: discoverAll}
	if s.looks(root.Flags(), &view{}) {
		t.Error("engines are looked for without a terminal")
	}
	if err := (&starting{discover: "some"}).check(); err == nil {
		t.Error("--discover takes anything")
	}
	for flags, want := range map[string]bool{"": true, "--theme=light --fps=5": true, "--pace=3": false, "--record=x": false, "--discover=sockets": true, "-n 3": false} {
		root := newRootCommand()
		if err := root.ParseFlags(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		if got := !aboutRun(root.Flags()); got != want {
			t.Errorf("%q: looks: %t", flags, got)
		}
	}
}
