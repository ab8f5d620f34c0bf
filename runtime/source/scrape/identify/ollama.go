package identify

import (
	"context"
	"path"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// Running is a model that Ollama has loaded.
type Running struct {
	event.Model
	Memory int64 // bytes
	VRAM   int64 // bytes of Memory on GPUs
	Until  string
}

// RunningOllama returns the models that Ollama has loaded.
func RunningOllama(ctx context.Context, c *fetch.Client) ([]Running, error) {
	var list struct {
		Models []struct {
			Name    string `json:"name"`
			Size    int64  `json:"size"`
			VRAM    int64  `json:"size_vram"`
			Until   string `json:"expires_at"`
			Context int    `json:"context_length"`
			Details struct {
				Family     string `json:"family"`
				Parameters string `json:"parameter_size"`
				Level      string `json:"quantization_level"`
			} `json:"details"`
		} `json:"models"`
	}
	if err := c.JSON(ctx, "/api/ps", &list); err != nil {
		return nil, err
	}
	var out []Running
	for _, m := range list.Models[:min(len(list.Models), maxModels)] {
		out = append(out, Running{
			Model: event.Model{
				Name: m.Name, Architecture: m.Details.Family, Quantisation: m.Details.Level, Parameters: parseParameters(m.Details.Parameters),
				Context: max(m.Context, 0),
			},
			Memory: max(m.Size, 0), VRAM: min(max(m.VRAM, 0), max(m.Size, 0)), Until: m.Until,
		})
	}
	return out, nil
}

// OllamaFile returns the name of a model's file, which is on the command line of the llama-server that runs it; "" if it
// is unknown.
func OllamaFile(ctx context.Context, c *fetch.Client, model string) string {
	var about struct {
		Modelfile string `json:"modelfile"`
	}
	if c.Ask(ctx, "/api/show", map[string]string{"model": model}, &about) != nil {
		return ""
	}
	for line := range strings.Lines(about.Modelfile) {
		if file, ok := strings.CutPrefix(line, "FROM "); ok { // the first one: others are projectors
			return path.Base(strings.ReplaceAll(strings.TrimSpace(file), `\`, "/"))
		}
	}
	return ""
}

// parseParameters parses a number of parameters such as "30.5B"; 0 if it is invalid.
func parseParameters(text string) int64 {
	scale := 1.0
	for suffix, by := range map[string]float64{"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			text, scale = number, by
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v*scale < 1e18) {
		return 0
	}
	return int64(v * scale)
}
