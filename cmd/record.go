package cmd

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/runtime/engine"
)

// recordFlags are the flags that record events.
type recordFlags struct {
	file string // "": do not record
	text bool   // include prompts and completions
}

func (r *recordFlags) bind(set *pflag.FlagSet) {
	set.StringVar(&r.file, "record", "", "record events to the new `FILE`, for llmtop replay")
	set.BoolVar(&r.text, "record-text", false, "include prompts and completions in the recording")
}

func (r *recordFlags) check() error {
	if r.text && r.file == "" {
		return usagef("--record-text needs --record FILE")
	}
	return nil
}

// open starts a recording if --record is set. It returns the sink that records; close the recorder after its last
// event.
func (r *recordFlags) open(clock engine.Clock) (recorder *recording.Recorder, sink event.Sink, err error) {
	if recorder, err = r.begin(clock, false); recorder == nil {
		return nil, nil, err
	}
	return recorder, r.withTextFilter(recorder), nil
}

// begin starts a recording of one or several engines, nil if --record is not set.
func (r *recordFlags) begin(clock engine.Clock, several bool) (*recording.Recorder, error) {
	if r.file == "" {
		return nil, nil
	}
	opt := recording.RecordOptions{Codec: &wire.Codec{}, Now: clock.Now, Epoch: clock.Epoch(), Program: "llmtop " + versionString()}
	if several {
		opt.MultiEngine, opt.SegmentBytes, opt.Segments = true, severalBytes, severalSegments
	}
	recorder, err := recording.Record(r.file, opt)
	if err != nil {
		return nil, usageError{err}
	}
	return recorder, nil
}

// Recordings of several engines have shorter segments and more of them: aggregate metrics take few bytes but long to
// replay, and a replay must reach any time within seconds.
const (
	severalBytes    = 16 << 20
	severalSegments = 32
	severalRebuild  = 32 << 20 // bytes that a seek reads at most
)

// withTextFilter returns a sink that drops text before recorder, unless --record-text is set.
func (r *recordFlags) withTextFilter(recorder event.Sink) event.Sink {
	if r.text {
		return recorder
	}
	return event.WithoutText{Sink: recorder}
}

// closeRecorder closes a recorder and prints how many events it dropped.
func closeRecorder(recorder *recording.Recorder) error {
	if err := recorder.Close(); err != nil {
		return err
	}
	status := recorder.Status()
	if n := status.Dropped.Total(); n > 0 {
		fmt.Fprintf(consoleErr, "llmtop: the recording misses %d events: the disk was too slow\n", n)
	}
	return nil
}
