package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime"
)

// runHeadless runs the prompts without a screen and writes the report: to the files that were named, or else as text.
func (o *runOptions) runHeadless(ctx context.Context, prompts []runtime.Request, stdout, progress io.Writer) error {
	out, err := o.files.open()
	if err != nil {
		return err
	}
	collector := report.NewCollector()
	s, err := o.newLocal(collector, collector.Request)
	if err != nil {
		out.discard()
		return err
	}
	var built *report.Report
	err = s.run(ctx, func(ctx context.Context) error {
		ended, err := generate(ctx, s.scheduler, prompts, progress)
		if ended > 0 || cutOff(err) {
			if !crashed(err) {
				s.sampler.Sample(s.sink) // what the run has cost to its very end
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

// meta describes this run in its report.
func (o *runOptions) meta(err error) report.Meta {
	return report.Meta{Version: versionString(), Configuration: o.configuration(), Partial: cutOff(err)}
}

// cutOff reports whether a run was ended before it was done, by a signal or because the process of its engine has ended.
func cutOff(err error) bool { return errors.Is(err, errInterrupted) || crashed(err) }

// configuration is every setting by the name of its flag.
func (o *runOptions) configuration() map[string]string {
	values := map[string]string{}
	for _, name := range flagNames(settingsFlags()) {
		values[name] = o.flagValue(name)
	}
	return values
}

// generate submits all prompts and waits for their ends, telling of each; prompts beyond the queue wait for room in it. It returns
// how many ended well, and why the first one failed.
func generate(ctx context.Context, s runtime.Runner, prompts []runtime.Request, progress io.Writer) (ended int, failed error) {
	var handles []*runtime.Handle
	for _, p := range prompts {
		h, err := submit(ctx, s, p)
		if err != nil {
			return 0, interrupted(ctx, refused(err))
		}
		handles = append(handles, h)
	}
	for i, h := range handles {
		select {
		case <-h.Done():
		case <-ctx.Done():
			return ended, interrupted(ctx, failed)
		}
		r := h.Result()
		if r.State == event.StateFailed {
			if failed == nil {
				failed = refused(r.Err)
			}
			continue
		}
		ended++
		fmt.Fprintf(progress, "request %d of %d %s (%s): %d prompt tokens, %d generated\n",
			i+1, len(handles), r.State, r.Reason, r.Prompt, r.Generated)
	}
	return ended, failed
}

// submit queues a request, waiting while the queue is full.
func submit(ctx context.Context, s runtime.Runner, r runtime.Request) (*runtime.Handle, error) {
	for {
		h, err := s.Submit(r)
		if !errors.Is(err, runtime.ErrQueueFull) {
			return h, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// interrupted says why a run was cut off: by a signal, or else by err or the engine, whose error the session knows.
func interrupted(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return errInterrupted
	}
	return err
}
