package polled

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// origin is the name and the origin of a metric.
type origin struct {
	name string
	from event.Origin
}

// origins lists the metrics of an engine with aggregate metrics by importance.
func origins(s *store.Snapshot) (out []origin) {
	r := s.Aggregates
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
		event.HistogramTTFT, event.HistogramITL, event.HistogramTPOT, event.HistogramE2EL, event.HistogramQueue, event.HistogramPrefill, event.HistogramDecode,
	} {
		from := event.NotReported
		if r.Histogram(name) != nil {
			from = event.Reported
		} else if name == event.HistogramTPOT && polledCount(s) > 0 {
			from = event.Derived
		}
		out = append(out, origin{histogramName(name), from})
	}
	slots := event.NotReported
	if len(r.Slots) > 0 {
		slots = event.Reported
	}
	out = append(out, origin{"slots", slots})
	if s.Probes().Last != nil {
		out = append(out, origin{"probe TTFT, TPOT and E2EL", event.Measured})
	}
	for i := range r.Numbers {
		if n := &r.Numbers[i]; n.Kind != store.CurrentValue && n.Name != event.RatioCacheHits {
			name, _ := nameAndFormat(n.Name)
			out = append(out, origin{name, n.Last.Origin})
		}
	}
	for _, n := range r.More {
		name, _ := nameAndFormat(n.Name)
		out = append(out, origin{name, n.Origin})
	}
	return out
}

// DrawOrigins lists the metrics of an engine grouped by origin, then its endpoints, and returns the next free row.
func DrawOrigins(c *pane.Frame, a grid.Area, s *store.Snapshot) int {
	all := origins(s)
	y := 0
	for _, group := range []struct {
		from event.Origin
		word string
		st   grid.Style
	}{
		{event.Measured, "measured", pane.Good},
		{event.Reported, "reported", pane.Good},
		{event.Derived, "derived", pane.Good},
		{event.NotYet, "not yet", pane.Dim},
		{event.NotReported, "not reported", pane.Dim},
	} {
		names := ""
		for _, o := range all {
			if o.from == group.from {
				names += ", " + o.name
			}
		}
		y = labelledNames(a, y, group.st, group.word, names)
	}
	y = labelledNames(a, y, pane.Good, "read from", endpointNames(s, true))
	return labelledNames(a, y, pane.Dim, "not read", endpointNames(s, false))
}

// labelledNames writes a label and a list of names, each preceded by ", ", in as many lines as needed, and returns the
// next free row.
func labelledNames(a grid.Area, y int, st grid.Style, word, names string) int {
	if names == "" || y >= a.H {
		return y
	}
	a.Text(0, y, st, word)
	for _, line := range grid.Wrap(nil, names[2:], a.W-14) {
		if y >= a.H {
			break
		}
		a.Text(14, y, pane.Plain, line)
		y++
	}
	return y
}

// endpointNames lists the endpoints of an engine, each preceded by ", ": those in use, or the others with the reason.
func endpointNames(s *store.Snapshot, read bool) (names string) {
	for _, v := range s.Aggregates.Endpoints {
		switch {
		case v.Reason == "" && read:
			names += ", " + sanitize.Line(v.Name)
		case v.Reason != "" && !read:
			names += ", " + sanitize.Line(v.Name) + " (" + sanitize.Line(v.Reason) + ")"
		}
	}
	return names
}

// DrawCacheHits writes the cache hits, with their age if no prompt has come since.
func DrawCacheHits(r *pane.RowWriter, s *store.Snapshot) {
	a, ok := r.Next("cache hit")
	if !ok {
		return
	}
	n := s.Aggregates.Number(event.RatioCacheHits)
	unit := ""
	if n != nil {
		unit = "of prompt tokens" + age(n, s)
	}
	pane.PutReading(a, s.Aggregates.CacheHitShare(), metric.Percent, unit, pane.Data)
}

// age returns how old a number is, for a text; "" if it is of one of the last polls.
func age(n *store.ServerNumber, s *store.Snapshot) string {
	old := s.Now - n.At
	if old < event.Time(max(3*s.Aggregates.Interval, int64(3*time.Second))) {
		return ""
	}
	return ", " + metric.Duration(int64(old)/1e9*1e9) + " ago"
}

// endPrefix is the prefix of counts of requests by the reason of their end.
const endPrefix = "finished_"

