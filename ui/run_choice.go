package ui

import (
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/view"
	"github.com/llmtop/llmtop/ui/view/engines"
)

// Pick is the user's selection; the zero value means quit.
type Pick struct {
	Addresses []string // of the selected candidates
	BuiltIn   bool     // the built-in model
}

// Choose shows candidates until the user picks one, all, or the built-in model, or until ctx ends: then it returns the
// cause. list returns the current candidates and notes about failed look-ups; it is called twice per second and must
// not block. Choose uses the terminal and theme settings of cfg.
func Choose(ctx context.Context, list func() ([]engines.Candidate, []string), cfg Config) (Pick, error) {
	c := newChoice(list, cfg)
	err := run(ctx, cfg, c, nil)
	return c.pick, err
}

// choice is the model of the candidates screen.
type choice struct {
	cfg         Config
	list        func() ([]engines.Candidate, []string)
	theme       int
	skin        *theme.Skin
	grid        grid.Grid
	shown       engines.Chooser
	toast       string
	pick        Pick
	asked       string   // key that was pressed, and waits for the answer to questions; "": none
	asking      []string // those questions
	themeChosen bool     // the user pressed the theme key
	userMoved   bool     // the user moved the selection: keep it
	w, h        int
}

func newChoice(list func() ([]engines.Candidate, []string), cfg Config) *choice {
	c := &choice{cfg: cfg, list: list, theme: cfg.themeIndex()}
	c.skin = cfg.skin(c.theme)
	c.refresh()
	return c
}

// refresh updates the candidates. The user's selection follows its candidate.
func (c *choice) refresh() {
	s := &c.shown
	last := s.Selected == len(s.Candidates) && len(s.Candidates) > 0
	var before engines.Candidate
	if s.Selected < len(s.Candidates) {
		before = s.Candidates[s.Selected]
	}
	s.Candidates, s.Notes = c.list()
	i := slices.IndexFunc(s.Candidates, func(r engines.Candidate) bool { return r.Address == before.Address && r.Name == before.Name })
	switch {
	case !c.userMoved:
		s.Selected = 0
	case last:
		s.Selected = len(s.Candidates)
	case i >= 0:
		s.Selected = i
	}
	s.Selected = min(s.Selected, len(s.Candidates))
	if !slices.Equal(c.questions(c.asked), c.asking) { // it was about others
		c.asked, c.asking = "", nil
	}
}

// refreshEvery is the interval between updates of the candidates.
const refreshEvery = time.Second / 2

// Init implements screen.
func (c *choice) Init() tea.Cmd { return c.tick() }

func (c *choice) tick() tea.Cmd {
	return tea.Tick(refreshEvery, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update implements screen.
func (c *choice) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tickMsg:
		c.refresh()
		return c.tick()
	case tea.BackgroundColorMsg:
		if !c.themeChosen {
			c.theme = themeOn(msg)
			c.skin = c.cfg.skin(c.theme)
		}
	case tea.WindowSizeMsg:
		c.w, c.h = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return c.key(msg.String())
	case tea.MouseClickMsg:
		if i, ok := c.shown.RowAt(msg.X, msg.Y); ok {
			if i == c.shown.Selected {
				return c.key("enter")
			}
			c.toast, c.asked, c.asking = "", "", nil
			c.shown.Selected, c.userMoved = i, true
		}
	case tea.MouseWheelMsg:
		c.move(map[bool]int{true: -1, false: 1}[msg.Button == tea.MouseWheelUp])
	}
	return nil
}

// key handles one key.
func (c *choice) key(key string) tea.Cmd {
	asked := c.asked
	c.toast, c.asked, c.asking = "", "", nil
	if asked != "" {
		return c.answer(asked, key)
	}
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "esc":
		return c.choose(Pick{BuiltIn: true})
	case "enter", "a":
		if c.asking = c.questions(key); len(c.asking) > 0 {
			c.asked = key
			return nil
		}
		return c.picks(key)
	case "t":
		c.theme, c.themeChosen = (c.theme+1)%len(c.cfg.themes()), true
		c.skin = c.cfg.skin(c.theme)
	case "up", "k":
		c.move(-1)
	case "down", "j":
		c.move(1)
	case "pgup", "ctrl+u":
		c.move(-view.Page)
	case "pgdown", "ctrl+d":
		c.move(view.Page)
	case "home", "g":
		c.move(-1 << 20)
	case "end", "G":
		c.move(1 << 20)
	}
	return nil
}

