package engines

import (
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// show shows engines; the first one is on the screen of the other views.
func show(p *viewtest.Screen, all ...viewtest.Engine) *viewtest.Screen {
	v := New(func(int) {})
	var rows []Row
	for i, e := range all {
		rows = append(rows, Row{Name: sanitize.Line(e.Name), Snapshot: e.Snapshot, Shown: i == 0})
	}
	v.Update(p.Frame(), rows)
	if len(rows) > 0 {
		v.SelectEngine(0, rows[0].Name)
	}
	return p.Show(v)
}

// The list of engines in every state of a connection, and without engines.
func TestGoldenList(t *testing.T) {
	all := viewtest.SeveralEngines()
	for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Wide} {
		show(viewtest.NewScreen(t, store.Empty(), size), all...).Press("down", "down").Golden("list")
	}
	show(viewtest.NewScreen(t, store.Empty(), viewtest.Wide).ASCII(), all...).Golden("list_ascii")
	show(viewtest.NewScreen(t, store.Empty(), viewtest.Narrow)).Golden("list_empty")
}

// Replicas, in the sizes that show other columns or rows.
func TestGoldenReplicas(t *testing.T) {
	few, many := viewtest.Replicas(9), viewtest.Replicas(60)
	show(viewtest.NewScreen(t, few[0].Snapshot, viewtest.Narrow), few...).Golden("replicas")
	show(viewtest.NewScreen(t, few[0].Snapshot, viewtest.Size{W: 200, H: 58}), few...).Golden("replicas")
	show(viewtest.NewScreen(t, many[0].Snapshot, viewtest.Size{W: 60, H: 16}), many...).Golden("replicas_many")
	show(viewtest.NewScreen(t, many[0].Snapshot, viewtest.Medium), many...).Golden("replicas_many")
	filtered := show(viewtest.NewScreen(t, few[0].Snapshot, viewtest.Medium).ASCII(), few...)
	filtered.Press("/", "t", "t", "f", "t", ">").Golden("replicas_filter_ascii")
}

// A single engine with what it reports: a traced one, and servers.
func TestGoldenSingle(t *testing.T) {
	for state, s := range map[string]*store.Snapshot{
		"traced": viewtest.LiveSnapshot(), "counted": viewtest.Played("vllm"), "slots": viewtest.Played("slots"),
		"loads": viewtest.Played("models"), "otlp": viewtest.Played("traces"), "started": viewtest.Played("started"),
		"untimed": viewtest.Played("untimed"), "unreached": unreached(),
	} {
		show(viewtest.NewScreen(t, s, viewtest.Wide), viewtest.Engine{Name: s.Engine.Name, Snapshot: s}).Golden("single_" + state)
	}
}

// unreached returns an engine at an event socket that has never answered.
func unreached() *store.Snapshot {
	s := viewtest.NewScene()
	s.Now += event.Time(time.Second)
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Remote: event.Remote{
		Address: "tcp:127.0.0.1:7999", Link: event.LinkDisconnected, Reason: "connect: connection refused", Since: s.Now,
	}}})
	return s.Snapshot()
}

// Names are whole where there is room, and distinct where there is not.
func TestNamesOfEngines(t *testing.T) {
	s := viewtest.Remote(viewtest.Links[0].Remote)
	one, two := viewtest.Engine{Name: "unix:/tmp/a/s1.sock", Snapshot: s}, viewtest.Engine{Name: "unix:/tmp/a/s2.sock", Snapshot: s}
	small := show(viewtest.NewScreen(t, s, viewtest.Size{W: 60, H: 16}), one, two)
	small.Holds("/s1.sock ")
	small.Holds("/s2.sock ")
	proxy := viewtest.Engine{Name: "http://127.0.0.1:17080 → http://127.0.0.1:18080", Snapshot: s}
	short := *viewtest.Played("vllm")
	short.Model = event.Model{Name: "fake-7b"}
	proxy.Snapshot = &short
	show(viewtest.NewScreen(t, s, viewtest.Medium), proxy).Holds(proxy.Name + " ")

	unreached := viewtest.Engine{Name: "http://127.0.0.1:7997", Snapshot: viewtest.Played("unreached")}
	if screen := show(viewtest.NewScreen(t, s, viewtest.Medium), one, two, unreached).Text(); strings.Contains(screen, "hits") {
		t.Errorf("a column that no replica has:\n%s", screen)
	}
	fleet := viewtest.Replicas(3)
	fleet[1].Name = two.Name
	show(viewtest.NewScreen(t, s, viewtest.Medium), fleet...).Holds(two.Name + " ")
}

// Small fleets: of three, the slow one is an outlier; halves that differ are not said to be close to the median.
func TestSmallFleets(t *testing.T) {
	all := viewtest.Replicas(8) // the last one is three times as slow, the fourth is disconnected
	for says, fleet := range map[string][]viewtest.Engine{
		"outliers: 1": {all[0], all[1], all[7]},
		"no single outlier, but replicas differ: waiting 1 (10.0.0.1:8000) to 14 (10.0.0.8:8000)": {all[0], all[3], all[7]},
		"no outliers: all replicas are close to the median of their model":                        {all[0], all[1], all[2]},
		"nothing to compare yet": {all[0], all[3], all[5]},
	} {
		show(viewtest.NewScreen(t, fleet[0].Snapshot, viewtest.Wide), fleet...).Holds(says)
	}
}
