package pane

import (
	"strconv"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// CountOf returns n with its noun in the singular (one) or plural (many).
func CountOf(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return metric.Count(float64(n)) + " " + many
}

// Nanoseconds formats a reading in ns as a duration.
func Nanoseconds(v float64) string { return metric.Duration(int64(v)) }

// Clock formats a session time as hh:mm:ss, always eight cells wide.
func Clock(d time.Duration) string {
	t := max(int(d/time.Second), 0)
	two := func(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }
	return two(min(t/3600, 99)) + ":" + two(t/60%60) + ":" + two(t%60)
}

// SessionTime returns the time from the session's first event to at.
func SessionTime(s *store.Snapshot, at event.Time) time.Duration {
	return time.Duration(at - s.Started)
}

// Ago formats the time since a moment.
func Ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "just now"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s ago"
	}
	return metric.Duration(int64(d)) + " ago"
}

func RequestTitle(f *Frame, r *store.Request) string {
	sep := " " + string(f.Skin.Glyphs.Bullet) + " "
	words := "#" + strconv.Itoa(int(r.ID))
	if r.Label != "" {
		words += sep + sanitize.Line(r.Label)
	}
	if r.Group != "" {
		words += sep + sanitize.Line(r.Group)
	}
	words += sep + r.Status()
	if r.State.Final() && r.Reason != "" && r.Reason != r.Status() {
		words += " (" + sanitize.Line(r.Reason) + ")"
	}
	return words
}

// AtLeast marks a number that is a lower bound.
func AtLeast(words string, isBound bool) string {
	if isBound {
		return words + "+"
	}
	return words
}

// FirstFitting returns the first of some words that fits into w cells, or the last.
func FirstFitting(w int, words ...string) string {
	for _, s := range words {
		if grid.Width(s) <= w {
			return s
		}
	}
	return words[len(words)-1]
}
