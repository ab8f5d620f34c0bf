package viewtest

import (
	"bytes"
	"embed"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/store"
)

// scenes are sessions as lines of the event protocol.
//
//go:embed scenes/*.jsonl
var scenes embed.FS

// Played returns the last snapshot of a session in scenes. Of servers that are polled over HTTP:
//
//   - vllm: aggregate metrics with latency histograms
//   - slots: a llama-server with its slots
//   - models: a llama-server with several models, the first of which is loading
//   - ollama_empty, ollama_idle, ollama_busy: with no model in memory, with an idle one, with two that each run a request
//   - started, untimed: an SGLang server with its startup times, which has had no request; without --enable-metrics
//   - bare: a server that reports only its models
//   - unreached, unpolled: a server that has not answered since llmtop started, after and before the first poll failed
//
// Of others:
//
//   - traces: a receiver that got the stages of a load, and spans that it refused
//   - cuda, cuda_calls: a process whose calls of CUDA are counted for a while; it links llama.cpp and has requests, or not
func Played(name string) *store.Snapshot {
	lines, err := scenes.ReadFile("scenes/" + name + ".jsonl")
	s, decoder := NewScene(), wire.Decoder{}
	for line := range bytes.Lines(lines) {
		if _, bad := decoder.Decode(bytes.TrimSpace(line), func(e event.Event) {
			s.Now = e.At
			s.Store.Emit(e)
		}); bad != nil {
			err = bad
		}
	}
	if err != nil {
		panic("play scene " + name + ": " + err.Error())
	}
	return s.Snapshot()
}

// Reading returns a value that the engine reports.
func Reading(v float64) event.Reading { return event.Reading{V: v, Origin: event.Reported} }

// Server announces a server that is polled over HTTP.
func (s *Scene) Server(name string, m event.Model) {
	s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{
		Name: name, Version: "1.2", Caps: event.CapAggregates, State: event.EngineReady,
		Remote: event.Remote{Address: "http://gpu1:8000", Link: event.LinkConnected},
	}})
	s.Emit(event.Event{Kind: event.KindModel, Layer: -1, Data: &m})
}
