package clean

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// The memory that JSON may take: reports take about 1 per byte, lists of zeros 8.
const (
	memoryPerByte = 8
	anyMemory     = 1 << 20 // whatever its size
	memberMemory  = 64      // of a map
	anyJSON       = 1 << 13 // bytes of JSON that may take any memory
)

// ErrDense means that JSON would take many times its size in memory.
var ErrDense = errors.New("its JSON would take many times its size in memory")

// UnmarshalJSON is json.Unmarshal, but for ErrDense.
func UnmarshalJSON(src []byte, into any) error {
	if len(src) > anyJSON && json.Valid(src) {
		if err := Dense(src, into); err != nil {
			return err
		}
	}
	return json.Unmarshal(src, into)
}

// Dense returns ErrDense if valid JSON would take many times its size in memory. What a type reads itself counts if the type
// has JSONMembers, which returns pointers to what its members are read into.
func Dense(src []byte, into any) error {
	m := meter{src: src, members: map[reflect.Type]map[string]reflect.Type{}}
	if m.value(reflect.TypeOf(into)); m.bytes > anyMemory+memoryPerByte*len(src) {
		return ErrDense
	}
	return nil
}

// meter counts the memory that the lists, pointers and maps of valid JSON take as Go values. encoding/json allocates an
// element for whatever stands in a list, also if it is of a wrong type.
type meter struct {
	src     []byte
	at      int
	bytes   int
	members map[reflect.Type]map[string]reflect.Type
}

// value counts a value that is read as type t; nil: it is skipped.
func (m *meter) value(t reflect.Type) {
	c := m.next()
	for ; t != nil && t.Kind() == reflect.Pointer && c != 'n'; m.bytes += int(t.Size()) {
		t = t.Elem()
	}
	switch c {
	case '"':
		m.text()
	case '{', '[':
		members, of, each := m.inside(t, c)
		for end := c + 2; m.src[m.at] != end; m.next() {
			if m.at++; m.next() == end { // after the bracket or a comma
				break
			}
			if c == '{' {
				name := m.text()
				m.next()
				m.at++ // colon
				if members != nil {
					of = memberOf(members, name)
				}
			}
			m.bytes += each
			m.value(of)
		}
		m.at++
	default:
		for c > ' ' && c != ',' && c != ']' && c != '}' {
			m.at++
			c = m.src[m.at]
		}
	}
}

// inside returns the types of the members of an object that is read as type t, or the one type of what is inside it or
// a list, and what each takes.
func (m *meter) inside(t reflect.Type, opening byte) (members map[string]reflect.Type, of reflect.Type, each int) {
	switch {
	case t == nil:
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		if opening == '{' {
			each = memberMemory
		}
		return m.membersOf(t), nil, each
	case opening == '[' && t.Kind() == reflect.Slice:
		return nil, t.Elem(), int(t.Elem().Size())
	case opening == '[' && t.Kind() == reflect.Array:
		return nil, t.Elem(), 0
	case opening == '{' && t.Kind() == reflect.Map:
		return nil, t.Elem(), memberMemory + int(t.Elem().Size())
	case opening == '{' && t.Kind() == reflect.Struct:
		return m.membersOf(t), nil, 0
	}
	return nil, nil, 0
}

// membersOf returns the types of the members of a struct in JSON, by their names in lower case.
func (m *meter) membersOf(t reflect.Type) map[string]reflect.Type {
	out, known := m.members[t]
	if known {
		return out
	}
	out = map[string]reflect.Type{}
	m.members[t] = out
	if of, ok := reflect.New(t).Interface().(interface{ JSONMembers() map[string]any }); ok {
		for name, at := range of.JSONMembers() {
			out[name] = reflect.TypeOf(at).Elem()
		}
	} else if t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "-" {
				out[strings.ToLower(cmp.Or(name, f.Name))] = f.Type
			}
		}
	}
	return out
}

// memberOf returns the type of a member by its name in JSON, in upper or lower case.
func memberOf(members map[string]reflect.Type, quoted []byte) reflect.Type {
	if of, ok := members[string(quoted[1:len(quoted)-1])]; ok {
		return of
	}
	var name string
	if json.Unmarshal(quoted, &name) != nil {
		return nil
	}
	return members[strings.ToLower(strings.ToUpper(name))]
}

// next skips space and returns the next byte; 0 at the end.
func (m *meter) next() byte {
	for ; m.at < len(m.src); m.at++ {
		if c := m.src[m.at]; c > ' ' {
			return c
		}
	}
	return 0
}

// text skips a string and returns it with its quotes.
func (m *meter) text() []byte {
	from := m.at
	for m.at++; m.src[m.at] != '"'; m.at++ {
		if m.src[m.at] == '\\' {
			m.at++
		}
	}
	m.at++
	return m.src[from:m.at]
}
