package engine

import (
	"strings"
	"testing"
)

// commandLines are those of engines and similar ones; arguments are separated by |.
var commandLines = []struct {
	words string
	kind  Kind // "" none
	port  uint16
	model string
}{
	{"/usr/bin/llama-server|-m|/models/qwen3-30b.gguf|--port|18080", Llama, 18080, "qwen3-30b.gguf"},
	{"llama-server-b10582|--alias|qwen|--port=9", Llama, 9, "qwen"},
	{`C:\tools\llama-server.exe|-m|C:\models\a.gguf`, Llama, 0, "a.gguf"},
	{"/home/me/mistral.llamafile|--server", Llama, 0, ""},
	{"/usr/bin/ape|./mistral.llamafile|--port|8081", Llama, 8081, ""},
	{"/usr/lib/ollama/llama-server|--model|/home/user/.ollama/models/blobs/sha256-0b28|--port|41233|--host|127.0.0.1|--no-webui", Llama, 41233, "sha256-0b28"},
	{"/usr/local/bin/ollama|serve", Ollama, 0, ""},
	{"ollama|run|qwen3", "", 0, ""},
	{"/venv/bin/python|/venv/bin/vllm|serve|Qwen/Qwen3-30B-A3B|--port|8001", VLLM, 8001, "Qwen/Qwen3-30B-A3B"},
	{"python3|-u|-m|vllm.entrypoints.openai.api_server|--model|Qwen/Qwen3-30B-A3B|--api-key|secret", VLLM, 0, "Qwen/Qwen3-30B-A3B"},
	{"/venv/bin/python|/venv/bin/vllm|bench|serve", "", 0, ""},
	{"python3|-X|dev|-m|sglang.launch_server|--model-path|Qwen/Qwen3-30B-A3B|--served-model-name|qwen", SGLang, 0, "qwen"},
	{"text-generation-launcher|--model-id|org/model|-p|3000", TGI, 3000, "org/model"},
	{"/usr/local/bin/text-generation-router|--port|80", TGI, 80, ""},
	{"/usr/bin/python3|/usr/local/bin/trtllm-serve|org/model|--port|8000", TensorRT, 8000, ""},
	{"/usr/bin/python3|/usr/local/bin/lmdeploy|serve|api_server|org/model|--server-port|23334", LMDeploy, 23334, ""},
	{"/opt/LM Studio/lm-studio", LMStudio, 0, ""},
	{"/opt/LM Studio/lm-studio --type=renderer --no-sandbox", "", 0, ""},
	{"python3.12|-m|mlx_lm|server|--model|mlx-community/x", MLX, 0, "mlx-community/x"},
	{"python3|/opt/bin/mlx_lm.server|--port|8082", MLX, 8082, ""},
	{"python|koboldcpp.py|--port|5002", Kobold, 5002, ""},
	{"./koboldcpp-linux-x64|--model|/m/x.gguf", Kobold, 0, "x.gguf"},
	{"llmtop|serve", LLMTop, 0, ""},
	{"python3|-c|import vllm|serve", "", 0, ""},
	{"vim|/src/llama-server", "", 0, ""},
	{"grep|llama-server", "", 0, ""},
	{"bash|-c|ollama serve", "", 0, ""},
	{"", "", 0, ""},
}

func TestRecognise(t *testing.T) {
	for _, tt := range commandLines {
		p, rest := Recognise(strings.Split(tt.words, "|"))
		switch {
		case p == nil && tt.kind != "":
			t.Errorf("%s: not recognised as %s", tt.words, tt.kind)
		case p != nil && (p.Kind != tt.kind || p.ConfiguredPort(rest) != tt.port || p.Model(rest) != tt.model):
			t.Errorf("%s: is %q, port %d, model %q; want %q, %d, %q", tt.words, p.Kind, p.ConfiguredPort(rest), p.Model(rest), tt.kind, tt.port, tt.model)
		}
	}
	if p, _ := Recognise(nil); p != nil {
		t.Errorf("no words are %s", p.Name)
	}
}

// Keys on a command line are not kept.
func TestKeysOfCommandLinesAreNotKept(t *testing.T) {
	p, rest := Recognise(strings.Split("vllm|serve|--api-key|secret|--port|1", "|"))
	if name := p.Model(rest); strings.Contains(name, "secret") {
		t.Errorf("the model is %q", name)
	}
}

func FuzzRecognise(f *testing.F) {
	for _, c := range commandLines {
		f.Add(c.words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		p, rest := Recognise(strings.Split(words, "|"))
		if p == nil {
			return
		}
		if p.Kind == "" || p.Name == "" {
			t.Errorf("%q is an engine without a name", words)
		}
		p.ConfiguredPort(rest)
		p.Model(rest)
	})
}
