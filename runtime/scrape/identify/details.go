package identify

import (
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// details asks what only engines of this kind know. What they do not tell stays unknown.
func (p *probe) details(ctx context.Context) {
	switch p.kind {
	case Llama:
		p.llama(ctx)
	case Ollama:
		p.ollama(ctx)
	case VLLM:
		p.version(ctx, "/version")
		p.info.Metrics = cmp.Or(p.info.Metrics, "/metrics")
	case SGLang:
		p.sglang(ctx)
	case TensorRT:
		p.version(ctx, "/version")
		p.info.Metrics = cmp.Or(p.info.Metrics, "/prometheus/metrics")
	case LlamaSwap:
		p.running(ctx)
	case LMDeploy, Dynamo, Triton:
		p.info.Metrics = cmp.Or(p.info.Metrics, "/metrics")
	}
}

func (p *probe) version(ctx context.Context, path string) {
	var about struct {
		Version string `json:"version"`
	}
	if p.info.Version == "" && p.ask(ctx, path, &about) == nil {
		p.info.Version = about.Version
	}
}

// llama asks for the properties of llama.cpp's server, which are answered also while its model sleeps.
func (p *probe) llama(ctx context.Context) {
	var props struct {
		Build    string `json:"build_info"`
		Role     string `json:"role"`
		Alias    string `json:"model_alias"`
		Path     string `json:"model_path"`
		Type     string `json:"model_ftype"`
		Slots    *bool  `json:"endpoint_slots"`
		Metrics  bool   `json:"endpoint_metrics"`
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if p.ask(ctx, "/props", &props) != nil {
		return
	}
	p.info.Version, p.info.Router = props.Build, p.info.Router || props.Role == "router"
	p.info.Slots = props.Slots == nil || *props.Slots
	if props.Metrics || props.Slots == nil { // older builds do not say: asking shows
		p.info.Metrics = "/metrics"
	}
	if p.info.Router {
		return
	}
	if len(p.info.Models) == 0 {
		p.info.Models = []Model{{Loaded: true, Model: event.Model{Name: props.Alias}}}
	}
	m := &p.info.Models[0]
	m.Name = fileName(m.Name)
	m.Path, m.Quantisation = props.Path, cmp.Or(props.Type, m.Quantisation)
	m.Context = max(cmp.Or(props.Settings.Context, m.Context), 0)
}

// fileName is a model's name without the folder of its file: a server that was given no name goes by the file's path.
func fileName(name string) string {
	if !strings.HasSuffix(name, ".gguf") && !strings.HasPrefix(name, "/") {
		return name
	}
	return path.Base(strings.ReplaceAll(name, `\`, "/"))
}

// ollama asks which models are in memory. Its list of all is not what it serves now.
func (p *probe) ollama(ctx context.Context) {
	p.version(ctx, "/api/version")
	if loaded, err := RunningOllama(ctx, p.client); err == nil {
		p.info.Models = nil
		for _, m := range loaded {
			p.info.Models = append(p.info.Models, Model{Model: m.Model, Loaded: true})
		}
	}
}

func (p *probe) sglang(ctx context.Context) {
	var about struct {
		Version string `json:"version"`
		Metrics bool   `json:"enable_metrics"`
		Name    string `json:"served_model_name"`
	}
	if p.ask(ctx, "/server_info", &about) != nil && p.ask(ctx, "/get_server_info", &about) != nil {
		return
	}
	p.info.Version = cmp.Or(about.Version, p.info.Version)
	if about.Metrics {
		p.info.Metrics = cmp.Or(p.info.Metrics, "/metrics")
	}
	if len(p.info.Models) == 0 && about.Name != "" {
		p.info.Models = []Model{{Loaded: true, Model: event.Model{Name: about.Name}}}
	}
}

// running asks llama-swap which of its models are in memory.
func (p *probe) running(ctx context.Context) {
	var list struct {
		Running []struct {
			Model string `json:"model"`
			State string `json:"state"`
		} `json:"running"`
	}
	if p.ask(ctx, "/running", &list) != nil {
		return
	}
	for i := range p.info.Models {
		m := &p.info.Models[i]
		m.Loaded = false
		for _, r := range list.Running {
			m.Loaded = m.Loaded || r.Model == m.Name && r.State == "ready"
		}
	}
}
