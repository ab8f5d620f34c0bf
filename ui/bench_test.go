package ui

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/latency"
	"github.com/llmtop/llmtop/ui/view/overview"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// BenchmarkFrame draws and encodes one frame of the live session, with one more token of text each time, as while
// decoding.
func BenchmarkFrame(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			s := *viewtest.LiveSnapshot()
			cur := *s.Current
			s.Current = &cur
			a := open(&s, theme.TrueColour, false, size[0], size[1])
			text, words := cur.Text, viewtest.SplitWords(viewtest.AnswerText)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%200 == 0 {
					cur.Text = text
				}
				cur.Text += words[n%len(words)]
				n++
				a.dirty = true
				a.View()
			}
		})
	}
}

// BenchmarkFrameUnchanged measures a tick with an unchanged snapshot.
func BenchmarkFrameUnchanged(b *testing.B) {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 200, 60)
	a.Update(tickMsg{})
	a.View()
	b.ReportAllocs()
	for b.Loop() {
		a.Update(tickMsg{})
		a.View()
	}
}

// BenchmarkFrameNewSecond measures the frame that plots the charts again, once per second.
func BenchmarkFrameNewSecond(b *testing.B) {
	s := *viewtest.LiveSnapshot()
	pts := slices.Clone(s.Latency.Series)
	s.Latency.Series = pts
	a := open(&s, theme.TrueColour, false, 200, 60)
	b.ReportAllocs()
	for b.Loop() {
		pts[len(pts)-1].At += event.Time(1)
		a.dirty = true
		a.View()
	}
}

// BenchmarkFrameZoomed draws each pane in full screen.
func BenchmarkFrameZoomed(b *testing.B) {
	for i, name := range []string{"TTFT", "ITL", "Experts", "Throughput", "Machine", "Text", "Insights"} {
		b.Run(name, func(b *testing.B) {
			a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 200, 60)
			a.zoom(overview.ID(i))
			b.ReportAllocs()
			for b.Loop() {
				a.dirty = true
				a.View()
			}
		})
	}
}

// BenchmarkFrameViews draws each view at its largest: 5,000 requests and a router of 94 layers with 256 experts,
// another snapshot each time.
func BenchmarkFrameViews(b *testing.B) {
	crowd := largest()
	other := *crowd
	for v := range numTabs {
		for _, keys := range [][]string{nil, {">", ">", ">", ">", ">"}, {"/", "s", "t", "o", "p", "enter"}} {
			name := viewName(v)
			if keys != nil {
				if v != viewRequests {
					continue
				}
				name += map[string]string{">": " sorted", "/": " filtered"}[keys[0]]
			}
			b.Run(name, func(b *testing.B) {
				a := open(crowd, theme.TrueColour, false, 200, 60)
				a.show(v)
				a.View()
				for _, k := range keys {
					a.press(k)
					a.View()
				}
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					a.snap, a.dirty = []*store.Snapshot{crowd, &other}[n%2], true
					a.View()
				}
			})
		}
	}
}

// BenchmarkFrameExpertsNewSecond measures the frame that computes ranking and drift of 94 layers with 256 experts
// again, once per second.
func BenchmarkFrameExpertsNewSecond(b *testing.B) {
	s := *largest()
	a := open(&s, theme.TrueColour, false, 200, 60)
	a.press("5", "w", "m")
	b.ReportAllocs()
	for b.Loop() {
		s.Now += event.Time(1e9)
		a.dirty = true
		a.View()
	}
}

// largest returns a session of 5,000 requests with a router of 94 layers and 256 experts.
func largest() *store.Snapshot {
	s, many := *viewtest.Crowd(5000), viewtest.Routed(viewtest.Large)
	s.Experts, s.Picks, s.Model = many.Experts, many.Picks, many.Model
	return &s
}

// BenchmarkFramePages draws each latency page of 5,000 requests, and the views without a tab.
func BenchmarkFramePages(b *testing.B) {
	crowd := largest()
	draw := func(name string, v viewID, page latency.Page) {
		b.Run(name, func(b *testing.B) {
			a := open(crowd, theme.TrueColour, false, 200, 60)
			a.show(v)
			a.latency.Page = page
			b.ReportAllocs()
			for b.Loop() {
				a.dirty = true
				a.View()
			}
		})
	}
	for page := range latency.NumPages {
		draw(page.String(), viewLatency, page)
	}
	for _, v := range []viewID{viewPane, viewOps, viewHelp} {
		draw(viewName(v), v, 0)
	}
}

// maxFrameAllocs bounds the bytes that one frame of any view may allocate.
const maxFrameAllocs = 300_000

func TestFramesAllocateLittle(t *testing.T) {
	eventtest.SkipUnderRace(t)
	crowd := largest()
	other := *crowd
	pages := []viewID{viewLatency, viewLatency, viewLatency} // every page except the first
	for i, v := range append(pages, viewOverview, viewRequests, viewRequest, viewLatency, viewExperts, viewSystem, viewEngines, viewPane, viewOps, viewHelp) {
		a := open(crowd, theme.TrueColour, false, 200, 60)
		a.show(v)
		if i < len(pages) {
			a.latency.Page = latency.Page(i + 1)
		}
		if v == viewExperts {
			a.press("w", "m")
		}
		a.View()
		const frames = 10
		other.Now += 1e9 // so that each frame computes what is computed once per second
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for n := range frames {
			a.snap, a.dirty = []*store.Snapshot{&other, crowd}[n%2], true
			a.View()
		}
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / frames; n > maxFrameAllocs {
			t.Errorf("a frame of %s allocates %d bytes", viewName(v), n)
		}
	}
}

// BenchmarkFrameOfRunning draws each view with the maximum number of open requests, each with a new token since the
// last frame.
func BenchmarkFrameOfRunning(b *testing.B) {
	now := event.Time(1e9)
	s := store.New(store.Options{Now: func() event.Time { return now }, Wall: func() time.Time { return time.Unix(0, int64(now)) }})
	emit := func(e event.Event) {
		now += 100
		e.At, e.Layer = now, -1
		s.Emit(e)
	}
	all := func(do func(id event.RequestID)) {
		for id := range event.RequestID(store.MaxOpen) {
			if do(id + 1); id%4096 == 0 {
				s.Drain()
			}
		}
		s.Drain()
	}
	emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "native", State: event.EngineReady, Caps: event.CapTokens | event.CapQueue | event.CapStages}})
	all(func(id event.RequestID) {
		emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{Prompt: "a prompt", Group: "g"}})
		emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
		emit(event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Req: id, Dur: 100, N: 9})
	})
	token := func(id event.RequestID) { emit(event.Event{Kind: event.KindToken, Req: id, N: 1, Text: " word"}) }
	for range 20 {
		all(token)
	}
	one := s.Snapshot()
	all(token)
	other := s.Snapshot()
	for v := range numTabs {
		b.Run(viewName(v), func(b *testing.B) {
			a := open(one, theme.TrueColour, false, 200, 60)
			a.show(v)
			a.View()
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				a.snap, a.dirty = []*store.Snapshot{one, other}[n%2], true
				a.View()
			}
		})
	}
}
