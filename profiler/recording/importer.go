package recording

import (
	"bufio"
	"bytes"
	"cmp"
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

// maxImport is the most events that an imported file may produce, 184 bytes each while they are sorted: 193 MB.
const maxImport = 1 << 20

// The range of plausible wall clocks in Unix ms: the years 2001 to 2100. Rows outside it count as damaged.
const (
	earliest = 1e12
	latest   = 4.1e12
)

// ImportResult counts the lines of an imported file.
type ImportResult struct {
	Rows    int // lines that were imported
	Skipped int // lines that were not: malformed, too long, or of other types
}

// Import converts Dynamo's request traces (dynamo.request.trace.v1) and forward pass traces (dynamo.fpm.trace.v1) to a
// recording in memory. The file is JSON Lines, plain or gzipped, and may mix both. Rows need not be sorted.
//
// The traces are summaries: of a request's tokens they report the time of the first one and the mean gap. The recording
// spaces the others evenly, and its log states what the trace lacks.
func Import(file io.Reader, codec Codec) (*Recording, ImportResult, error) {
	var in importer
	if err := in.read(file); err != nil {
		return nil, in.ImportResult, fmt.Errorf("import trace: %w", err)
	}
	rec, err := in.recording(codec)
	if err != nil {
		return nil, in.ImportResult, fmt.Errorf("import trace: %w", err)
	}
	return rec, in.ImportResult, nil
}

// importer collects events with the wall clock in Unix ns as their times.
type importer struct {
	ImportResult
	events  []event.Event
	caps    event.Caps
	model   string
	next    event.RequestID
	sampled bool // the trace samples forward passes
	spread  bool // tokens were spaced evenly
}

// row is a line of either trace. Fields that llmtop does not use are omitted. Numbers are floats, which parse every
// number.
type row struct {
	Event *row `json:"event"` // the record, if the row is the envelope of a file writer

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
			return fmt.Errorf("more than %d events: split the file", maxImport)
		}
		switch {
		case errors.Is(err, errLong):
			in.Skipped++
		case errors.Is(err, io.ErrUnexpectedEOF) && in.Rows > 0, errors.Is(err, io.EOF): // a torn tail loses only the tail
			if in.Rows == 0 {
				return errors.New("no rows of dynamo.request.trace.v1 or dynamo.fpm.trace.v1")
			}
			return nil
		case err != nil:
			return err
		}
	}
}

var errLong = errors.New("line too long")

// readLine reads a line; it skips lines longer than MaxLine with errLong.
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

// line imports a row.
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
	imported := false
	switch rec.Schema {
	case "dynamo.request.trace.v1":
		switch {
		case rec.Type == "request_end" && rec.Request != nil:
			imported = in.request(rec)
		case rec.Tool != nil:
			imported = in.tool(rec)
		}
	case "dynamo.fpm.trace.v1":
		imported = rec.Pass != nil && in.pass(rec)
	}
	if imported {
		in.Rows++
	} else {
		in.Skipped++
	}
}

// unixNs converts a wall clock in ms to ns; false if it is missing or implausible.
func unixNs(t *float64) (int64, bool) {
	if t == nil || !(*t >= earliest && *t <= latest) {
		return 0, false
	}
	return int64(*t) * int64(time.Millisecond), true
}

// durationNs converts a duration in ms to ns; false if it is missing, negative or longer than a day.
func durationNs(t *float64) (int64, bool) {
	if t == nil || !(*t >= 0 && *t <= 86_400_000) {
		return 0, false
	}
	return int64(math.Round(*t * float64(time.Millisecond))), true
}

// intOrZero converts a count; 0 if it is missing or out of range.
func intOrZero(n *float64) int {
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

// recording sorts the events and sets time 0 one second before the first.
func (in *importer) recording(codec Codec) (*Recording, error) {
	slices.SortStableFunc(in.events, func(a, b event.Event) int { return cmp.Compare(a.At, b.At) })
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

// preface returns the events before the first: the engine, the model, and log lines with what the trace lacks.
func (in *importer) preface(at event.Time, epoch int64) []event.Event {
	engine := &event.EngineInfo{Name: "dynamo", Epoch: epoch, Caps: in.caps, State: event.EngineReady}
	out := []event.Event{{Kind: event.KindEngine, Layer: -1, At: at, Data: engine}}
	if in.model != "" {
		out = append(out, event.Event{Kind: event.KindModel, Layer: -1, At: at, Data: &event.Model{Name: in.model}})
	}
	if in.spread {
		out = append(out, event.Event{Kind: event.KindLog, Layer: -1, At: at, Text: "the trace has only the mean gap between tokens: tokens are spaced evenly"})
	}
	if in.sampled {
		out = append(out, event.Event{Kind: event.KindLog, Layer: -1, At: at, Text: "the trace has a sample of the forward passes: the engine's busy share is not available"})
	}
	return out
}
