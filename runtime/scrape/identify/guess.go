package identify

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
)

// guess asks what only one kind of engine answers in its way. The metrics come last, and not at their usual place where that would take
// them away from somebody else: TensorRT-LLM's /metrics hands out each iteration once.
func (p *probe) guess(ctx context.Context) {
	if p.studio && p.isStudio(ctx) {
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

func (p *probe) isOllama(ctx context.Context) bool {
	var about struct {
		Version string `json:"version"`
		Error   string `json:"error"`
	}
	if p.ask(ctx, "/api/version", &about) != nil || about.Version == "" {
		p.studio = p.studio || strings.HasPrefix(about.Error, studioError)
		return false
	}
	p.kind, p.info.Version = Ollama, about.Version
	return true
}

func (p *probe) isTGI(ctx context.Context) bool {
	var about struct {
		Model   string `json:"model_id"`
		Version string `json:"version"`
		Router  string `json:"router"`
		Inputs  int    `json:"max_input_tokens"`
		Total   int    `json:"max_total_tokens"`
	}
	if p.ask(ctx, "/info", &about) != nil || about.Model == "" || about.Router == "" && about.Inputs == 0 {
		return false
	}
	m := Model{Loaded: true}
	m.Name, m.Context = about.Model, max(about.Total, 0)
	p.kind, p.info.Version, p.info.Models, p.info.Metrics = TGI, about.Version, []Model{m}, "/metrics"
	return true
}

// isLlama reports a server of llama.cpp that is too old, or too guarded, to name itself in its list.
func (p *probe) isLlama(ctx context.Context) bool {
	var props struct {
		Settings map[string]any `json:"default_generation_settings"`
	}
	if p.ask(ctx, "/props", &props) != nil || props.Settings == nil {
		return false
	}
	p.kind = Llama
	return true
}

func (p *probe) isSGLang(ctx context.Context) bool {
	var about struct {
		Path string `json:"model_path"`
		TP   int    `json:"tp_size"`
	}
	if p.ask(ctx, "/server_info", &about) != nil && p.ask(ctx, "/get_server_info", &about) != nil || about.Path == "" || about.TP == 0 {
		return false
	}
	p.kind = SGLang
	return true
}

func (p *probe) isTriton(ctx context.Context) bool {
	var about struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if p.ask(ctx, "/v2", &about) != nil || about.Name != "triton" {
		return false
	}
	p.kind, p.info.Version = Triton, about.Version
	return true
}

// prefixes are those of the names of metrics, by kind.
var prefixes = []struct {
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

// sniffed is how much of the metrics is looked at, in bytes: those of an engine come after those of its language's runtime.
const sniffed = 256 << 10

// sniff looks for metrics at a path, and whose they are. It reports whether there were any.
func (p *probe) sniff(ctx context.Context, path string) bool {
	a, err := p.client.Get(ctx, path)
	if err != nil {
		return false
	}
	defer a.Close()
	p.note(a)
	if a.Status != http.StatusOK || a.Is("application/json") || a.Is("text/html") {
		return false
	}
	text, _ := io.ReadAll(io.LimitReader(a.Body, sniffed)) // what came before an error can still tell
	for _, known := range prefixes {
		if hasName(text, known.prefix) {
			p.kind, p.info.Metrics = known.kind, path
			return true
		}
	}
	return false
}

// hasName reports whether a metric's name begins so, in a line of its own or in one that tells its type.
func hasName(text []byte, prefix string) bool {
	for _, before := range []string{"\n", "# TYPE ", "# HELP "} {
		if bytes.Contains(text, []byte(before+prefix)) {
			return true
		}
	}
	return strings.HasPrefix(string(text[:min(len(text), len(prefix))]), prefix)
}
