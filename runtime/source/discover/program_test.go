package discover

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
)

// commandLines are those of engines and similar ones; arguments are separated by |.
var commandLines = []struct {
	words string
	kind  identify.Kind // "" none
	port  uint16
	model string
}{
	{"/usr/bin/llama-server|-m|/models/qwen3-30b.gguf|--port|18080", identify.Llama, 18080, "qwen3-30b.gguf"},
	{"llama-server-b10582|--alias|qwen|--port=9", identify.Llama, 9, "qwen"},
	{`C:\tools\llama-server.exe|-m|C:\models\a.gguf`, identify.Llama, 0, "a.gguf"},
	{"/home/me/mistral.llamafile|--server", identify.Llama, 0, ""},
	{"/usr/bin/ape|./mistral.llamafile|--port|8081", identify.Llama, 8081, ""},
	{"/usr/lib/ollama/llama-server|--model|/home/user/.ollama/models/blobs/sha256-0b28|--port|41233|--host|127.0.0.1|--no-webui", identify.Llama, 41233, "sha256-0b28"},
	{"/usr/local/bin/ollama|serve", identify.Ollama, 0, ""},
	{"ollama|run|qwen3", "", 0, ""},
	{"/venv/bin/python|/venv/bin/vllm|serve|Qwen/Qwen3-30B-A3B|--port|8001", identify.VLLM, 8001, "Qwen/Qwen3-30B-A3B"},
	{"python3|-u|-m|vllm.entrypoints.openai.api_server|--model|Qwen/Qwen3-30B-A3B|--api-key|secret", identify.VLLM, 0, "Qwen/Qwen3-30B-A3B"},
	{"/venv/bin/python|/venv/bin/vllm|bench|serve", "", 0, ""},
	{"python3|-X|dev|-m|sglang.launch_server|--model-path|Qwen/Qwen3-30B-A3B|--served-model-name|qwen", identify.SGLang, 0, "qwen"},
	{"text-generation-launcher|--model-id|org/model|-p|3000", identify.TGI, 3000, "org/model"},
	{"/usr/local/bin/text-generation-router|--port|80", identify.TGI, 80, ""},
	{"/usr/bin/python3|/usr/local/bin/trtllm-serve|org/model|--port|8000", identify.TensorRT, 8000, ""},
	{"/usr/bin/python3|/usr/local/bin/lmdeploy|serve|api_server|org/model|--server-port|23334", identify.LMDeploy, 23334, ""},
	{"/opt/LM Studio/lm-studio", identify.LMStudio, 0, ""},
	{"/opt/LM Studio/lm-studio --type=renderer --no-sandbox", "", 0, ""},
	{"python3.12|-m|mlx_lm|server|--model|mlx-community/x", identify.MLX, 0, "mlx-community/x"},
	{"python3|/opt/bin/mlx_lm.server|--port|8082", identify.MLX, 8082, ""},
	{"python|koboldcpp.py|--port|5002", kobold, 5002, ""},
	{"./koboldcpp-linux-x64|--model|/m/x.gguf", kobold, 0, "x.gguf"},
	{"llmtop|serve", llmtop, 0, ""},
	{"python3|-c|import vllm|serve", "", 0, ""},
	{"vim|/src/llama-server", "", 0, ""},
	{"grep|llama-server", "", 0, ""},
	{"bash|-c|ollama serve", "", 0, ""},
	{"", "", 0, ""},
}

func TestRecognise(t *testing.T) {
	for _, tt := range commandLines {
		p, rest := recognise(strings.Split(tt.words, "|"))
		switch {
		case p == nil && tt.kind != "":
			t.Errorf("%s: not recognised as %s", tt.words, tt.kind)
		case p != nil && (p.kind != tt.kind || p.configuredPort(rest) != tt.port || p.model(rest) != tt.model):
			t.Errorf("%s: is %q, port %d, model %q; want %q, %d, %q", tt.words, p.kind, p.configuredPort(rest), p.model(rest), tt.kind, tt.port, tt.model)
		}
	}
	if p, _ := recognise(nil); p != nil {
		t.Errorf("no words are %s", p.name)
	}
}

// Keys on a command line are not kept.
func TestKeysOfCommandLinesAreNotKept(t *testing.T) {
	p, rest := recognise(strings.Split("vllm|serve|--api-key|secret|--port|1", "|"))
	if name := p.model(rest); strings.Contains(name, "secret") {
		t.Errorf("the model is %q", name)
	}
}

func FuzzRecognise(f *testing.F) {
	for _, c := range commandLines {
		f.Add(c.words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		p, rest := recognise(strings.Split(words, "|"))
		if p == nil {
			return
		}
		if p.kind == "" || p.name == "" {
			t.Errorf("%q is an engine without a name", words)
		}
		p.configuredPort(rest)
		p.model(rest)
	})
}
