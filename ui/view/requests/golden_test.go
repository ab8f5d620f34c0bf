package requests

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// show shows the table.
func show(p *viewtest.Screen) *viewtest.Screen {
	return p.Show(New(p, &table.Selection{Follow: true}, func() {}))
}

// The table with few requests and many: sorted, filtered, scrolled.
func TestGoldenTable(t *testing.T) {
	wide := viewtest.Size{W: 200, H: 58} // with all columns
	for _, c := range []struct {
		state string
		n     int
		size  viewtest.Size
		keys  []string
	}{
		{"crowd", 5000, viewtest.Narrow, nil},
		{"crowd", 5000, wide, nil},
		{"one", 1, viewtest.Medium, nil},
		{"twenty", 20, viewtest.Medium, []string{"down", "down"}},
		{"sorted", 5000, viewtest.Medium, strings.Split(">>>>>>>", "")},
		{"filtered", 5000, viewtest.Medium, strings.Split("/stalled group=adapter-a", "")},
		{"filter_wrong", 5000, viewtest.Medium, strings.Split("/ttft>5", "")},
		{"filter_empty", 5000, viewtest.Medium, strings.Split("/gen>1M", "")},
		{"pinned", 5000, viewtest.Medium, []string{"down", "down", "down", "down", "end"}},
	} {
		p := viewtest.NewScreen(t, viewtest.Crowd(c.n), c.size)
		show(p).Press(c.keys...).Golden(c.state)
	}
	show(viewtest.NewScreen(t, viewtest.Crowd(5000), viewtest.Medium)).GoldenColours("crowd") // marks the selected row
	show(viewtest.NewScreen(t, viewtest.Crowd(5000), viewtest.Medium).ASCII()).Golden("ascii")
}

// The timeline of many requests, of an idle engine, and of one request that waits behind another.
func TestGoldenTimeline(t *testing.T) {
	show(viewtest.NewScreen(t, viewtest.Crowd(5000), viewtest.Wide)).Press("v").Golden("timeline_crowd")
	show(viewtest.NewScreen(t, viewtest.Idle().Snapshot(), viewtest.Narrow)).Press("v").Golden("timeline_idle")
	show(viewtest.NewScreen(t, viewtest.Crowd(20), viewtest.Medium).ASCII()).Press("v", "down", "down").Golden("timeline_ascii")
}

// The requests of servers that report their slots, and that send traces.
func TestGoldenPolled(t *testing.T) {
	for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Wide} {
		show(viewtest.NewScreen(t, viewtest.Played("slots"), size)).Golden("slots")
		show(viewtest.NewScreen(t, viewtest.Played("ollama_busy"), size)).Golden("models")
	}
}

// What a slot generated after its last poll is unknown: the tokens of a request that left it, and their sum, are lower
// bounds. The sum of cached tokens is that of the rows.
func TestEndedSlots(t *testing.T) {
	s := viewtest.NewScene()
	s.Server("llama.cpp", event.Model{Name: "m", Context: 8192})
	for _, slots := range [][]event.Slot{
		{{Request: 1, Prompt: 95, Processed: 95, Cached: 19, Generated: 40, Context: 8192}, {Slot: 1, Request: 2, Prompt: 60, Processed: 60, Cached: 50, Generated: 7, Context: 8192}},
		{{Context: 8192}, {Slot: 1, Request: 2, Prompt: 60, Processed: 60, Cached: 50, Generated: 9, Context: 8192}},
	} {
		s.Now += event.Time(time.Second)
		s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: &event.Aggregates{Interval: int64(time.Second), Running: viewtest.Reading(1), Slots: slots}})
	}
	p := show(viewtest.NewScreen(t, s.Snapshot(), viewtest.Wide))
	for _, row := range []string{"60     50      9 ", "95     19    40+ ", "not reported", "155     69    49+ "} {
		p.Holds(row)
	}
}

// Engines without requests to list say why.
func TestNothingToList(t *testing.T) {
	for want, s := range map[string]*store.Snapshot{
		"0, newest first": viewtest.Played("traces"),
		"per-request metrics: not reported by this engine": viewtest.Played("vllm"),
		"measure them with llmtop proxy":                   viewtest.Played("bare"),
		"waiting for the model to load":                    viewtest.Played("models"),
	} {
		show(viewtest.NewScreen(t, s, viewtest.Narrow)).Holds(want)
	}
}

// The sort keys go through the columns with data, in both directions.
func TestSortKeysSkipEmptyColumns(t *testing.T) {
	s := viewtest.LiveSnapshot()
	for _, key := range []string{">", "<"} {
		p := viewtest.NewScreen(t, s, viewtest.Wide)
		v := New(p, &table.Selection{Follow: true}, nil)
		p.Show(v)
		seen := map[table.Field]bool{}
		for !seen[v.List.By] {
			if seen[v.List.By] = true; !varies(v.List, v.List.By) {
				t.Errorf("%s sorts by %v, which no request has", key, v.List.By)
			}
			p.Press(key)
		}
		for f := range table.NumFields {
			if varies(v.List, f) && !seen[f] {
				t.Errorf("%s does not reach %v", key, f)
			}
		}
		if seen[table.Group] || seen[table.Model] || !seen[table.Label] || !seen[table.TTFT] {
			t.Errorf("%s sorts by %v", key, seen)
		}
	}
}
