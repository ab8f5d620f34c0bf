package ui

import (
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
)

// What is sent to the terminal at most, in bytes/s over a minute: a frame waits while what was sent before is above it.
const (
	lineRate = 50_000
	slowRate = 6_000 // with Config.LowBandwidth
)

// slowFPS is the most frames a second with Config.LowBandwidth.
const slowFPS = 2

// line is the way to the terminal. What is written is counted; what may be written accrues with time, up to a second's worth, and a frame
// that costs more than there is delays those after it.
type line struct {
	sent atomic.Int64 // bytes, ever; written by the renderer's goroutine
	rate float64      // bytes/s
	now  func() time.Time

	paid   int64     // of sent
	credit float64   // bytes
	at     time.Time // when it was reckoned last
	urgent bool      // a key was pressed or the size has changed: the user waits for it
	held   bool      // a frame had to wait since the last reckoning

	since    time.Time // begin of the second that is being measured
	sinceN   int64     // sent by then
	measured float64   // bytes/s of the second before
	slowed   int       // reckonings for which the words about it stay
}

func newLine(slow bool) line {
	rate := float64(lineRate)
	if slow {
		rate = slowRate
	}
	return line{rate: rate, credit: rate, now: time.Now}
}

// urge has the next frame not wait, unless keys alone have used up what there is.
func (l *line) urge() { l.urgent = true }

// open reports whether a frame may be drawn now.
func (l *line) open() bool {
	ok := l.credit > 0 || l.urgent && l.credit > -l.rate
	l.urgent = false
	l.held = l.held || !ok
	return ok
}

// reckon charges what was sent since the last time.
func (l *line) reckon() {
	now, sent := l.now(), l.sent.Load()
	if l.at.IsZero() {
		l.at, l.since = now, now
	}
	l.credit = min(l.credit+l.rate*now.Sub(l.at).Seconds(), l.rate) - float64(sent-l.paid)
	l.at, l.paid = now, sent
	if took := now.Sub(l.since); took >= time.Second {
		l.measured = float64(sent-l.sinceN) / took.Seconds()
		l.since, l.sinceN = now, sent
	}
}

// slowedFor is for how long the header tells that frames had to wait, in reckonings.
const slowedFor = 20

// pay reckons what the screen has sent, and has the header tell of it where that is worth a word.
func (a *app) pay() {
	l := &a.line
	l.reckon()
	if l.slowed = max(l.slowed-1, 0); l.held {
		l.slowed, l.held = slowedFor, false
	}
	words := ""
	switch {
	case a.cfg.LowBandwidth:
		words = "low bandwidth " + metric.Bytes(l.measured) + "/s"
	case l.slowed > 0:
		words = "frames held back: " + metric.Bytes(l.measured) + "/s"
	}
	a.dirty = a.dirty || words != a.panes.Sent
	a.panes.Sent = words
}

// lowered are the choices that a slow line leaves: few frames, and the colours with the shortest names.
func (cfg Config) lowered() Config {
	if cfg.LowBandwidth {
		cfg.FPS = min(cfg.FPS, slowFPS)
		cfg.Profile = min(cfg.Profile, theme.Colours256)
	}
	return cfg
}
