package wire

import "github.com/llmtop/llmtop/profiler/event"

// fields are the members of an object that describes a T, in the order in which they are written. Each row is both
// written and read, so a field of an event is one row.
type fields[T any] []field[T]

// field is one member of an object.
type field[T any] struct {
	name   string
	append func(dst []byte, p *T) []byte // appends name and value, or nothing if the value is unknown
	read   func(d *Decoder, p *T)
}

// value is how a type of values is written and read.
type value[V any] struct {
	append func(dst []byte, name string, v V) []byte
	read   func(d *Decoder) V
}

// The types of values. Unless the comment says otherwise, a zero value is unknown and omitted.
var (
	texts = value[string]{word, (*Decoder).string}
	names = value[string]{ // written even if it is empty
		func(dst []byte, name, v string) []byte { return appendString(key(dst, name), v) }, (*Decoder).string,
	}
	prompts = value[string]{ // a model's text: see appendText
		func(dst []byte, name, v string) []byte {
			if v == "" {
				return dst
			}
			return appendText(key(dst, name), v)
		},
		func(d *Decoder) string { return string(d.text(nil, MaxString)) },
	}
	flags  = value[bool]{flag, func(d *Decoder) bool { return d.scan.boolean() }}
	sizes  = value[int]{natural[int], readSize}
	totals = value[int]{ // written even if it is 0
		func(dst []byte, name string, v int) []byte { return appendInt(key(dst, name), int64(max(v, 0))) }, readSize,
	}
	counts   = value[int64]{natural[int64], (*Decoder).count}
	unsigned = value[uint64]{ // written even if it is 0
		func(dst []byte, name string, v uint64) []byte { return appendCount(key(dst, name), v) },
		func(d *Decoder) uint64 { v, _ := d.unsigned(); return v },
	}
	countLists = value[[]uint64]{
		func(dst []byte, name string, v []uint64) []byte {
			if len(v) == 0 {
				return dst
			}
			return appendUints(key(dst, name), v...)
		},
		(*Decoder).counts,
	}
	moments    = value[event.Time]{moment, func(d *Decoder) event.Time { t, _ := d.time(); return t }}
	requestIDs = value[event.RequestID]{
		func(dst []byte, name string, v event.RequestID) []byte { return identifier(dst, name, uint64(v)) },
		func(d *Decoder) event.RequestID { return event.RequestID(d.identifier()) },
	}
	readings     = value[event.Reading]{appendReading, (*Decoder).readReading}
	bareReadings = value[event.Reading]{ // without their origin: the engine reported them
		func(dst []byte, name string, v event.Reading) []byte {
			if !v.OK() {
				return dst
			}
			return appendFloat(key(dst, name), v.V, 64)
		},
		func(d *Decoder) event.Reading { return d.bareReading(event.Reported) },
	}
)

// natural appends a member unless it is 0 or negative.
func natural[N ~int | ~int32 | ~int64](dst []byte, name string, v N) []byte {
	return number(dst, name, max(v, 0))
}

func readSize(d *Decoder) int { return int(d.int32()) }

// member is a row for one value.
func member[T, V any](name string, of value[V], get func(*T) *V) field[T] {
	return field[T]{
		name,
		func(dst []byte, p *T) []byte { return of.append(dst, name, *get(p)) },
		func(d *Decoder, p *T) { *get(p) = of.read(d) },
	}
}

// object is a row for an object with members of its own. Unless it is required, it is omitted if it is zero.
func object[T any, V comparable](name string, of fields[V], required bool, get func(*T) *V) field[T] {
	var zero V
	return field[T]{
		name,
		func(dst []byte, p *T) []byte {
			if !required && *get(p) == zero {
				return dst
			}
			return of.object(key(dst, name), get(p))
		},
		func(d *Decoder, p *T) {
			*get(p) = zero
			of.read(d, get(p))
		},
	}
}

// list is a row for an array of objects, at most limit of them. It is omitted if it is empty.
func list[T, V any](name string, limit int, of fields[V], get func(*T) *[]V) field[T] {
	return field[T]{
		name,
		func(dst []byte, p *T) []byte {
			all := *get(p)
			if len(all) == 0 {
				return dst
			}
			dst = append(key(dst, name), '[')
			for i := range all[:min(len(all), limit)] {
				dst = of.object(appendComma(dst, i), &all[i])
			}
			return append(dst, ']')
		},
		func(d *Decoder, p *T) {
			if !d.scan.open('[') {
				return
			}
			for all := get(p); d.scan.more(']'); {
				if len(*all) == limit {
					d.scan.skip()
					continue
				}
				var zero V
				*all = append(*all, zero)
				of.read(d, &(*all)[len(*all)-1])
			}
		},
	}
}

// append appends the members of p.
func (f fields[T]) append(dst []byte, p *T) []byte {
	for i := range f {
		dst = f[i].append(dst, p)
	}
	return dst
}

// object appends p as an object.
func (f fields[T]) object(dst []byte, p *T) []byte {
	return append(f.append(append(dst, '{'), p), '}')
}

// read reads an object into p. Values of other types change nothing.
func (f fields[T]) read(d *Decoder, p *T) {
	if d.scan.open('{') {
		f.members(d, p, unknownMember)
	}
}

// members reads the members of the open object into p and passes names that f lacks to other.
func (f fields[T]) members(d *Decoder, p *T, other func(name []byte) bool) {
	next := 0
	d.members(func(name []byte) bool { return f.member(d, p, name, &next) || other(name) })
}

// member reads the member of a name; false if there is no such row. next is the row after the last one found.
func (f fields[T]) member(d *Decoder, p *T, name []byte, next *int) bool {
	i := f.index(name, *next)
	if i < 0 {
		return false
	}
	f[i].read(d, p)
	*next = i + 1
	return true
}

// index returns the row with a name, or -1. It searches from next on, because most lines are in the order of the rows.
func (f fields[T]) index(name []byte, next int) int {
	for i := next; i < len(f); i++ {
		if f[i].name == string(name) {
			return i
		}
	}
	for i := range f[:next] {
		if f[i].name == string(name) {
			return i
		}
	}
	return -1
}