func (c *choice) move(by int) {
	c.userMoved = true
	c.shown.Select(c.shown.Selected+by, len(c.shown.Candidates)+1)
}

// questions returns what must be asked before a key picks candidates.
func (c *choice) questions(key string) (all []string) {
	for i, r := range c.shown.Candidates {
		if key != "" && r.Ask != "" && r.Blocked == "" && (key == "a" || i == c.shown.Selected) {
			all = append(all, r.Ask)
		}
	}
	return all
}

// question returns the text of the questions with the keys that answer them.
func (c *choice) question() string {
	text := c.asking[0]
	if n := len(c.asking); n > 1 {
		text += fmt.Sprintf(" and %d more", n-1)
	}
	text += "?  y yes  n no"
	if c.asked == "enter" && c.shown.Candidates[c.shown.Selected].Instead != "" {
		text += "  h by HTTP instead"
	}
	return text
}

// answer handles the key that answers a question. What is neither a yes nor another way is a no.
func (c *choice) answer(asked, key string) tea.Cmd {
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case key == "y":
		return c.picks(asked)
	case key == "h" && asked == "enter" && c.shown.Selected < len(c.shown.Candidates) && c.shown.Candidates[c.shown.Selected].Instead != "":
		return c.choose(Pick{Addresses: []string{c.shown.Candidates[c.shown.Selected].Instead}})
	}
	return nil
}

// picks picks what a key stands for.
func (c *choice) picks(key string) tea.Cmd {
	if key == "a" {
		return c.pickAll()
	}
	return c.pickSelected()
}

// pickSelected picks the selected candidate, if it can be watched.
func (c *choice) pickSelected() tea.Cmd {
	if c.shown.Selected == len(c.shown.Candidates) {
		return c.choose(Pick{BuiltIn: true})
	}
	r := c.shown.Candidates[c.shown.Selected]
	if r.Blocked != "" {
		c.toast = r.Blocked
		return nil
	}
	return c.choose(Pick{Addresses: []string{r.Address}})
}

// pickAll picks all candidates that can be watched, and those that may answer later.
func (c *choice) pickAll() tea.Cmd {
	var all []string
	watchable := false
	for _, r := range c.shown.Candidates {
		watchable = watchable || r.Blocked == ""
		if r.Blocked == "" || r.Silent {
			all = append(all, r.Address)
		}
	}
	if !watchable {
		c.toast = "no engine in the list can be watched"
		return nil
	}
	return c.choose(Pick{Addresses: all})
}

func (c *choice) choose(p Pick) tea.Cmd {
	c.pick = p
	return tea.Quit
}

// Mouse implements screen.
func (c *choice) Mouse() tea.MouseMode {
	if c.cfg.NoMouse {
		return tea.MouseModeNone
	}
	return tea.MouseModeCellMotion
}

// Draw implements screen.
func (c *choice) Draw() (*grid.Grid, *theme.Skin) {
	c.grid.Reset(c.w, c.h)
	all := c.grid.All()
	ctx := &pane.Frame{Skin: c.skin}
	if c.h > 2 {
		c.shown.DrawHeader(all.Sub(0, 0, c.w, 1), ctx)
		c.shown.Draw(all.Sub(0, 1, c.w, c.h-2), ctx)
		c.footer(all.Sub(0, c.h-1, c.w, 1))
	}
	return &c.grid, c.skin
}

// choiceKeys are the keys of the screen, the most important first.
var choiceKeys = [][2]string{
	{"enter", "watch"}, {"a", "watch all"}, {"esc", "built-in model"}, {"q", "quit"}, {"up down", "select"}, {"t", "theme"},
}

// footer draws the keys, a question, or why a candidate cannot be watched.
func (c *choice) footer(a grid.Area) {
	words := c.toast
	if c.asked != "" {
		words = c.question()
	}
	if words != "" {
		a.Elide(1, 0, a.W-1, grid.Fg(theme.Watch).With(grid.Bold), words, c.skin.Glyphs.Ellipsis)
		return
	}
	l := a.Line(1, 0)
	for _, key := range choiceKeys {
		l.Fit(grid.Piece{Style: grid.Fg(theme.Accent).With(grid.Bold), Words: key[0]}, grid.Piece{Style: grid.Fg(theme.Dim), Words: " " + key[1] + "  "})
	}
}
