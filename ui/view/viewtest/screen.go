package viewtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view"
)

// Size is the size of a view in cells, without header and footer.
type Size struct{ W, H int }

// The size classes: views on screens of 80x24, 120x36 and 160x45 cells.
var (
	Narrow = Size{80, 22}
	Medium = Size{120, 34}
	Wide   = Size{160, 43}
)

// Screen shows one view alone, without header and footer. It implements view.Program.
type Screen struct {
	View view.View

	t     *testing.T
	snap  *store.Snapshot
	size  Size
	frame pane.Frame
	grid  grid.Grid
}

// NewScreen makes a screen of a snapshot with all colours and glyphs. Set its View before anything else.
func NewScreen(t *testing.T, s *store.Snapshot, size Size) *Screen {
	p := &Screen{t: t, snap: s, size: size}
	p.frame = pane.Frame{Window: metric.Minute}
	p.frame.Skin = theme.NewSkin(theme.Palettes()[0], theme.TrueColour, theme.Unicode)
	if e := &s.Engine; e.Remote.Link == event.LinkNone || e.Caps.Has(event.CapPrompt) {
		p.frame.Suggest = "press p to type a prompt"
	}
	return p
}

// ASCII changes the screen to one without colours and with ASCII only.
func (p *Screen) ASCII() *Screen {
	p.frame.Skin = theme.NewSkin(theme.Palettes()[0], theme.NoColour, theme.Plain)
	return p
}

// Show sets the view and draws it.
func (p *Screen) Show(v view.View) *Screen {
	p.View = v
	v.Open()
	p.draw()
	return p
}

// Snapshot implements view.Program.
func (p *Screen) Snapshot() *store.Snapshot { return p.snap }

// Frame implements view.Program.
func (p *Screen) Frame() *pane.Frame { return &p.frame }

// Actions implements view.Program: there are none.
func (p *Screen) Actions() view.Actions { return view.Actions{} }

// Notify implements view.Program.
func (p *Screen) Notify(string) {}

// Copy implements view.Program.
func (p *Screen) Copy(string) {}

// scrolls are the keys with which the program scrolls any view.
var scrolls = map[string]int{"up": -1, "down": 1, "home": -1 << 20, "end": 1 << 20}

// Press presses keys of the view, or types them into its input line, and draws a frame after each.
func (p *Screen) Press(keys ...string) *Screen {
	p.t.Helper()
	for _, key := range keys {
		p.press(key)
		p.draw()
	}
	return p
}

func (p *Screen) press(key string) {
	p.t.Helper()
	if v := p.View; v.Typing() {
		text := ""
		if utf8.RuneCountInString(key) == 1 {
			text = key
		}
		v.Type(key, text)
		return
	}
	for _, k := range p.View.Keys() {
		if slices.Contains(k.Keys, key) {
			k.Do()
			return
		}
	}
	by, ok := scrolls[key]
	if !ok {
		p.t.Fatalf("%s has no key %s", p.View.Name(), key)
	}
	p.View.Scroll(by)
}

func (p *Screen) draw() {
	p.grid.Reset(p.size.W, p.size.H)
	p.View.Draw(p.grid.All(), p.snap, &p.frame)
}

// Text draws the view and returns it as text, as the terminal shows it.
func (p *Screen) Text() string { return StripStyles(p.encoded()) }

func (p *Screen) encoded() string {
	p.draw()
	return p.grid.Encode(p.frame.Skin)
}

// Golden compares the text of the view in a state with testdata/<state>_<size>.txt.
func (p *Screen) Golden(state string) {
	p.t.Helper()
	Golden(p.t, p.file(state)+".txt", p.Text())
}

// GoldenColours compares the view in a state with testdata/<state>_<size>.ansi, which holds its colours too.
func (p *Screen) GoldenColours(state string) {
	p.t.Helper()
	Golden(p.t, p.file(state)+".ansi", p.encoded())
}

func (p *Screen) file(state string) string { return fmt.Sprintf("%s_%dx%d", state, p.size.W, p.size.H) }

// Holds checks that the view contains some text.
func (p *Screen) Holds(words string) {
	p.t.Helper()
	if text := p.Text(); !strings.Contains(text, words) {
		p.t.Errorf("%s does not contain %q:\n%s", p.View.Name(), words, text)
	}
}

// Selection returns a selection of the newest request that matches a filter.
func Selection(t *testing.T, s *store.Snapshot, filter string) *table.Selection {
	t.Helper()
	list := table.NewRequests()
	var err error
	if list.Filter, err = table.RequestFilters.Parse(filter); err != nil {
		t.Fatal(err)
	}
	if list.Update(s); len(list.Rows) == 0 {
		t.Fatalf("no request matches %q", filter)
	}
	return &table.Selection{Key: table.KeyOf(list.Rows[0])}
}
