package overview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/latency"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// show shows the overview.
func show(p *viewtest.Screen) *viewtest.Screen { return p.Show(newView(Layout{})) }

// Every state of a session has its own texts.
func TestGoldenStates(t *testing.T) {
	for _, sc := range viewtest.Scenes {
		size := viewtest.Size{W: 100, H: 28}
		if sc.Name == "live" {
			size = viewtest.Medium
		}
		show(viewtest.NewScreen(t, sc.Make().Snapshot(), size)).Golden(sc.Name)
	}
	for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Wide, {W: 200, H: 57}} {
		show(viewtest.NewScreen(t, viewtest.LiveSnapshot(), size)).Golden("live")
	}
	show(viewtest.NewScreen(t, viewtest.Played("slots"), viewtest.Size{W: 200, H: 57})).Golden("polled_slots")
	sparse := viewtest.Sparse().Snapshot()
	for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Medium, viewtest.Wide} {
		show(viewtest.NewScreen(t, sparse, size)).Golden("sparse")
	}
}

// The overview of a process whose calls of CUDA are counted, with requests that have copies, and without requests.
func TestGoldenCUDA(t *testing.T) {
	for _, size := range []viewtest.Size{{W: 80, H: 24}, viewtest.Medium, viewtest.Wide} {
		show(viewtest.NewScreen(t, viewtest.Played("cuda"), size)).Golden("cuda")
		show(viewtest.NewScreen(t, viewtest.Played("cuda_calls"), size)).Golden("cuda_calls")
	}
}

// The first tokens of a text may have none of it.
func TestTextToCome(t *testing.T) {
	for caps, want := range map[event.Caps]bool{event.CapTokens: true, event.CapTokens | event.CapText: false} {
		s := viewtest.NewScene()
		s.Emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "own", State: event.EngineReady, Caps: caps}})
		s.Emit(event.Event{Kind: event.KindRequest, Req: 1, State: event.StateQueued, Data: &event.Request{}})
		s.Emit(event.Event{Kind: event.KindToken, Req: 1, N: 1})
		screen := viewtest.NewScreen(t, s.Snapshot(), viewtest.Medium)
		var g grid.Grid
		g.Reset(60, 8)
		drawText(g.All(), screen.Snapshot(), screen.Frame())
		if got := strings.Contains(g.Plain(), "no text"); got != want {
			t.Errorf("%v: no text: %v\n%s", caps, got, g.Plain())
		}
	}
}

// A pane that had data keeps its place while it has none. One without data for the engine has no place.
func TestPanesStay(t *testing.T) {
	v, body := newView(Layout{}), grid.Rect{W: 160, H: 43}
	places := func(s *store.Snapshot) string {
		var names []string
		for _, p := range v.arrange(body, s) {
			names = append(names, p.ID.String())
		}
		return strings.Join(names, " ")
	}
	const full, few = "TTFT ITL Experts Throughput Machine Text Insights", "TTFT ITL Requests Throughput Machine Insights"
	sparse := viewtest.Sparse().Snapshot()
	for i, step := range []struct {
		s    *store.Snapshot
		want string
	}{{sparse, few}, {viewtest.LiveSnapshot(), full}, {sparse, full}} {
		if got := places(step.s); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	v.Reset()
	if got := places(sparse); got != few {
		t.Errorf("another engine: %s, want %s", got, few)
	}
	if got := places(viewtest.NewScene().Snapshot()); got != full {
		t.Errorf("an engine that llmtop starts: %s, want %s", got, full)
	}
	v.Reset()
	if got := places(viewtest.Played("unreached")); got != "Insights" {
		t.Errorf("unreached: %s", got)
	}
}

// The overview of servers that report aggregate metrics.
func TestGoldenPolled(t *testing.T) {
	for state, s := range map[string]*store.Snapshot{
		"counted": viewtest.Played("vllm"), "slots": viewtest.Played("slots"), "bare": viewtest.Played("bare"),
		"loads": viewtest.Played("models"), "otlp": viewtest.Played("traces"), "started": viewtest.Played("started"), "untimed": viewtest.Played("untimed"),
		"unreached": viewtest.Played("unreached"),
	} {
		show(viewtest.NewScreen(t, s, viewtest.Wide)).Golden("polled_" + state)
	}
	for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Medium} {
		show(viewtest.NewScreen(t, viewtest.Played("vllm"), size)).Golden("polled_counted")
		show(viewtest.NewScreen(t, viewtest.Played("ollama_empty"), size)).Golden("polled_no_model")
		show(viewtest.NewScreen(t, viewtest.Played("ollama_idle"), size)).Golden("polled_model")
		show(viewtest.NewScreen(t, viewtest.Played("ollama_busy"), size)).Golden("polled_models")
	}
}

