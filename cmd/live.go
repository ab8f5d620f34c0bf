package cmd

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/native/demo"
	"github.com/llmtop/llmtop/ui"
)

// rest is how long the built-in prompts pause between two, so that the end of a text can be read.
const rest = 3 * time.Second

// errClosed ends a screen that a signal closed, which is no failure.
var errClosed = errors.New("closed by a signal")

// runLive opens the screen over a run. Prompts given on the command line are generated at once; the built-in model goes through its
// own when there are none.
func (o *runOptions) runLive(ctx context.Context, prompts []runtime.Request) error {
	ctx, stop := interruptible(ctx, errClosed)
	defer stop()
	o.exports.screen = true
	if len(prompts) > 1 { // a single one begins the conversation that the user may go on with
		if err := o.chat.askAll(prompts); err != nil {
			return err
		}
	}
	s, err := o.newLocal(nil, nil)
	if err != nil {
		return err
	}
	o.picks = o.chosen.name == engineNative // in others it costs to look at every pass
	for i := range prompts {
		prompts[i].Picks = o.picks
	}
	return s.run(ctx, func(ctx context.Context) error {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		typed := o.chat.runner(s.scheduler, s.note)
		submit, first := typed.Submit, typed
		if len(prompts) > 1 {
			first = s.scheduler
		}
		if len(prompts) == 0 && o.model == "" {
			cycle := runtime.NewCycle(s.scheduler, o.builtinRequests(), o.parallel, rest)
			submit = cycle.Submit
			go func() { _ = cycle.Run(ctx) }() // ends with the scheduler, whose error the session returns
		}
		go func() {
			if o.watch(ctx, first, prompts, end); o.plain && len(prompts) > 0 && !isTerminal(os.Stdin) {
				end(errClosed) // there is nobody who could ask for more
			}
		}()
		return o.view.show(ctx, o.screen(s, submit))
	})
}

// closedInOrder is the error of a screen, nil for one that a signal closed.
func closedInOrder(err error) error {
	if errors.Is(err, errClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// watch submits the prompts of the command line and ends the screen when one of them is refused: a mistake there is told like any other,
// in one line.
func (o *runOptions) watch(ctx context.Context, s runtime.Runner, prompts []runtime.Request, end context.CancelCauseFunc) {
	var handles []*runtime.Handle
	for _, p := range prompts {
		h, err := submit(ctx, s, p)
		if err != nil {
			end(refused(err))
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
		if mistake := (usageError{}); errors.As(refused(h.Result().Err), &mistake) {
			end(mistake)
			return
		}
	}
}

// screen configures the ui.
func (o *runOptions) screen(s *local, submit func(runtime.Request) (*runtime.Handle, error)) ui.Config {
	cfg := o.view.screen()
	cfg.Snapshots, cfg.Changed, cfg.Past, cfg.Recording, cfg.Note = s.store.Snapshot, s.store.Changed(), s.past, s.recorded, o.note
	cfg.Alerts = s.alerts.status()
	cfg.Actions = ui.Actions{
		Prompt: func(text, label string) (note string, err error) {
			_, err = submit(o.request(text, label))
			return s.noted(), err
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
