package cmd

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/bench"
)

// eventTime is a moment on the clock of a session.
type eventTime = event.Time

// meter shows how far a benchmark is: a bar on a terminal, otherwise a line for every run.
type meter struct {
	out   io.Writer
	bar   bool
	still bool // the terminal shows the whole screen: nothing may be written beside it
	began time.Time
	drawn time.Time
	last  string // of the runs that were told of
}

func newMeter(out io.Writer, screen bool) *meter {
	file, ok := out.(*os.File)
	bar := ok && isTerminal(file)
	return &meter{out: out, bar: bar, still: bar && screen, began: time.Now()}
}

// barCells is the length of the bar, redraw how often it is drawn at most.
const (
	barCells = 20
	redraw   = 100 * time.Millisecond
)

// progress tells of every request of a benchmark whose events go to a store.
func (m *meter) progress(s *store.Store) func(bench.Progress) {
	return func(p bench.Progress) {
		run := fmt.Sprintf("%s: run %d of %d", p.Point, p.Repeat, p.Repeats)
		switch {
		case m.still:
		case !m.bar && run != m.last:
			m.line(run)
			m.last = run
		case m.bar && time.Since(m.drawn) >= redraw:
			m.drawn = time.Now()
			done := float64(p.Done) / float64(p.Total)
			left := time.Duration(float64(time.Since(m.began)) * (1 - done) / done)
			full := int(done * barCells)
			fmt.Fprintf(m.out, "\r\x1b[K[%s%s] %3.0f %%  %s left  %s  decode %s tokens/s",
				strings.Repeat("#", full), strings.Repeat(".", barCells-full), 100*done, metric.Duration(int64(left.Round(time.Second))), run,
				metric.Reading(s.Snapshot().Throughput.Decode, metric.Rate))
		}
	}
}

// line tells of something in a line of its own, or in place of the bar.
func (m *meter) line(words string) {
	if m.bar {
		fmt.Fprintf(m.out, "\r\x1b[K%s", words)
		return
	}
	fmt.Fprintln(m.out, words)
}

// end takes the bar away.
func (m *meter) end() {
	if m.bar {
		fmt.Fprint(m.out, "\r\x1b[K")
	}
}
