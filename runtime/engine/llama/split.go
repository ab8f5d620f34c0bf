//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"time"

	"github.com/llmtop/llmtop/runtime/engine"
)

// splits holds the times of a pass by part and layer. The library's graph has no parts; they are separated by named
// nodes that most models have. If a layer lacks one, its times are not reported. The embedding lookup includes the
// library's preparation of the pass.
type splits struct {
	embed  int64
	layers []engine.LayerTime
	ends   int // number of borders seen at the end of attention and of a layer
}

func (s *splits) begin(layers int) {
	if len(s.layers) != layers {
		s.layers = make([]engine.LayerTime, layers)
	}
	clear(s.layers)
	s.embed, s.ends = 0, 0
}

// border returns the time that ends with a node, nil if the node is no border.
func (s *splits) border(name string) *int64 {
	if name == nodeEmbedding {
		return &s.embed
	}
	for _, b := range []struct {
		prefix string
		of     func(*engine.LayerTime) *int64
		ends   int
	}{
		{nodeTopK, func(l *engine.LayerTime) *int64 { return &l.Router }, 0},
		{nodeAttention, func(l *engine.LayerTime) *int64 { return &l.Attention }, 1},
		{nodeLayer, func(l *engine.LayerTime) *int64 { return &l.Experts }, 1},
	} {
		if n, ok := layerOf(name, b.prefix); ok && n < len(s.layers) {
			s.ends += b.ends
			return b.of(&s.layers[n])
		}
	}
	return nil
}

// part adds the time since the last border to a part.
func (t *tracer) part(name string) {
	to := t.split.border(name)
	if to == nil {
		return
	}
	now := time.Now()
	*to += int64(now.Sub(t.lap))
	t.lap = now
}

// fill sets the times of a completed pass, if all layers had all borders. The rest after the last border is the head.
func (s *splits) fill(to *engine.BatchTime, head time.Duration) {
	if len(s.layers) > 0 && s.ends == 2*len(s.layers) {
		to.Embed, to.Head, to.Layers = s.embed, int64(head), s.layers
	}
}
