package identify

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// studioPaths are where LM Studio lists its models, since 0.4 and since 0.3.6. It answers 200 at every path and logs an error for one that it does not
// know: what it has once answered is remembered in Info.List.
var studioPaths = []string{"/api/v1/models", "/api/v0/models"}

// studioModel is one of LM Studio's models in both forms.
type studioModel struct {
	Key          string          `json:"key"`
	ID           string          `json:"id"` // of before
	Kind         string          `json:"type"`
	Architecture string          `json:"architecture"`
	Arch         string          `json:"arch"`         // of before
	Quantisation json.RawMessage `json:"quantization"` // an object with a name, before the name
	Size         int64           `json:"size_bytes"`   // of the file
	Parameters   string          `json:"params_string"`
	Max          int             `json:"max_context_length"`
	Instances    []struct {
		ID     string `json:"id"`
		Config struct {
			Context int `json:"context_length"`
		} `json:"config"`
	} `json:"loaded_instances"`
	State string `json:"state"`                 // of before
	Now   int    `json:"loaded_context_length"` // of before
}

// studioList asks LM Studio for its models at a path. Errors: that of asking; errShape if it is not LM Studio that answers.
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
			return nil, errShape
		}
	} else if list.Models == nil || slices.ContainsFunc(list.Models, func(m studioModel) bool { return m.Key == "" }) {
		return nil, errShape
	}
	out := []Model{}
	for i := range list.Models[:min(len(list.Models), maxModels)] {
		if m := &list.Models[i]; !strings.HasPrefix(m.Kind, "embedding") { // which generates nothing
			out = append(out, m.models()...)
		}
	}
	return out[:min(len(out), maxModels)], nil
}

// models are those that are in memory, which may be the same one several times, or the one that is not.
func (m *studioModel) models() (out []Model) {
	known := event.Model{
		Name: cmp.Or(m.Key, m.ID), Architecture: cmp.Or(m.Architecture, m.Arch), Quantisation: m.quantisation(), Bytes: max(m.Size, 0),
		Parameters: parameters(m.Parameters), TrainContext: max(m.Max, 0), Context: max(m.Now, 0),
	}
	for _, in := range m.Instances {
		one := known
		one.Context = max(in.Config.Context, 0)
		if in.ID != "" {
			one.Name = in.ID
		}
		out = append(out, Model{Model: one, Loaded: true})
	}
	if len(out) == 0 {
		out = append(out, Model{Model: known, Loaded: m.State == "loaded"})
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

// studioError begins LM Studio's answer at a path that it does not know.
const studioError = "Unexpected endpoint or method."

// isStudio reports whether LM Studio answers. The list of now, which may be empty, is looked for only where something else speaks for LM Studio.
func (p *probe) isStudio(ctx context.Context) bool {
	paths := studioPaths[1:]
	if p.studio {
		paths = studioPaths
	}
	for _, path := range paths {
		if list, err := studioList(ctx, p.client, path); err == nil {
			p.kind, p.info.Models, p.info.List = LMStudio, list, path
			return true
		}
	}
	return false
}
