package identify

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
)

// guess tries endpoints that only one kind of engine has. Metrics come last, and /metrics after /prometheus/metrics:
// TensorRT-LLM returns each iteration at /metrics only once, to the first reader.
func (p *identification) guess(ctx context.Context) {
	if p.maybeStudio && p.isStudio(ctx) {
		return
	}
	for _, try := range []func(context.Context) bool{
		p.isOllama, p.isStudio, p.isTGI, p.isLlama, p.isSGLang, p.isTriton,
		func(ctx context.Context) bool { return p.sniff(ctx, "/prometheus/metrics") },
		func(ctx context.Context) bool { return p.sniff(ctx, "/metrics") },
	} {
		if ctx.Err() != nil || try(ctx) {
			return
		}
	}
}

func (p *identification) isOllama(ctx context.Context) bool {
	var response struct {
		Version string `json:"version"`
		Error   string `json:"error"`
	}
	if p.getJSON(ctx, "/api/version", &response) != nil || response.Version == "" {
		p.maybeStudio = p.maybeStudio || strings.HasPrefix(response.Error, studioErrorPrefix)
		return false
	}
	p.kind, p.info.Version = Ollama, response.Version
	return true
}

func (p *identification) isTGI(ctx context.Context) bool {
	var response struct {
		Model   string `json:"model_id"`
		Version string `json:"version"`
		Router  string `json:"router"`
		Inputs  int    `json:"max_input_tokens"`
		Total   int    `json:"max_total_tokens"`
	}
	if p.getJSON(ctx, "/info", &response) != nil || response.Model == "" || response.Router == "" && response.Inputs == 0 {
		return false
	}
	m := Model{Loaded: true}
	m.Name, m.Context = response.Model, max(response.Total, 0)
	p.kind, p.info.Version, p.info.Models, p.info.MetricsPath = TGI, response.Version, []Model{m}, "/metrics"
	return true
}

// isLlama detects a server of llama.cpp that is too old, or too restricted, to be named in its list of models.
func (p *identification) isLlama(ctx context.Context) bool {
	var props struct {
		Settings map[string]any `json:"default_generation_settings"`
	}
	if p.getJSON(ctx, "/props", &props) != nil || props.Settings == nil {
		return false
	}
	p.kind = Llama
	return true
}

func (p *identification) isSGLang(ctx context.Context) bool {
	var response struct {
		Path string `json:"model_path"`
		TP   int    `json:"tp_size"`
	}
	if p.getJSON(ctx, "/server_info", &response) != nil && p.getJSON(ctx, "/get_server_info", &response) != nil || response.Path == "" || response.TP == 0 {
		return false
	}
	p.kind = SGLang
	return true
}

func (p *identification) isTriton(ctx context.Context) bool {
	var response struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if p.getJSON(ctx, "/v2", &response) != nil || response.Name != "triton" {
		return false
	}
	p.kind, p.info.Version = Triton, response.Version
	return true
}

// metricPrefixes maps prefixes of metric names to kinds.
var metricPrefixes = []struct {
	prefix string
	kind   Kind
}{
	{"vllm:", VLLM},
	{"sglang:", SGLang},
	{"llamacpp:", Llama},
	{"trtllm_", TensorRT},
	{"trtllm:", TensorRT},
	{"lmdeploy:", LMDeploy},
	{"tgi_", TGI},
	{"nv_trt_llm_", Triton},
	{"nv_inference_", Triton},
	{"dynamo_frontend_", Dynamo},
}

// maxSniffBytes limits how much of the metrics is read: an engine's metrics come after those of its language's runtime.
const maxSniffBytes = 256 << 10

// sniff searches a path for metrics of a known engine. It reports whether it found any.
func (p *identification) sniff(ctx context.Context, path string) bool {
	a, err := p.client.Get(ctx, path)
	if err != nil {
		return false
	}
	defer a.Close()
	p.readHeaders(a)
	if a.Status != http.StatusOK || a.Is("application/json") || a.Is("text/html") {
		return false
	}
	text, _ := io.ReadAll(io.LimitReader(a.Body, maxSniffBytes)) // on an error, use what was read
	for _, m := range metricPrefixes {
		if hasName(text, m.prefix) {
			p.kind, p.info.MetricsPath = m.kind, path
			return true
		}
	}
	return false
}

// hasName reports whether a line, or the name in a TYPE or HELP line, starts with the prefix.
func hasName(text []byte, prefix string) bool {
	for _, before := range []string{"\n", "# TYPE ", "# HELP "} {
		if bytes.Contains(text, []byte(before+prefix)) {
			return true
		}
	}
	return strings.HasPrefix(string(text[:min(len(text), len(prefix))]), prefix)
}
