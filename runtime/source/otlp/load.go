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

// load is the state of the current model load.
type load struct {
	end   int64             // end of the overall span; 0: not received yet
	names map[string]string // by span name, the process whose span is shown: of several workers the first
}

// loaded emits the spans of a load, in the order of their start.
func (g *gather) loaded(spans []span) {
	if g.load.names == nil || g.load.end != 0 && spans[0].start >= g.load.end {
		g.load = load{names: map[string]string{}}
	}
	g.engine.State = event.EngineLoading
	g.introduce()
	for i := range spans {
		s := &spans[i]
		if first, seen := g.load.names[s.name]; seen && first != s.sender.process {
			continue
		}
		g.load.names[s.name] = s.sender.process
		stage, name := event.StageNone, s.name
		if s.name == overall {
			stage, name = event.StageLoad, ""
			g.load.end = s.end
		}
		g.emit(event.Event{Kind: event.KindStage, Stage: stage, Text: name, At: g.at(s.end), Dur: s.end - s.start})
	}
	if g.load.end != 0 {
		g.ready()
	}
}

// ready sets the engine state to ready.
func (g *gather) ready() {
	if g.engine.State != event.EngineReady {
		g.engine.State = event.EngineReady
		g.introduce()
	}
}
