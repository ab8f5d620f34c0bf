// Package recording records the events of a session to a file and replays them. A recording is a sequence of lines:
// each is an event, encoded by a codec, with the time at which the recorder received it. Lines are grouped into
// compressed and checksummed frames.
// docs/recordings.md describes the format.
package recording

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

// Codec encodes events as lines and decodes them. Lines are independent of each other. A Codec is used from one
// goroutine.
type Codec interface {
	// Name returns the name of the codec and its version, major.minor, for the header of a recording.
	Name() string
	// Append appends e as one line without a line end. On an error e is not recorded and counts as dropped.
	Append(dst []byte, e *event.Event) ([]byte, error)
	// Decode passes the events of a line to emit, none if it does not recognise the line. The events must not refer to
	// line.
	Decode(line []byte, emit func(event.Event)) error
}

// checkCodec returns an error if a codec cannot decode the lines of a recording. It decodes all minor versions of its
// own major version.
func checkCodec(codec Codec, recorded string) error {
	mine, _, _ := strings.Cut(codec.Name(), ".")
	if theirs, _, _ := strings.Cut(recorded, "."); mine != theirs {
		return fmt.Errorf("its events are encoded as %s, this llmtop reads %q", clean.Quote(recorded), codec.Name())
	}
	return nil
}
