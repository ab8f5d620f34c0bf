package python_test

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// BenchmarkEmit runs bench.py and reports the cost of an event for a Python engine in µs, with a reader attached,
// stalled or absent: medians of alternating rounds. See bench.py for the measurements.
func BenchmarkEmit(b *testing.B) {
	python := interpreter(b)
	for range b.N {
		out, err := exec.Command(python, "-B", "bench.py").Output()
		if err != nil {
			b.Fatal(err)
		}
		var costs map[string]float64
		if err := json.Unmarshal(out, &costs); err != nil {
			b.Fatal(err)
		}
		for name, cost := range costs {
			b.ReportMetric(cost, "µs/"+name)
		}
	}
	b.ReportMetric(0, "ns/op") // time of the whole bench.py, which is meaningless
}
