package recording

import (
	"bytes"
	"encoding/gob"
	"errors"

	"github.com/llmtop/llmtop/profiler/event"
)

// plain is a codec for tests that keeps every field.
type plain struct{}

func init() {
	for _, p := range []any{
		&event.EngineInfo{}, &event.Model{}, &event.Request{}, &event.Outcome{}, &event.Experts{}, &event.KV{}, &event.Host{}, &event.Drops{},
		&event.Counters{}, &event.Pass{},
	} {
		gob.Register(p)
	}
}

var errUnwanted = errors.New("not to be recorded")

func newPlain() Codec { return plain{} }

func (plain) Name() string { return "gob" }

func (plain) Append(dst []byte, e *event.Event) ([]byte, error) {
	if e.Text == "unwanted" {
		return dst, errUnwanted
	}
	b := bytes.NewBuffer(dst)
	err := gob.NewEncoder(b).Encode(e)
	return b.Bytes(), err
}

func (plain) Decode(line []byte, emit func(event.Event)) error {
	var e event.Event
	if err := gob.NewDecoder(bytes.NewReader(line)).Decode(&e); err != nil {
		return err
	}
	emit(e)
	return nil
}
