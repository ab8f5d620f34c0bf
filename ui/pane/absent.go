package pane

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// NotReported yields what the engine on the screen does not report, and how to get it. It yields nothing for an engine
// that llmtop runs, and none that is not known yet.
func (f *Frame) NotReported(s *store.Snapshot) iter.Seq2[string, string] {
	caps := s.Engine.Caps
	has := func(c event.Caps) bool { return caps.Has(c) }
	network, _, _ := strings.Cut(s.Engine.Remote.Address, ":")
	server := s.Polled() || s.Engine.Provider != "" || network != "unix" && network != "tcp" // no engine that emits its own events
	none, measure := s.NoPerRequest(), "measure them with "+s.MeasuredBy()
	stages, experts := "receive its traces with --otlp (vLLM, SGLang)", "llmtop's Python SDK in its process (vLLM, transformers)"
	if name := cmp.Or(s.Engine.Provider, s.Engine.Name); name == "llama.cpp" || name == "Ollama" {
		stages = "sudo llmtop attach pid:PID"
		if pid := s.Host.Engine.PID; pid > 0 {
			stages = "sudo llmtop attach pid:" + strconv.Itoa(pid)
		}
		experts = stages
	}
	rows := [...]struct {
		name        string
		reported    bool
		sdk, server string // how an engine of one's own sends it, and how to get it from a server
	}{
		{"requests", !none, "", measure},
		{"tokens", has(event.CapTokens) || s.Latency.Of[store.ITL][metric.Session].Count > 0 || none, "call token() for each one", measure},
		{"stages", none || has(event.CapStages) && !slices.ContainsFunc(s.Requests, unstaged), "call stage() around the parts of a request", stages},
		{"experts", s.Experts != nil || has(event.CapExperts) || s.Dense(), "call picks(), or watch(model) in Python", experts},
		{"text", has(event.CapText) || s.Current != nil && s.Current.Text != "" || none, strings.TrimPrefix(f.TextAbsence(s), "not sent by this engine: "), "only engines on the event socket send it"},
		{"KV cache", s.KV.Usage.OK() || s.KV.Used > 0 || s.KV.Derived || has(event.CapKV), "call kv()", "attach to the server's own address"},
		{"machine", s.Host.Sampled || has(event.CapHost), "call sample_host(), or run llmtop on its machine", "run llmtop on its machine"},
		{"engine process", !s.Host.Sampled || s.Host.Engine.RSS.Origin != event.NotReported, "run llmtop on its machine", "attach by process id"},
	}
	return func(yield func(string, string) bool) {
		if s.Engine.Remote.Link == event.LinkNone || s.NeverReached() || s.Engine.State != event.EngineReady {
			return
		}
		for _, row := range rows {
			how := row.sdk
			if server {
				how = row.server
			}
			if !row.reported && !yield(row.name, how) {
				return
			}
		}
	}
}

// unstaged reports whether a request has its first token, and no stage before it.
func unstaged(r *store.Request) bool {
	return r.TTFT.OK() && !slices.ContainsFunc(r.Parts, func(p store.Part) bool { return p.Stage != event.StageNone })
}
