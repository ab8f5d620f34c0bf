package panes

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
)

func itoa(n int) string { return strconv.Itoa(n) }

// nanoseconds is a reading in ns as a time.
func nanoseconds(v float64) string { return metric.Duration(int64(v)) }

// clock is a time of the session as hours, minutes and seconds, always eight cells wide.
func clock(d time.Duration) string {
	t := max(int(d/time.Second), 0)
	two := func(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }
	return two(min(t/3600, 99)) + ":" + two(t/60%60) + ":" + two(t%60)
}
