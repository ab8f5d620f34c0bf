// Package wire turns events into lines of JSON and back, as docs/event-protocol.md defines them: for sockets and for recordings.
package wire

import (
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
)

// Version is the version of the protocol that this package writes. It reads all of the same major version.
const Version = "1.0"

const major = 1

// The limits of the protocol.
const (
	MaxLine    = 4 << 20 // bytes of a line, its end not counted
	MaxString  = 64 << 10
	MaxBatch   = 4096 // events of a line
	MaxDepth   = 16
	MaxLayers  = 512
	MaxExperts = 4096 // of a layer
	MaxOps     = 4096 // operations of a line, by kind and layer
	MaxTop     = 256  // alternatives of a token
	MaxCount   = 256  // counters of a line, and cores, GPUs and capabilities of one, and times, slots and other numbers of a report
	MaxBounds  = 256  // of the buckets in which times are counted
)

// ErrVersion is the error of a hello of a newer major version.
var ErrVersion = errors.New("the engine speaks a newer version of the event protocol")

// ErrMalformed is the error of a line that breaks the protocol. It concerns this line only.
var ErrMalformed = errors.New("malformed line")

// ErrEvent is the error of an event that no line can carry.
var ErrEvent = errors.New("the event does not fit a line")

// Codec writes one event a line, each of which stands for itself. It is the codec of recordings. Its zero value is ready; it is not
// safe for use by several goroutines.
type Codec struct{ decoder Decoder }

// Name names the codec and the version of its lines.
func (*Codec) Name() string { return "llmtop-events/" + Version }

// Append appends e as one line without a line end.
func (*Codec) Append(dst []byte, e *event.Event) ([]byte, error) { return Append(dst, e) }

// Decode hands the events of a line to emit. Lines of types that it does not know have none.
func (c *Codec) Decode(line []byte, emit func(event.Event)) error {
	_, err := c.decoder.Decode(line, emit)
	return err
}

// Append appends e as one line without a line end. With an error dst comes back as it was.
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

// states are the words for the states of a request.
var states = [event.NumStates]string{"", "queued", "dispatched", "finished", "cancelled", "failed"}

// caps are the words for capabilities, in order of their bits.
var caps = [...]string{
	"stages", "tokens", "text", "experts", "picks", "kv", "steps", "queue", "generate", "device",
	"host", "counters", "cancel", "pause", "hooks", "sample", "reports", "ops",
}

// kindByName is the kind that is called so in lost counts. Kinds that this program does not know count with log lines, the kind of
// least weight, so that no loss goes unseen.
func kindByName(name []byte) event.Kind {
	for k := range event.NumKinds {
		if k.String() == string(name) {
			return k
		}
	}
	return event.KindLog
}
