package bench

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// meter shows the progress of a benchmark: a bar on a terminal, otherwise a line per run.
type meter struct {
	out    io.Writer
	bar    *console.Console // out, if it is a terminal; nil otherwise
	silent bool             // the screen occupies the terminal: print nothing
	began  time.Time
	drawn  time.Time
	last   string // last run printed
}

func newMeter(out io.Writer, screen bool) *meter {
	terminal := console.TerminalOf(out)
	return &meter{out: out, bar: terminal, silent: terminal != nil && screen, began: time.Now()}
}

// barCells is the length of the bar, redraw the shortest interval between updates.
const (
	barCells = 20
	redraw   = 100 * time.Millisecond
)

// progress returns the callback for the requests of a benchmark with this store.
func (m *meter) progress(s *store.Store) func(workload.Progress) {
	return func(p workload.Progress) {
		run := fmt.Sprintf("%s: run %d of %d", p.Point, p.Repeat, p.Repeats)
		switch {
		case m.silent:
		case m.bar == nil && run != m.last:
			m.line(run)
			m.last = run
		case m.bar != nil && time.Since(m.drawn) >= redraw:
			m.drawn = time.Now()
			done := float64(p.Done) / float64(p.Total)
			left := time.Duration(float64(time.Since(m.began)) * (1 - done) / done)
			full := int(done * barCells)
			m.bar.Overwrite("[%s%s] %3.0f %%  %s left  %s  decode %s tokens/s",
				strings.Repeat("#", full), strings.Repeat(".", barCells-full), 100*done, metric.Duration(int64(left.Round(time.Second))), run,
				metric.Reading(s.Snapshot().Throughput.Decode, metric.Rate))
		}
	}
}

// line prints a line, in place of the bar if there is one.
func (m *meter) line(words string) {
	if m.bar != nil {
		m.bar.Overwrite("%s", words)
		return
	}
	fmt.Fprintln(m.out, words)
}

// end removes the bar.
func (m *meter) end() {
	if m.bar != nil {
		m.bar.Overwrite("")
	}
}
