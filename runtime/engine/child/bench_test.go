package child

import (
	"testing"

	"github.com/llmtop/llmtop/runtime/engine"
)

// BenchmarkRequest measures a request of one token, from the call to its result: the overhead of the process boundary.
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct {
		name  string
		begin func(b *testing.B) engine.Runner
	}{
		{"child", func(b *testing.B) engine.Runner { return start(b, job{}) }},
		{"inside", func(b *testing.B) engine.Runner {
			s := engine.New(job{}.load, job{}.options())
			l := &log{}
			ended := make(chan error, 1)
			go func() { ended <- s.Run(b.Context(), l) }()
			b.Cleanup(func() { <-ended })
			return s
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := c.begin(b)
			for b.Loop() {
				h, err := r.Submit(engine.Request{IDs: []int32{5}, MaxTokens: 1})
				if err != nil {
					b.Fatal(err)
				}
				h.Result()
			}
		})
	}
}
