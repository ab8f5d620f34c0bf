package wire

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
)

// member is a member of an object: a field of a struct, from its tag `wire:"name,how"`, or a row of the catalogue of
// readings. A zero value is unknown and omitted, and so is a negative number, unless how is one of these:
//
//	always     written even if it is zero
//	optional   a negative number is unknown, and 0 is known
//	signed     negative numbers are numbers
//	time       an int64 is Unix ns
//	id         a uint64 is the number of a call or a seed, which has no bounds
//	bare       a reading without its origin: the engine reported it
//	text       a model's text: see appendText
//	uncut      the same, of any length that fits the line
//	named      strings are objects with a name
//	final      only final states of requests
//	many       a list of at most MaxSlots objects; others have MaxCount
type member struct {
	name, how string
	at        func(of reflect.Value) any // pointer to the value
}

// catalogues are the members of structs that have rows in the catalogue of readings, besides their tagged fields.
var catalogues = map[reflect.Type][]member{
	reflect.TypeFor[event.Host]():    rows(event.MachineFields[:]),
	reflect.TypeFor[event.Process](): rows(event.ProcessFields[:]),
	reflect.TypeFor[event.GPU]():     rows(event.GPUFields[:]),
	reflect.TypeFor[event.Usage]():   rows(event.UsageFields[:]),
}

func rows[T any](fields []event.Field[T]) (list []member) {
	for _, f := range fields {
		list = append(list, member{f.Key, "", func(of reflect.Value) any { return f.At(of.Addr().Interface().(*T)) }})
	}
	return list
}

var known sync.Map // []member by reflect.Type

// membersOf returns the members of a struct in the order in which they are written.
func membersOf(t reflect.Type) []member {
	if list, ok := known.Load(t); ok {
		return list.([]member)
	}
	list := append(tagged(t, nil), catalogues[t]...)
	known.Store(t, list)
	return list
}

// tagged returns the tagged fields of a struct, and of those that it embeds. index leads to it.
func tagged(t reflect.Type, index []int) (list []member) {
	for i := range t.NumField() {
		f, index := t.Field(i), append(slices.Clone(index), i)
		name, how, _ := strings.Cut(f.Tag.Get("wire"), ",")
		switch {
		case name != "":
			list = append(list, member{name, how, func(of reflect.Value) any { return of.FieldByIndex(index).Addr().Interface() }})
		case f.Anonymous:
			list = append(list, tagged(f.Type, index)...)
		}
	}
	return list
}

// appendObject appends the struct that p points to as an object.
func appendObject(dst []byte, p any) []byte { return append(appendMembers(append(dst, '{'), p), '}') }

// appendMembers appends the members of the struct that p points to.
func appendMembers(dst []byte, p any) []byte {
	of := reflect.ValueOf(normal(p)).Elem()
	list := membersOf(of.Type())
	for i := range list {
		from, begun := len(dst), key(dst, list[i].name)
		if dst = list[i].append(begun, list[i].at(of)); len(dst) == len(begun) {
			dst = dst[:from]
		}
	}
	return dst
}

// normal returns p, or a histogram without buckets if they are inconsistent.
func normal(p any) any {
	if h, ok := p.(*event.Histogram); ok && !validBuckets(h) {
		return &event.Histogram{Name: h.Name, Count: h.Count, Sum: h.Sum}
	}
	return p
}

// validBuckets reports whether the buckets of a histogram are consistent.
func validBuckets(h *event.Histogram) bool {
	n := len(h.Bounds)
	for i, b := range h.Bounds {
		if !event.PlausibleCount(b) || i > 0 && b <= h.Bounds[i-1] {
			return false
		}
	}
	return n > 0 && n <= MaxBounds && len(h.Counts) == n+1
}

// append appends the value that p points to, or nothing if it is unknown.
func (m *member) append(dst []byte, p any) []byte {
	always := m.how == "always"
	switch v := p.(type) {
	case *string:
		switch {
		case *v == "" && !always:
			return dst
		case m.how == "text":
			return appendText(dst, cut(*v))
		case m.how == "uncut":
			return appendText(dst, *v)
		}
		return appendString(dst, *v)
	case *bool:
		if *v {
			dst = append(dst, "true"...)
		}
	case *int:
		return m.number(dst, int64(*v))
	case *int32:
		return m.number(dst, int64(*v))
	case *int64:
		if m.how == "time" {
			return m.time(dst, event.Time(*v))
		}
		return m.number(dst, *v)
	case *uint64:
		switch {
		case *v == 0 && !always:
			return dst
		case m.how == "id":
			return strconv.AppendUint(dst, *v, 10)
		}
		return appendCount(dst, *v)
	case *float64:
		if *v > 0 && event.Plausible(*v) {
			dst = appendFloat(dst, *v, 64)
		}
	case *event.Time:
		return m.time(dst, *v)
	case *event.RequestID:
		if *v != 0 {
			dst = strconv.AppendUint(dst, uint64(*v), 10)
		}
	case *event.Reading:
		switch {
		case m.how != "bare":
			return appendReading(dst, *v)
		case v.OK():
			return appendFloat(dst, v.V, 64)
		}
	case *event.State:
		if *v < event.NumStates && v.Final() {
			dst = appendString(dst, states[*v])
		}
	default:
		return m.appendMore(dst, p)
	}
	return dst
}

