//go:build unix

package ui

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
)

// scribbler draws random words, in random modes, until it has drawn enough and has its last size.
type scribbler struct {
	random *rand.Rand
	grid   grid.Grid
	skin   *theme.Skin
	w, h   int
	dirty  bool
	left   int
	last   int // width
	ended  chan<- string
}

func (s *scribbler) Init() tea.Cmd { return s.next() }

func (s *scribbler) next() tea.Cmd {
	return tea.Tick(time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
}

func (s *scribbler) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.w, s.h, s.dirty = msg.Width, msg.Height, true
	case tickMsg:
		if s.left--; s.left <= 0 && s.w == s.last {
			s.ended <- s.grid.Plain()
			return nil
		}
		s.dirty = true
		return s.next()
	}
	return nil
}

func (s *scribbler) Mouse() tea.MouseMode { return tea.MouseMode(s.random.IntN(3)) }

func (s *scribbler) Draw() (*grid.Grid, *theme.Skin) {
	if !s.dirty || s.w == 0 {
		return nil, nil
	}
	s.grid.Reset(s.w, s.h)
	for range s.random.IntN(200) {
		s.grid.All().Text(s.random.IntN(s.w), s.random.IntN(s.h), grid.Fg(theme.Role(s.random.IntN(4))), "words"[:1+s.random.IntN(5)])
	}
	s.dirty = false
	return &s.grid, s.skin
}

// TestTerminalShowsTheLastFrame checks that no change is lost between frames, modes and sizes.
func TestTerminalShowsTheLastFrame(t *testing.T) {
	master, terminal := openTerminal(t)
	screen := vt10x.New(vt10x.WithSize(80, 24))
	read := make(chan struct{})
	go func() {
		defer close(read)
		for in := bufio.NewReader(master); screen.Parse(in) == nil; { // a read may end within a character
		}
	}()
	resize := func(w, h int) {
		screen.Resize(w, h)
		if err := pty.Setsize(terminal, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Fatal(err)
		}
	}
	resize(80, 24)
	ended := make(chan string, 1)
	s := &scribbler{random: rand.New(rand.NewPCG(1, 2)), left: 400, last: 70, ended: ended}
	s.skin = theme.NewSkin(theme.Palettes()[0], theme.Colours256, theme.Unicode)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, Config{Profile: theme.Colours256, Input: terminal, Output: terminal, Environ: []string{"TERM=xterm-256color"}, FPS: MaxFPS}, s, nil)
	}()
	for _, size := range [][2]int{{60, 20}, {100, 30}, {70, 30}} {
		time.Sleep(100 * time.Millisecond) // meanwhile frames are drawn
		resize(size[0], size[1])
	}
	want := strings.TrimRight(<-ended, "\n")
	got := ""
	for end := time.Now().Add(10 * time.Second); got != want && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		got = strings.TrimRight(screen.String(), "\n")
	}
	if got != want {
		t.Errorf("the terminal shows\n%s\nwant\n%s", got, want)
	}
	cancel()
	<-done
	terminal.Close()
	<-read
	master.Close()
}

// A terminal that does not know its size gets frames of a usual one.
func TestTerminalWithoutSize(t *testing.T) {
	master, terminal := openTerminal(t)
	defer master.Close()
	defer terminal.Close()
	d := &display{out: terminal}
	if got := d.size(); got != (tea.WindowSizeMsg{Width: 120, Height: 36}) {
		t.Errorf("size %v", got)
	}
	if err := pty.Setsize(terminal, &pty.Winsize{}); err != nil {
		t.Fatal(err)
	}
	if got := d.size(); got != (tea.WindowSizeMsg{Width: unknownCols, Height: unknownRows}) {
		t.Errorf("size %v of a terminal without one", got)
	}
}
