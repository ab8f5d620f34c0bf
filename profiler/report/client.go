package report

import (
	"fmt"

	"github.com/llmtop/llmtop/profiler/metric"
)

// Client is what this program did while it measured an engine in another process, and whether that held anything up.
type Client struct {
	CPU        Number      `json:"cpu_cores"`           // in use by it, on average
	Cores      Number      `json:"cores_available"`     // that it may use
	MachineCPU Number      `json:"machine_cpu"`         // 0..1, of all processes
	ReadLag    *Statistics `json:"read_lag_s"`          // from when bytes lie ready to when they are stamped, by a probe; null: there was none
	GCPause    Number      `json:"gc_pause_s"`          // in all
	Untold     int         `json:"uncounted_responses"` // whose tokens the server did not count: each message with text counts as one
	Limits     []string    `json:"bottlenecks"`         // in what way it held something up; empty: in none
}

// From where on the client is called a bottleneck.
const (
	cpuMatters     = 0.8  // of the cores that it may use
	machineMatters = 0.95 // of all cores, if it used sharedMatters of those it may use
	sharedMatters  = 0.1
	lagMatters     = 0.05 // of the shortest median TTFT, at the 99th percentile
	gapMatters     = 0.2  // of the shortest median TPOT, likewise
	lateShare      = 0.05 // of the median TTFT, at the median
)

// Describe makes statistics of values that were all measured in one run; nil for none.
func Describe(values []float64) *Statistics {
	s := samples{all: values, runs: [][]float64{values}}
	return s.describe()
}

// AddClient adds to a report with a benchmark what its client did, and judges that.
func (r *Report) AddClient(c Client) {
	c.Limits = []string{}
	limit := func(format string, args ...any) { c.Limits = append(c.Limits, fmt.Sprintf(format, args...)) }
	cores, known := c.Cores.Positive()
	share := 0.0
	if known && c.CPU.OK() {
		share = c.CPU.V / cores
	}
	switch {
	case share >= cpuMatters:
		limit("it used %s of the %s cores that it may use", metric.Rate(c.CPU.V), metric.Count(cores))
	case share >= sharedMatters && c.MachineCPU.OK() && c.MachineCPU.V >= machineMatters:
		limit("it used %s cores of a machine that was busy to %s", metric.Rate(c.CPU.V), metric.Percent(c.MachineCPU.V))
	}
	if c.ReadLag != nil {
		lag := c.ReadLag.P99.V
		if ttft, ok := r.shortest(func(p *Point) *Statistics { return p.TTFT }); ok && lag >= lagMatters*ttft {
			limit("bytes waited up to %s to be read (p99), %s of the shortest median TTFT", metric.Seconds(lag), metric.Percent(lag/ttft))
		}
		if tpot, ok := r.shortest(func(p *Point) *Statistics { return p.TPOT }); ok && lag >= gapMatters*tpot {
			limit("bytes waited up to %s to be read (p99), %s of the shortest median TPOT", metric.Seconds(lag), metric.Percent(lag/tpot))
		}
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		if p.Late != nil && p.TTFT != nil && p.Late.P50.V >= lateShare*p.TTFT.P50.V && p.Late.P50.V > 0 {
			limit("%s: requests were sent %s after their time (p50), %s of the median TTFT", p.Name, metric.Seconds(p.Late.P50.V), metric.Percent(p.Late.P50.V/p.TTFT.P50.V))
		}
	}
	r.Bench.Client = &c
}

// shortest is the least of the points' medians.
func (r *Report) shortest(of func(*Point) *Statistics) (least float64, known bool) {
	for i := range r.Bench.Points {
		if s := of(&r.Bench.Points[i]); s != nil && s.P50.V > 0 && (!known || s.P50.V < least) {
			least, known = s.P50.V, true
		}
	}
	return least, known
}

// clientSection says what the client did.
func (r *Report) clientSection() section {
	s := section{title: "Client", left: 1, header: []string{"", ""}}
	if r.Bench == nil || r.Bench.Client == nil {
		return s
	}
	c := r.Bench.Client
	s.rows = append(s.rows, []string{"CPU", fmt.Sprintf("%s of %s cores; machine %s", format(c.CPU, metric.Rate), format(c.Cores, metric.Count), format(c.MachineCPU, metric.Percent))})
	if c.ReadLag != nil {
		s.rows = append(s.rows, []string{"bytes read after", fmt.Sprintf("%s (p50), %s (p99), %s at most",
			metric.Seconds(c.ReadLag.P50.V), metric.Seconds(c.ReadLag.P99.V), metric.Seconds(c.ReadLag.Max.V))})
	}
	if len(c.Limits) == 0 {
		s.rows = append(s.rows, []string{"a bottleneck", "no"})
	}
	for i, why := range c.Limits {
		row := []string{"", why}
		if i == 0 {
			row = []string{"a bottleneck", "YES: " + why}
		}
		s.rows = append(s.rows, row)
	}
	if c.Untold > 0 {
		s.words = append(s.words, fmt.Sprintf("The server did not count the tokens of %d answers: messages with text were counted in their place.", c.Untold))
	}
	return s
}
