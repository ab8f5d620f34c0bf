package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/runtime/source/otlp"
)

// addTraces adds the receiver of traces as an engine.
func (w *watcher) addTraces(ctx context.Context) error {
	receiver, err := otlp.New(otlp.Options{Listen: w.opt.Traces, Token: w.token, Allow: w.opt.Allow, Clock: w.clock})
	switch {
	case errors.Is(err, otlp.ErrToken):
		return exit.Usagef("%w: add --token-file FILE, or listen at 127.0.0.1", err)
	case err != nil:
		return exit.Usage(err)
	}
	at := receiver.Address()
	_, err = w.start(ctx, watched{at: at, doing: "receive traces", run: receiver.Run, hostUnknown: true}, func(s *session.Session) {
		if w.opt.reported {
			w.machine.Add(w.clock, nil, s) // the report includes llmtop's own usage
		}
		if !w.opt.shown {
			fmt.Fprintf(w.opt.Notes, "listening: %s\n", at)
		}
	})
	if err != nil {
		return errors.Join(err, receiver.Close())
	}
	return nil
}
