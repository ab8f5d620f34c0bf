package store

import (
	"fmt"
	"strings"
	"time"

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

// The bounds of absentPicks.
const (
	maxSweepAge = event.Time(30 * time.Second) // of the sweep: later, experts may have been read or evicted
	maxAbsent   = 3                            // experts that are named
)

// absentPicks names the experts that a token picked and that were not wholly in memory in the last sweep before a time:
// "picked 5:12 (0 %) and 2 more, not wholly in memory 3.00 s before". It is "" without any, or without such a sweep.
func absentPicks(s *state, picks []uint16, from event.Time) string {
	h, m := s.machine.last(), &s.model
	layers := m.Layers
	if h.ExpertsAt == 0 || h.ExpertsAt > from || from-h.ExpertsAt > maxSweepAge || m.Experts <= 0 || m.ExpertsUsed <= 0 ||
		len(h.ExpertsCached) != layers*m.Experts || len(picks) != layers*m.ExpertsUsed {
		return ""
	}
	var names []string
	absent := 0
	for i, e := range picks {
		if int(e) >= m.Experts {
			continue
		}
		layer := i / m.ExpertsUsed
		if share := h.ExpertsCached[layer*m.Experts+int(e)]; share < 100 {
			if absent++; absent <= maxAbsent {
				names = append(names, fmt.Sprintf("%d:%d (%d %%)", layer, e, share))
			}
		}
	}
	if absent == 0 {
		return ""
	}
	words := "picked " + strings.Join(names, ", ")
	if absent > maxAbsent {
		words += fmt.Sprintf(" and %d more", absent-maxAbsent)
	}
	return words + ", not wholly in memory " + metric.Duration(int64(from-h.ExpertsAt)) + " before"
}
