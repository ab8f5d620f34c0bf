package otlp

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// overall is vLLM's span of the whole load; it is told last.
const overall = "Overall Loading"

// loads are vLLM's spans of its start.
var loads = []string{
	overall, "EngineCoreProc init", "Executor init", "Worker init", "Init device", "Loading (GPU)", "Load model", "Initialize model",
	"Download weights - HF", "Load weights", "Prepare model", "Compile graph", "Dynamo bytecode transform", "Inductor compilation",
	"Allocate KV cache", "Warmup (GPU)", "Capture model", "DeepGemm warmup", "AsyncMPClient init", "API server setup",
}

// isLoad reports whether a span is one of a model's load.
func isLoad(s *span) bool { return slices.Contains(loads, s.name) }

// load is the one that is being told of.
type load struct {
	end   int64             // of the span of the whole; 0 as long as that has not come
	names map[string]string // which process told of a span: of several workers the first one is drawn
}

// loaded tells of spans of a load, which are in the order in which they began.
func (g *gather) loaded(spans []span) {
	if g.load.names == nil || g.load.end != 0 && spans[0].start >= g.load.end {
		g.load = load{names: map[string]string{}}
	}
	g.engine.State = event.EngineLoading
	g.introduce()
	for i := range spans {
		s := &spans[i]
		if first, known := g.load.names[s.name]; known && first != s.of.process {
			continue
		}
		g.load.names[s.name] = s.of.process
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

// ready says that what was loaded works.
func (g *gather) ready() {
	if g.engine.State != event.EngineReady {
		g.engine.State = event.EngineReady
		g.introduce()
	}
}
