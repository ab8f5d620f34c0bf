//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"time"

	"github.com/llmtop/llmtop/runtime"
)

// splits are the times of a pass by part and layer. The library's graph has no parts; the borders are nodes with names that most
// models give, and where a layer lacks one its times are not told.
type splits struct {
	embed  int64
	layers []runtime.LayerTime
	ends   int // borders seen at the end of attention and of a layer
}

func (s *splits) begin(layers int) {
	if len(s.layers) != layers {
		s.layers = make([]runtime.LayerTime, layers)
	}
	clear(s.layers)
	s.embed, s.ends = 0, 0
}

// part books the time since the last border.
func (t *tracer) part(name string) {
	s := &t.split
	layer, to := 0, &s.embed
	if n, ok := layerOf(name, nodeAttention); ok {
		layer, to = n, nil
		if n < len(s.layers) {
			to = &s.layers[n].Attention
		}
		s.ends++
	} else if n, ok := layerOf(name, nodeTopK); ok {
		layer, to = n, nil
		if n < len(s.layers) {
			to = &s.layers[n].Router
		}
	} else if n, ok := layerOf(name, nodeLayer); ok {
		layer, to = n, nil
		if n < len(s.layers) {
			to = &s.layers[n].Experts
		}
		s.ends++
	} else if name != nodeEmbedding {
		return
	}
	now := time.Now()
	if to != nil && layer >= 0 {
		*to += int64(now.Sub(t.lap))
	}
	t.lap = now
}

// tell fills in the times of a pass that has ended, if its layers had all their borders.
func (s *splits) tell(to *runtime.BatchTime, head time.Duration) {
	if len(s.layers) > 0 && s.ends == 2*len(s.layers) {
		to.Embed, to.Head, to.Layers = s.embed, int64(head), s.layers
	}
}
