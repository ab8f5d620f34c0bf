package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/runtime/source/imatrix"
	"github.com/llmtop/llmtop/runtime/source/otlp"
)

// addCounts shows the expert counts of a llama-imatrix file as a separate engine, since they belong to no request.
func (w *watcher) addCounts(ctx context.Context, path string) error {
	source, err := imatrix.New(path, w.clock)
	if err != nil {
		return exit.Usagef("--imatrix: %w", err)
	}
	_, err = w.start(ctx, watched{at: path, doing: "show " + path, run: source.Run, queue: session.ServerQueue, unalerted: true})
	return err
}

// addTraces adds the receiver of traces as an engine.
func (w *watcher) addTraces(ctx context.Context) error {
	receiver, err := otlp.New(otlp.Options{Listen: w.opt.Traces.At, Token: w.token, Allow: w.opt.Export.Allow, Clock: w.clock})
	switch {
	case errors.Is(err, otlp.ErrToken):
		return exit.Usagef("%w: add --token-file FILE, or listen at 127.0.0.1", err)
	case err != nil:
		return exit.Usage(err)
	}
	at := receiver.Address()
	_, err = w.start(ctx, watched{at: at, doing: "receive traces", run: receiver.Run, hostUnknown: true}, func(s *session.Session) {
		if w.opt.headless {
			w.machine.Add("", session.SelfOnly{Sink: s}) // the report includes llmtop's own usage
			fmt.Fprintf(w.opt.Notes, "listening: %s\n", at)
		}
	})
	if err != nil {
		return errors.Join(err, receiver.Close())
	}
	return nil
}
