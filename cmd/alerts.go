package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// How alerts are watched, and how their commands are run: one at a time.
const (
	alertEvery     = 500 * time.Millisecond
	commandWithin  = 10 * time.Second // a command that takes longer is killed
	commandsAtEnd  = 2 * time.Second  // how long those that are under way at the end may still take
	waitingAtMost  = 16               // commands that wait; those beyond are not run, which is told
	mostAlertValue = 200              // bytes of a variable
)

// alerting watches sessions for the rules of the config file. One that is nil has no rules, and can be used all the same.
type alerting struct {
	rules  []alert.Rule
	screen bool // otherwise changes are told on standard error
	quiet  bool // no command is run
	runs   chan func(context.Context)
	done   chan struct{}
	stop   context.CancelFunc

	mu      sync.Mutex
	watched []*watched
}

// watched is a session with what stands of its rules.
type watched struct {
	watch  *alert.Watch
	states []alert.Status // as of the last look
}

// newAlerting begins to watch for rules. quiet is for what is not live, of which nobody needs to be woken.
func newAlerting(rules []alert.Rule, screen, quiet bool) *alerting {
	if len(rules) == 0 {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &alerting{
		rules: rules, screen: screen, quiet: quiet, stop: stop,
		runs: make(chan func(context.Context), waitingAtMost), done: make(chan struct{}),
	}
	go func() {
		defer close(a.done)
		for run := range a.runs {
			run(ctx)
		}
	}()
	return a
}

// close waits a little for commands that are under way, after the last session has ended.
func (a *alerting) close() error {
	if a == nil {
		return nil
	}
	close(a.runs)
	defer a.stop()
	select {
	case <-a.done:
	case <-time.After(commandsAtEnd):
	}
	return nil
}

// states are how all rules stand.
func (a *alerting) states() (out []alert.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watched {
		out = append(out, w.states...)
	}
	return out
}

// status is what the screen asks, nil if there are no rules.
func (a *alerting) status() func() []alert.Status {
	if a == nil {
		return nil
	}
	return a.states
}

// over has a session watched.
func (a *alerting) over(s *session, engine string) {
	if a == nil {
		return
	}
	s.add("watch alerts", func(ctx context.Context, _ event.Sink) error {
		a.follow(ctx, engine, func() *store.Store { return s.store })
		return nil
	})
}

// follow watches what a store holds until ctx ends.
func (a *alerting) follow(ctx context.Context, engine string, at func() *store.Store) {
	w := &watched{watch: alert.NewWatch(engine, a.rules)}
	w.states = w.watch.States()
	a.mu.Lock()
	a.watched = append(a.watched, w)
	a.mu.Unlock()
	tick := time.NewTicker(alertEvery)
	defer tick.Stop()
	for {
		a.look(w, at())
		select {
		case <-ctx.Done():
			a.look(w, at()) // a short run may be over
			return
		case <-tick.C:
		}
	}
}

// look holds the rules against what a store holds, and tells of what has changed.
func (a *alerting) look(w *watched, s *store.Store) {
	snap := s.Snapshot()
	changes := w.watch.Look(snap)
	a.mu.Lock()
	w.states = w.watch.States()
	a.mu.Unlock()
	for _, c := range changes {
		tell := func(words string) { a.tell(s, words) }
		tell(c.Words())
		if len(c.Rule.Run) > 0 && !a.quiet {
			a.enqueue(c, snap.Model.Name, tell)
		}
	}
}

// tell writes a line into the log of the session, and without a screen to standard error. It is not recorded: a replay has its own alerts.
func (a *alerting) tell(s *store.Store, words string) {
	s.Emit(event.Event{Kind: event.KindLog, At: s.Snapshot().Now, Layer: -1, Text: words})
	if !a.screen {
		note(errors.New(words))
	}
}

// enqueue has the command of a rule run when those before it have ended.
func (a *alerting) enqueue(c alert.Change, model string, tell func(string)) {
	run := func(ctx context.Context) {
		if err := runCommand(ctx, c.Rule.Run, alertVariables(&c, model)); err != nil {
			tell(fmt.Sprintf("alert %s: run: %v", c.Name, err))
		}
	}
	select {
	case a.runs <- run:
	default:
		tell(fmt.Sprintf("alert %s: run: %d other commands wait already", c.Name, waitingAtMost))
	}
}

// runCommand runs a program with its arguments, as they are and without a shell; what it writes is not looked at.
func runCommand(ctx context.Context, args, variables []string) error {
	ctx, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), variables...)
	c.WaitDelay = time.Second
	err := c.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: killed after %v", args[0], commandWithin)
	}
	return err
}

// alertVariables tell the command what has happened, each in one printable line.
func alertVariables(c *alert.Change, model string) (out []string) {
	state := "firing"
	if c.State == alert.Resolved {
		state = "resolved"
	}
	for _, v := range [...]struct{ name, value string }{
		{"", c.Name},
		{"_STATE", state},
		{"_VALUE", c.Value},
		{"_WHEN", c.When},
		{"_FOR", c.For.String()},
		{"_ENGINE", c.Engine},
		{"_MODEL", model},
		{"_TEXT", c.Words()},
	} {
		out = append(out, "LLMTOP_ALERT"+v.name+"="+oneLine(v.value))
	}
	return out
}

// oneLine is a text from outside without control characters and of bounded length.
func oneLine(s string) string {
	runes := slices.DeleteFunc([]rune(clean.Printable(s)), func(r rune) bool { return r == '\n' || r == '\t' || r == 0 })
	return string(runes[:min(len(runes), mostAlertValue)])
}
