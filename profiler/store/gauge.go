package store

import (
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Gauge is one of the series that samples of the machine make.
type Gauge uint8

// The gauges, in the order in which they are shown.
const (
	GaugeCPU         Gauge = iota // 0..1, of the machine
	GaugeClock                    // Hz, mean over the cores
	GaugeCPUPressure              // 0..1
	GaugeThrottled                // 0..1
	GaugeEngineCPU                // cores
	GaugeRunWait                  // 0..1 a thread
	GaugeVoluntary                // 1/s
	GaugeInvoluntary              // 1/s
	GaugeMemory                   // bytes, of the machine
	GaugeMemPressure              // 0..1
	GaugeRSS                      // bytes
	GaugeMinorFaults              // 1/s
	GaugeMajorFaults              // 1/s
	GaugeRead                     // B/s
	GaugeWrite                    // B/s
	GaugeIOPressure               // 0..1
	GaugeReceived                 // B/s
	GaugeSent                     // B/s
	GaugeGPU                      // 0..1, mean over the accelerators
	GaugeGPUMemory                // bytes, sum
	GaugeGPUPower                 // W, sum
	GaugeGPUClock                 // Hz, mean
	GaugeGPUHeat                  // °C, the hottest
	GaugePower                    // W, of the processors
	GaugeSelfCPU                  // cores, llmtop without the engine's threads where they are its own
	GaugeSelfRSS                  // bytes
	GaugeGCPause                  // ns within the interval
	NumGauges
)

// gauges are where a sample has them, those of GPUs apart.
var gauges = [NumGauges]func(*event.Host) event.Reading{
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
		return overGPUs(h, mean, func(g *event.GPU) event.Reading { return g.Util })
	},
	GaugeGPUMemory: func(h *event.Host) event.Reading {
		return overGPUs(h, sum, func(g *event.GPU) event.Reading { return g.MemUsed })
	},
	GaugeGPUPower: func(h *event.Host) event.Reading {
		return overGPUs(h, sum, func(g *event.GPU) event.Reading { return g.Power })
	},
	GaugeGPUClock: func(h *event.Host) event.Reading {
		return overGPUs(h, mean, func(g *event.GPU) event.Reading { return g.Clock })
	},
	GaugeGPUHeat: func(h *event.Host) event.Reading {
		return overGPUs(h, slices.Max[[]float64], func(g *event.GPU) event.Reading { return g.Temperature })
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

// Of is a sample's value of the gauge.
func (g Gauge) Of(h *event.Host) event.Reading { return gauges[g](h) }

// overGPUs makes one number of those of several accelerators; absent if one of them does not tell its own.
func overGPUs(h *event.Host, fold func([]float64) float64, of func(*event.GPU) event.Reading) event.Reading {
	if len(h.GPUs) == 0 {
		return event.Absent(event.NoDevice)
	}
	var few [8]float64
	values := few[:0]
	for i := range h.GPUs {
		r := of(&h.GPUs[i])
		if !r.OK() {
			return r
		}
		values = append(values, r.V)
	}
	return event.From(fold(values))
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

func mean(values []float64) float64 { return sum(values) / float64(len(values)) }

// HostPoint is one sample in the course of the machine, about 260 bytes; NaN where a reading was absent.
type HostPoint struct {
	At       event.Time
	Interval time.Duration // before At, which rates are over
	V        [NumGauges]float64
	ITL      float64 // ns, mean gap of the tokens that came since the sample before, of all requests; NaN if none came
	Tokens   uint64  // that came since then
}

// pointOf is a sample with the tokens that came since the one before.
func pointOf(at event.Time, h *event.Host, gaps *gapSum) HostPoint {
	p := HostPoint{At: at, Interval: time.Duration(h.Interval), ITL: math.NaN(), Tokens: gaps.tokens}
	for g := range NumGauges {
		p.V[g] = plain(g.Of(h))
	}
	if gaps.n > 0 {
		p.ITL = gaps.sum / float64(gaps.n)
	}
	*gaps = gapSum{}
	return p
}

// gapSum sums gaps between two samples of the machine.
type gapSum struct {
	sum       float64 // ns
	n, tokens uint64
}

func (s *gapSum) add(gap int64, k int) { s.sum, s.n = s.sum+float64(gap)*float64(k), s.n+uint64(k) }

// Around is the sample in whose interval a moment lies; false if there is none.
func (h *Host) Around(at event.Time) (p *HostPoint, ok bool) {
	i, _ := slices.BinarySearchFunc(h.Series, at, func(p HostPoint, at event.Time) int { return int(min(max(p.At-at, -1), 1)) })
	if i == len(h.Series) || h.Series[i].At-event.Time(h.Series[i].Interval) > at {
		return nil, false
	}
	return &h.Series[i], true
}

// Within are the samples of a window that ends now.
func (h *Host) Within(w metric.Window, now event.Time) []HostPoint {
	if w == metric.Session {
		return h.Series
	}
	i, _ := slices.BinarySearchFunc(h.Series, now-event.Time(w.Span()), func(p HostPoint, at event.Time) int { return int(min(max(p.At-at, -1), 1)) })
	return h.Series[i:]
}
