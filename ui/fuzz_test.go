package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// everyPress lists all bound keys and some that are typed into input lines, without ctrl+z and the keys that quit.
var everyPress = func() (out []string) {
	replay, history := timeKeys()
	for _, b := range slices.Concat(liveKeys(), replay, history) {
		if b.name() != "suspend" && b.name() != "quit" {
			out = append(out, b.Keys...)
		}
	}
	return append(out, strings.Split("abc=>-<5ms日\"", "")...)
}()

// driver turns bytes into input of a screen: keys, sizes, the mouse, events and frames.
type driver struct {
	t    *testing.T
	a    *app
	s    *viewtest.Scene
	in   []byte
	next event.RequestID
}

// take returns the next byte, 0 at the end.
func (d *driver) take() int {
	if len(d.in) == 0 {
		return 0
	}
	b := d.in[0]
	d.in = d.in[1:]
	return int(b)
}

func (d *driver) step() {
	switch op := d.take(); {
	case op < 120:
		d.a.Update(keyPress(everyPress[op%len(everyPress)]))
	case op < 135:
		d.a.Update(tea.WindowSizeMsg{Width: 1 + d.take(), Height: 1 + d.take()/3})
	case op < 150:
		d.a.Update(tea.MouseClickMsg{X: d.take(), Y: d.take() / 3, Button: tea.MouseLeft})
	case op < 155:
		d.a.Update(tea.MouseMotionMsg{X: d.take(), Y: d.take() / 3})
	case op < 160:
		d.a.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown - tea.MouseButton(d.take()%2)})
	case op < 165:
		d.a.Update(tea.PasteMsg{Content: string(d.in[:min(len(d.in), 9)])})
	case op < 250:
		d.event(op)
	default:
		d.a.Update(tickMsg{})
	}
}

// event emits one event of a recent or a new request.
func (d *driver) event(op int) {
	s := d.s
	s.Now += event.Time(d.take()) * event.Time(time.Millisecond) / 4
	id := max(d.next-event.RequestID(d.take()%4), 1)
	switch op % 7 {
	case 0:
		d.next++
		s.Emit(event.Event{Kind: event.KindRequest, Req: d.next, State: event.StateQueued, Data: &event.Request{Group: "g", Label: "日本\x1b[2J", Cold: d.next == 1}})
	case 1:
		s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.State(d.take() % 7), Data: &event.Outcome{Reason: "stop", Prompt: d.take(), Generated: d.take()}})
	case 2, 3:
		s.Emit(event.Event{Kind: event.KindToken, Req: id, ID: int32(d.take()), N: int32(d.take() % 5), Text: string(d.in[:min(len(d.in), 3)]), Picks: []uint16{1, 2}})
	case 4:
		s.Emit(event.Event{
			Kind: event.KindStage, Req: id, Layer: int16(d.take()%4) - 1, Stage: event.Stage(d.take()) % (event.NumStages + 1),
			Dur: int64(d.take()) << (d.take() % 40), N: int32(d.take()), Text: "own",
		})
	case 5:
		s.Emit(event.Event{Kind: event.KindStep, Dur: int64(d.take()) * 1e5, N: 1, Prompt: int32(d.take() % 2 * 99)})
	default:
		s.Model("m", 1+d.take()%5, d.take()%20, 2)
		s.ReportExperts()
		s.Host()
	}
}

// checkScreen checks that the frame has the right size and is not blank.
func (d *driver) checkScreen() {
	frame := d.a.View().Content
	checkFrame(d.t, frame, d.a.w, d.a.h)
	if d.a.w > 8 && strings.TrimSpace(viewtest.StripStyles(frame)) == "" {
		d.t.Fatalf("%dx%d: the frame of view %d is blank", d.a.w, d.a.h, d.a.view)
	}
}

// FuzzScreen drives the screen with keys, sizes, the mouse and events in any order, live and in a replay.
func FuzzScreen(f *testing.F) {
	f.Add([]byte("123"), false)
	f.Add([]byte{168, 4, 0, 169, 4, 0, 1, 9, 9, 172, 9, 0, 3, 1, 65, 66, 67, 172, 200, 0, 5, 1, 68, 255, 20, 128, 79, 71, 21, 250}, true)
	var all []byte
	for i := range 256 {
		all = append(all, byte(i), 255, byte(255-i), 128, byte(3*i), byte(5*i))
	}
	f.Add(all, false)
	f.Add(all, true)
	f.Fuzz(func(t *testing.T, in []byte, replayed bool) {
		s := viewtest.NewScene()
		s.Engine(event.EngineReady, "")
		cfg := Config{Sessions: One(Session{Snapshots: s.Snapshot, Past: s.Store.Past(), Actions: (&calls{}).actions()}), Profile: theme.Colours256, ASCII: len(in)%2 == 0}
		if replayed {
			cfg.Replay = newPlayer()
		}
		d := &driver{t: t, a: newApp(cfg), s: s, in: in}
		d.a.saveScreen = discardScreen
		d.a.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
		for n := 0; len(d.in) > 0 && n < 400; n++ {
			d.step()
			if n%4 == 0 {
				d.checkScreen()
			}
		}
		d.a.Update(tickMsg{})
		d.checkScreen()
	})
}
