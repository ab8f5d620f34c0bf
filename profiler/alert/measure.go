package alert

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// measure is a number of a snapshot that a rule can compare with a limit.
type measure struct {
	metric.Column
	read func(*store.Snapshot, metric.Window) amount
}

// amount is the value of a measure.
type amount struct {
	event.Reading
	bucket metric.Quantile // the server's bucket in which the value lies; NoQuantile: the value is exact
}

func column(name string, unit event.Unit, means string) metric.Column {
	return metric.Column{Name: name, Unit: unit, Means: means}
}

func absent(why event.Origin) amount { return amount{Reading: event.Absent(why)} }

// format formats a value as the screen shows it; counted things per second as a number.
func (m *measure) format(v float64) string {
	switch {
	case m.Unit == "": // a ratio: 1.2 is not 1
		return metric.Rate(v)
	case strings.HasPrefix(string(m.Unit), "{") && m.Unit != "{core}" && m.Unit != "{token}/s":
		return metric.Count(v)
	}
	return metric.Format(m.Unit)(v)
}

// measures lists all measures in the order of the documentation.
var measures = slices.Concat(
	latencyMeasures(),
	numberMeasures(store.Rates),
	numberMeasures(store.Totalled),
	[]measure{{column("memory", "1", "memory of the machine in use"), usedMemory}},
	causeMeasures(),
	hostMeasures(),
)

// causeMeasures returns the shares of the time of requests that causes took.
func causeMeasures() []measure {
	out := []measure{{column("lost_time", "1", "time of requests lost to stalls, slow seconds and slow first tokens / their time"), func(s *store.Snapshot, w metric.Window) amount {
		all, _, _ := s.Losses.Over(w)
		return amount{Reading: all.ShareOf(all.Total())}
	}}}
	for c := range verdict.NumCauses {
		out = append(out, measure{column("lost_to_"+c.String(), "1", "the part of lost_time of this cause: "+verdict.Causes[c].Text), func(s *store.Snapshot, w metric.Window) amount {
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
			out = append(out, measure{column(n.Alert, n.Unit, n.Help), func(s *store.Snapshot, w metric.Window) amount {
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
		out = append(out, measure{column(r.Alert, unit, r.Help), func(s *store.Snapshot, _ metric.Window) amount {
			v := r.Of(s.Host.Host)
			v.V *= factor
			return amount{Reading: v}
		}})
	}
	return out
}

// statistics are those of latencies that rules can use.
var statistics = [...]struct {
	name, means string
	of          func(*metric.Distribution) amount
}{
	{"p50", "median", func(d *metric.Distribution) amount { return quantile(d.P50) }},
	{"p95", "95th percentile", func(d *metric.Distribution) amount { return quantile(d.P95) }},
	{"p99", "99th percentile", func(d *metric.Distribution) amount { return quantile(d.P99) }},
	{"max", "longest", func(d *metric.Distribution) amount { return quantile(d.Max) }},
	{"mean", "mean", func(d *metric.Distribution) amount { return amount{Reading: event.DerivedValue(d.Mean / 1e9)} }},
}

// quantile returns a percentile; it is absent if the buckets are unknown. Servers do not report the longest.
func quantile(q metric.Quantile) amount {
	switch q.Edge {
	case metric.NoQuantile:
		return absent(event.NotReported)
	case metric.Exact:
		return amount{Reading: event.DerivedValue(float64(q.At) / 1e9)}
	}
	return amount{event.DerivedValue(float64(q.At) / 1e9), q}
}

// latencyMeasures returns the statistics of the latencies, in seconds.
func latencyMeasures() (out []measure) {
	for id := range store.NumLatencies {
		row := id.Row()
		if row.Alert == "" {
			continue
		}
		for _, m := range statistics {
			out = append(out, measure{column(row.Alert+"_"+m.name, "s", row.Help+": "+m.means), func(s *store.Snapshot, w metric.Window) amount {
				d := s.Distribution(id, w)
				if d.Count == 0 {
					return absent(d.Origin)
				}
				return m.of(&d)
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

// byName returns the measure with a name, or nil if absent.
func byName(name string) *measure {
	i := slices.IndexFunc(measures, func(m measure) bool { return m.Name == name })
	if i < 0 {
		return gpuMeasure(name)
	}
	return &measures[i]
}

// ofGPU matches a measure of one GPU: gpu3_power is gpu_power of GPU 3 alone.
var ofGPU = regexp.MustCompile(`^gpu([0-9]{1,2})(_[a-z_]+)?$`)

// gpuMeasure returns the measure of one GPU with a name, or nil if absent.
func gpuMeasure(name string) *measure {
	parts := ofGPU.FindStringSubmatch(name)
	if parts == nil {
		return nil
	}
	n, _ := strconv.Atoi(parts[1]) // two digits
	for i := range event.GPUFields {
		f := &event.GPUFields[i]
		if f.Own.Alert != "gpu"+parts[2] {
			continue
		}
		unit, factor := f.Unit.Base()
		return &measure{column(name, unit, f.Help), func(s *store.Snapshot, _ metric.Window) amount {
			if n >= len(s.Host.GPUs) {
				return absent(event.NoDevice)
			}
			v := *f.At(&s.Host.GPUs[n])
			v.V *= factor
			return amount{Reading: v}
		}}
	}
	return nil
}

// measureNames returns the names of all measures, separated by commas.
func measureNames() string {
	all := make([]string, len(measures))
	for i := range measures {
		all[i] = measures[i].Name
	}
	return strings.Join(all, ", ")
}
