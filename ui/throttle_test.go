package ui

import (
	"fmt"
	"io"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// busyMinute plays a minute of decoding at a number of tokens/s, with requests that come and go. It returns the bytes
// sent after the first frame: of the whole minute and of the busiest second.
func busyMinute(cfg Config, rate float64, tokensPerSecond, w, h int) (whole, second int64, frames int) {
	s := viewtest.Live()
	cfg.Sessions, cfg.Profile = One(Session{Snapshots: s.Store.Snapshot}), theme.TrueColour
	a := newApp(cfg)
	a.throttle.rate, a.throttle.credit = rate, rate
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	from := s.Now
	a.throttle.now = func() time.Time { return start.Add(time.Duration(s.Now - from)) }
	d := display{out: io.Discard, sent: &a.throttle, synced: true}
	draw := func() (drawn bool) {
		before := a.throttle.sent
		if frame, skin := a.Draw(); frame != nil {
			d.paint(frame, skin, tea.MouseModeNone)
		}
		return a.throttle.sent > before
	}
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	draw()
	first := a.throttle.sent
	words := viewtest.SplitWords(viewtest.AnswerText)
	id, index := event.RequestID(100), 0
	perTick := max(tokensPerSecond/a.cfg.FPS, 1)
	var atSecond int64
	for tick := range 60 * a.cfg.FPS {
		for range perTick {
			oneToken(s, id, index, words)
			if index++; index == 200 {
				id, index = id+1, 0
			}
		}
		s.Now = from + event.Time(tick+1)*event.Time(time.Second)/event.Time(a.cfg.FPS)
		if tick%a.cfg.FPS == 0 {
			s.Host()
			s.ReportExperts()
			now := a.throttle.sent - first
			second, atSecond = max(second, now-atSecond), now
		}
		a.onTick()
		if draw() {
			frames++
		}
	}
	return a.throttle.sent - first, second, frames
}

// oneToken generates one token of a request, and finishes the request with its last token.
func oneToken(s *viewtest.Scene, id event.RequestID, index int, words []string) {
	if index == 0 {
		s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{Label: "code", Prompt: viewtest.PromptText, MaxTokens: 200}})
		s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	}
	s.Now += event.Time(200 * time.Microsecond)
	s.Step(180 * time.Microsecond)
	s.Token(id, index, words[index%len(words)])
	if index == 199 {
		s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished, Data: &event.Outcome{Reason: "length", Prompt: 20, Generated: 200}})
	}
}

// The output of a busy minute stays below the bound plus one frame, and still shows frames.
func TestBytesToTheTerminalAreBounded(t *testing.T) {
	eventtest.SkipUnderRace(t)
	whole, _, frames := busyMinute(Config{LowBandwidth: true}, lowRate, 2000, 200, 60)
	const oneFrame = 60_000 // 200x60 cells, each with its own colour
	if most := int64(60*lowRate + oneFrame); whole > most {
		t.Errorf("%d bytes in a minute, more than %d", whole, most)
	}
	if frames < 20 || frames >= 60*lowFPS {
		t.Errorf("%d frames in a minute: some should have waited, but not most", frames)
	}
}

// While decoding, the default view stays below the rate, so that no frame waits.
func TestDefaultViewIsNotThrottled(t *testing.T) {
	eventtest.SkipUnderRace(t)
	whole, second, frames := busyMinute(Config{}, normalRate, 40, 160, 45)
	if whole > 60*normalRate || frames < 590 {
		t.Errorf("%d bytes in a minute (%d in a second) with %d of 600 frames", whole, second, frames)
	}
}

// A key gets its frame at once even after a large frame, but keys do not lift the bound.
func TestKeysGoFirst(t *testing.T) {
	a := open(viewtest.LiveSnapshot(), theme.TrueColour, false, 120, 36)
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	a.throttle.now = func() time.Time { return now }
	a.View() // the first frame does not wait
	a.throttle.charge()
	send := func(n int64) { a.throttle.sent += n; a.throttle.charge() }
	send(normalRate + 1)
	if a.throttle.open() {
		t.Error("a frame is drawn without credit")
	}
	a.press("2")
	if !a.throttle.urgent || !a.throttle.open() {
		t.Error("a key does not get its frame")
	}
	send(normalRate)
	if a.press("3"); a.throttle.open() {
		t.Error("keys bypass the bound")
	}
	now = now.Add(3 * time.Second)
	a.throttle.charge()
	if !a.throttle.open() || a.throttle.credit > normalRate {
		t.Errorf("credit of %v bytes after three seconds, want %d", a.throttle.credit, normalRate)
	}
}

// The header says to what rate frames are held, and which option sets it.
func TestThrottleNoteNamesTheLimit(t *testing.T) {
	for _, low := range []bool{false, true} {
		l := newThrottle(low)
		now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
		l.now = func() time.Time { return now }
		if n := l.note(low); low != (n.Words == "low bandwidth 0 B/s") || n.Style == pane.Watch {
			t.Errorf("low %v: %+v though no frame waits", low, n)
		}
		l.sent += int64(2 * l.rate)
		l.charge()
		l.open()
		want := chrome.Note{Words: "display throttled to 50.0 kB/s", Why: "lower --fps, or --low-bandwidth", Style: pane.Watch}
		if low {
			want = chrome.Note{Words: "display throttled to 6.00 kB/s", Why: "--low-bandwidth", Style: pane.Plain}
		}
		if n := l.note(low); n != want {
			t.Errorf("low %v: %+v, want %+v", low, n, want)
		}
	}
}

// BenchmarkBytes measures the output of a minute of decoding, on average and in its busiest second.
func BenchmarkBytes(b *testing.B) {
	for _, low := range []bool{false, true} {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%dx%d low=%v", size[0], size[1], low), func(b *testing.B) {
				var whole, second int64
				var frames int
				for b.Loop() {
					rate := map[bool]float64{false: normalRate, true: lowRate}[low]
					whole, second, frames = busyMinute(Config{LowBandwidth: low}, rate, 40, size[0], size[1])
				}
				b.ReportMetric(float64(whole)/60e3, "kB/s")
				b.ReportMetric(float64(second)/1e3, "kB/busiest-s")
				b.ReportMetric(float64(frames)/60, "frames/s")
			})
		}
	}
}
