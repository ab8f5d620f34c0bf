package metric

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// digits formats a number with three significant digits, without an exponent from 0.00001 on. Four digits before the
// decimal point are kept.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case a == 0:
		return "0"
	case a < 1e-5:
		return strconv.FormatFloat(v, 'e', 2, 64)
	case a < 0.9995:
		return strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(a*1.0005))), 64)
	case a < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// unit is one step of a scale.
type unit struct {
	size float64
	name string
}

var (
	times  = []unit{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	sizes  = []unit{{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}, {1e12, "TB"}}
	hertz  = []unit{{1, "Hz"}, {1e3, "kHz"}, {1e6, "MHz"}, {1e9, "GHz"}}
	flops  = []unit{{1, "FLOP/s"}, {1e3, "kFLOP/s"}, {1e6, "MFLOP/s"}, {1e9, "GFLOP/s"}, {1e12, "TFLOP/s"}, {1e15, "PFLOP/s"}}
	counts = []unit{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}
)

// scale returns the largest unit that v reaches.
func scale(units []unit, v float64) unit {
	best := units[0]
	for _, u := range units {
		if math.Abs(v) >= u.size*0.9995 {
			best = u
		}
	}
	return best
}

// Duration formats a time in ns with three significant digits: "18.2 ms", "620 µs". From two minutes on it writes
// "2m05s".
func Duration(ns int64) string {
	if a := max(ns, -ns); a >= 120e9 {
		return clock(ns / 1e9)
	}
	u := scale(times, float64(ns))
	if u.size == 1 {
		return strconv.FormatInt(ns, 10) + " ns"
	}
	return digits(float64(ns)/u.size) + " " + u.name
}

func clock(s int64) string {
	if s >= 3600 {
		return strconv.FormatInt(s/3600, 10) + "h" + two(s/60%60) + "m"
	}
	return strconv.FormatInt(s/60, 10) + "m" + two(s%60) + "s"
}

func two(n int64) string {
	if n < 10 {
		return "0" + strconv.FormatInt(n, 10)
	}
	return strconv.FormatInt(n, 10)
}

// Seconds formats a time in s as Duration does.
func Seconds(s float64) string { return Duration(int64(math.Round(s * 1e9))) }

// Bytes formats a size with decimal prefixes: "84.1 MB".
func Bytes(n float64) string {
	u := scale(sizes, n)
	if u.size == 1 {
		return strconv.FormatFloat(n, 'f', 0, 64) + " B"
	}
	return digits(n/u.size) + " " + u.name
}

// BytesPerSecond formats a bandwidth: "9.10 GB/s".
func BytesPerSecond(v float64) string { return Bytes(v) + "/s" }

// Hertz formats a frequency: "2.90 GHz", "340 MHz".
func Hertz(v float64) string {
	u := scale(hertz, v)
	return digits(v/u.size) + " " + u.name
}

// Watts formats a power: "38.2 W".
func Watts(v float64) string { return Rate(v) + " W" }

// Celsius formats a temperature: "61.0 °C".
func Celsius(v float64) string { return Rate(v) + " °C" }

// Cores formats processor time as a number of cores, below one as a share: "3.20 cores", "5.0 % of a core".
func Cores(v float64) string {
	if math.Abs(v) < 0.9995 {
		return Percent(v) + OfACore
	}
	return Rate(v) + " cores"
}

// OfACore ends what Cores writes below one core; a narrow column whose row names the unit leaves it out.
const OfACore = " of a core"

// Flops formats a rate of floating-point operations: "417 GFLOP/s".
func Flops(v float64) string {
	u := scale(flops, v)
	return digits(v/u.size) + " " + u.name
}

// Count formats a number, from ten thousand on with a decimal prefix: "9 999", "11.0M".
func Count(n float64) string {
	if math.Abs(n) < 9999.5 {
		return group(strconv.FormatFloat(n, 'f', 0, 64))
	}
	u := scale(counts, n)
	return digits(n/u.size) + u.name
}

// Rate formats a number per second without its unit: "1 604", "38.2".
func Rate(v float64) string {
	if math.Abs(v) < 999.5 {
		return digits(v)
	}
	return Count(v)
}

// PerSecond formats a number per second: "38.2/s".
func PerSecond(v float64) string { return Rate(v) + "/s" }

// group inserts a space before the last three digits.
func group(s string) string {
	head := strings.TrimPrefix(s, "-")
	if len(head) <= 3 {
		return s
	}
	return s[:len(s)-3] + " " + s[len(s)-3:]
}

// Percent formats a share of 0..1: "71 %", "0.4 %".
func Percent(share float64) string {
	p := 100 * share
	if math.Abs(p) < 9.95 && p != 0 {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// PercentChange formats a relative difference with its sign: "+5.0 %".
func PercentChange(share float64) string { return fmt.Sprintf("%+.1f %%", 100*share) }

// Named returns the words for a number whose name ends in its unit, such as kv_usage_share, and the format for that unit. A
// name without a unit is a count.
func Named(name string) (words string, format func(float64) string) {
	format = Count
	for _, unit := range [...]struct {
		end, word string
		format    func(float64) string
	}{{"_share", "", Percent}, {"_per_s", "/s", Rate}, {"_s", "", Seconds}, {"_bytes", "", Bytes}} {
		if rest, ok := strings.CutSuffix(name, unit.end); ok {
			name, format = rest+unit.word, unit.format
			break
		}
	}
	return strings.ReplaceAll(name, "_", " "), format
}

// Format returns the function that formats numbers of a unit.
func Format(u event.Unit) func(float64) string {
	switch u {
	case "s":
		return Seconds
	case "ns":
		return func(v float64) string { return Duration(int64(v)) }
	case "1":
		return Percent
	case "By":
		return Bytes
	case "By/s":
		return BytesPerSecond
	case "Hz":
		return Hertz
	case "W":
		return Watts
	case "Cel":
		return Celsius
	case "{core}":
		return Cores
	case "{token}/s":
		return func(v float64) string { return Rate(v) + " tok/s" }
	}
	if strings.HasSuffix(string(u), "/s") {
		return PerSecond
	}
	return Count
}

// Reading formats the value with f, or returns the word for its absence.
func Reading(r event.Reading, f func(float64) string) string {
	if !r.OK() {
		return r.Absence()
	}
	return f(r.V)
}

// Plural returns a count with its noun: "1 request", "2 requests", "3 processes".
func Plural[T int | int64 | uint64](n T, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return fmt.Sprint(n) + " " + noun + "s"
}
