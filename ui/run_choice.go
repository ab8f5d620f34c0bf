package ui

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
)

// Candidate is an engine that the user may choose.
type Candidate = panes.Candidate

// Pick is what the user has chosen; the zero value means to quit.
type Pick struct {
	Addresses []string // of the candidates
	BuiltIn   bool     // the built-in model
}

// Choose shows candidates until the user has picked one, all, or the built-in model, or ctx ends, whose cause it then returns. look is what
// there is to choose from now, and what could not be looked at; it is called twice a second and must not wait. Of cfg it takes what
// concerns the terminal and the theme.
func Choose(ctx context.Context, look func() ([]Candidate, []string), cfg Config) (Pick, error) {
	c := newChoice(look, cfg)
	err := run(ctx, cfg, c, nil)
	return c.pick, err
}

// choice is the model of that screen.
type choice struct {
	cfg   Config
	look  func() ([]Candidate, []string)
	theme int
	skin  *theme.Skin
	grid  grid.Grid
	shown panes.Chooser
	at    panes.EnginesAt
	toast string
	pick  Pick
	moved bool // the user has: what is selected stays so
	w, h  int
}

func newChoice(look func() ([]Candidate, []string), cfg Config) *choice {
	c := &choice{cfg: cfg, look: look}
	for i, p := range theme.Palettes() {
		if p.Name == cfg.Theme {
			c.theme = i
		}
	}
	c.dress()
	c.refresh()
	return c
}

// dress makes the skin of the chosen theme.
func (c *choice) dress() {
	glyphs := theme.Unicode
	if c.cfg.ASCII {
		glyphs = theme.Plain
	}
	c.skin = theme.NewSkin(theme.Palettes()[c.theme], c.cfg.Profile, glyphs)
}

// refresh takes the candidates as they are now. The one that the user has selected stays so, wherever it has gone.
func (c *choice) refresh() {
	s := &c.shown
	last := s.Selected == len(s.Rows) && len(s.Rows) > 0
	var before Candidate
	if s.Selected < len(s.Rows) {
		before = s.Rows[s.Selected]
	}
	s.Rows, s.Notes = c.look()
	i := slices.IndexFunc(s.Rows, func(r Candidate) bool { return r.Address == before.Address && r.Name == before.Name })
	switch {
	case !c.moved:
		s.Selected = 0
	case last:
		s.Selected = len(s.Rows)
	case i >= 0:
		s.Selected = i
	}
	s.Selected = min(s.Selected, len(s.Rows))
}

// refreshEvery is how often candidates are looked at.
const refreshEvery = time.Second / 2

// Init implements tea.Model.
func (c *choice) Init() tea.Cmd { return c.tick() }

func (c *choice) tick() tea.Cmd {
	return tea.Tick(refreshEvery, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update implements tea.Model.
func (c *choice) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tickMsg:
		c.refresh()
		return c, c.tick()
	case tea.WindowSizeMsg:
		c.w, c.h = msg.Width, msg.Height
	case tea.KeyPressMsg:
		c.toast = ""
		return c, c.key(msg.String())
	case tea.MouseClickMsg:
		if i := c.at.Row(msg.X, msg.Y); i >= 0 {
			if i == c.shown.Selected {
				return c, c.take()
			}
			c.shown.Selected, c.moved = i, true
		}
	case tea.MouseWheelMsg:
		c.move(map[bool]int{true: -1, false: 1}[msg.Button == tea.MouseWheelUp])
	}
	return c, nil
}

// key does what a key says.
func (c *choice) key(key string) tea.Cmd {
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "esc":
		return c.choose(Pick{BuiltIn: true})
	case "enter":
		return c.take()
	case "a":
		return c.all()
	case "t":
		c.theme = (c.theme + 1) % len(theme.Palettes())
		c.dress()
	case "up", "k":
		c.move(-1)
	case "down", "j":
		c.move(1)
	case "pgup":
		c.move(-page)
	case "pgdown":
		c.move(page)
	case "home", "g":
		c.move(-1 << 20)
	case "end", "G":
		c.move(1 << 20)
	}
	return nil
}

func (c *choice) move(by int) {
	c.moved = true
	c.shown.Selected = max(min(c.shown.Selected+by, len(c.shown.Rows)), 0)
}

// take picks what is selected, if it can be watched.
func (c *choice) take() tea.Cmd {
	if c.shown.Selected == len(c.shown.Rows) {
		return c.choose(Pick{BuiltIn: true})
	}
	r := c.shown.Rows[c.shown.Selected]
	if r.Blocked != "" {
		c.toast = r.Blocked
		return nil
	}
	return c.choose(Pick{Addresses: []string{r.Address}})
}

// all picks all that can be watched, and with them those that may answer later.
func (c *choice) all() tea.Cmd {
	var all []string
	some := false
	for _, r := range c.shown.Rows {
		some = some || r.Blocked == ""
		if r.Blocked == "" || r.Silent {
			all = append(all, r.Address)
		}
	}
	if !some {
		c.toast = "none of them can be watched as it is"
		return nil
	}
	return c.choose(Pick{Addresses: all})
}

func (c *choice) choose(p Pick) tea.Cmd {
	c.pick = p
	return tea.Quit
}

// View implements tea.Model.
func (c *choice) View() tea.View {
	c.grid.Reset(c.w, c.h)
	all := c.grid.All()
	ctx := &panes.Ctx{Skin: c.skin}
	if c.h > 2 {
		panes.ChooserHeader(all.Sub(0, 0, c.w, 1), &c.shown, ctx)
		c.at = panes.Candidates(all.Sub(0, 1, c.w, c.h-2), &c.shown, ctx)
		c.shown.First = c.at.First
		c.footer(all.Sub(0, c.h-1, c.w, 1))
	}
	v := tea.NewView(c.grid.Encode(c.skin))
	v.AltScreen, v.WindowTitle = true, "llmtop"
	if !c.cfg.NoMouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}

// choiceKeys are the keys of the screen, the most important first.
var choiceKeys = [][2]string{
	{"enter", "watch"}, {"a", "all of them"}, {"esc", "built-in model"}, {"q", "quit"}, {"up down", "choose"}, {"t", "theme"},
}

// footer writes the keys, or why something cannot be done.
func (c *choice) footer(a grid.Area) {
	if c.toast != "" {
		a.Elide(1, 0, a.W-1, grid.Fg(theme.Watch).With(grid.Bold), c.toast, c.skin.Glyphs.Ellipsis)
		return
	}
	l := a.Line(1, 0)
	for _, key := range choiceKeys {
		l.Fit(grid.Piece{Style: grid.Fg(theme.Accent).With(grid.Bold), Words: key[0]}, grid.Piece{Style: grid.Fg(theme.Dim), Words: " " + key[1] + "  "})
	}
}