func (m *member) number(dst []byte, v int64) []byte {
	switch {
	case m.how == "always":
		v = max(v, 0)
	case v < 0 && m.how != "signed", v == 0 && m.how != "optional":
		return dst
	}
	return appendInt(dst, v)
}

func (m *member) time(dst []byte, t event.Time) []byte {
	if t == 0 {
		return dst
	}
	return appendTime(dst, t)
}

// appendMore appends a list, an object, or a word.
func (m *member) appendMore(dst []byte, p any) []byte {
	of := reflect.ValueOf(p).Elem()
	if of.Kind() == reflect.Slice && of.Len() == 0 && m.how != "always" {
		return dst
	}
	switch v := p.(type) {
	case *[]uint64:
		return appendUints(dst, *v...)
	case *[]uint8:
		return appendUints(dst, *v...)
	case *[]int64:
		return appendArray(dst, *v, appendInt)
	case *[]int32:
		return appendArray(dst, *v, func(dst []byte, v int32) []byte { return strconv.AppendInt(dst, int64(v), 10) })
	case *[]float64:
		return appendArray(dst, (*v)[:min(len(*v), MaxBatch)], func(dst []byte, v float64) []byte { return appendFloat(dst, v, 64) })
	case *[]string:
		if m.how != "named" {
			return appendArray(dst, *v, appendString)
		}
		return appendArray(dst, (*v)[:min(len(*v), MaxCount)], func(dst []byte, v string) []byte {
			return append(appendString(append(dst, `{"name":`...), v), '}')
		})
	case *event.Caps:
		return appendSet(dst, caps[:], func(i int) bool { return v.Has(1 << i) })
	case *event.Drops:
		return appendDrops(dst, v)
	case *[]event.Counter:
		dst = append(dst, '{')
		for _, c := range (*v)[:min(len(*v), MaxCount)] {
			dst = appendFloat(anyKey(dst, c.Name), c.Value, 64)
		}
		return append(dst, '}')
	case *[]event.NamedReading:
		dst = append(dst, '{')
		for _, n := range (*v)[:min(len(*v), MaxCount)] {
			if n.OK() && n.Origin <= event.Derived {
				dst = appendNumber(anyKey(dst, n.Name), n.Reading)
			}
		}
		return append(dst, '}')
	case fmt.Stringer: // a word of a list
		return appendString(dst, v.String())
	}
	switch {
	case of.Kind() == reflect.Slice:
		dst = append(dst, '[')
		for i := range min(of.Len(), m.most()) {
			dst = appendObject(appendComma(dst, i), of.Index(i).Addr().Interface())
		}
		return append(dst, ']')
	case of.Kind() == reflect.Pointer && !of.IsNil():
		return appendObject(dst, of.Interface())
	case of.Kind() == reflect.Struct && (m.how == "always" || !of.IsZero()):
		return appendObject(dst, p)
	}
	return dst
}

// most returns how many objects a list may have.
func (m *member) most() int {
	if m.how == "many" {
		return MaxSlots
	}
	return MaxCount
}

// readObject reads an object into the struct that p points to. Values of other types leave it zero.
func (d *Decoder) readObject(p any) {
	reflect.ValueOf(p).Elem().SetZero()
	if d.scan.open('{') {
		d.readMembers(p)
	}
	if h, ok := p.(*event.Histogram); ok {
		*h = *normal(h).(*event.Histogram)
	}
}

// readMembers reads the members of the open object into the struct that p points to, and skips others. The struct has no
// member for the time of a line.
func (d *Decoder) readMembers(p any) {
	s, of, next := &d.scan, reflect.ValueOf(p).Elem(), 0
	list := membersOf(of.Type())
	for s.more('}') {
		name := s.key()
		if string(name) == "a" && s.depth == 1 {
			d.event.At, d.hasTime = d.time()
			continue
		}
		i := index(len(list), next, func(i int) bool { return list[i].name == string(name) })
		if i < 0 {
			s.skip()
			continue
		}
		next = i + 1
		list[i].read(d, list[i].at(of))
	}
}

// read reads a value into what p points to. Values of other types are unknown.
func (m *member) read(d *Decoder, p any) {
	switch v := p.(type) {
	case *string:
		switch m.how {
		case "text":
			*v = string(d.text(nil, MaxString))
		case "uncut":
			*v = string(d.text(nil, MaxControl))
		default:
			*v = d.string()
		}
	case *bool:
		*v = d.scan.boolean()
	case *int:
		*v = int(min(m.integer(d), math.MaxInt32))
	case *int32:
		*v = int32(min(m.integer(d), math.MaxInt32))
	case *int64:
		*v = m.integer(d)
	case *uint64:
		if m.how == "id" {
			*v = d.identifier()
		} else {
			*v, _ = d.unsigned()
		}
	case *float64:
		*v = d.bareReading(event.Reported).V
	case *event.Time:
		*v, _ = d.time()
	case *event.RequestID:
		*v = event.RequestID(d.identifier())
	case *event.Reading:
		if m.how == "bare" {
			*v = d.bareReading(event.Reported)
		} else {
			*v = d.readReading()
		}
	case *event.State:
		if *v = stateByName(d.scan.str()); !v.Final() {
			*v = event.StateNone
		}
	default:
		m.readMore(d, p)
	}
}

