package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// The limits of a document, in bytes. A few bytes of JSON can need thousands of bytes of memory, so both are limited. A
// report of a million tokens is below the limits.
const (
	MaxDocument = 256 << 20 // of the document
	MaxDecoded  = 256 << 20 // of the decoded document in memory, without its texts
)

// checkDecoded returns an error if decoding a valid document would take more than MaxDecoded.
func checkDecoded(src []byte) error {
	w := walk{src: src}
	w.value(reflect.TypeFor[Report](), "the report")
	if w.err != nil {
		return fmt.Errorf("read report: %w", w.err)
	}
	return nil
}

// walk traverses valid JSON along the type that it will be decoded into, and adds up the allocations.
type walk struct {
	src   []byte
	at    int
	bytes uint64
	err   error // the first error; it ends the walk
}

// spend adds the size of a part of the document.
func (w *walk) spend(size uintptr, what string) {
	if w.bytes += uint64(size); w.bytes > MaxDecoded && w.err == nil {
		w.err = fmt.Errorf("%s would take it above %d MiB of memory", what, MaxDecoded>>20)
	}
}

// space skips white space, commas and colons, and returns the next byte; 0 at the end.
func (w *walk) space() byte {
	for ; w.at < len(w.src); w.at++ {
		if c := w.src[w.at]; c > ' ' && c != ',' && c != ':' {
			return c
		}
	}
	return 0
}

// text reads a string.
func (w *walk) text() string {
	from := w.at
	for w.at++; w.src[w.at] != '"'; w.at++ {
		if w.src[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	raw := w.src[from:w.at]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // src is valid JSON
	return s
}

// scalar skips a number or a literal.
func (w *walk) scalar() {
	for w.at < len(w.src) && strings.IndexByte(",]} \t\r\n", w.src[w.at]) < 0 {
		w.at++
	}
}

// value walks over a value of type t; nil if it is not decoded.
func (w *walk) value(t reflect.Type, what string) {
	c := w.space()
	if t != nil && t.Kind() == reflect.Pointer && c != 'n' {
		t = t.Elem()
		w.spend(t.Size(), what)
	}
	switch {
	case w.err != nil:
		w.at = len(w.src)
	case c == '{':
		w.object(t, what)
	case c == '[':
		w.list(t, what)
	case c == '"':
		w.text()
	default:
		w.scalar()
	}
}

// list walks over an array.
func (w *walk) list(t reflect.Type, what string) {
	var element reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		element = t.Elem()
	}
	n := 0
	for w.at++; w.err == nil && w.space() != ']'; n++ {
		if element != nil {
			w.spend(element.Size(), what)
		}
		if element == reflect.TypeFor[Request]() && n == MaxRequests {
			w.err = fmt.Errorf("it has more than %d requests", MaxRequests)
		}
		w.value(element, what)
	}
	w.at++
}

// object walks over an object. Types other than structs keep every member: maps, and Parts.
func (w *walk) object(t reflect.Type, what string) {
	for w.at++; w.err == nil && w.space() != '}'; {
		name := w.text()
		switch {
		case t == nil:
			w.value(nil, what)
		case t.Kind() == reflect.Struct:
			w.value(field(t, name), name)
		default:
			w.spend(memberSize, what)
			w.value(nil, what)
		}
	}
	w.at++
}

// memberSize is the size of an object member that is not a struct field.
const memberSize = 64

// field returns the type of the struct field for a JSON name, nil if absent. Like encoding/json it ignores case.
func field(t reflect.Type, name string) reflect.Type {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			if inner := field(f.Type, name); inner != nil {
				return inner
			}
		}
		if tag == "" {
			tag = f.Name
		}
		if tag != "-" && f.IsExported() && strings.EqualFold(tag, name) {
			return f.Type
		}
	}
	return nil
}
