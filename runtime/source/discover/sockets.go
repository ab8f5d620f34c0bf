package discover

import (
	"context"
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// findSockets returns the engines with event sockets in the well-known folder, and a note if the folder cannot be read.
func findSockets(ctx context.Context, opt Options) (found []Found, notes []string) {
	if opt.NoSockets {
		return nil, nil
	}
	all, err := socket.Look(ctx, true)
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, s := range all {
		f := Found{Kind: engine.Kind(s.Engine.Name), Version: s.Engine.Version, Model: s.Model.Name, Address: s.Address, PID: s.Engine.PID, How: BySocket}
		switch {
		case errors.Is(s.Refused, socket.ErrVersion):
			f.Kind, f.State, f.Why = unnamed, Silent, s.Refused.Error()
		case s.Refused != nil:
			f.Kind, f.State, f.Why = unnamed, NeedsKey, "it needs a token: set --token-file FILE or $LLMTOP_TOKEN"
		case s.Engine.Name == "":
			f.Kind, f.State, f.Why = unnamed, Silent, "does not introduce itself"
		case s.Engine.State == event.EngineLoading, s.Engine.State == event.EngineStarting && s.Model.Name == "":
			f.State = Loading
		}
		if s.Synced {
			f.Load.Running = event.ReportedValue(float64(len(s.Live)))
		}
		if s.Synced && s.Engine.Caps.Has(event.CapTokens) {
			f.tokens = map[string]float64{}
			for id, tokens := range s.Live {
				f.tokens[fmt.Sprint(id)] = float64(tokens)
			}
		}
		found = append(found, f)
	}
	return found, nil
}

// unnamed is the kind of an engine with an event socket that does not report its name.
const unnamed engine.Kind = "event protocol"
