package cmd

import (
	"errors"
	"os"
	"slices"

	"github.com/llmtop/llmtop/profiler/recording"
)

// several reports whether more than one engine may be watched. They share one recording.
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

// record records a session if --record is set: alone, or with the others.
func (a *attached) record(s *session, of recording.EngineEntry) error {
	if !a.opt.several() {
		return s.record(&a.opt.recording, a.clock)
	}
	if a.recorder != nil {
		a.recordWithOthers(s, of)
	}
	return nil
}

// recordWithOthers records a session in the common recording.
func (a *attached) recordWithOthers(s *session, of recording.EngineEntry) {
	s.recordSink = a.opt.recording.withTextFilter(a.recorder.AddEngine(of))
	s.sink = append(s.sink, s.recordSink)
}

// closeRecording closes the common recording after the last event, and returns err joined with its error. After a user
// error it removes the empty recording.
func (a *attached) closeRecording(err error) error {
	if a.recorder == nil {
		return err
	}
	closing := closeRecorder(a.recorder)
	if mistake := (usageError{}); errors.As(err, &mistake) && a.recorder.Status().Events == 0 {
		closing = errors.Join(closing, os.Remove(a.opt.recording.file))
	}
	return errors.Join(err, closing)
}

// recordStatus returns the state of the recording, if there is one.
func (a *attached) recordStatus() (recording.RecordStatus, bool) {
	if a.recorder != nil {
		return a.recorder.Status(), true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.engines) == 0 {
		return recording.RecordStatus{}, false
	}
	return a.engines[0].session.recordStatus()
}
