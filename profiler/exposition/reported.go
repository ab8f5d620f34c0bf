package exposition

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// reported tells what a server tells of itself in sum. What it does not tell is left out, and is no 0.
func (s *scrape) reported(v *store.Snapshot) {
	c, r := &v.Counts, v.Reported
	s.reading(running, r.Running)
	s.reading(queued, r.Waiting)
	for _, n := range []struct {
		by     *instrument
		told   event.Reading // of the last interval
		sum    uint64
		values []string
	}{
		{requests, r.Finished, c.Finished, []string{event.StateFinished.String()}},
		{requests, r.Failed, c.Failed, []string{event.StateFailed.String()}},
		{prompted, r.Prompt, c.PromptTokens, nil},
		{cached, r.Cached, c.CachedTokens, nil},
		{generated, r.Generated, c.GeneratedTokens, nil},
	} {
		if n.told.Origin != event.NotReported || n.sum > 0 {
			s.add(n.by, float64(n.sum), n.values...)
		}
	}
}
