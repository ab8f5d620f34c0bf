package engine

import "strings"

// Engines that only their command lines show: these programs answer like OpenAI's or llama.cpp's server.
const (
	Kobold      Kind = "KoboldCpp"
	LlamaPython Kind = "llama-cpp-python"
	RamaLama    Kind = "RamaLama"
	LLMTop      Kind = "llmtop" // not an engine to discover: its ports are skipped
)

var (
	mlxEngine = Engine{Kind: MLX, listed: isMLXList, Programs: []Program{
		{Name: "mlx_lm.server", names: []string{"mlx_lm.server"}, modules: []string{"mlx_lm.server"}, Port: 8080},
		{Name: "mlx_lm server", names: []string{"mlx_lm"}, modules: []string{"mlx_lm"}, subcommands: []string{"server"}, Port: 8080},
	}}
	koboldEngine = Engine{Kind: Kobold, LinksLlama: true, Programs: []Program{
		{Name: "koboldcpp", names: []string{"koboldcpp"}, prefix: true, Port: 5001, modelBy: []string{"--model"}},
	}}
	llamaPythonEngine = Engine{Kind: LlamaPython, LinksLlama: true, Programs: []Program{
		{Name: "llama_cpp.server", modules: []string{"llama_cpp.server"}, Port: 8000, modelBy: []string{"--model_alias", "--model"}},
	}}
	ramalamaEngine = Engine{Kind: RamaLama, LinksLlama: true, Programs: []Program{
		{Name: "ramalama serve", names: []string{"ramalama"}, subcommands: []string{"serve"}, Port: 8080, portBy: []string{"--port", "-p"}, modelBy: []string{}},
	}}
	llmtopEngine = Engine{Kind: LLMTop, Programs: []Program{{Name: "llmtop", names: []string{"llmtop"}}}}
)

// isMLXList reports whether a list of models is mlx-lm's: it is Python's http.server, and its models have no owner.
func isMLXList(server string, list *ModelList) bool {
	return strings.HasPrefix(server, "BaseHTTP/") && len(list.Data) > 0 && list.Data[0].Owner == ""
}
