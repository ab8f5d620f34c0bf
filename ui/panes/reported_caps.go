package panes

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// origin is a number that an engine may tell, and where it comes from.
type origin struct {
	name string
	from event.Origin
}

// origins are the numbers of an engine that is known in sum, in the order in which people ask for them.
func origins(s *store.Snapshot) (out []origin) {
	r := s.Reported
	for _, o := range []struct {
		name string
		r    event.Reading
	}{
		{"running", r.Running},
		{"waiting", r.Waiting},
		{"decode/s", r.Decode},
		{"prefill/s", r.Prefill},
		{"KV usage", r.KVUsage},
		{"KV cells", r.KVTotal},
		{"cache hits", r.CacheHits},
		{"finished", r.Finished},
		{"failed", r.Failed},
	} {
		out = append(out, origin{o.name, o.r.Origin})
	}
	for _, name := range []string{
		event.TimesTTFT, event.TimesITL, event.TimesTPOT, event.TimesE2EL, event.TimesQueue, event.TimesPrefill, event.TimesDecode,
	} {
		from := event.NotReported
		if r.Over(name, metric.Session) != nil {
			from = event.Reported
		} else if name == event.TimesTPOT && polled(s) > 0 {
			from = event.Derived
		}
		out = append(out, origin{spanName(name), from})
	}
	slots := event.NotReported
	if len(r.Slots) > 0 {
		slots = event.Reported
	}
	out = append(out, origin{"slots", slots})
	if s.Probes().Last != nil {
		out = append(out, origin{"TTFT, TPOT and E2EL of probes", event.Measured})
	}
	for _, n := range r.More {
		name, _ := numberName(n.Name)
		out = append(out, origin{name, n.Origin})
	}
	return out
}

// capabilityRow lists the numbers of an engine by where they come from, a row for each origin, and returns the row below them.
func (c *Ctx) capabilityRow(a grid.Area, s *store.Snapshot) int {
	all := origins(s)
	y := 0
	for _, group := range []struct {
		from event.Origin
		word string
		st   grid.Style
	}{
		{event.Measured, "measured", good},
		{event.Reported, "reported", good},
		{event.Derived, "derived", good},
		{event.NotYet, "not yet", dim},
		{event.NotReported, "not reported", dim},
	} {
		names := ""
		for _, o := range all {
			if o.from == group.from {
				names += ", " + o.name
			}
		}
		y = capabilities(a, y, group.st, group.word, names)
	}
	y = capabilities(a, y, good, "read", sourceNames(s, true))
	return capabilities(a, y, dim, "not read", sourceNames(s, false))
}

// capabilities writes one row of names, each of which has ", " before it, in as many lines as it needs, and returns the next line.
func capabilities(a grid.Area, y int, st grid.Style, word, names string) int {
	if names == "" || y >= a.H {
		return y
	}
	a.Text(0, y, st, word)
	for _, line := range grid.Wrap(nil, names[2:], a.W-14) {
		if y >= a.H {
			break
		}
		a.Text(14, y, text, line)
		y++
	}
	return y
}

// sourceNames are the places at which an engine tells of itself, with ", " before each: those that are read, or the others with the reason.
func sourceNames(s *store.Snapshot, read bool) (names string) {
	for _, v := range s.Reported.Sources {
		switch {
		case v.Why == "" && read:
			names += ", " + sanitize.Line(v.Name)
		case v.Why != "" && !read:
			names += ", " + sanitize.Line(v.Name) + " (" + sanitize.Line(v.Why) + ")"
		}
	}
	return names
}

// moreRows writes what else the engine tells.
func moreRows(r *rows, s *store.Snapshot) {
	if s.Reported == nil {
		return
	}
	if a, ok := r.next("cache hit"); ok {
		number(a, s.Reported.CacheHits, metric.Percent, "of prompt tokens", data)
	}
	for _, n := range s.Reported.More {
		if strings.HasPrefix(n.Name, startupPrefix) { // has a place of its own
			continue
		}
		a, ok := r.next("")
		if !ok {
			return
		}
		name, format := numberName(n.Name)
		l := a.Line(1, 0)
		l.Put(data, format(n.V)).Put(dim, " "+name)
	}
}

// numberName is a number's name in words, without the unit at its end, and how it is written with that.
func numberName(told string) (name string, format func(float64) string) {
	for _, unit := range []struct {
		end, word string
		format    func(float64) string
	}{{"_share", "", metric.Percent}, {"_per_s", "/s", metric.Rate}, {"_s", "", metric.Seconds}, {"_bytes", "", metric.Bytes}} {
		if name, ok := strings.CutSuffix(told, unit.end); ok {
			return strings.ReplaceAll(sanitize.Line(name), "_", " ") + unit.word, unit.format
		}
	}
	return strings.ReplaceAll(sanitize.Line(told), "_", " "), metric.Count
}
