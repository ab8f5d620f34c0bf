package cmd

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native/demo"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/ui"
)

// builtinPause is the pause between two built-in prompts, to read the end of a text.
const builtinPause = 3 * time.Second

// errClosed ends a screen that a signal closed. It is not a failure.
var errClosed = errors.New("closed by a signal")

// runLive opens the screen for a run. It submits the prompts of the command line; without any, the built-in model
// cycles through its own.
func (o *runOptions) runLive(ctx context.Context, prompts []engine.Request) error {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	o.exports.screen = true
	if len(prompts) > 1 { // a single prompt starts a conversation that the user can continue
		if err := o.chat.applyTemplate(prompts); err != nil {
			return err
		}
	}
	s, err := o.newLocal(ctx, nil, nil)
	if err != nil {
		return ignoreClosed(err)
	}
	o.picks = o.chosen.name == engineNative // other engines would have to inspect every forward pass
	for i := range prompts {
		prompts[i].Picks = o.picks
	}
	return s.run(ctx, func(ctx context.Context) error {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		typed := o.chat.runner(s.scheduler, s.notify)
		submit, first := typed.Submit, typed
		if len(prompts) > 1 {
			first = s.scheduler
		}
		if len(prompts) == 0 && o.model == "" {
			cycle := engine.NewCycle(s.scheduler, o.builtinRequests(), o.parallel, builtinPause)
			submit = cycle.Submit
			go func() { _ = cycle.Run(ctx) }() // ends with the scheduler, whose error the session returns
		}
		go func() {
			if o.watch(ctx, first, prompts, end); o.plain && len(prompts) > 0 && !isTerminal(os.Stdin) {
				end(errClosed) // nobody can enter another prompt
			}
		}()
		return o.view.show(ctx, o.screen(s, submit))
	})
}

// ignoreClosed returns err, nil if a signal closed the screen.
func ignoreClosed(err error) error {
	if errors.Is(err, errClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// watch submits the prompts of the command line, and ends the screen with an error if one is refused.
func (o *runOptions) watch(ctx context.Context, s engine.Runner, prompts []engine.Request, end context.CancelCauseFunc) {
	var handles []*engine.Handle
	for _, p := range prompts {
		h, err := submit(ctx, s, p)
		if err != nil {
			end(promptError(err))
			return
		}
		handles = append(handles, h)
	}
	for _, h := range handles {
		select {
		case <-ctx.Done():
			return
		case <-h.Done():
		}
		if mistake := (usageError{}); errors.As(promptError(h.Result().Err), &mistake) {
			end(mistake)
			return
		}
	}
}

// screen returns the configuration of the screen.
func (o *runOptions) screen(s *local, submit func(engine.Request) (*engine.Handle, error)) ui.Config {
	cfg := o.view.screen()
	cfg.Snapshots, cfg.Changed, cfg.Past, cfg.Recording, cfg.Note = s.store.Snapshot, s.store.Changed(), s.history, s.recordStatus, o.note
	cfg.Alerts = s.alerts.status()
	cfg.Actions = ui.Actions{
		Prompt: func(text, label string) (note string, err error) {
			_, err = submit(o.request(text, label))
			return s.takeNotice(), err
		},
		Cancel: func(id event.RequestID) error {
			s.scheduler.Cancel(id)
			return nil
		},
		Report: reporting(report.Meta{Configuration: o.configuration()}),
		SetPace: func(tokensPerSecond float64) error {
			s.scheduler.SetPace(tokensPerSecond)
			return nil
		},
	}
	if l := s.sampler; l != nil && host.Inspects {
		cfg.Actions.Watch, cfg.Actions.Inspect = l.Watch, l.Inspect
	}
	if o.model == "" {
		for _, p := range demo.Prompts() {
			cfg.Prompts = append(cfg.Prompts, ui.SuggestedPrompt{Label: p.Kind, Text: p.Text})
		}
	}
	return cfg
}
