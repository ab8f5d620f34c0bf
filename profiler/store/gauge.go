package store

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Gauge identifies one series of the machine samples.
type Gauge uint8

// The gauges, in display order, with their units.
const (
	GaugeCPU            Gauge = iota // 0..1, of the machine
	GaugeClock                       // Hz, mean over the cores
	GaugeCPUPressure                 // 0..1, share of wall time in which some task waited for a core
	GaugeThrottled                   // 0..1, share of wall time in which the cgroup was throttled
	GaugeEngineCPU                   // cores, engine process
	GaugeRunWait                     // 0..1, share of wall time a runnable engine thread waited for a core
	GaugeVoluntary                   // context switches/s, engine process
	GaugeInvoluntary                 // context switches/s, engine process
	GaugeMemory                      // bytes, of the machine
	GaugeMemPressure                 // 0..1, share of wall time in which some task waited for memory
	GaugeRSS                         // bytes, engine process
	GaugeMinorFaults                 // page faults/s without I/O, engine process
	GaugeMajorFaults                 // page faults/s that waited for storage, engine process
	GaugeRead                        // B/s from storage, engine process
	GaugeWrite                       // B/s to storage, engine process
	GaugeIOPressure                  // 0..1, share of wall time in which some task waited for storage
	GaugeReceived                    // B/s, all network interfaces but loopback
	GaugeSent                        // B/s, all network interfaces but loopback
	GaugeGPU                         // 0..1, mean over the GPUs
	GaugeGPUMemory                   // bytes, sum over the GPUs
	GaugeGPUPower                    // W, sum over the GPUs
	GaugeGPUClock                    // Hz, mean over the GPUs
	GaugeGPUTemperature              // °C, hottest GPU
	GaugePower                       // W, processor packages
	GaugeSelfCPU                     // cores, llmtop; without the engine's threads where the engine runs inside llmtop
	GaugeSelfRSS                     // bytes, llmtop
	GaugeGCPause                     // ns of stop-the-world within the sample interval, llmtop
	NumGauges
)

// gaugeReadings read each gauge from a sample.
var gaugeReadings = [NumGauges]func(*event.Host) event.Reading{
	GaugeCPU:         func(h *event.Host) event.Reading { return h.CPU },
	GaugeClock:       func(h *event.Host) event.Reading { return h.Frequency },
	GaugeCPUPressure: func(h *event.Host) event.Reading { return h.CPUPressure },
	GaugeThrottled:   func(h *event.Host) event.Reading { return h.Throttled },
	GaugeEngineCPU:   func(h *event.Host) event.Reading { return h.Engine.CPU },
	GaugeRunWait:     func(h *event.Host) event.Reading { return h.Engine.RunWait },
	GaugeVoluntary:   func(h *event.Host) event.Reading { return h.Engine.Voluntary },
	GaugeInvoluntary: func(h *event.Host) event.Reading { return h.Engine.Involuntary },
	GaugeMemory:      func(h *event.Host) event.Reading { return h.MemUsed },
	GaugeMemPressure: func(h *event.Host) event.Reading { return h.MemPressure },
	GaugeRSS:         func(h *event.Host) event.Reading { return h.Engine.RSS },
	GaugeMinorFaults: func(h *event.Host) event.Reading { return h.Engine.MinorFaults },
	GaugeMajorFaults: func(h *event.Host) event.Reading { return h.Engine.Faults },
	GaugeRead:        func(h *event.Host) event.Reading { return h.Engine.Read },
	GaugeWrite:       func(h *event.Host) event.Reading { return h.Engine.Write },
	GaugeIOPressure:  func(h *event.Host) event.Reading { return h.IOPressure },
	GaugeReceived:    func(h *event.Host) event.Reading { return h.Received },
	GaugeSent:        func(h *event.Host) event.Reading { return h.Sent },
	GaugeGPU: func(h *event.Host) event.Reading {
		return foldGPUs(h, mean, func(g *event.GPU) event.Reading { return g.Util })
	},
	GaugeGPUMemory: func(h *event.Host) event.Reading {
		return foldGPUs(h, sum, func(g *event.GPU) event.Reading { return g.MemUsed })
	},
	GaugeGPUPower: func(h *event.Host) event.Reading {
		return foldGPUs(h, sum, func(g *event.GPU) event.Reading { return g.Power })
	},
	GaugeGPUClock: func(h *event.Host) event.Reading {
		return foldGPUs(h, mean, func(g *event.GPU) event.Reading { return g.Clock })
	},
	GaugeGPUTemperature: func(h *event.Host) event.Reading {
		return foldGPUs(h, slices.Max[[]float64], func(g *event.GPU) event.Reading { return g.Temperature })
	},
	GaugePower: func(h *event.Host) event.Reading { return h.Power },
	GaugeSelfCPU: func(h *event.Host) event.Reading {
		if h.Self.PID == h.Engine.PID {
			return h.Self.OutsideEngine
		}
		return h.Self.CPU
	},
	GaugeSelfRSS: func(h *event.Host) event.Reading { return h.Self.RSS },
	GaugeGCPause: func(h *event.Host) event.Reading { return h.Self.GCPause },
}

