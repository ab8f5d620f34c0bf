// Package plain tells what happens in lines of text, for screen readers, pipes and logs: nothing is drawn, nothing moves, and nothing that
// was written changes.
package plain

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// DefaultInterval is the time between summaries.
const DefaultInterval = 30 * time.Second

// lookEvery is how often it is looked for news.
const lookEvery = 250 * time.Millisecond

// Source is one engine.
type Source struct {
	Name      string                 // "" if there is only one
	Snapshots func() *store.Snapshot // never nil
}

// Config is what is told, and where.
type Config struct {
	Sources  func() []Source       // the engines that are known at the moment
	Alerts   func() []alert.Status // nil: there are no rules
	Interval time.Duration         // between summaries
	Ended    func() bool           // nothing more will come; nil: never
	Note     string                // said at the beginning
	Input    *os.File              // keys; a terminal is told to hand them over one by one
	Output   io.Writer
}

// speaker is what has been told so far.
type speaker struct {
	cfg    Config
	raw    bool // the terminal wants a carriage return before each new line
	of     map[string]*news
	alerts map[string]alert.State
	paused bool
	err    error // of the output
}

// Run tells until the user quits (nil), ctx ends (its cause), or nobody reads any more.
func Run(ctx context.Context, cfg Config) error {
	sp := newSpeaker(cfg)
	keys, restore := sp.listen()
	defer restore()
	sp.say("llmtop, in plain lines. Press question mark for the keys.")
	if cfg.Note != "" {
		sp.say(sanitize.Line(cfg.Note))
	}
	look, summary := time.NewTicker(lookEvery), time.NewTicker(cfg.Interval)
	defer look.Stop()
	defer summary.Stop()
	for sp.err == nil {
		select {
		case <-ctx.Done():
			sp.look()
			return context.Cause(ctx)
		case key := <-keys:
			if sp.key(key) {
				return nil
			}
		case <-look.C:
			ended := cfg.Ended != nil && cfg.Ended()
			if sp.look(); ended {
				return sp.err
			}
		case <-summary.C:
			sp.summaries()
		}
	}
	return fmt.Errorf("write lines: %w", sp.err)
}

func newSpeaker(cfg Config) *speaker {
	return &speaker{cfg: cfg, of: make(map[string]*news), alerts: make(map[string]alert.State)}
}

// say writes one line.
func (sp *speaker) say(words string) {
	if sp.err != nil {
		return
	}
	end := "\n"
	if sp.raw {
		end = "\r\n"
	}
	_, sp.err = io.WriteString(sp.cfg.Output, words+end)
}

// look tells what is new.
func (sp *speaker) look() {
	if sp.paused {
		return
	}
	for _, src := range sp.cfg.Sources() {
		n := sp.of[src.Name]
		if n == nil {
			n = &news{}
			sp.of[src.Name] = n
		}
		for _, line := range n.look(src.Snapshots()) {
			sp.say(prefix(src) + line)
		}
	}
	sp.lookAtAlerts()
}

// prefix names the engine, of several.
func prefix(src Source) string {
	if src.Name == "" {
		return ""
	}
	return sanitize.Line(src.Name) + ": "
}

func (sp *speaker) lookAtAlerts() {
	if sp.cfg.Alerts == nil {
		return
	}
	for _, s := range sp.cfg.Alerts() {
		id := s.Engine + "\x00" + s.Name
		was := sp.alerts[id]
		if sp.alerts[id] = s.State; was == s.State || s.State != alert.Firing && s.State != alert.Resolved {
			continue
		}
		if s.State == alert.Firing {
			sp.say("alert " + sanitize.Line(s.Name) + " is firing: " + s.Value + ", condition " + s.When)
		} else if was == alert.Firing {
			sp.say("alert " + sanitize.Line(s.Name) + " has resolved: " + s.Value)
		}
	}
}

// summaries tells how each engine does.
func (sp *speaker) summaries() {
	if sp.paused {
		return
	}
	for _, src := range sp.cfg.Sources() {
		sp.say(prefix(src) + Summary(src.Snapshots()))
	}
}

// key does what a key says, and reports whether that is to quit.
func (sp *speaker) key(k byte) (quit bool) {
	switch {
	case k == 'q' || k == 3: // ctrl+c
		return true
	case k == ' ':
		sp.paused = !sp.paused
		if sp.paused {
			sp.say("paused: nothing new is told until you press space")
		} else {
			sp.say("going on")
			sp.look()
		}
	case k == 'a':
		for _, line := range alerts(sp.states()) {
			sp.say(line)
		}
	case k == '?' || k == 'h':
		for _, line := range helpLines() {
			sp.say(line)
		}
	case k == '0'+byte(len(sections))+1:
		sp.engines()
	case k >= '1' && int(k-'1') < len(sections):
		sp.section(&sections[k-'1'])
	}
	return false
}

func (sp *speaker) states() []alert.Status {
	if sp.cfg.Alerts == nil {
		return nil
	}
	return sp.cfg.Alerts()
}

// section tells one section of every engine.
func (sp *speaker) section(s *section) {
	sp.say(s.name + ":")
	for _, src := range sp.cfg.Sources() {
		for _, line := range s.tell(src.Snapshots()) {
			sp.say(prefix(src) + line)
		}
	}
}

// engines tells what is attached.
func (sp *speaker) engines() {
	all := sp.cfg.Sources()
	sp.say(fmt.Sprintf("engines: %d", len(all)))
	for _, src := range all {
		sp.say(prefix(src) + engineWords(src.Snapshots()))
	}
}

// helpLines are the keys.
func helpLines() []string {
	names := make([]string, 0, len(sections)+1)
	for i, s := range sections {
		names = append(names, fmt.Sprintf("%d %s", i+1, s.name))
	}
	names = append(names, fmt.Sprintf("%d engines", len(sections)+1))
	return []string{
		"keys: " + strings.Join(names, ", "),
		"a alerts, space pause and go on, question mark this help, q quit",
	}
}

// listen hands over the keys of the input as they come, and returns what gives the terminal back.
func (sp *speaker) listen() (keys <-chan byte, restore func()) {
	in := sp.cfg.Input
	if in == nil {
		return nil, func() {}
	}
	restore = func() {}
	if was, err := term.MakeRaw(in.Fd()); err == nil { // not a terminal otherwise: keys come with lines
		restore, sp.raw = func() { _ = term.Restore(in.Fd(), was) }, true
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
