package report

import "github.com/llmtop/llmtop/profiler/store"

// FromSnapshot returns a report of a moment of a run, without generated text.
func FromSnapshot(meta Meta, s *store.Snapshot) *Report {
	meta.Partial = meta.Partial || s.Counts.Running+s.Counts.Queued > 0
	r := Build(meta, s)
	r.DropText()
	return r
}
