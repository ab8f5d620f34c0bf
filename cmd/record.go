package cmd

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/trace"
	"github.com/llmtop/llmtop/runtime"
)

// recording is what a command that watches something live is told about recording it.
type recording struct {
	file string // "": do not record
	text bool   // prompts and completions, too
}

func (r *recording) bind(set *pflag.FlagSet) {
	set.StringVar(&r.file, "record", "", "record what happens to this new file, for llmtop replay")
	set.BoolVar(&r.text, "record-text", false, "record prompts and completions, too")
}

func (r *recording) check() error {
	if r.text && r.file == "" {
		return usagef("--record-text needs --record FILE")
	}
	return nil
}

// open begins to record, if that is wanted. The sink is what records; the recorder must be closed after its last event.
func (r *recording) open(clock runtime.Clock) (recorder *trace.Recorder, sink event.Sink, err error) {
	if recorder, err = r.begin(clock, false); recorder == nil {
		return nil, nil, err
	}
	return recorder, r.into(recorder), nil
}

// begin begins to record one engine or several, if that is wanted.
func (r *recording) begin(clock runtime.Clock, several bool) (*trace.Recorder, error) {
	if r.file == "" {
		return nil, nil
	}
	opt := trace.RecordOptions{Codec: &wire.Codec{}, Now: clock.Now, Epoch: clock.Epoch(), Program: "llmtop " + versionString()}
	if several {
		opt.Several, opt.SegmentBytes, opt.Segments = true, severalBytes, severalSegments
	}
	recorder, err := trace.Record(r.file, opt)
	if err != nil {
		return nil, usageError{err}
	}
	return recorder, nil
}

// What servers tell in sum takes few bytes and long to replay: recordings of several engines have shorter segments and more of them, so that a
// replay can go to any moment in seconds.
const (
	severalBytes    = 16 << 20
	severalSegments = 32
	severalRebuild  = 32 << 20 // bytes that a seek goes through at most
)

// into is a sink of a recorder that gets only what is to be recorded.
func (r *recording) into(recorder event.Sink) event.Sink {
	if r.text {
		return recorder
	}
	return event.WithoutText{Sink: recorder}
}

// finish closes a recorder and tells what it had to leave out.
func finish(recorder *trace.Recorder) error {
	if err := recorder.Close(); err != nil {
		return err
	}
	status := recorder.Status()
	if n := status.Lost.Total(); n > 0 {
		fmt.Fprintf(os.Stderr, "llmtop: the recording lacks %d events that came faster than the disk took them\n", n)
	}
	return nil
}
