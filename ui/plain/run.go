// Package plain prints events as lines of text, for screen readers, pipes and logs. It only appends lines and never
// redraws.
package plain

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/sanitize"
	"github.com/llmtop/llmtop/ui/terminal"
)

// DefaultInterval is the time between summaries.
const DefaultInterval = 30 * time.Second

// pollInterval is the time between two polls of the engines.
const pollInterval = 250 * time.Millisecond

// Config says what to print, and where.
type Config struct {
	Sessions func() []ui.Session   // of a screen
	Alerts   func() []alert.Status // nil: no rules
	Interval time.Duration         // between summaries
	Ended    func() bool           // reports that no more events will come; nil: never
	Note     string                // printed at the start
	Input    *os.File              // keys; a terminal is switched to raw mode
	Output   io.Writer
}

// printer holds what was printed so far.
type printer struct {
	cfg      Config
	raw      bool // raw terminal: end lines with CR LF
	trackers map[string]*tracker
	alerts   map[string]alert.State
	paused   bool
	err      error // of the output
}

// Run prints until the user quits (nil), ctx ends (its cause), or the output fails.
func Run(ctx context.Context, cfg Config) error {
	p := newPrinter(cfg)
	keys, restore := p.readKeys()
	defer restore()
	p.print("llmtop, plain text. Press question mark for the keys.")
	if cfg.Note != "" {
		p.print(sanitize.Line(cfg.Note))
	}
	look, summary := time.NewTicker(pollInterval), time.NewTicker(cfg.Interval)
	defer look.Stop()
	defer summary.Stop()
	for p.err == nil {
		select {
		case <-ctx.Done():
			p.poll()
			return context.Cause(ctx)
		case key := <-keys:
			if p.handleKey(key) {
				return nil
			}
		case <-look.C:
			ended := cfg.Ended != nil && cfg.Ended()
			if p.poll(); ended {
				return p.err
			}
		case <-summary.C:
			p.printSummaries()
		}
	}
	return fmt.Errorf("write lines: %w", p.err)
}

func newPrinter(cfg Config) *printer {
	return &printer{cfg: cfg, trackers: make(map[string]*tracker), alerts: make(map[string]alert.State)}
}

// print writes one line.
func (p *printer) print(words string) {
	if p.err != nil {
		return
	}
	end := "\n"
	if p.raw {
		end = "\r\n"
	}
	_, p.err = io.WriteString(p.cfg.Output, words+end)
}

// poll prints what changed.
func (p *printer) poll() {
	if p.paused {
		return
	}
	for _, src := range p.engines() {
		n := p.trackers[src.Name]
		if n == nil {
			n = &tracker{}
			p.trackers[src.Name] = n
		}
		for _, line := range n.update(src.Snapshots()) {
			p.print(prefix(src) + line)
		}
	}
	p.printAlertChanges()
}

// engines returns the current engines; one alone without its name.
func (p *printer) engines() []ui.Session {
	all := slices.Clone(p.cfg.Sessions())
	if len(all) == 1 {
		all[0].Name = ""
	}
	return all
}

// prefix names the engine if there are several.
func prefix(src ui.Session) string {
	if src.Name == "" {
		return ""
	}
	return sanitize.Line(src.Name) + ": "
}

// printAlertChanges prints alerts that started to fire or resolved.
func (p *printer) printAlertChanges() {
	if p.cfg.Alerts == nil {
		return
	}
	for _, s := range p.cfg.Alerts() {
		id := s.Engine + "\x00" + s.Name
		was := p.alerts[id]
		if p.alerts[id] = s.State; was == s.State || s.State != alert.Firing && s.State != alert.Resolved {
			continue
		}
		if s.State == alert.Firing {
			p.print("alert " + sanitize.Line(s.Name) + " is firing: " + s.Value + ", condition " + s.When)
		} else if was == alert.Firing {
			p.print("alert " + sanitize.Line(s.Name) + " has resolved: " + s.Value)
		}
	}
}

// printSummaries prints a line per engine.
func (p *printer) printSummaries() {
	if p.paused {
		return
	}
	for _, src := range p.engines() {
		p.print(prefix(src) + Summary(src.Snapshots()))
	}
}

// handleKey handles a key and reports whether to quit.
func (p *printer) handleKey(k byte) (quit bool) {
	switch {
	case k == 'q' || k == 3: // ctrl+c
		return true
	case k == ' ':
		p.paused = !p.paused
		if p.paused {
			p.print("paused: press space to resume")
		} else {
			p.print("resumed")
			p.poll()
		}
	case k == 'a':
		for _, line := range alertLines(p.alertStates()) {
			p.print(line)
		}
	case k == '?' || k == 'h':
		for _, line := range helpLines() {
			p.print(line)
		}
	case k == '0'+byte(len(sections))+1:
		p.printEngines()
	case k >= '1' && int(k-'1') < len(sections):
		p.printSection(int(k - '1'))
	}
	return false
}

func (p *printer) alertStates() []alert.Status {
	if p.cfg.Alerts == nil {
		return nil
	}
	return p.cfg.Alerts()
}

// printSection prints one section of every engine.
func (p *printer) printSection(i int) {
	p.print(sections[i].name + ":")
	for _, src := range p.engines() {
		for _, line := range sections[i].lines(src.Snapshots()) {
			p.print(prefix(src) + line)
		}
	}
}

// printEngines lists the engines.
func (p *printer) printEngines() {
	all := p.engines()
	p.print(fmt.Sprintf("engines: %d", len(all)))
	for _, src := range all {
		p.print(prefix(src) + engineWords(src.Snapshots()))
	}
}

// helpLines lists the keys.
func helpLines() []string {
	names := make([]string, 0, len(sections)+1)
	for i, s := range sections {
		names = append(names, fmt.Sprintf("%d %s", i+1, s.name))
	}
	names = append(names, fmt.Sprintf("%d engines", len(sections)+1))
	return []string{
		"keys: " + strings.Join(names, ", "),
		"a alerts, space pause or resume, question mark this help, q quit",
	}
}

// readKeys delivers keys of the input as they arrive, and returns a function that restores the terminal.
func (p *printer) readKeys() (keys <-chan byte, restore func()) {
	in := p.cfg.Input
	if in == nil {
		return nil, func() {}
	}
	restore = func() {}
	if p.raw = term.IsTerminal(in.Fd()); p.raw { // otherwise keys arrive by line
		restore = terminal.Take(in, io.Discard, "")
	}
	ch := make(chan byte)
	go func() { // ends with the program: a read of a terminal cannot be interrupted
		var key [1]byte
		for {
			if n, err := in.Read(key[:]); n == 0 || err != nil {
				return
			}
			ch <- key[0]
		}
	}()
	return ch, restore
}
