package event

import "slices"

// Field is one row of the catalogue of host readings: all that is known of a reading of the machine, a process or a GPU.
type Field[T any] struct {
	Key    string // member of the host event
	JSON   string // member of the report; "": in no report
	Metric string // OpenTelemetry name, from which the Prometheus name follows; "": not exported from samples
	Unit   Unit
	Sum    bool // counts from the start of the process: exported as a counter

	Name string // in documents
	Help string // definition for exports, alerts and the screen's help; no period at the end

	Own  Series // of the machine, of the engine's process, or of all GPUs
	Self Series // of llmtop's own process

	At func(*T) *Reading

	fold   func([]float64) float64 // combines the readings of all GPUs
	folded string                  // what fold returns
}

// Series is where the screen and the alerts show one reading. The zero value shows it nowhere.
type Series struct {
	Gauge Gauge
	Title string // on the screen; "" for readings without a gauge
	Alert string // name in alert rules
}

// HostReading is a reading of a Host as the screen and the alerts show it.
type HostReading struct {
	Series
	Unit Unit
	Help string
	Of   func(*Host) Reading
}

// HostReadings lists the readings that the screen and the alerts show, in the order of the catalogue.
var HostReadings = hostReadings()

var gauges = func() (out [NumGauges]HostReading) {
	for _, r := range HostReadings {
		if r.Gauge != NoGauge {
			out[r.Gauge] = r
		}
	}
	return out
}()

// Info describes the gauge.
func (g Gauge) Info() *HostReading { return &gauges[g] }

// Reading returns the gauge's reading in a sample.
func (g Gauge) Reading(h *Host) Reading { return gauges[g].Of(h) }

func hostReadings() (out []HostReading) {
	add := func(s Series, unit Unit, help string, of func(*Host) Reading) {
		if s.Alert != "" {
			out = append(out, HostReading{s, unit, help, of})
		}
	}
	for i := range MachineFields {
		f := &MachineFields[i]
		add(f.Own, f.Unit, f.Help, func(h *Host) Reading { return *f.At(h) })
	}
	for i := range ProcessFields {
		f := &ProcessFields[i]
		add(f.Own, f.Unit, "engine: "+f.Help, func(h *Host) Reading { return *f.At(&h.Engine) })
	}
	for i := range GPUFields {
		f := &GPUFields[i]
		add(f.Own, f.Unit, f.Help+", "+f.folded, func(h *Host) Reading { return foldGPUs(h, f) })
	}
	for i := range ProcessFields {
		f := &ProcessFields[i]
		of := func(h *Host) Reading { return *f.At(&h.Self) }
		if f.Self.Gauge == GaugeSelfCPU {
			of = selfCPU
		}
		add(f.Self, f.Unit, "llmtop: "+f.Help, of)
	}
	return out
}

// selfCPU returns the CPU use of llmtop, without the engine's threads if the engine runs in the same process.
func selfCPU(h *Host) Reading {
	if h.Self.PID == h.Engine.PID {
		return h.Self.OutsideEngine
	}
	return h.Self.CPU
}

// Folds reports whether a GPU counts in the sums and means over GPUs: one that is part of the processor does not beside
// others, unless the engine has memory on it.
func (h *Host) Folds(g *GPU) bool {
	return !g.Unified || g.EngineMem.V > 0 || !slices.ContainsFunc(h.GPUs, func(o GPU) bool { return !o.Unified })
}

// foldGPUs combines a reading of the GPUs into one number; absent if any of them lacks it.
func foldGPUs(h *Host, f *Field[GPU]) Reading {
	if len(h.GPUs) == 0 {
		return Absent(NoDevice)
	}
	var buf [8]float64 // avoids an allocation for up to 8 GPUs
	values := buf[:0]
	for i := range h.GPUs {
		r := *f.At(&h.GPUs[i])
		switch {
		case !h.Folds(&h.GPUs[i]):
			continue
		case !r.OK():
			return r
		}
		values = append(values, r.V)
	}
	return DerivedValue(f.fold(values))
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

func mean(values []float64) float64 { return sum(values) / float64(len(values)) }
