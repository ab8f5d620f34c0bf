package alert

import (
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// kind is how the limits of a measure are written.
type kind uint8

const (
	count kind = iota
	duration
	rate // tokens/s
	share
	size
	cores
	hertz
	watts
	celsius
)

// kindOf returns the kind of a unit.
func kindOf(u event.Unit) kind {
	switch u {
	case "s", "ns":
		return duration
	case "{token}/s":
		return rate
	case "1":
		return share
	case "By", "By/s":
		return size
	case "{core}":
		return cores
	case "Hz":
		return hertz
	case "W":
		return watts
	case "Cel":
		return celsius
	}
	return count
}

// measure is a number of a snapshot that a rule can compare with a limit.
type measure struct {
	name  string
	unit  event.Unit
	means string
	read  func(*store.Snapshot, metric.Window) amount
}

// amount is the value of a measure.
type amount struct {
	event.Reading
	bucket metric.Quantile // the server's bucket in which the value lies; NoQuantile: the value is exact
}

func absent(why event.Origin) amount { return amount{Reading: event.Absent(why)} }

// format formats a value as the screen shows it; counted things per second as a number.
func (m *measure) format(v float64) string {
	if m.unit == "" { // a ratio: 1.2 is not 1
		return metric.Rate(v)
	}
	if strings.HasPrefix(string(m.unit), "{") && kindOf(m.unit) == count {
		return metric.Count(v)
	}
	return metric.Format(m.unit)(v)
}

// measures lists all measures in the order of the documentation.
var measures = slices.Concat(
	latencyMeasures(),
	numberMeasures(store.Rates),
	numberMeasures(store.Totalled),
	[]measure{{"memory", "1", "memory of the machine in use", usedMemory}},
	causeMeasures(),
	hostMeasures(),
)

// causeMeasures returns the shares of the time of requests that causes took.
func causeMeasures() []measure {
	out := []measure{{"lost_time", "1", "time of requests lost to stalls, slow seconds and slow first tokens / their time", func(s *store.Snapshot, w metric.Window) amount {
		all, _, _ := s.Losses.Over(w)
		return amount{Reading: all.ShareOf(all.Total())}
	}}}
	for c := range verdict.NumCauses {
		out = append(out, measure{"lost_to_" + c.String(), "1", "the part of lost_time of this cause: " + verdict.Causes[c].Text, func(s *store.Snapshot, w metric.Window) amount {
			all, _, _ := s.Losses.Over(w)
			return amount{Reading: all.Share(c)}
		}})
	}
	return out
}

// numberMeasures returns the numbers of a catalogue that rules can use.
func numberMeasures(rows []store.Number) (out []measure) {
	for _, n := range rows {
		if n.Alert != "" {
			out = append(out, measure{n.Alert, n.Unit, n.Help, func(s *store.Snapshot, w metric.Window) amount {
				return amount{Reading: n.Of(s, w)}
			}})
		}
	}
	return out
}

// hostMeasures returns the readings of the machine and its processes that the screen shows.
func hostMeasures() (out []measure) {
	for i := range event.HostReadings {
		r := &event.HostReadings[i]
		unit, factor := r.Unit.Base()
		out = append(out, measure{r.Alert, unit, r.Help, func(s *store.Snapshot, _ metric.Window) amount {
			v := r.Of(s.Host.Host)
			v.V *= factor
			return amount{Reading: v}
		}})
	}
	return out
}

// percentiles are the statistics of latencies that rules can use. Servers do not report the longest.
var percentiles = [...]struct {
	name, means string
	own         func(*metric.Summary) float64
	server      func(*metric.BucketSummary) amount // nil: none
}{
	{"p50", "median", func(s *metric.Summary) float64 { return float64(s.P50) }, func(s *metric.BucketSummary) amount { return bucketed(s.P50) }},
	{"p95", "95th percentile", func(s *metric.Summary) float64 { return float64(s.P95) }, func(s *metric.BucketSummary) amount { return bucketed(s.P95) }},
	{"p99", "99th percentile", func(s *metric.Summary) float64 { return float64(s.P99) }, func(s *metric.BucketSummary) amount { return bucketed(s.P99) }},
	{"max", "longest", func(s *metric.Summary) float64 { return float64(s.Max) }, nil},
	{"mean", "mean", func(s *metric.Summary) float64 { return s.Mean }, exactMean},
}

// exactMean returns the mean, which does not depend on buckets.
func exactMean(s *metric.BucketSummary) amount {
	return amount{Reading: event.DerivedValue(s.Mean / 1e9)}
}

// bucketed returns a percentile; it is absent if the buckets are unknown.
func bucketed(q metric.Quantile) amount {
	if q.Edge == metric.NoQuantile {
		return absent(event.NotReported)
	}
	return amount{event.DerivedValue(float64(q.At) / 1e9), q}
}

// latencyMeasures returns the percentiles of the latencies, in seconds.
func latencyMeasures() (out []measure) {
	for id := range store.NumLatencies {
		row := id.Row()
		if row.Alert == "" {
			continue
		}
		for _, m := range percentiles {
			out = append(out, measure{row.Alert + "_" + m.name, "s", row.Help + ": " + m.means, func(s *store.Snapshot, w metric.Window) amount {
				if own := &row.In(&s.Latency)[w]; own.Count > 0 {
					return amount{Reading: event.DerivedValue(m.own(own) / 1e9)}
				}
				switch sum, ok := s.ServerLatency(id, w); {
				case !s.Reported():
					return absent(event.NotYet)
				case !ok || m.server == nil:
					return absent(event.NotReported)
				case sum.Count == 0:
					return absent(event.NotYet)
				default:
					return m.server(&sum)
				}
			}})
		}
	}
	return out
}

func usedMemory(s *store.Snapshot, _ metric.Window) amount {
	used, total := s.Host.MemUsed, s.Host.MemTotal
	if !used.OK() {
		return amount{Reading: used}
	}
	if !total.OK() || total.V <= 0 {
		return absent(event.NotYet)
	}
	return amount{Reading: event.DerivedValue(used.V / total.V)}
}

// Measure describes a number that rules can use, for documentation.
type Measure struct{ Name, Means, Example string }

// Measures returns all numbers that rules can use.
func Measures() (out []Measure) {
	examples := [...]string{count: "10", duration: "500ms", rate: "20", share: "90%", size: "8GB", cores: "1.5", hertz: "2GHz", watts: "200", celsius: "80"}
	for _, m := range measures {
		out = append(out, Measure{m.name, m.means, m.name + " > " + examples[kindOf(m.unit)]})
	}
	return out
}

// byName returns the measure with a name, or nil if absent.
func byName(name string) *measure {
	i := slices.IndexFunc(measures, func(m measure) bool { return m.name == strings.ToLower(name) })
	if i < 0 {
		return nil
	}
	return &measures[i]
}

// measureNames returns the names of all measures, separated by commas.
func measureNames() string {
	all := make([]string, len(measures))
	for i := range measures {
		all[i] = measures[i].name
	}
	return strings.Join(all, ", ")
}

// finite reports whether v can be a limit.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 }
