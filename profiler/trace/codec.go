// Package trace records the events of a session to a file and replays them. A recording is a sequence of lines, each an event in some
// codec's words with the time at which the recorder received it, gathered into compressed and checksummed frames.
// docs/recordings.md describes the format.
package trace

import "github.com/llmtop/llmtop/profiler/event"

// Codec turns events into lines and back. It keeps no state: each line stands for itself.
type Codec interface {
	// Name names the codec and its version in the header of a recording.
	Name() string
	// Append appends e as one line without a line end. An error means that e cannot be recorded; it is counted as lost.
	Append(dst []byte, e *event.Event) ([]byte, error)
	// Decode hands the events of a line to emit, none if it does not know what the line is about. The events must not refer to line.
	Decode(line []byte, emit func(event.Event)) error
}
