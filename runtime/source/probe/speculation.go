//go:build amd64 || arm64

package probe

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// speculationEvery is the time between two reports of speculation, in ns.
const speculationEvery = int64(1e9)

// maxShapes bounds the shapes of passes that are told apart, 40 bytes each.
const maxShapes = 256

// speculation sums what drafts cost and bring.
type speculation struct {
	sums       event.Speculation
	last, at   int64 // ns that the last draft took, and when it ended
	passed     int64 // when the last pass ended
	changed    bool  // since the last report
	reportedAt int64
}

// add notes a call that worked on drafts.
func (s *speculation) add(r record, d *probesDrafted) {
	took := max(r.At-d.Began, 0)
	s.sums.DraftTime += took
	if d.Follows == 0 {
		s.last, s.at = took, r.At
	}
}

// accept notes that the token at a position of a draft, from 1, was accepted.
func (s *speculation) accept(position int) {
	if position <= len(s.sums.Accepted) {
		s.sums.Accepted[position-1]++
	}
}

// addPass counts a pass.
func (s *speculation) addPass(f *forward, took int64) {
	if f.shape = s.shape(f, s.at > s.passed); f.shape >= 0 {
		sums := &s.sums.Shapes[f.shape]
		sums.Passes++
		sums.Dur += took
		s.changed = s.changed || len(s.sums.Drafted) > 0
	}
	s.passed = f.began + took
}

// shape returns the number of the shape of a pass, for which drafts were computed or not; -1 if it is none of those that
// are told apart.
func (s *speculation) shape(f *forward, drafting bool) int {
	for i := range f.shares {
		if !f.shares[i].decode {
			return -1
		}
	}
	requests, rows := len(f.shares), len(f.rows)
	i := slices.IndexFunc(s.sums.Shapes, func(p event.PassShape) bool {
		return p.Drafting == drafting && p.Requests == requests && p.Rows == rows
	})
	if i < 0 && requests > 0 && len(s.sums.Shapes) < maxShapes {
		i = len(s.sums.Shapes)
		s.sums.Shapes = append(s.sums.Shapes, event.PassShape{Drafting: drafting, Requests: requests, Rows: rows})
	}
	return i
}

// addDraftPass notes the begin or the end of a pass of a draft model, whose context has no requests.
func (t *tracker) addDraftPass(c *llamaContext) {
	for _, s := range c.sequences {
		t.end(s)
	}
	c.pass = nil
	clear(c.sequences)
}

// addDraft notes that a pass verifies n drafted tokens of a request, which waited for the draft of all requests.
func (t *tracker) addDraft(r *request, n int) {
	s := &t.speculation
	for i := range min(n, event.MaxDraft) {
		if i == len(s.sums.Drafted) {
			s.sums.Drafted, s.sums.Accepted = append(s.sums.Drafted, 0), append(s.sums.Accepted, 0)
		}
		s.sums.Drafted[i]++
	}
	s.changed = true
	if s.at > r.last { // otherwise drafted earlier
		t.about(r, event.Event{Kind: event.KindStage, Text: "draft", Dur: s.last, N: int32(n)}, s.at)
	}
}

// reportSpeculation emits what drafts cost and brought, if there were any since the last report.
func (t *tracker) reportSpeculation(at int64) {
	s := &t.speculation
	if !s.changed || at-s.reportedAt < speculationEvery {
		return
	}
	s.changed, s.reportedAt = false, at
	sums := s.sums
	sums.Drafted, sums.Accepted, sums.Shapes = slices.Clone(sums.Drafted), slices.Clone(sums.Accepted), slices.Clone(sums.Shapes)
	t.emit(event.Event{Kind: event.KindSpeculation, Data: &sums}, at)
}
