package pane

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// CountOf returns n with its noun in the singular (one) or plural (many).
func CountOf(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return metric.Count(float64(n)) + " " + many
}

// Nanoseconds formats a reading in ns as a duration.
func Nanoseconds(v float64) string { return metric.Duration(int64(v)) }

// Clock formats a session time as hh:mm:ss, always eight cells wide.
func Clock(d time.Duration) string {
	t := max(int(d/time.Second), 0)
	two := func(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }
	return two(min(t/3600, 99)) + ":" + two(t/60%60) + ":" + two(t%60)
}

// RoundToSum formats times in ns with the unit and the decimals that show four digits of their sum, rounded by the
// method of the largest remainder so that the shown parts add up to the shown total.
func RoundToSum(parts []int64) (shown []string, total string) {
	sum := int64(0)
	for _, p := range parts {
		sum += max(p, 0)
	}
	unit, places := sumUnit(sum)
	quantum := max(int64(unit.size/math.Pow10(places)), 1)
	type rest struct{ i, left int64 }
	rests := make([]rest, len(parts))
	quanta := make([]int64, len(parts))
	missing := (sum + quantum/2) / quantum
	all := missing
	for i, p := range parts {
		quanta[i] = max(p, 0) / quantum
		rests[i] = rest{int64(i), max(p, 0) % quantum}
		missing -= quanta[i]
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return cmp.Compare(b.left, a.left) })
	for k := range missing {
		quanta[rests[k].i]++
	}
	write := func(n int64) string {
		return strconv.FormatFloat(float64(n)*float64(quantum)/unit.size, 'f', places, 64) + unit.name
	}
	for _, n := range quanta {
		shown = append(shown, write(n))
	}
	return shown, write(all)
}

// sumUnit returns the unit of a time in ns and the decimals that show four digits of it.
func sumUnit(ns int64) (Unit, int) {
	use := TimeAxis[0]
	for _, u := range TimeAxis {
		if float64(ns) >= u.size {
			use = u
		}
	}
	switch v := float64(ns) / use.size; {
	case use.size == 1:
		return use, 0
	case v >= 100:
		return use, 1
	case v >= 10:
		return use, 2
	}
	return use, 3
}

// SessionTime returns the time from the session's first event to at.
func SessionTime(s *store.Snapshot, at event.Time) time.Duration {
	return time.Duration(at - s.Started)
}

func RequestTitle(r *store.Request, c *Frame) string {
	sep := " " + string(c.Skin.Glyphs.Bullet) + " "
	words := "#" + strconv.Itoa(int(r.ID))
	if r.Label != "" {
		words += sep + sanitize.Line(r.Label)
	}
	if r.Group != "" {
		words += sep + sanitize.Line(r.Group)
	}
	words += sep + r.State.String()
	if r.State.Final() && r.Reason != "" && r.Reason != r.State.String() {
		words += " (" + sanitize.Line(r.Reason) + ")"
	}
	return words
}

// FirstFitting returns the first of some words that fits into w cells, or the last.
func FirstFitting(w int, words ...string) string {
	for _, s := range words {
		if grid.Width(s) <= w {
			return s
		}
	}
	return words[len(words)-1]
}
