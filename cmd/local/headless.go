package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
)

// headless runs the prompts without a screen, writes the generated texts, and returns the report, nil if nothing was
// measured.
func (r *Run) headless(ctx context.Context, prompts []engine.Request, texts, progress io.Writer) (built *report.Report, err error) {
	e, err := r.Open(ctx, true)
	if err != nil {
		return nil, err
	}
	r.requestPicks(e, prompts)
	measured := false
	err = e.Run(ctx, func(ctx context.Context) error {
		e.AwaitLoad(ctx) // the prompts are not to wait for it
		if m := &e.Store.Snapshot().Model; m.Experts > 0 {
			e.Inspector.Watch(m.Path, true) // reports show which experts are in memory
		}
		ended, err := generate(ctx, e.Scheduler, prompts, texts, progress)
		if measured = ended > 0 || endedEarly(err); measured && !crashed(err) {
			e.Sampler.Sample(e.Samples) // covers the end of the run
		}
		return err
	})
	if measured { // with all events that a recording has
		built = report.Build(r.Meta(err), e.Store.Snapshot())
	}
	return built, err
}

// generate submits all prompts, waits for them, and writes the text of each, and a line of progress; prompts beyond the
// capacity of the queue wait. It returns how many finished, and the error of the first that failed. If ctx ends, it cancels
// the others.
func generate(ctx context.Context, s engine.Runner, prompts []engine.Request, texts, progress io.Writer) (ended int, failed error) {
	var handles []*engine.Handle
	defer func() { engine.CancelAll(handles) }()
	for _, p := range prompts {
		h, err := submit(ctx, s, p)
		if err != nil {
			return 0, exit.InterruptCause(ctx, PromptError(err))
		}
		handles = append(handles, h)
	}
	for i, h := range handles {
		select {
		case <-h.Done():
		case <-ctx.Done():
			engine.CancelAll(handles[i:])
			writeText(texts, i, prompts, h)
			return ended, exit.InterruptCause(ctx, failed)
		}
		r := h.Result()
		if r.State == event.StateFailed {
			if failed == nil {
				failed = PromptError(r.Err)
			}
			continue
		}
		ended++
		writeText(texts, i, prompts, h)
		fmt.Fprintf(progress, "request %d of %d %s (%s): %d prompt tokens, %d generated\n",
			i+1, len(handles), r.State, r.Reason, r.Prompt, r.Generated)
	}
	return ended, failed
}

// writeText writes the text of the prompt with index i: what was generated until it was cancelled, if it was. Several have
// a title each, as head and tail print it.
func writeText(to io.Writer, i int, prompts []engine.Request, h *engine.Handle) {
	select {
	case <-h.Done():
	default: // a process that hangs
		return
	}
	if len(prompts) > 1 {
		fmt.Fprintf(to, "==> request %d of %d: %s <==\n", i+1, len(prompts), prompts[i].Label)
	}
	fmt.Fprintln(to, strings.TrimSuffix(h.Result().Text, "\n"))
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
