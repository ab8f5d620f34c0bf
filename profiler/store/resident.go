package store

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// mostlyResident is the percentage of an expert's bytes from which it counts as resident.
const mostlyResident = 50

// Residency returns how much of each expert was in the page cache in the last sweep, in percent, with
// event.UnknownShare where it is unknown, indexed [layer*Experts+expert]; nil without a sweep that fits the picks.
func Residency(s *Snapshot) []uint8 {
	x, list := s.Experts, s.Host.ExpertsCached
	if x == nil || len(list) == 0 || len(list) != x.Layers*x.Experts {
		return nil
	}
	return list
}

// HotNotResident returns the experts that got more picks than an even router would give them, but of which less than half
// was in the page cache in the last sweep, in the order of Residency.
func HotNotResident(s *Snapshot, h *Hits) (list []int) {
	for i, share := range Residency(s) {
		layer := h.Layers[i/s.Experts.Experts]
		if share < mostlyResident && h.Counts[i]*uint64(s.Experts.Experts) > layer.Total {
			list = append(list, i)
		}
	}
	return list
}

// ResidentPicks returns the share of the picks that went to the resident part of experts, of the picks of experts with a
// known residency; NotYet without any.
func ResidentPicks(s *Snapshot, h *Hits) event.Reading {
	picks, served := 0., 0.
	for i, share := range Residency(s) {
		if share != event.UnknownShare {
			n := float64(h.Counts[i])
			picks, served = picks+n, served+n*float64(share)/100
		}
	}
	if picks == 0 {
		return event.Absent(event.NotYet)
	}
	return event.DerivedValue(metric.Share(served, picks))
}
