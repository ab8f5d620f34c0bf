package polled

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// histogramNames are the display names of latency histograms; others keep the name of the engine.
var histogramNames = map[string]string{
	event.HistogramTTFT: "TTFT", event.HistogramITL: "ITL", event.HistogramTPOT: "TPOT", event.HistogramE2EL: "E2EL", event.HistogramQueue: "queue time",
	event.HistogramPrefill: "prefill", event.HistogramDecode: "decode", event.HistogramInference: "inference",
	event.HistogramPerToken: "per token",
}

func histogramName(name string) string {
	if known, ok := histogramNames[name]; ok {
		return known
	}
	return sanitize.Line(name)
}

// histogramTable lists the latency histograms over the selected window, or, while none has samples, what the engine had
// counted before llmtop attached. It returns the rows used.
func histogramTable(c *pane.Frame, a grid.Area, s *store.Snapshot) int {
	const names, col = 14, 10
	heads := [...]string{"mean", "p50", "p90", "p95", "p99", "samples"}
	for i, h := range heads {
		if x := names + (i+1)*col; x <= a.W {
			a.Right(x, 0, pane.Heading, h)
		}
	}
	rows := make([]namedTimes, 0, len(s.Aggregates.Histograms))
	counted := false
	for i := range s.Aggregates.Histograms {
		t := &s.Aggregates.Histograms[i]
		rows = append(rows, namedTimes{t.Name, t.Summary(c.Window)})
		counted = counted || t.Summary(metric.Session).Count > 0
	}
	if before := earlierTimes(s.Aggregates); !counted && len(before) > 0 {
		rows = before
		a.Text(0, 0, pane.Heading, "before attach")
	}
	y := 1
	for i := range rows {
		t := &rows[i]
		if y >= a.H {
			break
		}
		sum := &t.sum
		a.Elide(0, y, names-1, pane.Dim, histogramName(t.name), c.Skin.Glyphs.Ellipsis)
		cells := [...]string{"-", "-", "-", "-", "-", "0"}
		if sum.Count > 0 {
			cells = [...]string{
				metric.Duration(int64(sum.Mean)), metric.QuantileOf(sum.P50), metric.QuantileOf(sum.P90), metric.QuantileOf(sum.P95),
				metric.QuantileOf(sum.P99), metric.Count(float64(sum.Count)),
			}
		}
		for i, words := range cells {
			st := pane.Data
			if words == "-" || i == len(cells)-1 {
				st = pane.Dim
			}
			if x := names + (i+1)*col; x <= a.W {
				a.Right(x, y, st, words)
			}
		}
		y++
	}
	return y
}

// DrawLatency draws the Latency view of an engine with aggregate metrics. overTime: only what changes over time.
func DrawLatency(c *pane.Frame, a grid.Area, overTime bool, s *store.Snapshot) {
	switch {
	case len(s.Aggregates.Histograms) == 0:
		latencyWithoutHistograms(c, a, s)
		return
	case overTime && drawTrends(c, a, s):
		return
	}
	n := histogramTable(c, a, s)
	if slices.ContainsFunc(s.Aggregates.Histograms, func(t store.WindowedHistogram) bool { return t.Bounds() != nil }) {
		for _, words := range []string{
			"engine histograms: means are exact, percentiles interpolated within buckets;",
			"< and > mark the outermost buckets, which have only one bound",
		} {
			n++
			a.Elide(0, n, a.W, pane.Dim, words, c.Skin.Glyphs.Ellipsis)
		}
	}
	if probeLine(c, a, n+1, s) {
		n++
	}
	rest := a.Sub(0, n+2, a.W, a.H-n-2)
	n = polledRequests(c, rest, s)
	if rest = rest.Sub(0, n, rest.W, rest.H-n); !drawTrends(c, rest, s) {
		ratesIfRoom(c, rest, s)
	}
}

// noLatency is why there are no latencies, measureLatency how to get them.
const (
	noLatency      = "latencies: not reported by this engine"
	measureLatency = "measure them with llmtop attach --probe or llmtop proxy"
)

// MissingLatency returns why an engine has no latencies, and how to get them; why is "" if it reports histograms,
// requests or slots, or if llmtop has sent requests.
func MissingLatency(s *store.Snapshot) (why, advice string) {
	if s.NoPerRequest() && len(s.Aggregates.Histograms)+len(s.Requests) == 0 {
		return noLatency, measureLatency
	}
	return "", ""
}

// latencyWithoutHistograms draws the Latency view of an engine without latency histograms: probes or polled requests.
func latencyWithoutHistograms(c *pane.Frame, a grid.Area, s *store.Snapshot) {
	switch {
	case drawProbes(c, a, s):
	case polledCount(s) > 0:
		n := polledRequests(c, a, s)
		ratesIfRoom(c, a.Sub(0, n, a.W, a.H-n), s)
	default:
		c.Absent(a, pane.Dim, noLatency, measureLatency)
	}
}

// polledRequests lists polled requests in the upper half of an area and returns the rows used, 0 without any.
func polledRequests(c *pane.Frame, a grid.Area, s *store.Snapshot) int {
	n := min(polledCount(s)+1, a.H/2)
	if n < 2 {
		return 0
	}
	polledTable(c, a.Sub(0, 0, a.W, n), s)
	a.Elide(0, n+1, a.W, pane.Dim, "from slot progress between two polls, newest first", c.Skin.Glyphs.Ellipsis)
	a.Elide(0, n+2, a.W, pane.Dim, pane.FirstFitting(a.W,
		"percentiles and other latencies are not reported, as "+store.MissedByPolls+": measure them with llmtop attach --probe or llmtop proxy",
		"percentiles and other latencies are not reported: measure them with llmtop attach --probe or llmtop proxy",
		"others: measure with llmtop attach --probe or llmtop proxy"), c.Skin.Glyphs.Ellipsis)
	return n + 4
}

// ratesIfRoom draws the throughput chart below the latencies, if there is room.
func ratesIfRoom(c *pane.Frame, a grid.Area, s *store.Snapshot) {
	if pts := c.Rates(s); a.H >= 6 && len(pts) >= 2 {
		pane.DrawRatesChart(a, pts, c)
	}
}
