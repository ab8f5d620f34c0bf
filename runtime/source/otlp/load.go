package otlp

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// overall is vLLM's span of the complete model load. It arrives last.
const overall = "Overall Loading"

// loads are the names of vLLM's startup spans.
var loads = []string{
	overall, "EngineCoreProc init", "Executor init", "Worker init", "Init device", "Loading (GPU)", "Load model", "Initialize model",
	"Download weights - HF", "Load weights", "Prepare model", "Compile graph", "Dynamo bytecode transform", "Inductor compilation",
	"Allocate KV cache", "Warmup (GPU)", "Capture model", "DeepGemm warmup", "AsyncMPClient init", "API server setup",
}

// isLoad reports whether a span is part of a model load.
func isLoad(s *span) bool { return slices.Contains(loads, s.name) }

// loaded emits the spans of a load, in the order of their start.
func (g *gather) loaded(spans []span) {
	if g.loading == nil || g.loadEnd != 0 && spans[0].start >= g.loadEnd {
		g.loading, g.loadEnd = map[string]string{}, 0
	}
	g.set(event.EngineLoading)
	for i := range spans {
		s := &spans[i]
		if first, seen := g.loading[s.name]; seen && first != s.sender.process {
			continue
		}
		g.loading[s.name] = s.sender.process
		stage, name := event.StageNone, s.name
		if s.name == overall {
			stage, name = event.StageLoad, ""
			g.loadEnd = s.end
		}
		g.emit(event.Event{Kind: event.KindStage, Stage: stage, Text: name, At: g.at(s.end), Dur: s.end - s.start})
	}
	if g.loadEnd != 0 {
		g.set(event.EngineReady)
	}
}
