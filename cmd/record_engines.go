package cmd

import (
	"errors"
	"os"
	"slices"

	"github.com/llmtop/llmtop/profiler/trace"
)

// several reports whether more than one engine may come to be watched: these are recorded together.
func (o *attachOptions) several() bool {
	sources := len(o.addresses)
	if o.traces.at != "" {
		sources++
	}
	if o.imatrix != "" {
		sources++
	}
	return sources != 1 || slices.ContainsFunc(o.addresses, isFleet)
}

// record has a session recorded, if that is wanted: among the others, or alone in the file.
func (a *attached) record(s *session, of trace.Source) error {
	if !a.opt.several() {
		return s.record(&a.opt.recording, a.clock)
	}
	if a.recorder != nil {
		a.recordAmong(s, of)
	}
	return nil
}

// recordAmong has a session recorded with the others.
func (a *attached) recordAmong(s *session, of trace.Source) {
	s.tape = a.opt.recording.into(a.recorder.Source(of))
	s.sink = append(s.sink, s.tape)
}

// recordedAll closes the recording of all engines, after the last event of any, and returns err with what went wrong. After a mistake of the
// user nothing has been recorded, and nothing is left.
func (a *attached) recordedAll(err error) error {
	if a.recorder == nil {
		return err
	}
	closing := finish(a.recorder)
	if mistake := (usageError{}); errors.As(err, &mistake) && a.recorder.Status().Events == 0 {
		closing = errors.Join(closing, os.Remove(a.opt.recording.file))
	}
	return errors.Join(err, closing)
}

// recorded is how the recording goes, if there is one.
func (a *attached) recorded() (trace.RecordStatus, bool) {
	if a.recorder != nil {
		return a.recorder.Status(), true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.engines) == 0 {
		return trace.RecordStatus{}, false
	}
	return a.engines[0].session.recorded()
}
