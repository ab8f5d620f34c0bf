package otlp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/llmtop/llmtop/profiler/clean"
)

var errJSON = errors.New("the body is not a trace export in JSON")

// reader reads JSON value by value, so that a small body cannot allocate much memory. It skips values of an unexpected
// type.
type reader struct{ *json.Decoder }

// readJSON reads an ExportTraceServiceRequest in OTLP's JSON: camelCase names, hexadecimal ids, 64-bit numbers as
// strings.
func readJSON(body []byte) (*batch, error) {
	r := reader{json.NewDecoder(bytes.NewReader(body))}
	r.UseNumber()
	b := new(batch)
	err := r.object(func(name string) error {
		if name != "resourceSpans" {
			return r.skip()
		}
		return r.array(func() error { return b.jsonSpans(r) })
	})
	if err == nil {
		if _, end := r.Token(); end != io.EOF {
			err = errors.New("unexpected data after the end")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errJSON, err)
	}
	return b, nil
}

func (b *batch) jsonSpans(r reader) error {
	sender := new(resource)
	return r.object(func(name string) error {
		switch name {
		case "resource":
			return r.object(func(name string) error {
				if name != "attributes" {
					return r.skip()
				}
				return r.attributes(sender)
			})
		case "scopeSpans":
			return r.array(func() error {
				return r.object(func(name string) error {
					if name != "spans" {
						return r.skip()
					}
					return r.array(func() error {
						s := span{sender: sender}
						err := s.json(r)
						b.add(&s)
						return err
					})
				})
			})
		}
		return r.skip()
	})
}

func (s *span) json(r reader) error {
	return r.object(func(name string) error {
		switch name {
		case "traceId":
			return r.id(s.trace[:])
		case "spanId":
			return r.id(s.id[:])
		case "parentSpanId":
			return r.id(s.parent[:])
		case "name":
			v, err := r.value()
			s.name = clean.Cut(v.text, maxName)
			return err
		case "startTimeUnixNano":
			return r.moment(&s.start)
		case "endTimeUnixNano":
			return r.moment(&s.end)
		case "attributes":
			return r.attributes(&s.facts)
		case "status":
			return r.object(func(name string) error {
				v, err := r.value()
				if name == "code" {
					s.failed = v.v == statusError || v.text == "STATUS_CODE_ERROR"
				}
				return err
			})
		}
		return r.skip()
	})
}

// object calls visit for each member of an object; visit must read the value. Other values are skipped.
func (r reader) object(visit func(name string) error) error {
	return r.inside('{', func() error {
		name, err := r.Token()
		if err != nil {
			return err
		}
		return visit(name.(string)) // the decoder returns only strings as names
	})
}

// array calls visit for each element of an array; visit must read it.
func (r reader) array(visit func() error) error { return r.inside('[', visit) }

func (r reader) inside(open json.Delim, visit func() error) error {
	t, err := r.Token()
	if err != nil {
		return err
	}
	if d, ok := t.(json.Delim); ok && d != open {
		return r.leave()
	} else if !ok {
		return nil
	}
	for r.More() {
		if err := visit(); err != nil {
			return err
		}
	}
	_, err = r.Token()
	return err
}

// maxDepth limits the nesting of skipped values.
const maxDepth = 64

// leave skips the rest of the current object or array.
func (r reader) leave() error {
	for depth := 1; depth > 0; {
		t, err := r.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return errors.New("values are nested too deeply")
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

func (r reader) skip() error {
	_, err := r.value()
	return err
}

// value reads a scalar. Objects and arrays are skipped.
func (r reader) value() (v value, err error) {
	t, err := r.Token()
	switch t := t.(type) {
	case string:
		v.text = truncate([]byte(t))
	case json.Number:
		v.number.v, err = t.Float64()
		v.known, err = err == nil, nil // out of range for a float: treat as missing
	case json.Delim:
		err = r.leave()
	}
	return v, err
}

func (r reader) id(to []byte) error {
	v, err := r.value()
	if raw, bad := hex.DecodeString(v.text); bad == nil {
		return errors.Join(err, identify(to, raw))
	}
	return err
}

// moment reads Unix ns from a string or number.
func (r reader) moment(to *int64) error {
	t, err := r.Token()
	switch t := t.(type) {
	case string:
		*to, _ = strconv.ParseInt(t, 10, 64)
	case json.Number:
		*to, _ = t.Int64()
	case json.Delim:
		return r.leave()
	}
	return err
}

func (r reader) attributes(to attributes) error {
	return r.array(func() error {
		var key string
		var v value
		err := r.object(func(name string) (err error) {
			switch name {
			case "key":
				var k value
				k, err = r.value()
				key = k.text
			case "value":
				v, err = r.any(true)
			default:
				err = r.skip()
			}
			return err
		})
		to.set(key, v)
		return err
	})
}

// any reads an AnyValue. Of a list it reads the first element, without nested lists.
func (r reader) any(lists bool) (v value, err error) {
	return v, r.object(func(name string) error {
		switch name {
		case "stringValue":
			text, err := r.value()
			v = value{text: text.text}
			return err
		case "intValue", "doubleValue":
			n, err := r.value()
			if !n.known {
				f, bad := strconv.ParseFloat(n.text, 64)
				n.number = number{f, bad == nil}
			}
			v = value{number: n.number}
			return err
		case "arrayValue":
			return r.object(func(name string) error {
				if name != "values" || !lists {
					return r.skip()
				}
				first := true
				return r.array(func() error {
					one, err := r.any(false)
					if first {
						v, first = one, false
					}
					return err
				})
			})
		}
		return r.skip()
	})
}
