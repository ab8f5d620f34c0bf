package store

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/verdict"
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
	h := s.Experts.Hits(metric.Session, metric.Decode)
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

// A stall that waited for the disk names the picked experts that the sweep before it did not find in memory.
func TestStallNamesAbsentExperts(t *testing.T) {
	for _, test := range []struct {
		name  string
		age   int64 // of the sweep at the stall
		picks []uint16
		want  string // in the evidence; "": no expert
	}{
		{"one absent", 2 * sec, []uint16{0, 1}, "picked 1:1 (20 %), not wholly in memory 2.11 s before"},
		{"all in memory", 2 * sec, []uint16{0, 2}, ""},
		{"of unknown residency", 2 * sec, []uint16{0, 3}, ""},
		{"an old sweep", 60 * sec, []uint16{0, 1}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newSession()
			p.moe(2, 4, 1)
			p.cached(100, 100, 100, 100, 100, 20, 100, event.UnknownShare)
			p.now += event.Time(test.age)
			p.queue(1, "", "")
			p.state(0, 1, event.StateDispatched, nil)
			token := func(wait int64) {
				p.emit(wait, event.Event{Kind: event.KindToken, Req: 1, N: 1, Picks: test.picks})
			}
			for range 11 {
				token(10 * ms)
			}
			token(200 * ms)
			v := event.MeasuredValue
			p.usage(200*ms, event.Usage{
				Running: readingMS(1), Waiting: v(0), Blocked: readingMS(190), Faults: v(12), Read: v(3e6), Threads: v(1), Cores: v(2),
			})
			stalls := p.store.Snapshot().Latency.Stalls
			if len(stalls) != 1 || stalls[0].Cause != verdict.DiskReads {
				t.Fatalf("stalls: %+v; want one of reads from disk", stalls)
			}
			if got := stalls[0].Evidence; !strings.Contains(got, test.want) || test.want == "" && strings.Contains(got, "picked") {
				t.Errorf("evidence %q, want %q", got, test.want)
			}
		})
	}
}
