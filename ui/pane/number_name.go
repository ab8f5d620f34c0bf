package pane

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// NumberName returns the display name of a reported metric without its unit suffix, and the format for that unit.
func NumberName(metricName string) (name string, format func(float64) string) {
	for _, unit := range []struct {
		end, word string
		format    func(float64) string
	}{{"_share", "", metric.Percent}, {"_per_s", "/s", metric.Rate}, {"_s", "", metric.Seconds}, {"_bytes", "", metric.Bytes}} {
		if name, ok := strings.CutSuffix(metricName, unit.end); ok {
			return strings.ReplaceAll(sanitize.Line(name), "_", " ") + unit.word, unit.format
		}
	}
	return strings.ReplaceAll(sanitize.Line(metricName), "_", " "), metric.Count
}
