// Package trace records the events of a session to a file and replays them. A recording is a sequence of lines, each an event in some
// codec's words with the time at which the recorder received it, gathered into compressed and checksummed frames.
// docs/recordings.md describes the format.
package trace

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// Codec turns events into lines and back. Each line stands for itself. A Codec is used from one goroutine.
type Codec interface {
	// Name names the codec and its version, major.minor, in the header of a recording.
	Name() string
	// Append appends e as one line without a line end. An error means that e cannot be recorded; it is counted as lost.
	Append(dst []byte, e *event.Event) ([]byte, error)
	// Decode hands the events of a line to emit, none if it does not know what the line is about. The events must not refer to line.
	Decode(line []byte, emit func(event.Event)) error
}

// reads says whether a codec reads the lines of a recording: those of each minor version of its own major version.
func reads(codec Codec, recorded string) error {
	mine, _, _ := strings.Cut(codec.Name(), ".")
	if theirs, _, _ := strings.Cut(recorded, "."); mine != theirs {
		return fmt.Errorf("its events are written as %q, this llmtop reads %q", recorded, codec.Name())
	}
	return nil
}
