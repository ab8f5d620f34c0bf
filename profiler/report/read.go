package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/clean"
)

// MaxDocument is the largest document that is read, in bytes: a token takes about 120.
const MaxDocument = 128 << 20

// Read reads a document written by WriteJSON, of this schema version and of at most MaxDocument bytes, which do not
// take many times as many in memory.
func Read(r io.Reader) (*Report, error) {
	src, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read report: %w", clean.Error(err))
	}
	if len(src) > MaxDocument {
		return nil, fmt.Errorf("read report: larger than %d MiB", MaxDocument>>20)
	}
	var version struct {
		SchemaVersion json.RawMessage `json:"schema_version"`
	}
	text := bytes.TrimSpace(src)
	switch err := json.Unmarshal(src, &version); {
	case len(text) == 0:
		return nil, errors.New("read report: it is empty")
	case bytes.HasPrefix(text, []byte(`{"recording":`)):
		return nil, errors.New("read report: it is the text of a recording: name the recording itself")
	case err != nil && text[0] != '{':
		return nil, errors.New("read report: it is neither a report nor a recording of llmtop")
	case err != nil && json.NewDecoder(bytes.NewReader(src)).Decode(&version) == nil:
		return nil, errors.New("read report: it has several JSON documents: not a report of llmtop")
	case err != nil:
		return nil, fmt.Errorf("read report: %w", clean.Error(err))
	case version.SchemaVersion == nil:
		return nil, errors.New("read report: no schema_version: not a report of llmtop")
	}
	number, err := strconv.Atoi(string(version.SchemaVersion))
	switch {
	case err != nil: // other programs have one too
		return nil, errors.New("read report: schema_version is no number: not a report of llmtop")
	case number != SchemaVersion:
		return nil, fmt.Errorf("read report: schema version %d, this llmtop reads %d", number, SchemaVersion)
	}
	out := new(Report)
	if err := clean.Dense(src, out); err != nil {
		return nil, fmt.Errorf("read report: %w: not a report of llmtop", err)
	}
	if err := json.Unmarshal(src, out); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			return nil, fmt.Errorf("read report: %s holds a %s: not a report of llmtop", clean.Cut(wrong.Field, 60), clean.Cut(wrong.Value, 60))
		}
		return nil, fmt.Errorf("read report: %w", clean.Error(err))
	}
	if out.Fleet != nil && slices.ContainsFunc(out.Fleet.Replicas, func(r Replica) bool { return r.Report == nil }) {
		return nil, errors.New("read report: a replica has no report")
	}
	restoreAbsences(reflect.ValueOf(out))
	return out, nil
}

// UnmarshalJSON reads the object that MarshalJSON writes, in order.
func (p *Parts) UnmarshalJSON(src []byte) error {
	*p = nil
	err := eachMember(src, func(name string, v []byte) error {
		*p = append(*p, Part{Name: name})
		return json.Unmarshal(v, &(*p)[len(*p)-1].Time)
	})
	if err != nil {
		return fmt.Errorf("ttft_components_s: %w", err)
	}
	return nil
}
