package wire

import (
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

func reportReadings(p *event.Report) []named {
	return []named{
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

// slotNumber is a number of a slot and its name.
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

func appendReport(dst []byte, p *event.Report) []byte {
	dst = appendReadings(number(dst, "interval", max(p.Interval, 0)), reportReadings(p))
	if len(p.Times) > 0 {
		dst = append(key(dst, "times"), '[')
		for i := range p.Times[:min(len(p.Times), MaxCount)] {
			dst = appendTimes(comma(dst, i), &p.Times[i])
		}
		dst = append(dst, ']')
	}
	if len(p.Slots) > 0 {
		dst = append(key(dst, "slots"), '[')
		for i := range p.Slots[:min(len(p.Slots), MaxCount)] {
			dst = appendSlot(comma(dst, i), &p.Slots[i])
		}
		dst = append(dst, ']')
	}
	if len(p.Sources) > 0 {
		dst = append(key(dst, "sources"), '[')
		for i, v := range p.Sources[:min(len(p.Sources), MaxCount)] {
			dst = appendString(key(append(comma(dst, i), '{'), "name"), v.Name)
			if v.Why != "" {
				dst = appendString(key(dst, "why"), v.Why)
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
		if n.OK() {
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

func comma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

func appendTimes(dst []byte, t *event.Times) []byte {
	dst = appendString(key(append(dst, '{'), "name"), t.Name)
	dst = strconv.AppendUint(key(dst, "n"), t.Count, 10)
	dst = number(dst, "sum", max(t.Sum, 0))
	if n := len(t.Bounds); n > 0 && n <= MaxBounds && len(t.Counts) == n+1 {
		dst = append(key(dst, "le"), '[')
		for i, b := range t.Bounds {
			dst = strconv.AppendInt(comma(dst, i), b, 10)
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

func (d *Decoder) readReport() bool {
	p := new(event.Report)
	d.event.Kind, d.event.Data = event.KindReport, p
	readings := reportReadings(p)
	s := &d.scan
	d.members(func(key []byte) bool {
		switch string(key) {
		case "interval":
			p.Interval = d.count()
		case "times":
			if s.open('[') {
				for s.more(']') {
					if t := d.readTimes(); len(p.Times) < MaxCount {
						p.Times = append(p.Times, t)
					}
				}
			}
		case "slots":
			if s.open('[') {
				for s.more(']') {
					if v := d.readSlot(); len(p.Slots) < MaxCount {
						p.Slots = append(p.Slots, v)
					}
				}
			}
		case "sources":
			if s.open('[') {
				for s.more(']') {
					if v := d.readSource(); len(p.Sources) < MaxCount {
						p.Sources = append(p.Sources, v)
					}
				}
			}
		case "more":
			p.More = d.readNumbers()
		default:
			return d.fill(readings, key, d.readReading)
		}
		return true
	})
	return d.need(true, "")
}

func (d *Decoder) readSource() (v event.Source) {
	d.object(nil, nil, func(name []byte) bool {
		switch string(name) {
		case "name":
			v.Name = d.string()
		case "why":
			v.Why = d.string()
		default:
			return false
		}
		return true
	})
	return v
}

// readTimes reads durations that were counted; buckets that do not fit one another are left out.
func (d *Decoder) readTimes() (t event.Times) {
	s := &d.scan
	d.object(nil, nil, func(name []byte) bool {
		switch string(name) {
		case "name":
			t.Name = d.string()
		case "n":
			t.Count, _ = s.unsigned()
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
	ascending := slices.IsSorted(t.Bounds) && len(slices.Compact(slices.Clone(t.Bounds))) == len(t.Bounds)
	if n := len(t.Bounds); n == 0 || n > MaxBounds || len(t.Counts) != n+1 || !ascending {
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

// readNumbers reads numbers by name, of which the last of those that stand twice counts.
func (d *Decoder) readNumbers() (list []event.Number) {
	s := &d.scan
	if !s.open('{') {
		return nil
	}
	for s.more('}') {
		name := clean(s.key())
		if r := d.readReading(); r.OK() && len(list) < MaxCount {
			list = append(list, event.Number{Name: name, Reading: r})
		}
	}
	slices.SortStableFunc(list, func(a, b event.Number) int { return strings.Compare(a.Name, b.Name) })
	slices.Reverse(list)
	list = slices.CompactFunc(list, func(a, b event.Number) bool { return a.Name == b.Name })
	slices.Reverse(list)
	return list
}
