package store

import (
	"math"
	"slices"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// cached emits a sample of the machine with the experts in the page cache, nil: without.
func (p *session) cached(list ...uint8) {
	p.emit(1, event.Event{Kind: event.KindHost, Data: &event.Host{Interval: 1, ExpertsCached: list}})
}

func TestHotNotResident(t *testing.T) {
	p := newSession()
	p.cached(100, 0)
	if Residency(p.store.Snapshot()) != nil {
		t.Error("a residency without picks")
	}
	p.emitPicks(2, 4, make([]uint64, 8), []uint64{40, 30, 20, 10, 25, 25, 25, 25}, [2]uint64{metric.Decode: 100})
	if Residency(p.store.Snapshot()) != nil {
		t.Error("a residency of another number of experts")
	}
	p.cached(100, 20, 0, 0, 0, 0, 50, event.UnknownShare)
	p.cached() // later samples keep it
	s := p.store.Snapshot()
	h := s.Experts.Hits[metric.Session][metric.Decode]
	if hot := HotNotResident(s, h); !slices.Equal(hot, []int{1}) { // 0:2 and 0:3 are rarely picked, layer 1 is even
		t.Errorf("hot but not resident: %v, want 0:1", hot)
	}
	if got, want := ResidentPicks(s, h).V, (40+30*0.2+25*0.5)/175; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v of the picks in memory, want %v", got, want)
	}
	if s.Host.ExpertsAt == 0 {
		t.Error("no time of the sweep")
	}
}
