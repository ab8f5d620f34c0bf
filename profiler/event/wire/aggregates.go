package wire

import (
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

func aggregateReadings(p *event.Aggregates) []namedReading {
	return []namedReading{
		{"running", &p.Running},
		{"waiting", &p.Waiting},
		{"decode", &p.Decode},
		{"prefill", &p.Prefill},
		{"kv_usage", &p.KVUsage},
		{"kv_used", &p.KVUsed},
		{"kv_total", &p.KVTotal},
		{"cache_hits", &p.CacheHits},
		{"finished", &p.Finished},
		{"failed", &p.Failed},
		{"in", &p.Prompt},
		{"cached", &p.Cached},
		{"out", &p.Generated},
	}
}

// slotNumber is a number of a slot with its name.
type slotNumber struct {
	name string
	v    *int
}

func slotNumbers(s *event.Slot) [8]slotNumber {
	return [...]slotNumber{
		{"slot", &s.Slot},
		{"in", &s.Prompt},
		{"done", &s.Processed},
		{"cached", &s.Cached},
		{"out", &s.Generated},
		{"max", &s.Max},
		{"used", &s.Used},
		{"context", &s.Context},
	}
}

func appendAggregates(dst []byte, p *event.Aggregates) []byte {
	dst = appendReadings(number(dst, "interval", max(p.Interval, 0)), aggregateReadings(p))
	if len(p.Histograms) > 0 {
		dst = append(key(dst, "times"), '[')
		for i := range p.Histograms[:min(len(p.Histograms), MaxCount)] {
			dst = appendHistogram(appendComma(dst, i), &p.Histograms[i])
		}
		dst = append(dst, ']')
	}
	if len(p.Slots) > 0 {
		dst = append(key(dst, "slots"), '[')
		for i := range p.Slots[:min(len(p.Slots), MaxSlots)] {
			dst = appendSlot(appendComma(dst, i), &p.Slots[i])
		}
		dst = append(dst, ']')
	}
	if len(p.Endpoints) > 0 {
		dst = append(key(dst, "sources"), '[')
		for i, v := range p.Endpoints[:min(len(p.Endpoints), MaxCount)] {
			dst = appendString(key(append(appendComma(dst, i), '{'), "name"), v.Name)
			if v.Reason != "" {
				dst = appendString(key(dst, "why"), v.Reason)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	if len(p.More) == 0 {
		return dst
	}
	dst = append(key(dst, "more"), '{')
	for _, n := range p.More[:min(len(p.More), MaxCount)] {
		if n.OK() && n.Origin <= event.Derived {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(append(appendString(dst, n.Name), ':'), '[')
			dst = append(appendFloat(dst, n.V, 64), ',')
			dst = append(appendString(dst, n.Origin.String()), ']')
		}
	}
	return append(dst, '}')
}

func appendComma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

func appendHistogram(dst []byte, t *event.Histogram) []byte {
	dst = appendString(key(append(dst, '{'), "name"), t.Name)
	dst = appendCount(key(dst, "n"), t.Count)
	dst = number(dst, "sum", max(t.Sum, 0))
	if validBuckets(t) {
		dst = append(key(dst, "le"), '[')
		for i, b := range t.Bounds {
			dst = appendInt(appendComma(dst, i), b)
		}
		dst = append(dst, ']')
		dst = appendUints(key(dst, "c"), t.Counts...)
	}
	return append(dst, '}')
}

func appendSlot(dst []byte, s *event.Slot) []byte {
	dst = append(dst, '{')
	if s.Request != 0 {
		dst = strconv.AppendUint(key(dst, "r"), uint64(s.Request), 10)
	}
	for _, n := range slotNumbers(s) {
		dst = number(dst, n.name, max(*n.v, 0))
	}
	return append(dst, '}')
}

func (d *Decoder) readAggregates() bool {
	p := new(event.Aggregates)
	d.event.Kind, d.event.Data = event.KindAggregates, p
	readings := aggregateReadings(p)
	s := &d.scan
	d.members(func(key []byte) bool {
		switch string(key) {
		case "interval":
			p.Interval = d.count()
		case "times":
			if s.open('[') {
				for s.more(']') {
					if t := d.readHistogram(); len(p.Histograms) < MaxCount {
						p.Histograms = append(p.Histograms, t)
					}
				}
			}
		case "slots":
			if s.open('[') {
				for s.more(']') {
					if v := d.readSlot(); len(p.Slots) < MaxSlots {
						p.Slots = append(p.Slots, v)
					}
				}
			}
		case "sources":
			if s.open('[') {
				for s.more(']') {
					if v := d.readEndpoint(); len(p.Endpoints) < MaxCount {
						p.Endpoints = append(p.Endpoints, v)
					}
				}
			}
		case "more":
			p.More = d.readNamedReadings()
		default:
			return d.readNamed(readings, key, d.readReading)
		}
		return true
	})
	return d.require(true, "")
}

func (d *Decoder) readEndpoint() (v event.Endpoint) {
	d.object(nil, nil, func(name []byte) bool {
		switch string(name) {
		case "name":
			v.Name = d.string()
		case "why":
			v.Reason = d.string()
		default:
			return false
		}
		return true
	})
	return v
}

// validBuckets reports whether the buckets of a histogram are consistent.
func validBuckets(t *event.Histogram) bool {
	n := len(t.Bounds)
	for i, b := range t.Bounds {
		if !event.PlausibleCount(b) || i > 0 && b <= t.Bounds[i-1] {
			return false
		}
	}
	return n > 0 && n <= MaxBounds && len(t.Counts) == n+1
}

// readHistogram reads a histogram. It omits inconsistent buckets.
func (d *Decoder) readHistogram() (t event.Histogram) {
	s := &d.scan
	d.object(nil, nil, func(name []byte) bool {
		switch string(name) {
		case "name":
			t.Name = d.string()
		case "n":
			t.Count, _ = d.unsigned()
		case "sum":
			t.Sum = d.count()
		case "le":
			t.Bounds = t.Bounds[:0]
			if s.open('[') {
				for s.more(']') {
					t.Bounds = append(t.Bounds, d.count())
				}
			}
		case "c":
			t.Counts = d.counts(t.Counts)
		default:
			return false
		}
		return true
	})
	if !validBuckets(&t) {
		t.Bounds, t.Counts = nil, nil
	}
	return t
}

func (d *Decoder) readSlot() (v event.Slot) {
	numbers := slotNumbers(&v)
	d.object(nil, nil, func(name []byte) bool {
		if string(name) == "r" {
			id, _ := d.scan.unsigned()
			v.Request = event.RequestID(id)
			return true
		}
		for _, n := range numbers {
			if n.name == string(name) {
				*n.v = int(d.int32())
				return true
			}
		}
		return false
	})
	return v
}

// readNamedReadings reads an object of readings. The last of duplicate names counts.
func (d *Decoder) readNamedReadings() (list []event.NamedReading) {
	s := &d.scan
	if !s.open('{') {
		return nil
	}
	for s.more('}') {
		name := valid(s.key())
		if r := d.readReading(); r.OK() && len(list) < MaxCount {
			list = append(list, event.NamedReading{Name: name, Reading: r})
		}
	}
	slices.SortStableFunc(list, func(a, b event.NamedReading) int { return strings.Compare(a.Name, b.Name) })
	slices.Reverse(list)
	list = slices.CompactFunc(list, func(a, b event.NamedReading) bool { return a.Name == b.Name })
	slices.Reverse(list)
	return list
}
