package event

import "testing"

// TestFill checks that a sample keeps its own numbers and gets the others, and that readings that belong together come
// from one sample.
func TestFill(t *testing.T) {
	m := MeasuredValue
	local := Host{
		Interval: 1e9, Cores: []float64{0.5, 0.1}, CPU: m(0.3), MemTotal: m(100), MemUsed: m(40), CPULimit: m(2), Limited: true,
		Engine: Process{PID: 7, CPU: m(0.9), RSS: m(5), Read: Absent(NotPermitted)},
		GPUs:   []GPU{{Name: "A", MemUsed: m(1), Power: m(300)}, {Name: "A", MemUsed: m(2), Power: m(200)}},
	}
	for name, c := range map[string]struct {
		own   Host
		wrong func(h *Host) bool
	}{
		"nothing": {Host{NoGPU: "no GPU"}, func(h *Host) bool {
			return h.CPU.V != 0.3 || len(h.Cores) != 2 || h.MemUsed.V != 40 || !h.Limited || h.Engine.PID != 7 || h.Engine.Read.Origin != NotPermitted || len(h.GPUs) != 2 || h.NoGPU != ""
		}},
		"its own numbers": {Host{CPU: DerivedValue(0.2), Engine: Process{CPU: ReportedValue(0.8)}}, func(h *Host) bool {
			return h.CPU != DerivedValue(0.2) || h.Engine.CPU != ReportedValue(0.8) || h.Engine.RSS.V != 5 || h.Engine.PID != 7
		}},
		"the memory of all, not the limit of a group": {Host{MemUsed: m(900)}, func(h *Host) bool { return h.MemTotal.OK() || h.MemUsed.V != 900 || h.Limited }},
		"another process": {Host{Engine: Process{PID: 8, RSS: m(6)}}, func(h *Host) bool { return h.Engine.CPU.OK() || h.Engine.PID != 8 }},
		"some GPUs":       {Host{GPUs: []GPU{{Name: "A", MemUsed: m(2)}}}, func(h *Host) bool { return len(h.GPUs) != 2 || h.GPUs[0].MemUsed.V != 1 }},
		"more about GPUs": {Host{GPUs: []GPU{{Name: "A", MemUsed: m(2), Power: m(1), Clock: m(1), Util: m(1), SM: m(1)}}}, func(h *Host) bool { return len(h.GPUs) != 1 }},
	} {
		h := c.own
		if h.Fill(&local); c.wrong(&h) {
			t.Errorf("%s: %+v", name, h)
		}
	}
	one, own := Host{GPUs: []GPU{{Name: "A", Power: m(300), MemUsed: m(9)}}}, Host{GPUs: []GPU{{Name: "A", MemUsed: m(2)}}}
	shared := own.GPUs
	if own.Fill(&one); own.GPUs[0].Power.V != 300 || own.GPUs[0].MemUsed.V != 2 || shared[0].Power.OK() {
		t.Errorf("the only GPU: %+v of %+v", own.GPUs, shared)
	}
}
