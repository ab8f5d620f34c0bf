package wire

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// appendOps appends the times of operations: their names once, then columns for the index of the name, layer, calls and
// times. Of more than MaxOps it appends the longest.
func appendOps(dst []byte, _ *event.Event, p *event.Ops) ([]byte, bool) {
	times := p.Times[:min(len(p.Times), MaxOps)]
	var kinds []string
	kind := make([]uint64, len(times))
	for i, t := range times {
		k := slices.Index(kinds, t.Op)
		if k < 0 {
			k, kinds = len(kinds), append(kinds, t.Op)
		}
		kind[i] = uint64(k)
		if t.Layer >= MaxLayers {
			return dst, false
		}
	}
	if len(kinds) > MaxCount || p.Passes < 1 {
		return dst, false
	}
	dst = appendInt(key(dst, "passes"), p.Passes)
	dst = appendArray(key(appendReading(dst, "slowdown", p.Slowdown), "ops"), kinds, appendString)
	dst = appendUints(key(dst, "k"), kind...)
	for _, c := range [...]struct {
		name string
		get  func(event.OpTime) int64
	}{
		{"l", func(t event.OpTime) int64 { return int64(max(t.Layer, -1)) }},
		{"n", func(t event.OpTime) int64 { return max(t.Calls, 0) }},
		{"d", func(t event.OpTime) int64 { return max(t.Dur, 0) }},
	} {
		dst = appendArray(key(dst, c.name), times, func(dst []byte, t event.OpTime) []byte { return appendInt(dst, c.get(t)) })
	}
	return dst, true
}

func readOps(d *Decoder) bool {
	p := new(event.Ops)
	d.event.Kind, d.event.Data = event.KindOps, p
	var ops []string
	var k, l, n, ns []int64
	d.members(func(key []byte) bool {
		switch string(key) {
		case "passes":
			p.Passes = d.count()
		case "slowdown":
			p.Slowdown = d.readReading()
		case "ops":
			ops = d.words()
		case "k":
			k = d.integers()
		case "l":
			l = d.integers()
		case "n":
			n = d.integers()
		case "d":
			ns = d.integers()
		default:
			return false
		}
		return true
	})
	fits := p.Passes > 0 && len(k) <= MaxOps && len(k) == len(l) && len(k) == len(n) && len(k) == len(ns)
	for i := 0; fits && i < len(k); i++ {
		fits = k[i] >= 0 && k[i] < int64(len(ops)) && l[i] >= -1 && l[i] < MaxLayers && event.PlausibleCount(n[i]) && event.PlausibleCount(ns[i])
		if fits {
			p.Times = append(p.Times, event.OpTime{Op: ops[k[i]], Layer: int(l[i]), Calls: n[i], Dur: ns[i]})
		}
	}
	return d.require(fits, "passes, or columns of different lengths")
}
