package wire

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
)

// extreme fills a value with anything that its type can hold, mostly numbers at and beyond the bounds.
func extreme(r *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(r, "flag"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := rapid.OneOf(rapid.SampledFrom([]int64{
			0, 1, -1, math.MaxInt64, math.MinInt64, event.MaxNumber, event.MaxNumber + 1, -event.MaxNumber - 1, int64(event.MaxTime) + 1, -int64(event.MaxTime) - 1,
		}), rapid.Int64()).Draw(r, "int")
		v.SetInt(n >> (64 - v.Type().Bits()))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := rapid.OneOf(rapid.SampledFrom([]uint64{0, 1, math.MaxUint64, math.MaxInt64, event.MaxNumber + 1}), rapid.Uint64()).Draw(r, "uint")
		v.SetUint(n >> (64 - v.Type().Bits()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(rapid.OneOf(rapid.SampledFrom([]float64{
			0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.MaxFloat32, 1.0000001e18, 5e-324,
		}), rapid.Float64()).Draw(r, "float"))
	case reflect.String:
		v.SetString(string(rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(r, "string")))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 3).Draw(r, "length"), 3))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			extreme(r, v.Index(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(r, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			extreme(r, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			extreme(r, v.Field(i))
		}
	case reflect.Interface: // the payload, which depends on the kind
	default:
		r.Fatalf("no extremes of %v", v.Type())
	}
}

// extremeOf is an event of a kind, or of a kind that is not known, with a payload of that kind if it has one.
func extremeOf(r *rapid.T, kind event.Kind) event.Event {
	var e event.Event
	extreme(r, reflect.ValueOf(&e).Elem())
	e.Kind = kind
	if rapid.Bool().Draw(r, "state") {
		e.State %= event.NumStates
	}
	payloads := map[event.Kind][]any{
		event.KindStep: {nil, new(event.Pass), new(event.Calls)}, event.KindStage: {nil, new(event.Calls)}, event.KindRequest: {nil, new(event.Request), new(event.Outcome)},
		event.KindEngine: {new(event.EngineInfo)}, event.KindModel: {new(event.Model)}, event.KindExperts: {new(event.Experts)},
		event.KindKV: {new(event.KV)}, event.KindHost: {new(event.Host)}, event.KindDrops: {new(event.Drops)},
		event.KindCounters: {new(event.Counters)}, event.KindAggregates: {new(event.Aggregates)}, event.KindOps: {new(event.Ops)},
		event.KindUsage: {new(event.Usage)}, event.KindSpeculation: {new(event.Speculation)},
	}[kind]
	if len(payloads) == 0 {
		return e
	}
	if e.Data = rapid.SampledFrom(payloads).Draw(r, "payload"); e.Data == nil {
		return e
	}
	extreme(r, reflect.ValueOf(e.Data).Elem())
	if p, ok := e.Data.(*event.Experts); ok && rapid.Bool().Draw(r, "consistent") {
		p.Layers, p.Experts, p.Prompt = 1, len(p.Decode), nil
	}
	if p, ok := e.Data.(*event.Speculation); ok && rapid.Bool().Draw(r, "consistent") {
		p.Drafted, p.Accepted = nil, nil
		for i := range p.Shapes {
			s := &p.Shapes[i]
			s.Requests, s.Rows = 1+s.Requests&7, 9+s.Rows&7
		}
	}
	if p, ok := e.Data.(*event.Ops); ok && rapid.Bool().Draw(r, "consistent") {
		for i := range p.Times {
			p.Times[i].Layer %= MaxLayers
		}
	}
	return e
}

// TestReadersTakeWhatIsWritten: an event is either not written at all, or its line is read back as an event of its kind, whatever numbers are in it.
func TestReadersTakeWhatIsWritten(t *testing.T) {
	f := readSchema(t)
	for kind := range event.NumKinds + 1 {
		t.Run(kind.String(), func(t *testing.T) {
			written := 0
			rapid.Check(t, func(r *rapid.T) {
				e := extremeOf(r, kind)
				line, err := Append(nil, &e)
				if errors.Is(err, ErrEvent) {
					return
				}
				written++
				var d Decoder
				read := 0
				if _, err = d.Decode(line, func(got event.Event) {
					if read++; got.Kind != kind || !got.At.Plausible() || !event.PlausibleCount(got.Dur) {
						r.Fatalf("%s is read as %+v", line, got)
					}
				}); err != nil || read != 1 {
					r.Fatalf("%v, %d events: %s", err, read, line)
				}
				if why := f.check(line); why != "" {
					r.Fatalf("%s\n%s", why, line)
				}
			})
			if written == 0 && kind < event.NumKinds {
				t.Error("none was written")
			}
		})
	}
}

// TestReadersTakeBatches: so it is with many tokens or passes in a line.
func TestReadersTakeBatches(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var steps, tokens []event.Event
		for range rapid.IntRange(2, 5).Draw(r, "events") {
			step, token := extremeOf(r, event.KindStep), extremeOf(r, event.KindToken)
			step.Data = nil
			token.Req = max(token.Req, 1)
			steps, tokens = append(steps, step), append(tokens, token)
		}
		var d Decoder
		line, err := AppendSteps(nil, steps)
		if err != nil {
			r.Fatal(err)
		}
		if n := len(decodedBy(r, &d, line)); n != len(steps) {
			r.Fatalf("%d of %d passes: %s", n, len(steps), line)
		}
		if line, err = AppendTokens(nil, tokens, steps); err != nil {
			r.Fatal(err)
		}
		if n := len(decodedBy(r, &d, line)); n != len(tokens) {
			r.Fatalf("%d of %d tokens: %s", n, len(tokens), line)
		}
	})
}

// TestReadersTakeSessions: and with the lines about the connection.
func TestReadersTakeSessions(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s, lost := Session{}, event.Drops{}
		extreme(r, reflect.ValueOf(&s).Elem())
		extreme(r, reflect.ValueOf(&lost).Elem())
		s.Type = Auth + s.Type%(Bye-Auth+1)
		engine, model := extremeOf(r, event.KindEngine), extremeOf(r, event.KindModel)
		var d Decoder
		decodedBy(r, &d, AppendSession(nil, &s, &lost))
		decodedBy(r, &d, AppendHello(nil, s.At, "run", engine.Data.(*event.EngineInfo), model.Data.(*event.Model), model.Dur))
	})
}

// decodedBy are the events of a line that must not be refused.
func decodedBy(r *rapid.T, d *Decoder, line []byte) (events []event.Event) {
	if _, err := d.Decode(line, func(e event.Event) { events = append(events, e) }); err != nil {
		r.Fatalf("%v: %s", err, line)
	}
	return events
}
