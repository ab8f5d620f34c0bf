package engine

import "context"

var llamaSwapEngine = Engine{Kind: LlamaSwap, owners: []string{"llama-swap"}, details: readRunning, list: runningModels}

// runningModels reads the list of models, and which of them are loaded.
func runningModels(ctx context.Context, p *identification) error {
	err := readModels(ctx, p)
	if err == nil {
		readRunning(ctx, p)
	}
	return err
}

// readRunning reads which models of llama-swap are loaded.
func readRunning(ctx context.Context, p *identification) {
	var list struct {
		Running []struct {
			Model string `json:"model"`
			State string `json:"state"`
		} `json:"running"`
	}
	if p.getJSON(ctx, "/running", &list) != nil {
		return
	}
	for i := range p.info.Models {
		m := &p.info.Models[i]
		m.Loaded = false
		for _, r := range list.Running {
			m.Loaded = m.Loaded || r.Model == m.Name && r.State == "ready"
		}
	}
}
