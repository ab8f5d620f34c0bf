package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// MaxDocument bounds a document that is read, in bytes.
const MaxDocument = 1 << 30

// Read reads a document that WriteJSON has written, of this version of the schema.
func Read(r io.Reader) (*Report, error) {
	src, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if len(src) > MaxDocument {
		return nil, fmt.Errorf("read report: more than %d bytes", MaxDocument)
	}
	var version struct {
		SchemaVersion *int `json:"schema_version"`
	}
	switch err := json.Unmarshal(src, &version); {
	case err != nil:
		return nil, fmt.Errorf("read report: %w", err)
	case version.SchemaVersion == nil:
		return nil, fmt.Errorf("read report: no schema_version: not a report of llmtop")
	case *version.SchemaVersion != SchemaVersion:
		return nil, fmt.Errorf("read report: schema version %d, this llmtop reads %d", *version.SchemaVersion, SchemaVersion)
	}
	out := new(Report)
	if err := json.Unmarshal(src, out); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if out.Fleet != nil && slices.ContainsFunc(out.Fleet.Replicas, func(r Replica) bool { return r.Report == nil }) {
		return nil, errors.New("read report: a replica without a report")
	}
	return out, nil
}

// UnmarshalJSON reads a number, or null as one that was not told.
func (n *Number) UnmarshalJSON(src []byte) error {
	*n = Number{}
	if bytes.Equal(src, []byte("null")) {
		return nil
	}
	var v float64
	if err := json.Unmarshal(src, &v); err != nil {
		return err
	}
	*n = Number(event.Of(v))
	return nil
}

// UnmarshalJSON reads the object that MarshalJSON writes, and keeps its order.
func (p *Parts) UnmarshalJSON(src []byte) error {
	*p = nil
	d := json.NewDecoder(bytes.NewReader(src))
	opening, err := d.Token()
	if err != nil || opening == nil {
		return err
	}
	if opening != json.Delim('{') {
		return fmt.Errorf("ttft_components_s: want an object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		part := Part{Name: name.(string)} // the decoder takes nothing else for a key
		if err := d.Decode(&part.Time); err != nil {
			return err
		}
		*p = append(*p, part)
	}
	return nil
}

// Finished are the requests that ended well, in the order in which they were enqueued.
func (r *Report) Finished() []Request {
	return slices.DeleteFunc(slices.Clone(r.Requests), func(q Request) bool { return q.State != event.StateFinished.String() })
}

// Positive is the number, if it is one above 0.
func (n Number) Positive() (float64, bool) {
	return n.V, n.OK() && n.V > 0 && !math.IsInf(n.V, 1)
}
