package pane

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The shown parts add up to the shown total digit by digit, and none is off by more than one in the last digit.
func TestShownPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.Int64Range(0, 1<<rapid.IntRange(1, 45).Draw(t, "bits")), 1, 12).Draw(t, "parts")
		shown, total := RoundToSum(parts)
		value := func(s string) (digits int64, unit string) {
			number, unit, _ := strings.Cut(s, " ")
			n, err := strconv.ParseInt(strings.ReplaceAll(number, ".", ""), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n, unit
		}
		want, unit := value(total)
		sum, ns := int64(0), int64(0)
		for i, s := range shown {
			n, u := value(s)
			if sum += n; u != unit {
				t.Fatalf("%q is not in the unit of %q", s, total)
			}
			ns += parts[i]
		}
		if sum != want {
			t.Fatalf("%v add up to %d, not %q", shown, sum, total)
		}
		size := map[string]float64{"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
		number, err := strconv.ParseFloat(strings.Fields(total)[0], 64)
		if off := math.Abs(number*size - float64(ns)); err != nil || off > 0.0006*float64(ns)+0.5 {
			t.Fatalf("%d ns are shown as %q", ns, total)
		}
	})
}

func TestRoundToSum(t *testing.T) {
	for _, c := range []struct {
		parts []int64
		want  string
	}{
		{[]int64{12_344_400, 3_333_300, 3_333_300}, "12.35 3.33 3.33 = 19.01 ms"},
		{[]int64{1_000_000, 333_333, 333_333, 333_334}, "1.000 0.333 0.333 0.334 = 2.000 ms"},
		{[]int64{0, 5}, "0 5 = 5 ns"},
		{[]int64{2_500_000_000, 40_000}, "2.500 0.000 = 2.500 s"},
		{nil, " = 0 ns"},
	} {
		shown, total := RoundToSum(c.parts)
		for i, s := range shown {
			shown[i], _, _ = strings.Cut(s, " ")
		}
		if got := strings.Join(shown, " ") + " = " + total; got != c.want {
			t.Errorf("%v: %s, want %s", c.parts, got, c.want)
		}
	}
}
