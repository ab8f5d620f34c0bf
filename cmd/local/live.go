package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/input"
	"github.com/llmtop/llmtop/ui/view"
)

// builtinPause is the pause between two built-in prompts, to read the end of a text.
const builtinPause = 3 * time.Second

// live opens the screen for a run. It submits the prompts of the command line; without any, the built-in model
// cycles through its own. It returns the report if one is to be written.
func (r *Run) live(ctx context.Context, prompts []engine.Request) (built *report.Report, err error) {
	ctx, stop := exit.WithSignals(ctx, exit.ErrClosed)
	defer stop()
	r.Shown = true
	if len(prompts) > 1 { // a single prompt starts a conversation that the user can continue
		if err := r.chat.applyTemplate(prompts); err != nil {
			return nil, err
		}
	}
	e, err := r.Open(ctx, r.Out.Reports())
	if err != nil {
		return nil, exit.IgnoreClosed(err)
	}
	r.requestPicks(e, prompts)
	err = e.Run(ctx, func(ctx context.Context) error {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		typed := r.chat.runner(e.Scheduler, e.notify)
		submit, first, note := typed.Submit, typed, ""
		if len(prompts) > 1 {
			first = e.Scheduler
		}
		if len(prompts) == 0 && r.Model == "" {
			cycle := engine.NewCycle(e.Scheduler, r.builtinRequests(), r.Parallel, builtinPause)
			submit, note = cycle.Submit, fmt.Sprintf("the built-in prompts go on %.0f s after the last answer", engine.ResumeAfter.Seconds())
			go func() { _ = cycle.Run(ctx) }() // ends with the scheduler, whose error the session returns
		}
		go func() {
			if r.watch(ctx, first, prompts, end); r.Plain && len(prompts) > 0 && !console.IsTerminal(os.Stdin) {
				end(exit.ErrClosed) // nobody can enter another prompt
			}
		}()
		err := r.Show(ctx, r.Screen(e, submit, note))
		if r.Out.Reports() {
			e.Sampler.Sample(e.Samples) // covers the end of the run
		}
		return err
	})
	if r.Out.Reports() { // with all events that a recording has
		built = report.Build(r.Meta(err), e.Store.Snapshot())
	}
	return built, err
}

// watch submits the prompts of the command line, and ends the screen with an error if one is refused.
func (r *Run) watch(ctx context.Context, s engine.Runner, prompts []engine.Request, end context.CancelCauseFunc) {
	var handles []*engine.Handle
	for _, p := range prompts {
		h, err := submit(ctx, s, p)
		if err != nil {
			end(PromptError(err))
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
		if err := PromptError(h.Result().Err); exit.IsUsage(err) {
			end(err)
			return
		}
	}
}

// Screen returns the configuration of the screen of a run. The user's prompts go to submit; sent is the remark after one,
// unless the engine has another.
func (r *Run) Screen(e *Engine, submit func(engine.Request) (*engine.Handle, error), sent string) ui.Config {
	actions := view.Actions{
		Prompt: func(text, label string) (note string, err error) {
			_, err = submit(r.Request(text, label))
			return cmp.Or(e.takeNotice(), sent), err
		},
		Cancel: func(id event.RequestID) error {
			e.Scheduler.Cancel(id)
			return nil
		},
		Report:   session.ReportAction(r.Meta(nil)),
		Timeline: session.TimelineAction(e.Store),
		SetPace: func(tokensPerSecond float64) error {
			e.Scheduler.SetPace(tokensPerSecond)
			return nil
		},
	}
	if l := e.Inspector; l != nil && host.Inspects {
		actions.Watch, actions.Inspect = l.Watch, l.Inspect
	}
	cfg := e.Group.ScreenOf(e.Session, actions)
	cfg.Note = r.Note
	if r.Model == "" {
		for _, p := range native.DemoPrompts() {
			cfg.Prompts = append(cfg.Prompts, input.Suggestion{Label: p.Kind, Text: p.Text})
		}
	}
	return cfg
}
