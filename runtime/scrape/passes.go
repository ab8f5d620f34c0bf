package scrape

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/zmq"
)

// maxPath bounds the path of a socket that a server tells, in bytes: what systems take is less.
const maxPath = 256

// aboutSGLang asks an SGLang about itself: how long its start took, and where it publishes its forward passes, which are followed then.
func (s *Source) aboutSGLang(ctx context.Context) []event.Number {
	var about struct {
		Passes  string          `json:"forward_pass_metrics_ipc_name"`
		Startup json.RawMessage `json:"startup_time"`
	}
	if s.client.JSON(ctx, "/server_info", &about) != nil {
		return nil
	}
	s.passes(ctx, strings.TrimPrefix(about.Passes, "ipc://"))
	return startup("startup", about.Startup, maxStartupDepth)
}

// passes follows the forward passes that SGLang publishes on this machine, where it says where, and the user has not named a socket. Of several ranks
// it is the first one.
func (s *Source) passes(ctx context.Context, path string) {
	if s.opt.Published != nil || !api.IsLocal(s.client.Address()) || path == "" || len(path) > maxPath {
		return
	}
	if at, err := os.Stat(path); err != nil || at.Mode()&os.ModeSocket == 0 {
		path += ".0"
	}
	from, err := zmq.New("ipc://"+path, s.opt.Clock, new(zmq.Losses))
	if err != nil {
		return
	}
	s.opt.Published = from
	s.say("the server publishes its forward passes: following %s", from.Address())
	s.beside.Go(func() { _ = from.Run(ctx, s.sink) }) // it ends with ctx alone
}

// maxStartup bounds the phases of a start that are told, and how deep they may be nested: CUDA graphs are by what they are for.
const maxStartup, maxStartupDepth = 16, 2

// startup is how long the phases of a server's start took, as it tells them: seconds by name, or phases of a phase; or how long the whole took.
func startup(name string, told json.RawMessage, depth int) (out []event.Number) {
	var seconds *float64
	if json.Unmarshal(told, &seconds) == nil {
		if depth == maxStartupDepth {
			name += "_whole"
		}
		if seconds != nil && *seconds >= 0 {
			out = append(out, event.Number{Name: name + "_s", Reading: event.Told(*seconds)})
		}
		return out
	}
	var phases map[string]json.RawMessage
	if depth == 0 || json.Unmarshal(told, &phases) != nil {
		return nil
	}
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		out = append(out, startup(name+"_"+stageName(phase), phases[phase], depth-1)...)
	}
	return out[:min(len(out), maxStartup)]
}