// DrawMore lists the other numbers of the engine: values, quotients with their age, and the totals of counts above 0.
func DrawMore(r *pane.RowWriter, s *store.Snapshot, c *pane.Frame) {
	ended := ""
	for i := range s.Aggregates.Numbers {
		n := &s.Aggregates.Numbers[i]
		switch reason, isEnd := strings.CutPrefix(n.Name, endPrefix); {
		case isEnd && n.Value.V > 0:
			ended += ", " + sanitize.Line(reason) + " " + metric.Count(n.Value.V)
		case isEnd, !isMore(s.Aggregates, n):
		case n.Kind == store.CountedTotal:
			moreRow(r, c, n, n.Value, "")
		case n.Kind == store.Quotient || n.At == s.Aggregates.At:
			moreRow(r, c, n, n.Last, age(n, s))
		}
	}
	names := func(label, list string) {
		if list == "" {
			return
		}
		if a, ok := r.Next(label); ok {
			a.Elide(1, 0, a.W-1, pane.Plain, list[2:], c.Skin.Glyphs.Ellipsis)
		}
	}
	names("ended", ended)
	adapters := ""
	for _, name := range s.Aggregates.Adapters {
		adapters += ", " + sanitize.Line(name)
	}
	names("LoRA", adapters)
	for _, k := range s.Aggregates.Ranks {
		names("rank "+sanitize.Line(k.Name), ", "+metric.Reading(k.Running, metric.Count)+" running, "+
			metric.Reading(k.Waiting, metric.Count)+" waiting, KV "+metric.Reading(k.KVUsage, metric.Percent))
	}
}

// mostRanks is how many ranks of experts are listed.
const mostRanks = 8

// DrawRankLoad lists the ranks that experts are spread over with their share of the picks of the last ten seconds.
func DrawRankLoad(r *pane.RowWriter, s *store.Snapshot, c *pane.Frame) {
	load := s.Aggregates.RankLoad
	if load == nil {
		return
	}
	imbalance := load.Imbalance(load.Recent)
	a, ok := r.Next("experts")
	if !ok {
		return
	}
	pane.PutReading(a, imbalance, metric.Rate, c.Skin.Glyphs.Times+" the mean rank", pane.Data)
	if !imbalance.OK() {
		return
	}
	for rank := range min(load.Ranks, mostRanks) {
		if a, ok = r.Next("EP rank " + strconv.Itoa(rank)); !ok {
			return
		}
		share, layer, most := load.OfRank(load.Recent, rank)
		a.Elide(1, 0, a.W-1, pane.Plain, metric.Percent(share)+" of picks, L"+strconv.Itoa(layer)+" "+metric.Rate(most)+c.Skin.Glyphs.Times, c.Skin.Glyphs.Ellipsis)
	}
}

// isMore reports whether a number has no place of its own on the screen, and is worth a row: of counts those above 0.
func isMore(r *store.Aggregates, n *store.ServerNumber) bool {
	switch {
	case n.Name == event.RatioCacheHits, strings.HasPrefix(n.Name, startupPrefix): // startup: shown by drawStartup
		return false
	case n.Kind == store.CurrentValue:
		return slices.ContainsFunc(r.More, func(m event.NamedReading) bool { return m.Name == n.Name })
	}
	return n.Kind == store.Quotient || n.Value.V > 0
}

// moreRow writes a number without a label.
func moreRow(r *pane.RowWriter, c *pane.Frame, n *store.ServerNumber, v event.Reading, note string) {
	a, ok := r.Next("")
	if !ok {
		return
	}
	name, format := nameAndFormat(n.Name)
	l := a.Line(1, 0)
	l.Put(pane.Data, format(v.V)).Gap(1)
	a.Elide(l.X, 0, l.Room(), pane.Dim, name+note, c.Skin.Glyphs.Ellipsis)
}

// nameAndFormat returns the display name of a reported metric without its unit suffix, and the format for that unit.
func nameAndFormat(metricName string) (name string, format func(float64) string) {
	for _, unit := range []struct {
		end, word string
		format    func(float64) string
	}{{"_share", "", metric.Percent}, {"_per_s", "/s", metric.Rate}, {"_s", "", metric.Seconds}, {"_bytes", "", metric.Bytes}} {
		if name, ok := strings.CutSuffix(metricName, unit.end); ok {
			return strings.ReplaceAll(sanitize.Line(name), "_", " ") + unit.word, unit.format
		}
	}
	return strings.ReplaceAll(sanitize.Line(metricName), "_", " "), metric.Count
}
