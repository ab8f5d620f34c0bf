package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
)

// runHeadless runs the prompts without a screen and writes the report.
func (o *runOptions) runHeadless(ctx context.Context, prompts []engine.Request, stdout, progress io.Writer) error {
	out, err := o.files.open()
	if err != nil {
		return err
	}
	collector := report.NewCollector()
	s, err := o.newLocal(ctx, collector, collector.Request)
	if err != nil {
		out.discard()
		return err
	}
	var built *report.Report
	err = s.run(ctx, func(ctx context.Context) error {
		ended, err := generate(ctx, s.scheduler, prompts, progress)
		if ended > 0 || endedEarly(err) {
			if !crashed(err) {
				s.sampler.Sample(s.sink) // covers the end of the run
			}
			built = report.Build(o.meta(err), s.store.Snapshot(), collector)
		}
		return err
	})
	if built == nil { // nothing was measured
		out.discard()
		return err
	}
	return errors.Join(err, out.write(built, stdout))
}

// meta returns the metadata of the report of this run.
func (o *runOptions) meta(err error) report.Meta {
	return report.Meta{Version: versionString(), Configuration: o.configuration(), Partial: endedEarly(err)}
}

// endedEarly reports whether a signal or a crash of the engine ended the run.
func endedEarly(err error) bool { return errors.Is(err, errInterrupted) || crashed(err) }

// configuration returns every setting by the name of its flag.
func (o *runOptions) configuration() map[string]string {
	values := map[string]string{}
	for _, name := range flagNames(settingsFlags()) {
		values[name] = o.flagValue(name)
	}
	return values
}

// generate submits all prompts, waits for them, and prints a line for each; prompts beyond the capacity of the queue
// wait. It returns how many finished, and the error of the first that failed.
func generate(ctx context.Context, s engine.Runner, prompts []engine.Request, progress io.Writer) (ended int, failed error) {
	var handles []*engine.Handle
	for _, p := range prompts {
		h, err := submit(ctx, s, p)
		if err != nil {
			return 0, interruptCause(ctx, promptError(err))
		}
		handles = append(handles, h)
	}
	for i, h := range handles {
		select {
		case <-h.Done():
		case <-ctx.Done():
			return ended, interruptCause(ctx, failed)
		}
		r := h.Result()
		if r.State == event.StateFailed {
			if failed == nil {
				failed = promptError(r.Err)
			}
			continue
		}
		ended++
		fmt.Fprintf(progress, "request %d of %d %s (%s): %d prompt tokens, %d generated\n",
			i+1, len(handles), r.State, r.Reason, r.Prompt, r.Generated)
	}
	return ended, failed
}

// submit submits a request, and waits while the queue is full.
func submit(ctx context.Context, s engine.Runner, r engine.Request) (*engine.Handle, error) {
	for {
		h, err := s.Submit(r)
		if !errors.Is(err, engine.ErrQueueFull) {
			return h, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// interruptCause returns errInterrupted if a signal ended ctx, otherwise err.
func interruptCause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return errInterrupted
	}
	return err
}
