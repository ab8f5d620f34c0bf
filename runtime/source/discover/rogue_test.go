package discover

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/llmtop/llmtop/runtime/source/peer"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// TestRogues: identifying any listener takes a limited time, and a misbehaving one is not taken for an engine.
func TestRogues(t *testing.T) {
	list := `{"object":"list","data":[{"id":"org/model","object":"model","owned_by":"vllm"}]}`
	for _, way := range peer.Ways(t, "application/json", list) {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(way.Answer))
			defer s.Close()
			within := time.Minute
			if way.Endless {
				within = 500 * time.Millisecond
			}
			ctx, stop := context.WithTimeout(t.Context(), within)
			defer stop()
			id, err := new(Watch).identify(ctx, s.URL, false)
			if id.Kind != "" || id.Version != "" || id.Model != "" || id.Load != (engine.Load{}) || (id.State == NeedsKey) != (way.Name == "wants a key") {
				t.Errorf("identified as %+v, %v", id, err)
			}
			if way.Endless && err == nil {
				t.Error("no answer, but no error either")
			}
		})
	}
}
