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
	CountAxis = []Unit{{0, 1, ""}, {1e4, 1e3, "k"}, {1e6, 1e6, "M"}}
)

// AxisLabel returns the label function of a scale that ends at top. All labels use one unit and the decimals that the
// step between labels needs.
func AxisLabel(units []Unit, top float64) func(v, step float64) string {
	use := units[0]
	for _, u := range units {
		if top >= u.from*0.9999 {
			use = u
		}
	}
	return func(v, step float64) string {
		places, s := 0, step/use.size
		for ; places < 3 && math.Abs(s-math.Round(s)) > 1e-6*s; places++ {
			s *= 10
		}
		return strconv.FormatFloat(v/use.size, 'f', places, 64) + use.name
	}
}
