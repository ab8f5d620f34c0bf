package pane

import (
	"math"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Stages reported longer than the gap keep their length; their share is at most 1.
func TestSplitLongerThanItsGap(t *testing.T) {
	const most = math.MaxUint32
	tokens := []store.Token{
		{Gap: 1, Split: event.Split{Embed: most, Attention: most, Router: most, Experts: most, Head: most, Sample: most}},
	}
	parts, gap, n := MeanSplit(tokens)
	if gap != 1 || n != 1 {
		t.Fatalf("a gap of %v over %d tokens, want 1 ns over 1", gap, n)
	}
	for i, p := range parts {
		want := TimePart{Dur: most, Share: 1}
		if i == len(parts)-1 { // no time left for "other"
			want = TimePart{}
		}
		if p.Dur != want.Dur || p.Share != want.Share {
			t.Errorf("%s takes %v, a share of %v; want %v and %v", p.Name, p.Dur, p.Share, want.Dur, want.Share)
		}
	}
}

// Tokens whose forward pass is unknown have no stages, even if the time of sampling is known.
func TestSplitWithoutAPass(t *testing.T) {
	if _, _, n := MeanSplit([]store.Token{{Gap: 9}, {Gap: 9, Split: event.Split{Sample: 3}}}); n != 0 {
		t.Errorf("%d tokens with stages, want 0", n)
	}
}

// How to get text depends on who made the engine.
func TestTextAbsence(t *testing.T) {
	for name, c := range map[string]struct {
		engine event.EngineInfo
		want   string
	}{
		"llmtop":          {event.EngineInfo{Name: "native", Caps: event.CapTokens}, "--send-text"},
		"llmtop's llama":  {event.EngineInfo{Name: "llama.cpp", Caps: event.CapTokens | event.CapOps}, "--send-text"},
		"an emitter":      {event.EngineInfo{Name: "my-engine", Caps: event.CapTokens}, "text=True (Python) or options.text (C, Rust)"},
		"in Python":       {event.EngineInfo{Name: "my-engine", SDK: "python", Caps: event.CapTokens | event.CapOps}, ": llmtop.serve(text=True) sends it"},
		"in C":            {event.EngineInfo{Name: "my-engine", SDK: "c", Caps: event.CapTokens | event.CapOps}, ": set options.text"},
		"in Rust":         {event.EngineInfo{Name: "my-engine", SDK: "rust", Caps: event.CapTokens}, ": set options.text"},
		"it sends text":   {event.EngineInfo{Name: "my-engine", Caps: event.CapTokens | event.CapText}, "not reported by this engine"},
		"without tokens":  {event.EngineInfo{Name: "vllm"}, "not reported by this engine"},
		"in this process": {event.EngineInfo{Name: "my-engine", Caps: event.CapTokens}, "not reported by this engine"},
	} {
		s := &store.Snapshot{Engine: c.engine}
		if name != "in this process" {
			s.Engine.Remote.Link = event.LinkConnected
		}
		if got := new(Frame).TextAbsence(s); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The legend is complete: the title is shorter where there is little room.
func TestLegendOfTheLayers(t *testing.T) {
	r := &store.Request{ID: 12, Layers: []store.LayerPart{{Attention: 1, Router: 1, Experts: 3}}}
	for w, title := range map[int]string{60: "Prompt of #12 by layer", 47: "Prompt by layer", 40: "By layer"} {
		var g grid.Grid
		g.Reset(w, 3)
		DrawLayers(g.All(), &Frame{Skin: theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)}, r)
		if screen := g.Plain(); !strings.HasPrefix(screen, title+"  a attention r router e experts") {
			t.Errorf("%d cells:\n%s", w, screen)
		}
	}
}
