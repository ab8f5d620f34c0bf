package scrape

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/source/zmq"
)

// maxPath limits the length of a socket path from the server, in bytes. Operating systems accept less.
const maxPath = 256

// readServerInfo reads the startup times of an SGLang server and follows its forward passes if it publishes them.
func readServerInfo(ctx context.Context, s *Poller) []event.NamedReading {
	var info struct {
		Passes  string          `json:"forward_pass_metrics_ipc_name"`
		Startup json.RawMessage `json:"startup_time"`
	}
	if s.client.JSON(ctx, "/server_info", &info) != nil {
		return nil
	}
	followPasses(ctx, s, strings.TrimPrefix(info.Passes, "ipc://"))
	phases := startupPhases("startup", info.Startup, maxStartupDepth)
	plausible := slices.DeleteFunc(slices.Clone(phases), func(n event.NamedReading) bool { return !n.OK() })
	s.countMalformed(len(phases) - len(plausible))
	return plausible
}

// followPasses follows the forward passes that SGLang publishes on this machine, unless the user has given a socket.
// With several ranks it follows rank 0.
func followPasses(ctx context.Context, s *Poller, path string) {
	if s.opt.Publisher != nil || !remote.IsLocal(s.client.Address()) || path == "" || len(path) > maxPath {
		return
	}
	if at, err := os.Stat(path); err != nil || at.Mode()&os.ModeSocket == 0 {
		path += ".0"
	}
	from, err := zmq.New("ipc://"+path, s.clock, new(zmq.Losses))
	if err != nil {
		return
	}
	s.opt.Publisher = from
	s.logf("the server publishes its forward passes: following %s", from.Address())
	s.background.Go(func() { _ = from.Run(ctx, s.sink) }) // it ends only with ctx
}

// maxStartup limits the number of startup phases, maxStartupDepth their nesting: CUDA graph capture is divided by
// purpose.
const maxStartup, maxStartupDepth = 16, 2

// startupPhases returns the durations of the startup phases in seconds. reported is a number, or an object of phases,
// whose names are appended to name.
func startupPhases(name string, reported json.RawMessage, depth int) (out []event.NamedReading) {
	var seconds *float64
	if json.Unmarshal(reported, &seconds) == nil {
		if depth == maxStartupDepth {
			name += "_whole"
		}
		if seconds != nil && *seconds >= 0 {
			out = append(out, event.NamedReading{Name: name + "_s", Reading: event.ReportedValue(*seconds)})
		}
		return out
	}
	var phases map[string]json.RawMessage
	if depth == 0 || json.Unmarshal(reported, &phases) != nil {
		return nil
	}
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		out = append(out, startupPhases(name+"_"+stageName(phase), phases[phase], depth-1)...)
	}
	return out[:min(len(out), maxStartup)]
}
