package cast

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// Screen is the screen to record, without a terminal.
type Screen interface {
	Tick()                        // update the content
	Press(key string) (quit bool) // a key that the validKey of ParseScript accepted
	Type(character rune)          // any character
	Resize(cols, rows int)
	Frame() (*grid.Grid, *theme.Skin) // current frame, valid until the next call
}

// Output receives the frames of a recording. at is the time since the start and never decreases.
type Output interface {
	Frame(at time.Duration, g *grid.Grid, skin *theme.Skin) error
	Mark(at time.Duration, label string) error
	Close(at time.Duration) error // called once at the end, unless there was an error
}

// Options control when frames are taken and when the recording ends.
type Options struct {
	Every  time.Duration // time between two frames
	Script *Script       // nil: no actions
	For    time.Duration // maximum duration; 0: unlimited

	// Until waits, or advances a clock, until a time since the start, and returns the time reached. If ctx ends, the
	// recording ends without an error.
	Until func(ctx context.Context, at time.Duration) (time.Duration, error)
	// Ended reports that nothing more will come. It is only used without a script; nil: never.
	Ended func() bool
}

// Shoot records until the script is done, or without a script until the content ends; at the latest until ctx ends or
// For is over. It returns how long that was.
func Shoot(ctx context.Context, screen Screen, opt Options, outputs ...Output) (lasted time.Duration, err error) {
	play := player{screen: screen, out: outputs}
	if opt.Script != nil {
		play.actions = opt.Script.actions
	}
	for over, frames := false, 0; !over; frames++ {
		at, err := opt.Until(ctx, time.Duration(frames)*opt.Every)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return lasted, err
		}
		lasted = at
		screen.Tick()
		if over, err = play.runDue(at); err != nil {
			return lasted, err
		}
		g, skin := screen.Frame()
		for _, o := range outputs {
			if err := o.Frame(at, g, skin); err != nil {
				return lasted, err
			}
		}
		over = over || opt.Script == nil && opt.Ended != nil && opt.Ended() || opt.For > 0 && at >= opt.For
	}
	for _, o := range outputs {
		if err := o.Close(lasted); err != nil {
			return lasted, err
		}
	}
	return lasted, nil
}

// player runs a script.
type player struct {
	screen   Screen
	out      []Output
	actions  []action
	due      time.Duration // time of the next action
	scripted bool          // there is a script: the recording ends after its last action
}

// runDue runs all due actions and reports whether the script is done.
func (p *player) runDue(at time.Duration) (over bool, err error) {
	p.scripted = p.scripted || len(p.actions) > 0
	for len(p.actions) > 0 && p.due <= at {
		m := &p.actions[0]
		if m.text != "" {
			if waiting, err := p.waiting(m, at); waiting || err != nil {
				return false, err
			}
		}
		quit, err := p.run(m, at)
		if quit || err != nil {
			return quit, err
		}
		p.actions = p.actions[1:]
	}
	return p.scripted && len(p.actions) == 0 && p.due <= at, nil
}

// waiting reports whether the text of m is not on the screen yet. It returns an error after the timeout.
func (p *player) waiting(m *action, at time.Duration) (bool, error) {
	g, _ := p.screen.Frame()
	switch {
	case strings.Contains(g.Plain(), m.text):
		p.due = at
		return false, nil
	case at-p.due < m.pause:
		return true, nil
	}
	return false, fmt.Errorf("script: step %d (line %d): wait_for: %q did not appear within %v", m.step, m.line, m.text, m.pause)
}

// run runs one action.
func (p *player) run(m *action, at time.Duration) (quit bool, err error) {
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
