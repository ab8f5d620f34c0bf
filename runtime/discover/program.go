package discover

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// What only command lines tell: programs that speak as OpenAI does, or as llama.cpp does.
const (
	kobold   identify.Kind = "KoboldCpp"
	bindings identify.Kind = "llama-cpp-python"
	ramalama identify.Kind = "RamaLama"
	llmtop   identify.Kind = "llmtop" // no engine: its ports are left alone
)

// program is how an engine's command line looks.
type program struct {
	kind    identify.Kind
	name    string   // what users call the program
	names   []string // of the file that is run, or of the script that an interpreter runs
	prefix  bool     // the name may go on after that: with a version, for example
	modules []string // that python -m runs
	then    []string // words one of which must follow; none: anything may
	port    uint16   // unless it is told another one
	portBy  []string // flags that tell it
	modelBy []string // flags that name the model, the best name first
	bare    bool     // the word after then is the model
}

var (
	portFlag  = []string{"--port"}
	modelFlag = []string{"--served-model-name", "--alias", "-a", "--model", "-m", "--model-path", "--model-id", "--hf-repo", "-hf"}
)

// programs are those that are known. The first one that fits is it.
var programs = []program{
	{kind: identify.Llama, name: "llama-server", names: []string{"llama-server"}, prefix: true, port: 8080, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.Llama, name: "llamafile", names: []string{"llamafile"}, port: 8080, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.Ollama, name: "ollama serve", names: []string{"ollama"}, then: []string{"serve"}, port: 11434},
	{kind: identify.VLLM, name: "vllm serve", names: []string{"vllm"}, modules: []string{"vllm.entrypoints.cli.main"}, then: []string{"serve"}, port: 8000, portBy: portFlag, modelBy: modelFlag, bare: true},
	{kind: identify.VLLM, name: "vllm api_server", modules: []string{"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"}, port: 8000, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.SGLang, name: "sglang.launch_server", modules: []string{"sglang.launch_server"}, port: 30000, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.SGLang, name: "sglang serve", names: []string{"sglang"}, then: []string{"serve"}, port: 30000, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.TGI, name: "text-generation-launcher", names: []string{"text-generation-launcher"}, port: 3000, portBy: []string{"--port", "-p"}, modelBy: modelFlag},
	{kind: identify.TGI, name: "text-generation-router", names: []string{"text-generation-router"}, port: 3000, portBy: []string{"--port", "-p"}, modelBy: modelFlag},
	{kind: identify.TensorRT, name: "trtllm-serve", names: []string{"trtllm-serve"}, port: 8000, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.LMDeploy, name: "lmdeploy serve", names: []string{"lmdeploy"}, modules: []string{"lmdeploy"}, then: []string{"serve"}, port: 23333, portBy: []string{"--server-port"}, modelBy: []string{"--model-name"}},
	{kind: identify.LMStudio, name: "LM Studio", names: []string{"lm-studio", "LM Studio", "llmster"}, port: 1234, portBy: portFlag},
	{kind: identify.MLX, name: "mlx_lm.server", names: []string{"mlx_lm.server"}, modules: []string{"mlx_lm.server"}, port: 8080, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.MLX, name: "mlx_lm server", names: []string{"mlx_lm"}, modules: []string{"mlx_lm"}, then: []string{"server"}, port: 8080, portBy: portFlag, modelBy: modelFlag},
	{kind: kobold, name: "koboldcpp", names: []string{"koboldcpp"}, prefix: true, port: 5001, portBy: portFlag, modelBy: []string{"--model"}},
	{kind: bindings, name: "llama_cpp.server", modules: []string{"llama_cpp.server"}, port: 8000, portBy: portFlag, modelBy: []string{"--model_alias", "--model"}},
	{kind: ramalama, name: "ramalama serve", names: []string{"ramalama"}, then: []string{"serve"}, port: 8080, portBy: []string{"--port", "-p"}},
	{kind: llmtop, name: "llmtop", names: []string{"llmtop"}},
}

// usualPorts are those that engines listen on unless they are told others, each once.
func usualPorts() (ports []uint16) {
	for _, p := range programs {
		if p.port != 0 && !slices.Contains(ports, p.port) {
			ports = append(ports, p.port)
		}
	}
	return ports
}

// recognise says which engine a command line is of, nil if none, and the words that follow the program.
func recognise(args []string) (*program, []string) {
	if len(args) == 0 {
		return nil, nil
	}
	if p, rest := match(base(args[0]), args[1:], (*program).named); p != nil || !interpreter(args[0]) {
		return p, rest
	}
	for at := 1; at < len(args); at++ {
		switch arg := args[at]; {
		case arg == "-m" && at+1 < len(args):
			return match(args[at+1], args[at+2:], func(p *program, name string) bool { return slices.Contains(p.modules, name) })
		case arg == "-c":
			return nil, nil
		case arg == "-X", arg == "-W": // which take a value
			at++
		case !strings.HasPrefix(arg, "-"):
			return match(base(arg), args[at+1:], (*program).named)
		}
	}
	return nil, nil
}

func match(name string, rest []string, is func(*program, string) bool) (*program, []string) {
	for i := range programs {
		if p := &programs[i]; is(p, name) && (len(p.then) == 0 || len(rest) > 0 && slices.Contains(p.then, rest[0])) {
			return p, rest
		}
	}
	return nil, nil
}

// named reports whether a file of that name is the program.
func (p *program) named(name string) bool {
	return slices.ContainsFunc(p.names, func(n string) bool {
		return name == n || p.prefix && strings.HasPrefix(name, n)
	})
}

// base is the name of a program's file, without what only says what kind of file it is.
func base(file string) string {
	name := path.Base(strings.ReplaceAll(file, `\`, "/"))
	if strings.HasSuffix(name, ".llamafile") {
		return "llamafile"
	}
	return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".py")
}

// interpreter reports whether a program runs a file that it is told.
func interpreter(file string) bool {
	name := base(file)
	return strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") || name == "ape"
}

// flag is the value of the first of some flags that is there, in the form "--flag value" or "--flag=value".
func flag(args []string, names ...string) string {
	for _, name := range names {
		for i, arg := range args {
			if value, ok := strings.CutPrefix(arg, name+"="); ok {
				return value
			}
			if arg == name && i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return ""
}

// told is the port that the command line names, 0 if none.
func (p *program) told(args []string) uint16 {
	n, err := strconv.ParseUint(flag(args, p.portBy...), 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

// model is the one that the command line names, "" if none: the name of a file without its folder.
func (p *program) model(args []string) string {
	name := flag(args, p.modelBy...)
	if name == "" && p.bare && len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		name = args[1]
	}
	return fileName(name)
}

// fileName is a model's name without the folder of its file, if it is one's.
func fileName(name string) string {
	if strings.HasSuffix(name, ".gguf") || strings.HasPrefix(name, "/") || strings.Contains(name, `\`) {
		return path.Base(strings.ReplaceAll(name, `\`, "/"))
	}
	return name
}
