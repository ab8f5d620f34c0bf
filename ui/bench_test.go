package ui

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/panes"
)

// BenchmarkFrame draws and encodes one frame of the live session, with the next token's text each time, as while decoding.
func BenchmarkFrame(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			s := *liveSnapshot()
			cur := *s.Current
			s.Current = &cur
			a := open(&s, theme.TrueColour, false, size[0], size[1])
			text, words := cur.Text, splitWords(answerText)
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

// BenchmarkFrameUnchanged is a tick that finds nothing new.
func BenchmarkFrameUnchanged(b *testing.B) {
	a := open(liveSnapshot(), theme.TrueColour, false, 200, 60)
	a.Update(tickMsg{})
	a.View()
	b.ReportAllocs()
	for b.Loop() {
		a.Update(tickMsg{})
		a.View()
	}
}

// BenchmarkFrameNewSecond is a frame for which the charts are plotted anew, once a second.
func BenchmarkFrameNewSecond(b *testing.B) {
	s := *liveSnapshot()
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

// BenchmarkFrameZoomed draws each pane with the whole screen.
func BenchmarkFrameZoomed(b *testing.B) {
	for i, name := range []string{"TTFT", "TPOT", "Experts", "Throughput", "Machine", "Text", "Know"} {
		b.Run(name, func(b *testing.B) {
			a := open(liveSnapshot(), theme.TrueColour, false, 200, 60)
			a.zoom(panes.ID(i))
			b.ReportAllocs()
			for b.Loop() {
				a.dirty = true
				a.View()
			}
		})
	}
}

// BenchmarkFrameViews draws each view at its largest: 5,000 requests and a router of 94 layers and 256 experts, another snapshot each time.
func BenchmarkFrameViews(b *testing.B) {
	crowd := largest()
	other := *crowd
	for v := range numTabs {
		for _, keys := range [][]string{nil, {">", ">", ">", ">", ">"}, {"/", "s", "t", "o", "p", "enter"}} {
			name := tabNames[v]
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

// BenchmarkFrameExpertsNewSecond is the frame in which ranking and drift of 94 layers of 256 experts are computed anew, once a second.
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

// largest is a session of 5,000 requests with a router of 94 layers and 256 experts.
func largest() *store.Snapshot {
	s, many := *crowdSnapshots(5000), routedSnapshot(94, 256, 8)
	s.Experts, s.Picks, s.Model = many.Experts, many.Picks, many.Model
	return &s
}

// viewName is what a view is called in tests.
func viewName(v view) string {
	if v < numTabs {
		return tabNames[v]
	}
	return map[view]string{viewPane: "Pane", viewOps: "Operations", viewHelp: "Help"}[v]
}

// BenchmarkFramePages draws each page of the latencies of 5,000 requests, and the views without a tab.
func BenchmarkFramePages(b *testing.B) {
	crowd := largest()
	draw := func(name string, v view, page panes.LatencyPage) {
		b.Run(name, func(b *testing.B) {
			a := open(crowd, theme.TrueColour, false, 200, 60)
			a.show(v)
			a.panes.Latency = page
			b.ReportAllocs()
			for b.Loop() {
				a.dirty = true
				a.View()
			}
		})
	}
	for page := range panes.NumLatencyPages {
		draw(page.String(), viewLatency, page)
	}
	for _, v := range []view{viewPane, viewOps, viewHelp} {
		draw(viewName(v), v, 0)
	}
}

// mostGarbage is what one frame of any view may allocate, in bytes.
const mostGarbage = 300_000

func TestFramesAllocateLittle(t *testing.T) {
	crowd := largest()
	other := *crowd
	pages := []view{viewLatency, viewLatency, viewLatency} // each but the first
	for i, v := range append(pages, viewOverview, viewRequests, viewRequest, viewLatency, viewExperts, viewSystem, viewEngines, viewPane, viewOps, viewHelp) {
		a := open(crowd, theme.TrueColour, false, 200, 60)
		a.show(v)
		if i < len(pages) {
			a.panes.Latency = panes.LatencyPage(i + 1)
		}
		if v == viewExperts {
			a.press("w", "m")
		}
		a.View()
		const frames = 10
		other.Now += 1e9 // what is computed once a second is computed in each
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for n := range frames {
			a.snap, a.dirty = []*store.Snapshot{&other, crowd}[n%2], true
			a.View()
		}
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / frames; n > mostGarbage {
			t.Errorf("a frame of %s allocates %d bytes", viewName(v), n)
		}
	}
}
