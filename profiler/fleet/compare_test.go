package fleet

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

func replica(name, model string, ttft, waiting float64) *Replica {
	r := &Replica{Name: name, Model: model}
	r.Cells[TTFT] = Cell{Reading: event.DerivedValue(ttft), Edge: metric.Within}
	r.Cells[Waiting].Reading = event.DerivedValue(waiting)
	return r
}

func TestOutliersAreNamed(t *testing.T) {
	all := []*Replica{replica("a", "m", 0.2, 1), replica("b", "m", 0.21, 0), replica("c", "m", 0.19, 2), replica("d", "m", 0.2, 1), replica("e", "m", 0.62, 20)}
	got := Outliers(all)
	if len(got) != 2 || got[0].Replica != all[4] || got[0].Field != Waiting || got[1].Field != TTFT {
		t.Fatalf("%+v, want waiting and TTFT of e", got)
	}
	if got[1].Times() < 3.09 || got[1].Times() > 3.11 || got[1].Median != 0.2 {
		t.Errorf("TTFT is %v times %v, want 3.1 times 0.2", got[1].Times(), got[1].Median)
	}
	all[4].Broken = true
	if got := Outliers(all); len(got) != 0 {
		t.Errorf("a disconnected replica is an outlier: %+v", got)
	}
}

// Replicas are compared within a model: one with a smaller model is no outlier.
func TestModelsAreComparedSeparately(t *testing.T) {
	all := []*Replica{replica("a", "m", 0.2, 1), replica("b", "m", 0.21, 1), replica("c", "m", 0.19, 1), replica("d", "m", 0.2, 1), replica("e", "small", 0.02, 1)}
	if got := Outliers(all); len(got) != 0 {
		t.Errorf("%+v, want none", got)
	}
}

// A quantile with only a bound is an outlier only if every value within the bound would be.
func TestBoundsOfQuantiles(t *testing.T) {
	all := []*Replica{replica("a", "m", 0.01, 1), replica("b", "m", 0.011, 1), replica("c", "m", 0.01, 1), replica("d", "m", 0.01, 1), replica("e", "m", 0.1, 1)}
	all[4].Cells[TTFT].Edge = metric.Below
	if got := Outliers(all); len(got) != 0 {
		t.Errorf("less than 0.1 s is an outlier: %+v", got)
	}
	all[4].Cells[TTFT].Edge = metric.Above
	if got := Outliers(all); len(got) != 1 {
		t.Errorf("more than 0.1 s is no outlier: %+v", got)
	}
}

// A server without a report yet has no numbers, and none is 0.
func TestNoNumbersBeforeTheFirstReport(t *testing.T) {
	s := store.Empty()
	s.Engine.Caps = event.CapAggregates
	var r Replica
	r.Measure(s, metric.Minute)
	for f := range NumFields {
		if r.Cells[f].OK() {
			t.Errorf("%v is %v", f, r.Cells[f].V)
		}
	}
}

func TestMedianAndSum(t *testing.T) {
	all := []*Replica{replica("a", "m", 0.1, 1), replica("b", "m", 0.1, 2), replica("c", "m", 0.4, 9), replica("d", "m", 9, 900)}
	all[3].Broken = true
	all[0].Cells[TTFT].Edge, all[1].Cells[TTFT].Edge = metric.Below, metric.Below
	if m := Median(all, TTFT); m.V != 0.1 || m.Edge != metric.Below {
		t.Errorf("median %+v, want less than 0.1", m)
	}
	if s := Sum(all, Waiting); s.V != 12 {
		t.Errorf("sum %v, want 12", s)
	}
	if m := Median(all, CacheHits); m.OK() || m.Origin != event.NotReported {
		t.Errorf("median of a field without values: %+v", m)
	}
}