// The age of an old number is not cut.
func TestOldCacheHits(t *testing.T) {
	s := viewtest.NewScene()
	s.Server("vLLM", event.Model{Name: "m"})
	for i := range 16 {
		s.Now += event.Time(time.Second)
		p := &event.Aggregates{Interval: int64(time.Second), Running: viewtest.Reading(1)}
		if i == 0 {
			p.CacheHits = event.DerivedValue(0.63)
		}
		s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: p})
	}
	show(viewtest.NewScreen(t, s.Snapshot(), viewtest.Narrow)).Holds("cache hit   63 % 15.0 s ago")
}

// The numbers of each model are not cut.
func TestModelsOfAServer(t *testing.T) {
	s := viewtest.NewScene()
	s.Server("llama.cpp", event.Model{Name: "m"})
	p := &event.Aggregates{Interval: int64(time.Second), Running: viewtest.Reading(3)}
	for i, name := range []string{"qwen3-30b-a3b-instruct-2507-q4_k_m.gguf", "nomic-embed-text-v1.5.f16.gguf"} {
		k := event.Rank{Name: name, Running: viewtest.Reading(2), Waiting: viewtest.Reading(11), KVUsage: viewtest.Reading(0.53), Decode: viewtest.Reading(40 + float64(i))}
		p.ByModel = append(p.ByModel, k)
	}
	s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: p})
	for size, row := range map[viewtest.Size]string{
		{W: 200, H: 57}: " 41.0 tok/s, 2 running, 11 waiting, KV 53 % ", viewtest.Medium: " 41.0/s, 2+11 wait, KV 53 % ", viewtest.Narrow: " 41.0/s, 2+11 wait, KV 53 % ",
	} {
		v := newView(Layout{})
		v.Focus = Throughput
		viewtest.NewScreen(t, s.Snapshot(), size).Show(Zoomed{v}).Holds(row)
	}
}

// Each pane in full screen.
func TestGoldenPanes(t *testing.T) {
	for id := range NumPanes {
		if id == Experts || id == Requests { // they have views of their own
			continue
		}
		p := viewtest.NewScreen(t, viewtest.LiveSnapshot(), viewtest.Medium)
		v := newView(Layout{})
		v.Focus = id
		p.Show(Zoomed{v}).Golden("zoom_" + strings.ToLower(id.String()))
	}
}

// Where each built-in layout places which panes, in every size. The panes in them are those of the other goldens.
func TestGoldenLayouts(t *testing.T) {
	var out strings.Builder
	for _, name := range Layouts() {
		l, err := LayoutNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range [][2]int{{60, 16}, {80, 22}, {120, 34}, {160, 43}, {200, 58}} {
			fmt.Fprintf(&out, "%s %dx%d\n", name, size[0], size[1])
			for _, p := range newView(l).arrange(grid.Rect{W: size[0], H: size[1]}, viewtest.LiveSnapshot()) {
				fmt.Fprintf(&out, "  %-10s %3dx%-2d at %3d,%d\n", p.ID, p.At.W, p.At.H, p.At.X, p.At.Y)
			}
		}
	}
	viewtest.Golden(t, "layouts.txt", strings.TrimSuffix(out.String(), "\n"))
}

// newView makes a view without a program, which opens nothing.
func newView(l Layout) *View { return New(nil, l, nil, latency.New(nil, nil), nil) }

// A number with a long name takes the room of the label in a narrow pane.
func TestLongNumbersAreWhole(t *testing.T) {
	p := viewtest.NewScreen(t, viewtest.LiveSnapshot(), viewtest.Medium)
	for _, w := range []int{24, 40} {
		var g grid.Grid
		g.Reset(w, 2)
		moreRow(&pane.RowWriter{A: g.All()}, p.Frame(), &store.ServerNumber{Name: "prompt work tokens/s"}, event.MeasuredValue(12), "")
		if got := g.Plain(); !strings.Contains(got, "12 prompt work tokens/s") {
			t.Errorf("%d cells: %q", w, got)
		}
	}
}

// The cells that requests hold are shown also while there are none: 0 is known.
func TestDerivedCellsWhileIdle(t *testing.T) {
	idle := *viewtest.Sparse().Snapshot()
	idle.KV = store.KV{Derived: true, Usage: event.Absent(event.NotReported)}
	p := show(viewtest.NewScreen(t, &idle, viewtest.Wide))
	p.Holds("0 cells of unknown total")
	for name := range p.Frame().NotReported(&idle) {
		if name == "KV cache" {
			t.Error("it is called not reported")
		}
	}
}
