package metric

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestDuration(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0 ns", 999: "999 ns", 1000: "1.00 µs", 620_000: "620 µs", 999_400: "999 µs", 999_600: "1.00 ms",
		18_240_000: "18.2 ms", 9_996_000: "10.0 ms", 1_940_000_000: "1.94 s", 119_900_000_000: "120 s",
		125e9: "2m05s", 3600e9: "1h00m", 7505e9: "2h05m", -18_240_000: "-18.2 ms",
	} {
		if got := Duration(ns); got != want {
			t.Errorf("%d ns reads %q, want %q", ns, got, want)
		}
	}
	if got := Seconds(.0182); got != "18.2 ms" {
		t.Errorf("0.0182 s reads %q", got)
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(float64) string
		in   float64
		want string
	}{
		{"bytes", Bytes, 0, "0 B"},
		{"bytes", Bytes, 999, "999 B"},
		{"bytes", Bytes, 84_100_000, "84.1 MB"},
		{"bytes", Bytes, 24e9, "24.0 GB"},
		{"count", Count, 0, "0"},
		{"count", Count, 9999, "9 999"},
		{"count", Count, 10_000, "10.0k"},
		{"count", Count, 11_000_000, "11.0M"},
		{"count", Count, -1234, "-1 234"},
		{"rate", Rate, 38.24, "38.2"},
		{"rate", Rate, 3.218, "3.22"},
		{"rate", Rate, 0.99949, "0.999"},
		{"rate", Rate, 0.9996, "1.00"},
		{"rate", Rate, 0.09996, "0.100"},
		{"rate", Rate, -0.03333, "-0.0333"},
		{"rate", Rate, 0.00001234, "0.0000123"},
		{"rate", Rate, 1.234e-7, "1.23e-07"},
		{"rate", Rate, 1604, "1 604"},
		{"rate", Rate, 999.4, "999"},
		{"rate", Rate, 12_345, "12.3k"},
		{"bandwidth", BytesPerSecond, 9.1e9, "9.10 GB/s"},
		{"frequency", Hertz, 2.9e9, "2.90 GHz"},
		{"frequency", Hertz, 340e6, "340 MHz"},
		{"frequency", Hertz, 0, "0 Hz"},
		{"power", Watts, 38.24, "38.2 W"},
		{"temperature", Celsius, 61, "61.0 °C"},
		{"cores", Cores, 3.2, "3.20 cores"},
		{"cores", Cores, 0.0499, "5.0 % of a core"},
		{"cores", Cores, 0.0013, "0.1 % of a core"},
		{"cores", Cores, 0.75, "75 % of a core"},
		{"cores", Cores, 0.9996, "1.00 cores"},
		{"cores", Cores, 0, "0 % of a core"},
		{"per second", PerSecond, 38.24, "38.2/s"},
		{"change", PercentChange, .05, "+5.0 %"},
		{"change", PercentChange, -.125, "-12.5 %"},
		{"percent", Percent, 0, "0 %"},
		{"percent", Percent, .004, "0.4 %"},
		{"percent", Percent, .71, "71 %"},
		{"percent", Percent, 1, "100 %"},
	} {
		if got := c.f(c.in); got != c.want {
			t.Errorf("%s %v reads %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

// TestThreeDigits checks that every format keeps at least three significant digits, or the exact number.
func TestThreeDigits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := math.Pow(10, rapid.Float64Range(0, 13).Draw(rt, "exponent"))
		for _, f := range []func(float64) string{Bytes, Count, Rate} {
			got := strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return r
				}
				return -1
			}, f(v))
			if len(got) < 3 && v >= 100 || len(got) > 5 {
				rt.Fatalf("%v reads %q", v, f(v))
			}
		}
	})
}

func TestAbsentReadings(t *testing.T) {
	for _, c := range []struct {
		r    event.Reading
		want string
	}{
		{event.Reading{}, "not reported"},
		{event.Absent(event.NotPermitted), "not permitted"},
		{event.Absent(event.NoDevice), "no device"},
		{event.MeasuredValue(math.NaN()), "undefined"},
		{event.MeasuredValue(math.Inf(1)), "undefined"},
		{event.MeasuredValue(0), "0 B"},
		{event.DerivedValue(84_100_000), "84.1 MB"},
	} {
		if got := Reading(c.r, Bytes); got != c.want {
			t.Errorf("%+v reads %q, want %q", c.r, got, c.want)
		}
	}
}
