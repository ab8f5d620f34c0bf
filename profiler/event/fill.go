package event

import (
	"math"
	"reflect"
	"slices"
)

// Fill sets what a sample does not report to what another one of the same machine does: each number keeps its definition
// and its origin. Readings that mean something only together, such as memory and its limit, come from one of them.
func (h *Host) Fill(from *Host) {
	memory := h.MemTotal.OK() || h.MemUsed.OK()
	limit := h.CPULimit.OK()
	for i := range MachineFields {
		to := MachineFields[i].At(h)
		if !memory || to != &h.MemTotal && to != &h.MemUsed {
			to.fill(*MachineFields[i].At(from))
		}
	}
	h.Limited = h.Limited || from.Limited && !memory && !limit
	for _, list := range []struct{ to, from *[]float64 }{{&h.Cores, &from.Cores}, {&h.Clocks, &from.Clocks}, {&h.ReadBandwidth, &from.ReadBandwidth}} {
		if len(*list.to) == 0 {
			*list.to = *list.from
		}
	}
	if p := &h.Engine; p.PID == 0 || from.Engine.PID == 0 || p.PID == from.Engine.PID {
		p.PID = max(p.PID, from.Engine.PID)
		for i := range ProcessFields {
			ProcessFields[i].At(p).fill(*ProcessFields[i].At(&from.Engine))
		}
	}
	h.fillGPUs(from)
}

// fill sets an absent reading to another one.
func (r *Reading) fill(from Reading) {
	if !r.OK() && (from.OK() || r.Origin == NotReported) {
		*r = from
	}
}

// fillGPUs takes over the GPUs of another sample if it has more readings of them: the order of several GPUs depends on who
// lists them. Two samples of a single GPU are joined.
func (h *Host) fillGPUs(from *Host) {
	if one := len(h.GPUs) == 1 && len(from.GPUs) == 1 && h.GPUs[0].Name == from.GPUs[0].Name; one {
		h.GPUs = slices.Clone(h.GPUs)
		for i := range GPUFields {
			GPUFields[i].At(&h.GPUs[0]).fill(*GPUFields[i].At(&from.GPUs[0]))
		}
	} else if h.readingsOfGPUs() <= from.readingsOfGPUs() {
		h.GPUs, h.NoGPU, h.GPUProcesses = from.GPUs, from.NoGPU, from.GPUProcesses
	}
}

// readingsOfGPUs returns how many readings of GPUs a sample has.
func (h *Host) readingsOfGPUs() (n int) {
	for i := range h.GPUs {
		for k := range GPUFields {
			if GPUFields[k].At(&h.GPUs[i]).OK() {
				n++
			}
		}
	}
	return n
}

// Fill sets what is unknown of a model to what is known from its file.
func (m *Model) Fill(from *Model) {
	to, source := reflect.ValueOf(m).Elem(), reflect.ValueOf(from).Elem()
	for i := range to.NumField() {
		if to.Field(i).IsZero() {
			to.Field(i).Set(source.Field(i))
		}
	}
}

// Contradicts reports whether a file describes another model. The number of parameters may be rounded.
func (m *Model) Contradicts(file *Model) bool {
	differ := func(a, b int) bool { return a > 0 && b > 0 && a != b }
	near := math.Abs(float64(m.Parameters-file.Parameters)) <= 0.05*float64(file.Parameters)
	return differ(m.Layers, file.Layers) || differ(m.Width, file.Width) || differ(m.Experts, file.Experts) || m.Parameters > 0 && file.Parameters > 0 && !near
}