// integer reads a number. One that is absent is 0, or -1 if it is optional.
func (m *member) integer(d *Decoder) int64 {
	v, ok := d.scan.signed()
	switch {
	case m.how == "time":
		t := event.Time(max(v, 0))
		d.plausible(t.Plausible())
	case m.how == "optional" && (!ok || v < 0):
		return -1
	case v < 0 && m.how != "signed":
		return 0
	default:
		d.plausible(event.Plausible(float64(v)))
	}
	return v
}

// readMore reads a list, an object, or a word.
func (m *member) readMore(d *Decoder, p any) {
	switch v := p.(type) {
	case *[]uint64:
		*v = d.counts()
	case *[]uint8:
		*v = nil
		for _, share := range d.counts() {
			if share > 100 {
				share = event.UnknownShare
			}
			*v = append(*v, uint8(share))
		}
	case *[]int64:
		*v = nil
		for range d.elements() {
			n, ok := d.scan.signed()
			if d.plausible(event.Plausible(float64(n))); !ok {
				d.scan.fail("expected a number")
			}
			*v = append(*v, n)
		}
	case *[]int32:
		*v = nil
		for range d.elements() {
			*v = append(*v, d.int32())
		}
	case *[]float64:
		*v = d.readNumbers()
	case *[]string:
		*v = nil
		for range d.elements() {
			one := struct {
				Name string `wire:"name"`
			}{}
			if m.how == "named" {
				d.readObject(&one)
			} else {
				one.Name = d.string()
			}
			if len(*v) < MaxCount {
				*v = append(*v, one.Name)
			}
		}
	case *event.Caps:
		*v = 0
		d.readSet(caps[:], func(i int) { *v |= 1 << i })
	case *Measure:
		*v = Measure{}
		d.readSet(measures[:], func(i int) { *v.parts()[i] = true })
	case *event.Drops:
		*v = event.Drops{}
		for name := range d.names() {
			k := kindByName(name)
			n, _ := d.unsigned()
			v[k] = event.AddCount(v[k], n)
		}
	case *[]event.Counter:
		*v = nil
		for name := range d.names() {
			name := valid(name)
			if n, ok := d.float(); ok && len(*v) < MaxCount {
				*v = append(*v, event.Counter{Name: name, Value: n})
			}
		}
		*v = lastByName(*v, func(c event.Counter) string { return c.Name })
	case *[]event.NamedReading:
		*v = nil
		for name := range d.names() {
			name := valid(name)
			if r := d.readReading(); r.OK() && len(*v) < MaxCount {
				*v = append(*v, event.NamedReading{Name: name, Reading: r})
			}
		}
		*v = lastByName(*v, func(n event.NamedReading) string { return n.Name })
	default:
		m.readReflected(d, reflect.ValueOf(p).Elem())
	}
}

func (m *member) readReflected(d *Decoder, of reflect.Value) {
	switch of.Kind() {
	case reflect.Struct:
		d.readObject(of.Addr().Interface())
	case reflect.Pointer:
		if of.SetZero(); d.scan.peek() == '{' {
			of.Set(reflect.New(of.Type().Elem()))
		} else {
			d.scan.skip()
			return
		}
		d.readObject(of.Interface())
	case reflect.Slice:
		of.SetZero()
		for i := range d.elements() {
			if i >= m.most() {
				d.scan.skip()
				continue
			}
			of.Grow(1)
			of.SetLen(i + 1)
			d.readObject(of.Index(i).Addr().Interface())
		}
	case reflect.Uint8: // a word of a list; unknown ones are skipped
		name := string(d.scan.str())
		for i := range 256 {
			v := reflect.ValueOf(uint8(i)).Convert(of.Type())
			switch v.Interface().(fmt.Stringer).String() {
			case "unknown":
				return
			case name:
				of.Set(v)
				return
			}
		}
	}
}

// lastByName sorts a list by name and keeps the last of duplicate names.
func lastByName[T any](list []T, name func(T) string) []T {
	slices.SortStableFunc(list, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	slices.Reverse(list)
	list = slices.CompactFunc(list, func(a, b T) bool { return name(a) == name(b) })
	slices.Reverse(list)
	return list
}

// index returns which of n rows is found, or -1. It searches from next on, because most lines are in the order of the rows.
func index(n, next int, found func(i int) bool) int {
	for i := range n {
		if i = (next + i) % n; found(i) {
			return i
		}
	}
	return -1
}
