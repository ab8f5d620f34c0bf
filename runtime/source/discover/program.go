package discover

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
)

// Kinds that only the command line shows: these programs answer like OpenAI's or llama.cpp's server.
const (
	kobold   identify.Kind = "KoboldCpp"
	bindings identify.Kind = "llama-cpp-python"
	ramalama identify.Kind = "RamaLama"
	llmtop   identify.Kind = "llmtop" // not an engine to discover: its ports are skipped
)

// program describes the command line of an engine.
type program struct {
	kind                 identify.Kind
	name                 string   // name shown to users
	names                []string // names of the executable, or of the script run by an interpreter
	prefix               bool     // the name may have a suffix, such as a version
	modules              []string // modules run by python -m
	subcommands          []string // required next argument, one of these; none: any
	port                 uint16   // usual port
	portBy               []string // flags that set the port
	modelBy              []string // flags that set the model, the best name first
	modelAfterSubcommand bool     // the argument after then is the model
	closed               bool     // no inference server: its ports are not tried
}

var (
	portFlag  = []string{"--port"}
	modelFlag = []string{"--served-model-name", "--alias", "-a", "--model", "-m", "--model-path", "--model-id", "--hf-repo", "-hf"}
)

// programs are the known programs. The first match counts.
var programs = []program{
	{kind: identify.Llama, name: "llama-server", names: []string{"llama-server"}, prefix: true, port: 8080, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.Llama, name: "llamafile", names: []string{"llamafile"}, port: 8080, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.Ollama, name: "ollama serve", names: []string{"ollama"}, subcommands: []string{"serve"}, port: 11434},
	{kind: identify.VLLM, name: "vllm serve", names: []string{"vllm"}, modules: []string{"vllm.entrypoints.cli.main"}, subcommands: []string{"serve"}, port: 8000, portBy: portFlag, modelBy: modelFlag, modelAfterSubcommand: true},
	{kind: identify.VLLM, name: "vllm api_server", modules: []string{"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"}, port: 8000, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.SGLang, name: "sglang.launch_server", modules: []string{"sglang.launch_server"}, port: 30000, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.SGLang, name: "sglang serve", names: []string{"sglang"}, subcommands: []string{"serve"}, port: 30000, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.TGI, name: "text-generation-launcher", names: []string{"text-generation-launcher"}, port: 3000, portBy: []string{"--port", "-p"}, modelBy: modelFlag},
	{kind: identify.TGI, name: "text-generation-router", names: []string{"text-generation-router"}, port: 3000, portBy: []string{"--port", "-p"}, modelBy: modelFlag},
	{kind: identify.TensorRT, name: "trtllm-serve", names: []string{"trtllm-serve"}, port: 8000, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.LMDeploy, name: "lmdeploy serve", names: []string{"lmdeploy"}, modules: []string{"lmdeploy"}, subcommands: []string{"serve"}, port: 23333, portBy: []string{"--server-port"}, modelBy: []string{"--model-name"}},
	{kind: identify.LMStudio, name: "LM Studio", names: []string{"lm-studio", "LM Studio", "llmster"}, port: 1234, portBy: portFlag},
	{kind: identify.MLX, name: "mlx_lm.server", names: []string{"mlx_lm.server"}, modules: []string{"mlx_lm.server"}, port: 8080, portBy: portFlag, modelBy: modelFlag},
	{kind: identify.MLX, name: "mlx_lm server", names: []string{"mlx_lm"}, modules: []string{"mlx_lm"}, subcommands: []string{"server"}, port: 8080, portBy: portFlag, modelBy: modelFlag},
	{kind: kobold, name: "koboldcpp", names: []string{"koboldcpp"}, prefix: true, port: 5001, portBy: portFlag, modelBy: []string{"--model"}},
	{kind: bindings, name: "llama_cpp.server", modules: []string{"llama_cpp.server"}, port: 8000, portBy: portFlag, modelBy: []string{"--model_alias", "--model"}},
	{kind: ramalama, name: "ramalama serve", names: []string{"ramalama"}, subcommands: []string{"serve"}, port: 8080, portBy: []string{"--port", "-p"}},
	{kind: llmtop, name: "llmtop", names: []string{"llmtop"}},
}

// usualPorts returns the usual ports of all engines, each once.
func usualPorts() (ports []uint16) {
	for _, p := range programs {
		if p.port != 0 && !slices.Contains(ports, p.port) {
			ports = append(ports, p.port)
		}
	}
	return ports
}

// recognise returns the program of a command line and the arguments after it, or nil.
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
		case arg == "-X", arg == "-W": // these take a value
			at++
		case !strings.HasPrefix(arg, "-"):
			return match(base(arg), args[at+1:], (*program).named)
		}
	}
	return nil, nil
}

func match(name string, rest []string, is func(*program, string) bool) (*program, []string) {
	for i := range programs {
		if p := &programs[i]; is(p, name) && (len(p.subcommands) == 0 || len(rest) > 0 && slices.Contains(p.subcommands, rest[0])) {
			return p, rest
		}
	}
	return nil, nil
}

// named reports whether name is the file name of the program.
func (p *program) named(name string) bool {
	return slices.ContainsFunc(p.names, func(n string) bool {
		return name == n || p.prefix && strings.HasPrefix(name, n)
	})
}

// base returns the name of a program's file without its extension.
func base(file string) string {
	name := path.Base(strings.ReplaceAll(file, `\`, "/"))
	if strings.HasSuffix(name, ".llamafile") {
		return "llamafile"
	}
	return strings.TrimSuffix(strings.TrimSuffix(name, ".exe"), ".py")
}

// linksLlama are the kinds of engines whose processes link llama.cpp.
var linksLlama = []identify.Kind{identify.Llama, identify.LMStudio, kobold, bindings, ramalama}

// interpreter reports whether a program runs a script that its arguments name.
func interpreter(file string) bool {
	name := base(file)
	return strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") || name == "ape"
}

// flag returns the value of the first of the named flags that is set, as "--flag value" or "--flag=value".
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

// configuredPort returns the port that the arguments set, or 0.
func (p *program) configuredPort(args []string) uint16 {
	n, err := strconv.ParseUint(flag(args, p.portBy...), 10, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

// model returns the model that the arguments name, "" if none; for a file without its folder.
func (p *program) model(args []string) string {
	name := flag(args, p.modelBy...)
	if name == "" && p.modelAfterSubcommand && len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		name = args[1]
	}
	return fileName(name)
}

// fileName returns a model's name. If it is a path, it removes the folder.
func fileName(name string) string {
	if strings.HasSuffix(name, ".gguf") || strings.HasPrefix(name, "/") || strings.Contains(name, `\`) {
		return path.Base(strings.ReplaceAll(name, `\`, "/"))
	}
	return name
}
