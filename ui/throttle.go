package ui

import (
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/pane"
)

// The maximum rate of output to the terminal in bytes/s, averaged over time: a frame waits while the output before it
// exceeds the rate.
const (
	normalRate = 50_000
	lowRate    = 6_000 // with Config.LowBandwidth
)

// lowFPS is the maximum frame rate with Config.LowBandwidth.
const lowFPS = 2

// throttle bounds the bytes sent to the terminal. It counts all writes. Credit accrues with time, up to one
// second's worth; a frame that costs more than the credit delays the next ones.
type throttle struct {
	sent int64   // bytes in total
	rate float64 // bytes/s
	now  func() time.Time

	charged   int64     // part of sent that was charged
	credit    float64   // bytes
	chargedAt time.Time // time of the last charge
	urgent    bool      // a key was pressed or the size changed: the user waits for the frame
	waited    bool      // a frame had to wait since the last charge
	frames    int       // drawn since the last charge

	secondStart time.Time // start of the second that is measured
	sentBefore  int64     // bytes sent before secondStart
	measured    float64   // bytes/s of the previous second
	noteTicks   int       // remaining ticks of the note in the header
}

func newThrottle(slow bool) throttle {
	rate := float64(normalRate)
	if slow {
		rate = lowRate
	}
	return throttle{rate: rate, credit: rate, now: time.Now}
}

// hurry lets the next frame pass without credit, unless keys alone used more than one second's worth.
func (l *throttle) hurry() { l.urgent = true }

// maxFrames bounds the frames between two ticks. Keys that arrive faster than anybody types share the frame of the next
// tick, so that those behind them, which may quit, are soon read.
const maxFrames = 50

// open reports whether a frame may be drawn now.
func (l *throttle) open() bool {
	if l.frames++; l.frames > maxFrames {
		return false
	}
	ok := l.credit > 0 || l.urgent && l.credit > -l.rate
	l.urgent = false
	l.waited = l.waited || !ok
	return ok
}

// charge charges the bytes sent since the last call.
func (l *throttle) charge() {
	now, sent := l.now(), l.sent
	if l.chargedAt.IsZero() {
		l.chargedAt, l.secondStart = now, now
	}
	l.credit = min(l.credit+l.rate*now.Sub(l.chargedAt).Seconds(), l.rate) - float64(sent-l.charged)
	l.chargedAt, l.charged, l.frames = now, sent, 0
	if took := now.Sub(l.secondStart); took >= time.Second {
		l.measured = float64(sent-l.sentBefore) / took.Seconds()
		l.secondStart, l.sentBefore = now, sent
	}
}

// noteTicksMax is how long the header shows that frames had to wait, in ticks.
const noteTicksMax = 20

// note charges the bytes sent and returns the note of the header: that frames wait, and for what they wait.
func (l *throttle) note(lowBandwidth bool) (n chrome.Note) {
	l.charge()
	if l.noteTicks = max(l.noteTicks-1, 0); l.waited {
		l.noteTicks, l.waited = noteTicksMax, false
	}
	switch {
	case l.noteTicks > 0 && lowBandwidth: // as asked for
		n = chrome.Note{Words: "display throttled to " + metric.BytesPerSecond(l.rate), Why: "--low-bandwidth", Style: pane.Plain}
	case l.noteTicks > 0:
		n = chrome.Note{Words: "display throttled to " + metric.BytesPerSecond(l.rate), Why: "lower --fps, or --low-bandwidth", Style: pane.Watch}
	case lowBandwidth:
		n = chrome.Note{Words: "low bandwidth " + metric.BytesPerSecond(l.measured), Style: pane.Plain}
	}
	return n
}

// forLowBandwidth limits the frame rate and the colours if LowBandwidth is set.
func (cfg Config) forLowBandwidth() Config {
	if cfg.LowBandwidth {
		cfg.FPS = min(cfg.FPS, lowFPS)
		cfg.Profile = min(cfg.Profile, theme.Colours256)
	}
	return cfg
}
