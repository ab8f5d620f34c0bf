package child

import (
	"testing"

	"github.com/llmtop/llmtop/runtime"
)

// BenchmarkRequest is a request of one token, from the call to its result: what the way through another process adds to it.
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct {
		name  string
		begin func(b *testing.B) runtime.Runner
	}{
		{"child", func(b *testing.B) runtime.Runner { return start(b, job{}) }},
		{"inside", func(b *testing.B) runtime.Runner {
			s := runtime.New(job{}.load, job{}.options())
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
				h, err := r.Submit(runtime.Request{IDs: []int32{5}, MaxTokens: 1})
				if err != nil {
					b.Fatal(err)
				}
				h.Result()
			}
		})
	}
}
