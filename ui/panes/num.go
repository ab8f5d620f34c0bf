package panes

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
)

// countOf returns n with the singular or plural of what it counts.
func countOf(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return metric.Count(float64(n)) + " " + many
}

// nanoseconds formats a reading in ns as a duration.
func nanoseconds(v float64) string { return metric.Duration(int64(v)) }

// clock formats a session time as hh:mm:ss, always eight cells wide.
func clock(d time.Duration) string {
	t := max(int(d/time.Second), 0)
	two := func(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }
	return two(min(t/3600, 99)) + ":" + two(t/60%60) + ":" + two(t%60)
}

// roundToSum formats times in ns with the unit and the decimals that show four digits of their sum, rounded by the
// method of the largest remainder so that the shown parts add up to the shown total.
func roundToSum(parts []int64) (shown []string, total string) {
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
func sumUnit(ns int64) (axisUnit, int) {
	use := timeAxis[0]
	for _, u := range timeAxis {
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