// Reading returns the gauge's reading in a sample.
func (g Gauge) Reading(h *event.Host) event.Reading { return gaugeReadings[g](h) }

// foldGPUs combines a reading of all GPUs into one number; absent if any GPU lacks it.
func foldGPUs(h *event.Host, fold func([]float64) float64, get func(*event.GPU) event.Reading) event.Reading {
	if len(h.GPUs) == 0 {
		return event.Absent(event.NoDevice)
	}
	var buf [8]float64 // avoids an allocation for up to 8 GPUs
	values := buf[:0]
	for i := range h.GPUs {
		r := get(&h.GPUs[i])
		if !r.OK() {
			return r
		}
		values = append(values, r.V)
	}
	return event.DerivedValue(fold(values))
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

func mean(values []float64) float64 { return sum(values) / float64(len(values)) }

// HostPoint is one sample of the machine, about 260 bytes. Absent readings are NaN.
type HostPoint struct {
	At       event.Time
	Interval time.Duration // time before At that rates are averaged over
	V        [NumGauges]float64
	ITL      float64 // ns, mean gap of all tokens generated since the previous sample; NaN without tokens
	Tokens   uint64  // tokens generated since the previous sample
}

// newHostPoint builds a point from a sample and the gaps since the previous one, which it resets.
func newHostPoint(at event.Time, h *event.Host, gaps *gapSum) HostPoint {
	p := HostPoint{At: at, Interval: time.Duration(h.Interval), ITL: math.NaN(), Tokens: gaps.tokens}
	for g := range NumGauges {
		p.V[g] = orNaN(g.Reading(h))
	}
	if gaps.n > 0 {
		p.ITL = gaps.sum / float64(gaps.n)
	}
	*gaps = gapSum{}
	return p
}

// gapSum sums the gaps between tokens from one machine sample to the next.
type gapSum struct {
	sum       float64 // ns
	n, tokens uint64  // gaps in sum; all tokens, first ones included
}

func (s *gapSum) add(gap int64, k int) { s.sum, s.n = s.sum+float64(gap)*float64(k), s.n+uint64(k) }

// SampleAt returns the sample whose interval covers t; false if there is none.
func (h *Host) SampleAt(t event.Time) (p *HostPoint, ok bool) {
	i := h.indexOf(t)
	if i == len(h.Series) || h.Series[i].At-event.Time(h.Series[i].Interval) > t {
		return nil, false
	}
	return &h.Series[i], true
}

// SamplesWithin returns the samples of a window that ends now.
func (h *Host) SamplesWithin(w metric.Window, now event.Time) []HostPoint {
	if w == metric.Session {
		return h.Series
	}
	return h.Series[h.indexOf(now-event.Time(w.Span())):]
}

// indexOf returns the index of the first sample at or after t.
func (h *Host) indexOf(t event.Time) int {
	i, _ := slices.BinarySearchFunc(h.Series, t, func(p HostPoint, t event.Time) int { return cmp.Compare(p.At, t) })
	return i
}
