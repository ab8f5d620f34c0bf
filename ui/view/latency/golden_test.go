package latency

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// Each page, with a mark that was just set.
func TestGoldenPages(t *testing.T) {
	s := viewtest.ColdRequests()
	for page := range NumPages {
		name, _, _ := strings.Cut(page.String(), " ")
		for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Medium} {
			if size == viewtest.Narrow && page > PageDistributions {
				continue // the same, with fewer columns
			}
			p := viewtest.NewScreen(t, s, size)
			p.Frame().Marks = []pane.Mark{{Name: "m1", Snapshot: s}}
			p.Show(&View{Page: page}).Golden("page_" + strings.ToLower(name))
		}
	}
}

// All together, of a crowd: the colours of the heatmap are the numbers of tokens.
func TestGolden(t *testing.T) {
	crowd := viewtest.Crowd(5000)
	viewtest.NewScreen(t, crowd, viewtest.Wide).Show(&View{}).Golden("crowd")
	viewtest.NewScreen(t, crowd, viewtest.Medium).Show(&View{}).GoldenColours("crowd")
	viewtest.NewScreen(t, crowd, viewtest.Medium).ASCII().Show(&View{}).Golden("ascii")
}

// An idle engine shows the last values, dimmed.
func TestGoldenIdle(t *testing.T) {
	viewtest.NewScreen(t, viewtest.Idle().Snapshot(), viewtest.Medium).Show(&View{}).GoldenColours("idle")
}

// The latencies of servers that report histograms, slots or the times of their start, and of probes.
func TestGoldenPolled(t *testing.T) {
	for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Wide} {
		viewtest.NewScreen(t, viewtest.Played("vllm"), size).Show(&View{}).Golden("counted")
	}
	viewtest.NewScreen(t, viewtest.Played("slots"), viewtest.Wide).Show(&View{}).Golden("slots")
	viewtest.NewScreen(t, viewtest.Played("started"), viewtest.Wide).Show(&View{}).Golden("started")
}

// The cost of cache misses stands beside the targets, with the cause of most of it.
func TestCacheMisses(t *testing.T) {
	s := *viewtest.Crowd(100)
	s.Requests = slices.Clone(s.Requests)
	for i, r := range s.Requests {
		q := *r
		q.PromptTokens, q.CachedTokens = 400, 40
		q.Reuse = event.Reuse{With: 1, Kind: event.BreakTimestamp, Place: "messages[0].content", Common: 100, Same: 900, Bytes: 1000}
		if i%4 == 0 {
			q.Reuse.Kind, q.Reuse.Place = event.BreakToolOrder, "tools[0]"
		}
		s.Requests[i] = &q
	}
	screen := viewtest.NewScreen(t, &s, viewtest.Wide).Show(&View{}).Text()
	if !regexp.MustCompile(`cache misses \d+ % of prefill, [5-9]\d % of them: a timestamp differs, messages\[0\]\.content`).MatchString(screen) {
		t.Error(screen)
	}
}

// The title of the chart says which axis it has, and what Y does.
func TestAxisOfTheChart(t *testing.T) {
	p := viewtest.NewScreen(t, viewtest.LiveSnapshot(), viewtest.Medium)
	p.Show(&View{}).Holds("linear axis (Y: log)")
	p.Frame().LogAxis = true
	p.Show(&View{}).Holds("log axis (Y: linear)")
}

// Engines without latencies say why.
func TestNothingMeasured(t *testing.T) {
	for want, s := range map[string]*store.Snapshot{
		"latencies: not reported by this engine":         viewtest.Played("bare"),
		"measure them with llmtop proxy or llmtop bench": viewtest.Played("untimed"),
		"waiting for the model to load":                  viewtest.Played("traces"),
	} {
		viewtest.NewScreen(t, s, viewtest.Narrow).Show(&View{}).Holds(want)
	}
}
