package otlp

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/llmtop/llmtop/profiler/clean"
)

var errProtobuf = errors.New("the body is not a trace export in protobuf")

// field is one field of a protobuf message.
type field struct {
	num   protowire.Number
	bytes []byte // value of a string, bytes or message
	bits  uint64 // value of a number
}

// fields calls visit for each field of a message. It copies nothing, so that a small body cannot allocate much memory.
func fields(message []byte, visit func(field) error) error {
	for len(message) > 0 {
		num, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errProtobuf
		}
		message = message[n:]
		f := field{num: num}
		switch kind {
		case protowire.VarintType:
			f.bits, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.bits, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(num, kind, message)
			f.num = 0
		}
		if n < 0 {
			return errProtobuf
		}
		message = message[n:]
		if f.num == 0 {
			continue
		}
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// readProtobuf reads an ExportTraceServiceRequest.
func readProtobuf(body []byte) (*batch, error) {
	b := new(batch)
	return b, fields(body, func(f field) error {
		if f.num != 1 {
			return nil
		}
		return b.resourceSpans(f.bytes)
	})
}

func (b *batch) resourceSpans(message []byte) error {
	sender := new(resource)
	return fields(message, func(f field) error {
		switch f.num {
		case 1:
			return fields(f.bytes, func(f field) error {
				if f.num != 1 {
					return nil
				}
				return readAttribute(f.bytes, sender.field)
			})
		case 2:
			return fields(f.bytes, func(f field) error {
				if f.num != 2 {
					return nil
				}
				s := span{sender: sender}
				if err := s.protobuf(f.bytes); err != nil {
					return err
				}
				b.add(&s)
				return nil
			})
		}
		return nil
	})
}

func (s *span) protobuf(message []byte) error {
	return fields(message, func(f field) error {
		switch f.num {
		case 1:
			return identify(s.trace[:], f.bytes)
		case 2:
			return identify(s.id[:], f.bytes)
		case 4:
			return identify(s.parent[:], f.bytes)
		case 5:
			s.name = clean.Cut(truncate(f.bytes), maxName)
		case 7:
			s.start = moment(f.bits)
		case 8:
			s.end = moment(f.bits)
		case 9:
			return readAttribute(f.bytes, s.field)
		case 15:
			return fields(f.bytes, func(f field) error {
				if f.num == 3 {
					s.failed = f.bits == statusError
				}
				return nil
			})
		}
		return nil
	})
}

// statusError is the status code of a failed span.
const statusError = 2

// identify copies an id. An id of another length stays zero, which makes a span invalid; a missing parent is valid.
func identify(to, from []byte) error {
	if len(from) == len(to) {
		copy(to, from)
	}
	return nil
}

// moment returns a time in Unix ns, or 0 if it is after the year 2262.
func moment(bits uint64) int64 {
	if bits > math.MaxInt64 {
		return 0
	}
	return int64(bits)
}

// truncate returns the start of a text, long enough for a name of maxName characters.
func truncate(text []byte) string { return string(text[:min(len(text), 2*maxName)]) }

// readAttribute reads a KeyValue into its field. It skips the values of attributes without one, and ignores numbers out of
// range.
func readAttribute(message []byte, keep func(name string) (*string, *number, float64)) error {
	var name, raw []byte
	err := fields(message, func(f field) error {
		switch f.num {
		case 1:
			name = f.bytes
		case 2:
			raw = f.bytes
		}
		return nil
	})
	text, n, most := keep(truncate(name))
	if err != nil || text == nil && n == nil {
		return err
	}
	v, err := readValue(raw, true)
	switch {
	case err != nil:
		return err
	case n != nil && v.known && v.v >= 0 && v.v <= most:
		*n = v.number
	case text != nil && v.text != "":
		*text = clean.Cut(v.text, maxName)
	}
	return nil
}

// readValue reads an AnyValue. Of a list it reads the first element, without nested lists.
func readValue(message []byte, lists bool) (v value, err error) {
	return v, fields(message, func(f field) error {
		switch f.num {
		case 1:
			v = value{text: truncate(f.bytes)}
		case 3:
			v = value{number: number{float64(int64(f.bits)), true}}
		case 4:
			v = value{number: number{math.Float64frombits(f.bits), true}}
		case 5:
			first := lists
			return fields(f.bytes, func(f field) (err error) {
				if f.num == 1 && first {
					first = false
					v, err = readValue(f.bytes, false)
				}
				return err
			})
		}
		return nil
	})
}
