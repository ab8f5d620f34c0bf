package scrape

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// readServerInfo reads the startup times of an SGLang server.
func readServerInfo(ctx context.Context, s *Poller) []event.NamedReading {
	var info struct {
		Startup json.RawMessage `json:"startup_time"`
	}
	if s.client.JSON(ctx, "/server_info", &info) != nil {
		return nil
	}
	phases := startupPhases("startup", info.Startup, maxStartupDepth)
	plausible := slices.DeleteFunc(slices.Clone(phases), func(n event.NamedReading) bool { return !n.OK() })
	s.countMalformed(len(phases) - len(plausible))
	return plausible
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
