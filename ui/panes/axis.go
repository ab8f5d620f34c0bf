package panes

import (
	"math"
	"strconv"
)

// axisUnit is a unit of a chart's scale, used for scales that end at from or above.
type axisUnit struct {
	from, size float64
	name       string
}

var (
	timeAxis  = []axisUnit{{0, 1, " ns"}, {1e3, 1e3, " µs"}, {1e6, 1e6, " ms"}, {1e9, 1e9, " s"}}
	byteAxis  = []axisUnit{{0, 1, " B"}, {1e3, 1e3, " kB"}, {1e6, 1e6, " MB"}, {1e9, 1e9, " GB"}}
	countAxis = []axisUnit{{0, 1, ""}, {1e4, 1e3, "k"}, {1e6, 1e6, "M"}}
)

// label writes the values of a scale that ends at top: all in one unit, with the decimals that its step needs.
func label(units []axisUnit, top float64) func(v, step float64) string {
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
