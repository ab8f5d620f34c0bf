package discover

import (
	"context"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
	"github.com/llmtop/llmtop/runtime/socket"
)

// findSockets are the engines that listen at event sockets in the well-known folder.
func findSockets(ctx context.Context, opt Options) (found []Found) {
	if opt.NoSockets {
		return nil
	}
	all, err := socket.Look(ctx)
	if err != nil {
		return nil
	}
	for _, s := range all {
		f := Found{Kind: identify.Kind(s.Engine.Name), Version: s.Engine.Version, Model: s.Model.Name, Address: s.Address, PID: s.Engine.PID, How: BySocket}
		switch {
		case s.Refused:
			f.Kind, f.State, f.Why = unnamed, NeedsKey, "it wants a token: --token-file"
		case s.Engine.Name == "":
			f.Kind, f.State, f.Why = unnamed, Silent, "it does not introduce itself"
		case s.Engine.State == event.EngineLoading, s.Engine.State == event.EngineStarting && s.Model.Name == "":
			f.State = Loading
		}
		if s.Told {
			f.Load.Running = event.Told(float64(len(s.Live)))
		}
		if s.Told && s.Engine.Caps.Has(event.CapTokens) {
			f.progress = Progress{}
			for id, tokens := range s.Live {
				f.progress[fmt.Sprint(id)] = float64(tokens)
			}
		}
		found = append(found, f)
	}
	return found
}

// unnamed is what an engine is called that speaks the event protocol and has not said its name.
const unnamed identify.Kind = "event protocol"
