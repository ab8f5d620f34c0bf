package ui

import (
	"fmt"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
)

// terminal counts what the terminal library would send for frames: the cells that change, and the ways between them.
type terminal struct {
	line  *line
	cells uv.ScreenBuffer
	out   *uv.TerminalRenderer
}

func newTerminal(l *line, w, h int) *terminal {
	t := &terminal{line: l, cells: uv.NewScreenBuffer(w, h)}
	t.out = uv.NewTerminalRenderer(t, []string{"TERM=xterm-256color", "COLORTERM=truecolor"})
	t.out.SetFullscreen(true)
	t.out.SetRelativeCursor(false)
	return t
}

// Write counts.
func (t *terminal) Write(p []byte) (int, error) {
	t.line.sent.Add(int64(len(p)))
	return len(p), nil
}

func (t *terminal) show(tb testing.TB, frame string) {
	t.cells.Clear()
	uv.NewStyledString(frame).Draw(t.cells, t.cells.Bounds())
	t.out.Render(t.cells.RenderBuffer)
	if err := t.out.Flush(); err != nil {
		tb.Fatal(err)
	}
	t.line.sent.Add(int64(len(ansi.SetModeSynchronizedOutput + ansi.ResetModeSynchronizedOutput)))
}

// busyMinute shows a minute of decoding at so many tokens/s, with requests that come and go, and returns the bytes of the whole minute,
// after the first frame, and of the busiest second.
func busyMinute(tb testing.TB, cfg Config, rate float64, tokensPerSecond, w, h int) (whole, second int64, frames int) {
	s := live()
	cfg.Snapshots, cfg.Profile = s.store.Snapshot, theme.TrueColour
	a := newApp(cfg)
	a.line.rate, a.line.credit = rate, rate
	began := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	from := s.now
	a.line.now = func() time.Time { return began.Add(time.Duration(s.now - from)) }
	term := newTerminal(&a.line, w, h)
	a.Update(tea.WindowSizeMsg{Width: w, Height: h})
	term.show(tb, a.View().Content)
	first := a.line.sent.Load()
	words, last := splitWords(answerText), ""
	id, index := event.RequestID(100), 0
	perTick := max(tokensPerSecond/a.cfg.FPS, 1)
	var atSecond int64
	for tick := range 60 * a.cfg.FPS {
		for range perTick {
			s.oneToken(id, index, words)
			if index++; index == 200 {
				id, index = id+1, 0
			}
		}
		s.now = from + event.Time(tick+1)*event.Time(time.Second)/event.Time(a.cfg.FPS)
		if tick%a.cfg.FPS == 0 {
			s.host()
			s.reportExperts()
			now := a.line.sent.Load() - first
			second, atSecond = max(second, now-atSecond), now
		}
		a.onTick()
		if frame := a.View().Content; frame != last {
			last = frame
			frames++
			term.show(tb, frame)
		}
	}
	return a.line.sent.Load() - first, second, frames
}

// oneToken generates one token of a request, and ends it with its last one.
func (s *scene) oneToken(id event.RequestID, index int, words []string) {
	if index == 0 {
		s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{Label: "code", Prompt: promptText, MaxTokens: 200}})
		s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	}
	s.now += event.Time(200 * time.Microsecond)
	s.step++
	s.route(s.decPicks, 1)
	s.decTok++
	s.emit(event.Event{Kind: event.KindStep, Step: s.step, Dur: 180_000, N: 1})
	s.emit(event.Event{Kind: event.KindToken, Req: id, ID: int32(index), Index: int32(index), N: 1, Step: s.step, Text: words[index%len(words)]})
	if index == 199 {
		s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished, Data: &event.Outcome{Reason: "length", Prompt: 20, Generated: 200}})
	}
}

// What a busy minute sends to the terminal stays below the bound, give or take one frame, with frames left to see.
func TestBytesToTheTerminalAreBounded(t *testing.T) {
	whole, _, frames := busyMinute(t, Config{LowBandwidth: true}, slowRate, 2000, 200, 60)
	const oneFrame = 60_000 // 200x60 cells, each in a colour of its own
	if most := int64(60*slowRate + oneFrame); whole > most {
		t.Errorf("%d bytes in a minute, more than %d", whole, most)
	}
	if frames < 20 || frames >= 60*slowFPS {
		t.Errorf("%d frames in a minute: some should have waited, but not most", frames)
	}
}

// The default view sends less than it may while decoding, so that no frame has to wait.
func TestDefaultViewHoldsNothingBack(t *testing.T) {
	whole, second, frames := busyMinute(t, Config{}, lineRate, 40, 160, 45)
	if whole > 60*lineRate || frames < 590 {
		t.Errorf("%d bytes in a minute (%d in a second) with %d of 600 frames", whole, second, frames)
	}
}

// A key is answered at once even if a large frame has just been paid for, but keys do not lift the bound.
func TestKeysGoFirst(t *testing.T) {
	a := open(liveSnapshot(), theme.TrueColour, false, 120, 36)
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	a.line.now = func() time.Time { return now }
	a.View() // which does not wait
	a.line.reckon()
	send := func(n int64) { a.line.sent.Add(n); a.line.reckon() }
	send(lineRate + 1)
	if a.line.open() {
		t.Error("a frame is drawn that nothing is left for")
	}
	a.press("2")
	if !a.line.urgent || !a.line.open() {
		t.Error("a key is not answered")
	}
	send(lineRate)
	if a.press("3"); a.line.open() {
		t.Error("keys lift the bound")
	}
	now = now.Add(3 * time.Second)
	a.line.reckon()
	if !a.line.open() || a.line.credit > lineRate {
		t.Errorf("%v bytes may be sent after three seconds, want %d", a.line.credit, lineRate)
	}
}

// BenchmarkBytes is what a minute of decoding sends to the terminal, on average and in its busiest second.
func BenchmarkBytes(b *testing.B) {
	for _, low := range []bool{false, true} {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%dx%d low=%v", size[0], size[1], low), func(b *testing.B) {
				var whole, second int64
				var frames int
				for b.Loop() {
					rate := map[bool]float64{false: lineRate, true: slowRate}[low]
					whole, second, frames = busyMinute(b, Config{LowBandwidth: low}, rate, 40, size[0], size[1])
				}
				b.ReportMetric(float64(whole)/60e3, "kB/s")
				b.ReportMetric(float64(second)/1e3, "kB/busiest-s")
				b.ReportMetric(float64(frames)/60, "frames/s")
			})
		}
	}
}
