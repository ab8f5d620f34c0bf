package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// maxImport is how many events an imported file may make, 184 bytes each while they are put in order: 193 MB.
const maxImport = 1 << 20

// The wall clocks that a row may tell, in Unix ms: the years 2001 to 2100. Others are taken for damage.
const (
	earliest = 1e12
	latest   = 4.1e12
)

// Imported says what was made of an imported file.
type Imported struct {
	Rows    int // that were understood
	Skipped int // lines that were not: malformed, too long, or about something else
}

// Import makes a recording, held in memory, of Dynamo's request traces (dynamo.request.trace.v1) and forward pass traces
// (dynamo.fpm.trace.v1), as JSON Lines, plain or compressed with gzip, and in any mixture. Rows need not be in order.
//
// These traces are summaries: of a request's tokens they tell the first one's time and the mean gap. The recording has the others evenly
// spaced, and says in its log what it cannot know.
func Import(file io.Reader, codec Codec) (*Recording, Imported, error) {
	var in importer
	if err := in.read(file); err != nil {
		return nil, in.Imported, fmt.Errorf("import trace: %w", err)
	}
	rec, err := in.recording(codec)
	if err != nil {
		return nil, in.Imported, fmt.Errorf("import trace: %w", err)
	}
	return rec, in.Imported, nil
}

// importer gathers events with the wall clock as their times, in Unix ns.
type importer struct {
	Imported
	events  []event.Event
	caps    event.Caps
	model   string
	next    event.RequestID
	sampled bool // forward passes are a sample
	spread  bool // tokens have been evenly spaced
}

// row is a line of either kind of trace. What llmtop has no use for is left out. Numbers are floats, since that reads them all.
type row struct {
	Event *row `json:"event"` // the record itself, where the row is the envelope of a file writer

	Schema string   `json:"schema"`
	Type   string   `json:"event_type"`
	Time   *float64 `json:"event_time_unix_ms"`

	Request *dynamoRequest `json:"request"`
	Tool    *dynamoTool    `json:"tool"`

	Observed *float64     `json:"observed_at_unix_ms"`
	Mode     string       `json:"capture_mode"`
	Pass     *forwardPass `json:"fpm"`
}

func (in *importer) read(file io.Reader) error {
	r := bufio.NewReaderSize(file, 64<<10)
	if head, _ := r.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		r = bufio.NewReaderSize(z, 64<<10)
	}
	for {
		line, err := readLine(r)
		if len(bytes.TrimSpace(line)) > 0 {
			in.line(line)
		}
		if len(in.events) > maxImport {
			return fmt.Errorf("it makes more than %d events: split it", maxImport)
		}
		switch {
		case errors.Is(err, errLong):
			in.Skipped++
		case errors.Is(err, io.ErrUnexpectedEOF) && in.Rows > 0, errors.Is(err, io.EOF): // a torn tail costs the tail
			if in.Rows == 0 {
				return errors.New("it holds no dynamo.request.trace.v1 and no dynamo.fpm.trace.v1")
			}
			return nil
		case err != nil:
			return err
		}
	}
}

var errLong = errors.New("line too long")

// readLine reads a line; one that is longer than MaxLine is passed over.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line) <= MaxLine {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > MaxLine {
			if err == nil {
				err = errLong
			}
			return nil, err
		}
		return line, err
	}
}

// line takes in a row.
func (in *importer) line(line []byte) {
	var r row
	if json.Unmarshal(line, &r) != nil {
		in.Skipped++
		return
	}
	rec := &r
	if r.Event != nil {
		rec = r.Event
	}
	known := false
	switch rec.Schema {
	case "dynamo.request.trace.v1":
		switch {
		case rec.Type == "request_end" && rec.Request != nil:
			known = in.request(rec)
		case rec.Tool != nil:
			known = in.tool(rec)
		}
	case "dynamo.fpm.trace.v1":
		known = rec.Pass != nil && in.pass(rec)
	}
	if known {
		in.Rows++
	} else {
		in.Skipped++
	}
}

// unix is a wall clock in ms as ns; false if it is none.
func unix(t *float64) (int64, bool) {
	if t == nil || !(*t >= earliest && *t <= latest) {
		return 0, false
	}
	return int64(*t) * int64(time.Millisecond), true
}

// duration is one in ms as ns; false if it is none, or longer than a day.
func duration(t *float64) (int64, bool) {
	if t == nil || !(*t >= 0 && *t <= 86_400_000) {
		return 0, false
	}
	return int64(math.Round(*t * float64(time.Millisecond))), true
}

// tally is a number of things; 0 if it is none.
func tally(n *float64) int {
	if n == nil || !(*n >= 0 && *n <= math.MaxInt32) {
		return 0
	}
	return int(*n)
}

func (in *importer) emit(at int64, e event.Event) {
	e.At = event.Time(at)
	if e.Kind != event.KindStage {
		e.Layer = -1
	}
	in.events = append(in.events, e)
}

// recording puts the events in order and begins their clock a second before the first.
func (in *importer) recording(codec Codec) (*Recording, error) {
	slices.SortStableFunc(in.events, func(a, b event.Event) int { return int(min(max(a.At-b.At, -1), 1)) })
	epoch := (int64(in.events[0].At)/int64(time.Second) - 1) * int64(time.Second)
	first := in.events[0].At
	events := append(in.preface(first, epoch), in.events...)
	h := Header{Recording: "import", Program: "dynamo", Codec: codec.Name(), Epoch: epoch, Start: first - event.Time(epoch)}
	file, err := inMemory(h, events, codec)
	if err != nil {
		return nil, err
	}
	return NewRecording(bytes.NewReader(file.b), int64(len(file.b)))
}

// preface is what comes before the first event: who speaks, and what it cannot tell.
func (in *importer) preface(at event.Time, epoch int64) []event.Event {
	engine := &event.Engine{Name: "dynamo", Epoch: epoch, Caps: in.caps, State: event.EngineReady}
	out := []event.Event{{Kind: event.KindEngine, Layer: -1, At: at, Data: engine}}
	if in.model != "" {
		out = append(out, event.Event{Kind: event.KindModel, Layer: -1, At: at, Data: &event.Model{Name: in.model}})
	}
	if in.spread {
		out = append(out, event.Event{Kind: event.KindLog, Layer: -1, At: at, Text: "the trace tells the mean gap between tokens only: they are evenly spaced here"})
	}
	if in.sampled {
		out = append(out, event.Event{Kind: event.KindLog, Layer: -1, At: at, Text: "the trace holds a sample of the forward passes: the share of time in which one ran is not known"})
	}
	return out
}
