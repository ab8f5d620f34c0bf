package otlp

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

var errProtobuf = errors.New("the body is no protobuf of an export of traces")

// field is one of a message in protobuf.
type field struct {
	num   protowire.Number
	bytes []byte // of a string, bytes or message
	bits  uint64 // of a number
}

// fields goes through a message. Nothing is copied, so that a small body cannot become much memory.
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
	of := new(resource)
	return fields(message, func(f field) error {
		switch f.num {
		case 1:
			return fields(f.bytes, func(f field) error {
				if f.num != 1 {
					return nil
				}
				return readAttribute(f.bytes, of)
			})
		case 2:
			return fields(f.bytes, func(f field) error {
				if f.num != 2 {
					return nil
				}
				s := span{of: of}
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
			s.name = printable(head(f.bytes))
		case 7:
			s.start = moment(f.bits)
		case 8:
			s.end = moment(f.bits)
		case 9:
			return readAttribute(f.bytes, &s.facts)
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

// statusError is the code of a span that tells of an error.
const statusError = 2

// identify copies an id. One of another length stays zero, and so makes the span invalid; a parent may be missing.
func identify(to, from []byte) error {
	if len(from) == len(to) {
		copy(to, from)
	}
	return nil
}

// moment is a time in Unix ns, 0 if it is past the year 2262.
func moment(bits uint64) int64 {
	if bits > math.MaxInt64 {
		return 0
	}
	return int64(bits)
}

// head is the beginning of a text, as much as can be of use.
func head(text []byte) string { return string(text[:min(len(text), 2*maxName)]) }

// readAttribute reads a KeyValue. The value of one that is not wanted is not looked at.
func readAttribute(message []byte, to attributes) error {
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
	if err != nil || !to.wanted(head(name)) {
		return err
	}
	v, err := readValue(raw, true)
	if err == nil {
		to.set(string(name), v)
	}
	return err
}

// readValue reads an AnyValue: of a list, as deep as that, the first one.
func readValue(message []byte, lists bool) (v value, err error) {
	return v, fields(message, func(f field) error {
		switch f.num {
		case 1:
			v = value{text: head(f.bytes)}
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
