package pane

import (
	"math"
	"strconv"
)

// Unit is a unit of a chart scale. It applies to scales whose top is at least from.
type Unit struct {
	from, size float64
	name       string
}

var (
	TimeAxis  = []Unit{{0, 1, " ns"}, {1e3, 1e3, " µs"}, {1e6, 1e6, " ms"}, {1e9, 1e9, " s"}}
	ByteAxis  = []Unit{{0, 1, " B"}, {1e3, 1e3, " kB"}, {1e6, 1e6, " MB"}, {1e9, 1e9, " GB"}}
	ShareAxis = []Unit{{0, 0.01, " %"}}
	CountAxis = []Unit{{0, 1, ""}, {1e4, 1e3, "k"}, {1e6, 1e6, "M"}}
)

// AxisWords returns the axis of the charts over time, and the key that changes it.
func (f *Frame) AxisWords() string {
	if f.LogAxis {
		return "log axis (Y: linear)"
	}
	return "linear axis (Y: log)"
}

// AxisLabel returns the label function of a scale that ends at top. All labels use one unit and the decimals that the
// step between labels needs; with step 0 a label has the unit and the decimals of its own value.
func AxisLabel(units []Unit, top float64) func(v, step float64) string {
	unitOf := func(v float64) (use Unit) {
		for _, u := range units {
			if v >= u.from*0.9999 || u.from == 0 {
				use = u
			}
		}
		return use
	}
	shared := unitOf(top)
	return func(v, step float64) string {
		use := shared
		if step == 0 {
			use, step = unitOf(v), v
			if v == 0 {
				return "0"
			}
		}
		places, s := 0, step/use.size
		for ; places < 3 && math.Abs(s-math.Round(s)) > 1e-6*s; places++ {
			s *= 10
		}
		return strconv.FormatFloat(v/use.size, 'f', places, 64) + use.name
	}
}
