package fleet

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

func of(name, model string, ttft, waiting float64) *Replica {
	r := &Replica{Name: name, Model: model}
	r.Cells[TTFT] = Cell{event.From(ttft), metric.Within}
	r.Cells[Waiting].Reading = event.From(waiting)
	return r
}

func TestOutliersAreNamed(t *testing.T) {
	all := []*Replica{of("a", "m", 0.2, 1), of("b", "m", 0.21, 0), of("c", "m", 0.19, 2), of("d", "m", 0.2, 1), of("e", "m", 0.62, 20)}
	got := Outliers(all)
	if len(got) != 2 || got[0].Replica != all[4] || got[0].Field != Waiting || got[1].Field != TTFT {
		t.Fatalf("%+v, want waiting and TTFT of e", got)
	}
	if got[1].Times() < 3.09 || got[1].Times() > 3.11 || got[1].Median != 0.2 {
		t.Errorf("TTFT is %v times %v, want 3.1 times 0.2", got[1].Times(), got[1].Median)
	}
	all[4].Broken = true
	if got := Outliers(all); len(got) != 0 {
		t.Errorf("a replica that is not connected is out of line: %+v", got)
	}
}

// Replicas of another model are no measure: a small one among large ones is not out of line.
func TestModelsAreComparedApart(t *testing.T) {
	all := []*Replica{of("a", "m", 0.2, 1), of("b", "m", 0.21, 1), of("c", "m", 0.19, 1), of("d", "m", 0.2, 1), of("e", "small", 0.02, 1)}
	if got := Outliers(all); len(got) != 0 {
		t.Errorf("%+v, want none", got)
	}
}

// A quantile of which only a bound is known is out of line only if it is so wherever it lies.
func TestBoundsOfQuantiles(t *testing.T) {
	all := []*Replica{of("a", "m", 0.01, 1), of("b", "m", 0.011, 1), of("c", "m", 0.01, 1), of("d", "m", 0.01, 1), of("e", "m", 0.1, 1)}
	all[4].Cells[TTFT].Edge = metric.Below
	if got := Outliers(all); len(got) != 0 {
		t.Errorf("less than 0.1 s is out of line: %+v", got)
	}
	all[4].Cells[TTFT].Edge = metric.Above
	if got := Outliers(all); len(got) != 1 {
		t.Errorf("more than 0.1 s is not out of line: %+v", got)
	}
}

// Of a server that has told nothing yet no number is known, and none is 0.
func TestNothingIsKnownBeforeTheFirstReport(t *testing.T) {
	s := &store.Snapshot{}
	s.Engine.Caps = event.CapReports
	var r Replica
	r.Measure(s, metric.Minute)
	for f := range NumFields {
		if r.Cells[f].OK() {
			t.Errorf("%v is %v", f, r.Cells[f].V)
		}
	}
}

func TestMedianAndSum(t *testing.T) {
	all := []*Replica{of("a", "m", 0.1, 1), of("b", "m", 0.1, 2), of("c", "m", 0.4, 9), of("d", "m", 9, 900)}
	all[3].Broken = true
	all[0].Cells[TTFT].Edge, all[1].Cells[TTFT].Edge = metric.Below, metric.Below
	if m := Median(all, TTFT); m.V != 0.1 || m.Edge != metric.Below {
		t.Errorf("median %+v, want less than 0.1", m)
	}
	if s := Sum(all, Waiting); s.V != 12 {
		t.Errorf("sum %v, want 12", s)
	}
	if m := Median(all, CacheHits); m.OK() || m.Origin != event.NotReported {
		t.Errorf("median of what nobody reports: %+v", m)
	}
}