// TestServersAreComparedByMeans: medians are interpolated within buckets, which hides how far a replica is off.
func TestServersAreComparedByMeans(t *testing.T) {
	var all []*Replica
	for i, mean := range []float64{0.11, 0.12, 0.1, 0.11, 0.43} {
		r := replica(string(rune('a'+i)), "m", 0.175, 1)
		if r.Cells[TTFT].Mean = event.DerivedValue(mean); mean > 0.4 {
			r.Cells[TTFT].V = 0.375 // in the bucket of 250 to 500 ms
		}
		all = append(all, r)
	}
	got := Outliers(all)
	if len(got) != 1 || got[0].Times() < 3.9 || got[0].Times() > 3.92 || got[0].Words() != "TTFT mean" || got[0].JSON() != "ttft_mean_s" {
		t.Fatalf("%+v, want 3.9 times the median of the means", got)
	}
	all[0].Cells[TTFT].Mean = event.Reading{} // one counts single requests
	if got := Outliers(all); len(got) != 1 || got[0].Words() != "TTFT p50" {
		t.Errorf("%+v, want medians", got)
	}
}

// An idle engine that will report a number has none yet, and so have the median and the sum.
func TestIdleReplicas(t *testing.T) {
	s := store.New(store.Options{Now: func() event.Time { return 1 }}).Snapshot()
	s.Engine.Caps = event.CapKV | event.CapTokens
	s.Throughput.Decode = event.Absent(event.NotYet)
	a, b := &Replica{}, &Replica{}
	a.Measure(s, metric.Session)
	b.Measure(s, metric.Session)
	for _, f := range []Field{KV, Decode} {
		if v, m, sum := a.Cells[f], Median([]*Replica{a, b}, f), Sum([]*Replica{a, b}, f); v.Origin != event.NotYet || m.Origin != event.NotYet || sum.Origin != event.NotYet {
			t.Errorf("%v: %v, median %v, sum %v, want none yet", f, v, m, sum)
		}
	}
	s.Engine.Caps = event.CapTokens
	if a.Measure(s, metric.Session); a.Cells[KV].Origin != event.NotReported {
		t.Errorf("KV of an engine without it: %v", a.Cells[KV])
	}
}

// Small fleets: with three replicas or more the one that is far off is named; of two, or of two halves, none can be, and
// the difference is.
func TestSmallFleets(t *testing.T) {
	for name, c := range map[string]struct {
		ttft, waiting []float64
		outlier       string
		differ        Field // 0: none
	}{
		"one of three slow":        {[]float64{0.1, 0.11, 0.5}, nil, "c", 0},
		"one of three queues":      {[]float64{0.1, 0.11, 0.1}, []float64{0, 1, 30}, "c", 0},
		"three alike":              {[]float64{0.1, 0.11, 0.13}, nil, "", 0},
		"two, one of them slow":    {[]float64{0.1, 0.5}, nil, "", TTFT},
		"two alike":                {[]float64{0.1, 0.12}, nil, "", 0},
		"two of four slow":         {[]float64{0.1, 0.5, 0.11, 0.52}, nil, "", TTFT},
		"two of four queue":        {[]float64{0.1, 0.1, 0.1, 0.1}, []float64{0, 20, 0, 21}, "", Waiting},
		"one of four slow":         {[]float64{0.1, 0.5, 0.11, 0.1}, nil, "b", 0},
		"one of five slow":         {[]float64{0.1, 0.5, 0.11, 0.1, 0.12}, nil, "b", 0},
		"three all far apart":      {[]float64{0.1, 0.2, 0.5}, nil, "", TTFT},
		"less than what can count": {[]float64{0.001, 0.001, 0.004}, nil, "", 0},
	} {
		var all []*Replica
		for i, ttft := range c.ttft {
			waiting := 0.0
			if c.waiting != nil {
				waiting = c.waiting[i]
			}
			all = append(all, replica(string(rune('a'+i)), "m", ttft, waiting))
		}
		far := Outliers(all)
		differ, common := Differences(all, far)
		named := ""
		for _, o := range far {
			named += o.Replica.Name
		}
		if named != c.outlier || (c.differ == 0) != (len(differ) == 0) || c.differ != 0 && differ[0].High.Field != c.differ || !common {
			t.Errorf("%s: outliers %q, want %q; differences %+v, want %v; a number in common %v", name, named, c.outlier, differ, c.differ, common)
		}
	}
	if _, common := Differences([]*Replica{replica("a", "m", 1, 1), replica("b", "other", 1, 1)}, nil); common {
		t.Error("replicas of different models are compared")
	}
}
