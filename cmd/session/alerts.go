package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Limits of alerts and their commands, which run one at a time.
const (
	alertInterval      = 500 * time.Millisecond
	commandTimeout     = 10 * time.Second // a command that takes longer is killed
	commandsEndTimeout = 2 * time.Second  // how long commands may still run at the end
	maxWaitingCommands = 16               // commands in the queue; further ones are dropped, with a log line
	maxAlertValue      = 200              // length of a variable in characters
)

// Alerts evaluates the rules of the config file for several sessions. A nil *Alerts has no rules; all methods
// accept it.
type Alerts struct {
	rules  []alert.Rule
	screen bool // there is a screen; without one, changes also go to standard error
	quiet  bool // do not run commands
	runs   chan func(context.Context)
	done   chan struct{}
	stop   context.CancelFunc

	mu      sync.Mutex
	watched []*watchedSession
	printed map[string]bool // rules that cannot fire, of all sessions: one line each on standard error
}

// watchedSession is the evaluation of the rules for one session.
type watchedSession struct {
	watch  *alert.Watch
	states []alert.Status // after the last evaluation
}

// NewAlerts starts the goroutine that runs the commands of rules. With quiet, for replays, no command runs.
func NewAlerts(rules []alert.Rule, screen, quiet bool) *Alerts {
	if len(rules) == 0 {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &Alerts{
		rules: rules, screen: screen, quiet: quiet, stop: stop, printed: make(map[string]bool),
		runs: make(chan func(context.Context), maxWaitingCommands), done: make(chan struct{}),
	}
	go func() {
		defer close(a.done)
		for run := range a.runs {
			run(ctx)
		}
	}()
	return a
}

// Close waits up to commandsEndTimeout for running commands. Call it after the last session has ended.
func (a *Alerts) Close() {
	if a == nil {
		return
	}
	close(a.runs)
	defer a.stop()
	select {
	case <-a.done:
	case <-time.After(commandsEndTimeout):
	}
}

// states returns the state of every rule in every session.
func (a *Alerts) states() (out []alert.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watched {
		out = append(out, w.states...)
	}
	return out
}

// Status returns states for the screen, nil if there are no rules.
func (a *Alerts) Status() func() []alert.Status {
	if a == nil {
		return nil
	}
	return a.states
}

// Watch evaluates the rules for a session while it runs. engine is the name in messages.
func (a *Alerts) Watch(s *Session, engine string) {
	if a == nil {
		return
	}
	s.Add("watch alerts", func(ctx context.Context, _ event.Sink) error {
		a.Follow(ctx, engine, func() *store.Store { return s.Store })
		return nil
	})
}

// Follow evaluates the rules for a store every alertInterval until ctx ends.
func (a *Alerts) Follow(ctx context.Context, engine string, at func() *store.Store) {
	w := &watchedSession{watch: alert.NewWatch(engine, a.rules)}
	w.states = w.watch.States()
	a.mu.Lock()
	a.watched = append(a.watched, w)
	a.mu.Unlock()
	tick := time.NewTicker(alertInterval)
	defer tick.Stop()
	for {
		a.evaluate(w, at())
		select {
		case <-ctx.Done():
			a.evaluate(w, at()) // of a run shorter than the interval
			return
		case <-tick.C:
		}
	}
}

// evaluate evaluates the rules on a snapshot, logs what changed, and queues commands.
func (a *Alerts) evaluate(w *watchedSession, s *store.Store) {
	snap := s.Snapshot()
	changes := w.watch.Evaluate(snap)
	a.mu.Lock()
	w.states = w.watch.States()
	a.mu.Unlock()
	for _, c := range changes {
		log := func(line string) { a.log(s, line) }
		if c.Missing != "" {
			a.logOnce(s, c.Message())
			continue
		}
		log(c.Message())
		if len(c.Rule.Run) > 0 && !a.quiet {
			a.enqueue(c, snap.Model.Name, log)
		}
	}
}

// log writes a line to the log of the session and, without a screen, to standard error. The line is not recorded: a
// replay evaluates the rules itself.
func (a *Alerts) log(s *store.Store, line string) {
	a.emit(s, line)
	a.print(line)
}

func (a *Alerts) emit(s *store.Store, line string) {
	s.Emit(event.Event{Kind: event.KindLog, At: s.Snapshot().Now, Layer: -1, Text: line})
}

func (a *Alerts) print(line string) {
	if !a.screen {
		console.PrintError(errors.New(line))
	}
}

// logOnce logs a line for each session, but prints it once for all of them.
func (a *Alerts) logOnce(s *store.Store, line string) {
	a.mu.Lock()
	again := a.printed[line]
	a.printed[line] = true
	a.mu.Unlock()
	a.emit(s, line)
	if !again {
		a.print(line)
	}
}

// enqueue queues the command of a rule.
func (a *Alerts) enqueue(c alert.Change, model string, log func(string)) {
	run := func(ctx context.Context) {
		if err := runCommand(ctx, c.Rule.Run, alertVariables(&c, model)); err != nil {
			log(fmt.Sprintf("alert %s: run: %v", c.Name, err))
		}
	}
	select {
	case a.runs <- run:
	default:
		log(fmt.Sprintf("alert %s: run: dropped: %d commands are waiting", c.Name, maxWaitingCommands))
	}
}

// runCommand runs a program with its arguments, without a shell. Its output is discarded.
func runCommand(ctx context.Context, args, variables []string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = append(os.Environ(), variables...)
	c.WaitDelay = time.Second
	err := c.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: killed after %v", args[0], commandTimeout)
	}
	return err
}

// alertVariables returns the environment variables that describe a change, each one printable line.
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
		{"_TEXT", c.Message()},
	} {
		out = append(out, "LLMTOP_ALERT"+v.name+"="+clean.Cut(v.value, maxAlertValue))
	}
	return out
}
