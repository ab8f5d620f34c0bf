package cast

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Screen is what a recording is made of: the screen without a terminal.
type Screen interface {
	Tick()                            // look at what there is to see now
	Press(key string) (quit bool)     // a key that ParseScript was told is known
	Type(character rune)              // one that may be no key
	Resize(cols, rows int)            //
	Frame() (*grid.Grid, *theme.Skin) // as it is now; good until the next call
}

// Output takes the frames of a recording. At is the time since the beginning, which never goes back.
type Output interface {
	Frame(at time.Duration, g *grid.Grid, skin *theme.Skin) error
	Mark(at time.Duration, label string) error
	Close(at time.Duration) error // at the end, with no error before it
}

// Options say when frames are taken and when the recording ends.
type Options struct {
	Every  time.Duration // between two frames
	Script *Script       // nil: nothing is done on the screen
	For    time.Duration // the longest that it lasts; 0: without limit

	// Until goes on to a time since the beginning, and returns the one that has been reached: it waits, or moves a clock. An error of
	// ctx's ends the recording in order.
	Until func(ctx context.Context, at time.Duration) (time.Duration, error)
	// Ended reports, where there is no script, whether there is nothing more to come. nil: there always is.
	Ended func() bool
}

// Take is what a recording has become.
type Take struct {
	Lasted time.Duration
	Frames int // that were looked at
}

// Shoot makes a recording: until the script is through, or without one until what is seen has ended, ctx ends, or For is over.
func Shoot(ctx context.Context, screen Screen, opt Options, outputs ...Output) (take Take, err error) {
	play := player{screen: screen, out: outputs}
	if opt.Script != nil {
		play.moves = opt.Script.moves
	}
	for over := false; !over; take.Frames++ {
		at, err := opt.Until(ctx, time.Duration(take.Frames)*opt.Every)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return take, err
		}
		take.Lasted = at
		screen.Tick()
		if over, err = play.perform(at); err != nil {
			return take, err
		}
		g, skin := screen.Frame()
		for _, o := range outputs {
			if err := o.Frame(at, g, skin); err != nil {
				return take, err
			}
		}
		over = over || opt.Script == nil && opt.Ended != nil && opt.Ended() || opt.For > 0 && at >= opt.For
	}
	for _, o := range outputs {
		if err := o.Close(take.Lasted); err != nil {
			return take, err
		}
	}
	return take, nil
}

// player goes through a script.
type player struct {
	screen Screen
	out    []Output
	moves  []move
	due    time.Duration // of the next move
	scened bool          // there was a script, which is over when no move is left
}

// perform does what is due, and reports whether that was all.
func (p *player) perform(at time.Duration) (over bool, err error) {
	p.scened = p.scened || len(p.moves) > 0
	for len(p.moves) > 0 && p.due <= at {
		m := &p.moves[0]
		if m.text != "" {
			if waiting, err := p.waiting(m, at); waiting || err != nil {
				return false, err
			}
		}
		quit, err := p.do(m, at)
		if quit || err != nil {
			return quit, err
		}
		p.moves = p.moves[1:]
	}
	return p.scened && len(p.moves) == 0 && p.due <= at, nil
}

// waiting reports whether a text is not on the screen yet.
func (p *player) waiting(m *move, at time.Duration) (bool, error) {
	g, _ := p.screen.Frame()
	switch {
	case strings.Contains(g.Plain(), m.text):
		p.due = at
		return false, nil
	case at-p.due < m.pause:
		return true, nil
	}
	return false, fmt.Errorf("script: step %d (line %d): wait_for: %q was not seen within %v", m.step, m.line, m.text, m.pause)
}

// do does a move.
func (p *player) do(m *move, at time.Duration) (quit bool, err error) {
	switch {
	case m.key != "":
		quit = p.screen.Press(m.key)
	case m.typed != 0:
		p.screen.Type(m.typed)
	case m.w > 0:
		p.screen.Resize(m.w, m.h)
	case m.marker != "":
		for _, o := range p.out {
			if err := o.Mark(at, m.marker); err != nil {
				return false, err
			}
		}
	}
	p.due += m.wait
	if m.text == "" {
		p.due += m.pause
	}
	return quit, nil
}
