package python_test

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// BenchmarkEmit runs bench.py and reports, in µs an event, what telling an event costs a Python engine while a reader is attached,
// stalled or absent: medians of rounds in which the three alternate. bench.py says what is measured.
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
	b.ReportMetric(0, "ns/op") // of the whole of bench.py, which says nothing
}
