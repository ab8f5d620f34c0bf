//go:build amd64 || arm64

package probe

import (
	"errors"
	"unsafe"
)

// The kinds of records, as in bpf/probe.c.
const (
	kindPassBegin = 1 + iota
	kindPassEnd
	kindBatch
	kindPicked
	kindTokenized
	kindSampled
	kindRemoved
	kindReceived
	kindSent
	kindDrafted
	kindSynced
	kindCalled
	numKinds
)

// maxBatch limits the tokens of a batch or a text, as in bpf/probe.c.
const maxBatch = 1 << 16

// The flags of a batch record, as in bpf/probe.c.
const (
	hasPos = 1 << iota
	hasSeq
	hasOutput
	noTokens
	physical
)

// record is what a probe read at one moment. Times are ns of CLOCK_MONOTONIC.
type record struct {
	probesHead
	data any // a pointer to one of the types that bpf2go makes of those in bpf/probe.c
}

var errRecord = errors.New("unexpected record")

// parse reads a record of the ring buffer.
func parse(raw []byte) (r record, err error) {
	head, ok := decode[probesHead](raw)
	if !ok {
		return r, errRecord
	}
	r.probesHead = *head
	switch r.Kind {
	case kindPassBegin, kindPassEnd:
		r.data, ok = decode[probesPass](raw)
	case kindBatch:
		r.data, ok = decodeBatch(raw)
	case kindPicked:
		p, whole := decode[probesPickedMany](raw)
		ok = isPart(p.Of.Total, p.Of.First, p.Of.N, p.Pick[:], whole) && p.Of.Used > 0 && int(p.Of.Used) <= len(p.Pick[0])
		r.data = p
	case kindTokenized:
		t, whole := decode[probesTokenized](raw)
		ok = whole && isPart(t.Total, t.First, t.N, t.Token[:], true)
		r.data = t
	case kindSampled:
		r.data, ok = decode[probesSampled](raw)
	case kindRemoved:
		r.data, ok = decode[probesRemoved](raw)
	case kindReceived, kindSent:
		r.data, ok = decode[probesTransfer](raw)
	case kindDrafted:
		r.data, ok = decode[probesDrafted](raw)
	case kindSynced:
		r.data, ok = decode[probesSynced](raw)
	case kindCalled:
		r.data, ok = decode[probesCalled](raw)
	default:
		ok = false
	}
	if !ok {
		return record{}, errRecord
	}
	return r, nil
}

// decode returns a copy of a record, and whether it is whole: the rest is zero.
func decode[T any](raw []byte) (*T, bool) {
	to := new(T)
	all := unsafe.Slice((*byte)(unsafe.Pointer(to)), unsafe.Sizeof(*to))
	return to, copy(all, raw) == len(all)
}

// decodeBatch reads a part of a batch. That of one token has room for one only.
func decodeBatch(raw []byte) (*probesBatchMany, bool) {
	b, whole := decode[probesBatchMany](raw)
	if !whole {
		one, ok := decode[probesBatchOne](raw)
		if !ok {
			return nil, false
		}
		b = &probesBatchMany{Of: one.Of}
		b.Token[0], b.Pos[0], b.Seq[0], b.Output[0] = one.Token[0], one.Pos[0], one.Seq[0], one.Output[0]
	}
	return b, isPart(b.Of.Total, b.Of.First, b.Of.N, b.Token[:], whole)
}

// isPart reports whether n entries from first can be a part of total, in a record with room for them, or for one entry if
// it is not whole.
func isPart[T any](total, first, n int32, room []T, whole bool) bool {
	if !whole {
		room = room[:1]
	}
	return total <= maxBatch && first >= 0 && n >= 0 && n <= total-first && int(n) <= len(room)
}
