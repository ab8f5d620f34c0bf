package ui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/llmtop/llmtop/profiler/compare"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/versus"
)

// RunComparison shows a comparison until the user closes it or ctx ends: then it returns the cause. It uses the
// terminal and theme settings of cfg.
func RunComparison(ctx context.Context, r *compare.Result, cfg Config) error {
	return run(ctx, cfg, newComparison(r, cfg), nil)
}

// comparison is the model of the comparison screen.
type comparison struct {
	result      *compare.Result
	cfg         Config
	theme       int
	themeChosen bool // the user pressed the theme key
	grid        grid.Grid
	first       int // index of the first visible metric
	room        int // number of metrics that fit
	w, h        int
}

func newComparison(r *compare.Result, cfg Config) *comparison {
	return &comparison{result: r, cfg: cfg, theme: cfg.themeIndex()}
}

// Init implements tea.Model.
func (c *comparison) Init() tea.Cmd { return c.cfg.askBackground() }

// Update implements tea.Model.
func (c *comparison) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.BackgroundColorMsg:
		if !c.themeChosen {
			c.theme = themeOn(msg)
		}
	case tea.WindowSizeMsg:
		c.w, c.h = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "esc", "ctrl+c":
			return c, tea.Quit
		case "t":
			c.theme, c.themeChosen = (c.theme+1)%len(c.cfg.themes()), true
		case "up", "k":
			c.first--
		case "down", "j":
			c.first++
		case "pgup", "ctrl+u":
			c.first -= c.room
		case "pgdown", "ctrl+d":
			c.first += c.room
		case "home":
			c.first = 0
		case "end":
			c.first = len(c.result.Rows)
		}
	case tea.MouseWheelMsg:
		if msg.Button == tea.MouseWheelUp {
			c.first--
		} else {
			c.first++
		}
	}
	c.first = max(min(c.first, len(c.result.Rows)-c.room), 0)
	return c, nil
}

// View implements tea.Model.
func (c *comparison) View() tea.View {
	skin := c.cfg.skin(c.theme)
	c.grid.Reset(c.w, c.h)
	c.room = versus.Draw(&c.grid, c.result, skin, c.first)
	if c.h > 1 {
		l := c.grid.All().Line(1, c.h-1)
		for _, key := range [][2]string{{"q", "quit"}, {"up down", "scroll"}, {"t", "theme"}} {
			l.Fit(grid.Piece{Style: grid.Fg(theme.Accent).With(grid.Bold), Words: key[0]}, grid.Piece{Style: grid.Fg(theme.Dim), Words: " " + key[1] + "  "})
		}
	}
	v := tea.NewView(c.grid.Encode(skin))
	v.AltScreen, v.WindowTitle = true, "llmtop compare"
	if !c.cfg.NoMouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}
