// Package wire encodes events as lines of JSON and decodes them, as docs/event-protocol.md defines. Sockets and
// recordings use it.
package wire

import (
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
)

// Version is the protocol version that this package writes. It reads all versions with the same or a lower major
// number.
const Version = "1.0"

const major = 1

// The limits of the protocol.
const (
	MaxLine    = 4 << 20  // bytes of a line without its end, 4 MiB
	MaxString  = 64 << 10 // bytes of a string, 64 KiB
	MaxBatch   = 4096     // events per line
	MaxDepth   = 16       // nested objects and arrays
	MaxLayers  = 512      // of a model
	MaxExperts = 4096     // per layer
	MaxOps     = 4096     // operations per line, by kind and layer
	MaxTop     = 256      // alternatives per token
	MaxCount   = 256      // per line: counters, GPUs, kinds of operations, histograms and other metrics of a report
	MaxSlots   = 4096     // per report
	MaxBounds  = 256      // bucket bounds of a histogram
)

// ErrVersion is returned for a hello with a newer major version.
var ErrVersion = errors.New("the engine speaks a newer version of the event protocol")

// ErrMalformed is returned for a line that breaks the protocol. Later lines are not affected.
var ErrMalformed = errors.New("malformed line")

// ErrEvent is returned for an event that cannot be encoded as a line.
var ErrEvent = errors.New("the event does not fit a line")

// Append appends e as one line without its end. On error it returns dst unchanged.
func Append(dst []byte, e *event.Event) ([]byte, error) {
	from := len(dst)
	out, ok := appendEvent(dst, e)
	if !ok {
		return dst, fmt.Errorf("write %v event: %w", e.Kind, ErrEvent)
	}
	if len(out)-from > MaxLine {
		return dst, fmt.Errorf("write %v event: %w: %d bytes", e.Kind, ErrEvent, len(out)-from)
	}
	return out, nil
}

// caps are the names of capabilities, in order of their bits.
var caps = [...]string{
	"stages", "tokens", "text", "experts", "picks", "kv", "steps", "queue", "generate", "device",
	"host", "counters", "cancel", "pause", "hooks", "sample", "reports", "ops",
}

// kindByName returns the kind with a name in drop counts. Unknown kinds count as log lines, the kind of least weight,
// so that no drop is ignored.
func kindByName(name []byte) event.Kind {
	for k := range event.NumKinds {
		if k.String() == string(name) {
			return k
		}
	}
	return event.KindLog
}
