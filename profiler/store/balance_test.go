package store

import (
	"math"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// One layer turns from even to uneven picks after 20 s, the other has too few picks to judge.
func TestImbalanceOverTime(t *testing.T) {
	p := newSession()
	if layer, v := Imbalance(p.store.Snapshot(), metric.Minute); layer >= 0 || v.OK() {
		t.Errorf("before any pick: layer %d, %v", layer, v)
	}
	decode := make([]uint64, 8)
	for sec := range 40 {
		for e := range 4 {
			decode[e] += 10
			if sec >= 20 {
				decode[e] -= 10
			}
		}
		if decode[4] = uint64(sec); sec >= 20 {
			decode[0] += 40
		}
		p.emitPicks(2, 4, make([]uint64, 8), decode, [2]uint64{metric.Decode: uint64(40 * (sec + 1))})
		p.now += event.Time(time.Second)
	}
	p.emitPicks(2, 4, make([]uint64, 8), decode, [2]uint64{metric.Decode: 1600})
	s := p.store.Snapshot()
	if layer, v := Imbalance(s, metric.TenSeconds); layer != 0 || v.V != 4 {
		t.Errorf("last 10 s: layer %d, max/mean %v; want layer 0, 4", layer, v.V)
	}
	if layer, v := Imbalance(s, metric.Session); layer != 0 || v.V != 2.5 {
		t.Errorf("session: layer %d, max/mean %v; want layer 0, 2.5", layer, v.V)
	}
	var trend []float32
	for _, b := range s.Experts.Balance {
		trend = append(trend, b.MaxMean[0])
		if !math.IsNaN(float64(b.MaxMean[1])) {
			t.Errorf("second %d: layer 1 has %v with few picks", b.Second, b.MaxMean[1])
		}
	}
	if n := len(trend); n < 39 || trend[n-25] != 1 || trend[n-15] <= 1 || trend[n-15] >= 4 || trend[n-1] != 4 {
		t.Errorf("the trend of layer 0 is %v", trend)
	}
}
