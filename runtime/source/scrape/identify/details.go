package identify

import (
	"cmp"
	"context"
	"path"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// details reads the endpoints that only this kind of engine has.
func (p *identification) details(ctx context.Context) {
	switch p.kind {
	case Llama:
		p.llama(ctx)
	case Ollama:
		p.ollama(ctx)
	case VLLM:
		p.readVersion(ctx, "/version")
		p.info.MetricsPath = cmp.Or(p.info.MetricsPath, "/metrics")
	case SGLang:
		p.sglang(ctx)
	case TensorRT:
		p.readVersion(ctx, "/version")
		p.info.MetricsPath = cmp.Or(p.info.MetricsPath, "/prometheus/metrics")
	case LlamaSwap:
		p.readRunning(ctx)
	case LMDeploy, Dynamo, Triton:
		p.info.MetricsPath = cmp.Or(p.info.MetricsPath, "/metrics")
	}
}

func (p *identification) readVersion(ctx context.Context, path string) {
	var response struct {
		Version string `json:"version"`
	}
	if p.info.Version == "" && p.getJSON(ctx, path, &response) == nil {
		p.info.Version = response.Version
	}
}

// llama reads /props of llama.cpp's server, which works while its model sleeps.
func (p *identification) llama(ctx context.Context) {
	var props struct {
		Build    string `json:"build_info"`
		Role     string `json:"role"`
		Alias    string `json:"model_alias"`
		Path     string `json:"model_path"`
		Type     string `json:"model_ftype"`
		Slots    *bool  `json:"endpoint_slots"`
		Metrics  bool   `json:"endpoint_metrics"`
		Sleeping *bool  `json:"is_sleeping"` // null: the build has no sleep
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if p.getJSON(ctx, "/props", &props) != nil {
		return
	}
	p.info.Version, p.info.Router = props.Build, p.info.Router || props.Role == "router"
	p.info.Slots = props.Slots == nil || *props.Slots
	p.info.Sleeps = props.Sleeping != nil || p.info.Router
	p.info.MetricsWake = p.info.Sleeps && buildNumber(props.Build) < firstRestful
	if props.Metrics || props.Slots == nil { // older builds do not report endpoints: poll to find out
		p.info.MetricsPath = "/metrics"
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

// firstRestful is a build of llama.cpp whose metrics can be read without waking its model, or keeping it awake. Builds
// since the end of 2025, when sleep was added, until August 2026 count that as work.
const firstRestful = 10582

// buildNumber returns the number in build_info, such as "b10582-e85caa81e"; 0 if there is none. Builds from a copy of the
// source without its history have a small one.
func buildNumber(build string) int {
	number, _, _ := strings.Cut(strings.TrimPrefix(build, "b"), "-")
	n, _ := strconv.Atoi(number)
	return n
}

// fileName removes the folder from a model name: llama.cpp uses the file path as the name if none is given.
func fileName(name string) string {
	if !strings.HasSuffix(name, ".gguf") && !strings.HasPrefix(name, "/") {
		return name
	}
	return path.Base(strings.ReplaceAll(name, `\`, "/"))
}

// ollama reads the loaded models. /v1/models lists all that are installed.
func (p *identification) ollama(ctx context.Context) {
	p.readVersion(ctx, "/api/version")
	if loaded, err := RunningOllama(ctx, p.client); err == nil {
		p.info.Models = nil
		for _, m := range loaded {
			p.info.Models = append(p.info.Models, Model{Model: m.Model, Loaded: true})
		}
	}
}

func (p *identification) sglang(ctx context.Context) {
	var response struct {
		Version string `json:"version"`
		Metrics bool   `json:"enable_metrics"`
		Name    string `json:"served_model_name"`
	}
	if p.getJSON(ctx, "/server_info", &response) != nil && p.getJSON(ctx, "/get_server_info", &response) != nil {
		return
	}
	p.info.Version = cmp.Or(response.Version, p.info.Version)
	if response.Metrics {
		p.info.MetricsPath = cmp.Or(p.info.MetricsPath, "/metrics")
	}
	if len(p.info.Models) == 0 && response.Name != "" {
		p.info.Models = []Model{{Loaded: true, Model: event.Model{Name: response.Name}}}
	}
}

// readRunning reads which models of llama-swap are loaded.
func (p *identification) readRunning(ctx context.Context) {
	var list struct {
		Running []struct {
			Model string `json:"model"`
			State string `json:"state"`
		} `json:"running"`
	}
	if p.getJSON(ctx, "/running", &list) != nil {
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
