package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

var lmStudioEngine = Engine{
	Kind: LMStudio, LinksLlama: true, hints: []string{"organization_owner"}, answers: isStudio, list: studioModels,
	collector: func(*Poller, *metrics) collector { return &listing{readings: memoryReadings} },
	Programs:  []Program{{Name: "LM Studio", names: []string{"lm-studio", "LM Studio", "llmster"}, Port: 1234, modelBy: []string{}}},
}

// studioPaths are the paths of LM Studio's list of models, since 0.4 and since 0.3.6. LM Studio responds with 200 on
// every path and logs an error for an unknown one: the path that worked is kept in Info.ModelsPath.
var studioPaths = []string{"/api/v1/models", "/api/v0/models"}

// studioModel is a model of LM Studio in both formats. "v0" marks fields of the older one.
type studioModel struct {
	Key          string          `json:"key"`
	ID           string          `json:"id"` // v0
	Kind         string          `json:"type"`
	Architecture string          `json:"architecture"`
	Arch         string          `json:"arch"`         // v0
	Quantisation json.RawMessage `json:"quantization"` // an object with a name; v0: the name
	Size         int64           `json:"size_bytes"`   // file size
	Parameters   string          `json:"params_string"`
	Max          int             `json:"max_context_length"`
	Instances    []struct {
		ID     string `json:"id"`
		Config struct {
			Context int `json:"context_length"`
		} `json:"config"`
	} `json:"loaded_instances"`
	State string `json:"state"`                 // v0
	Now   int    `json:"loaded_context_length"` // v0
}

// studioList reads LM Studio's models from a path. Errors: those of the request; errFormat if it is not LM Studio.
func studioList(ctx context.Context, c *fetch.Client, path string) ([]Model, error) {
	var list struct {
		Models []studioModel `json:"models"`
		Data   []studioModel `json:"data"`
	}
	if err := c.JSON(ctx, path, &list); err != nil {
		return nil, err
	}
	if strings.Contains(path, "/v0/") {
		list.Models = list.Data
		if len(list.Data) == 0 || list.Data[0].State == "" {
			return nil, errFormat
		}
	} else if list.Models == nil || slices.ContainsFunc(list.Models, func(m studioModel) bool { return m.Key == "" }) {
		return nil, errFormat
	}
	out := []Model{}
	for i := range list.Models[:min(len(list.Models), maxModels)] {
		if m := &list.Models[i]; !strings.HasPrefix(m.Kind, "embedding") { // embedding models do not generate
			out = append(out, m.models()...)
		}
	}
	return out[:min(len(out), maxModels)], nil
}

// models returns the loaded instances of a model, or the model itself if it is not loaded.
func (m *studioModel) models() (out []Model) {
	model := event.Model{
		Name: cmp.Or(m.Key, m.ID), Architecture: cmp.Or(m.Architecture, m.Arch), Quantisation: m.quantisation(), Bytes: max(m.Size, 0),
		Parameters: parseParameters(m.Parameters), TrainContext: max(m.Max, 0), Context: max(m.Now, 0),
	}
	for _, in := range m.Instances {
		instance := model
		instance.Context = max(in.Config.Context, 0)
		if in.ID != "" {
			instance.Name = in.ID
		}
		out = append(out, Model{Model: instance, Loaded: true})
	}
	if len(out) == 0 {
		out = append(out, Model{Model: model, Loaded: m.State == "loaded"})
	}
	return out
}

func (m *studioModel) quantisation() (name string) {
	var long struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(m.Quantisation, &long) == nil && long.Name != "" {
		return long.Name
	}
	_ = json.Unmarshal(m.Quantisation, &name)
	return name
}

// studioErrorPrefix starts LM Studio's response to an unknown path.
const studioErrorPrefix = "Unexpected endpoint or method."

// isStudio reports whether the server is LM Studio. The current list, which may be empty, is requested only if there
// are other signs of LM Studio.
func isStudio(ctx context.Context, p *identification) bool {
	paths := studioPaths[1:]
	if p.hint == LMStudio {
		paths = studioPaths
	}
	for _, path := range paths {
		if list, err := studioList(ctx, p.client, path); err == nil {
			p.info.Models, p.info.ModelsPath = list, path
			return true
		}
	}
	return false
}

// studioModels reads the models from the path that worked.
func studioModels(ctx context.Context, p *identification) (err error) {
	p.info.Kind = LMStudio
	p.info.Models, err = studioList(ctx, p.client, p.info.ModelsPath)
	return err
}

// memoryReadings returns the number of loaded models and the sum of their file sizes, where reported.
func memoryReadings(list []event.Model) (out []event.NamedReading) {
	bytes := int64(0)
	for i := range list {
		bytes += list[i].Bytes
	}
	if bytes > 0 {
		out = append(out, event.NamedReading{Name: "model_file_bytes", Reading: event.DerivedValue(float64(bytes))})
	}
	return append(out, event.NamedReading{Name: "models_in_memory", Reading: event.DerivedValue(float64(len(list)))})
}
