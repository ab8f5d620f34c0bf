package store

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// HistoryReader reads the history: it rebuilds the state at any time of the past by replaying events, while the store
// continues. It is not safe for concurrent use.
type HistoryReader struct {
	store *Store
	codec wire.Codec

	state        *state     // at lastTime; nil before the first call of At
	segment      *segment   // that state was rebuilt from
	block        int        // index of the block that is replayed next
	offset       int        // bytes of that block that have been replayed
	done         int        // events of the next entry that have been replayed
	openBlock    int        // index of the block that is not compressed
	report       []byte     // line of the last report that was replayed; nil: none in this segment
	applied      event.Time // time of the last event that was replayed
	lastTime     event.Time // argument of the last call of At
	lastSnapshot *Snapshot
	events       func(event.Event) // of Events, while it runs; else nil
	decoded      []event.Event     // buffers for the events of one entry
	steps        []event.Event
	tokens       []event.Event
}

// HistoryReader returns a reader of the history; nil if the store keeps none.
func (s *Store) HistoryReader() *HistoryReader {
	if s.history == nil {
		return nil
	}
	return &HistoryReader{store: s}
}

// Range returns the earliest and the latest time that At accepts. Both are the present if there are no events.
func (r *HistoryReader) Range() (from, to event.Time) {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	to = s.now()
	if h := s.history; len(h.segments) > 0 && s.state.hasEvents {
		return min(max(h.segments[0].base.at, s.state.started), to), to
	}
	return to, to
}

// At returns the snapshot at a time of the past; nil if the history does not reach that far back.
func (r *HistoryReader) At(at event.Time) *Snapshot {
	if r.lastSnapshot != nil && r.lastSnapshot.Now == at {
		return r.lastSnapshot
	}
	seg, blocks := r.locate(at)
	if seg == nil {
		return nil
	}
	r.segment = seg
	r.replay(blocks, at)
	r.lastTime = at
	r.lastSnapshot = r.state.snapshot(at, seg.base.wall.Add(time.Duration(at-seg.base.now)))
	return r.lastSnapshot
}

// Events calls f with the events of the history up to a time, in the order in which they were applied.
func (r *HistoryReader) Events(until event.Time, f func(event.Event)) {
	r.events, r.lastSnapshot = f, nil
	defer func() { r.events, r.segment, r.state = nil, nil, nil }()
	s := r.store
	s.drain()
	s.mu.Lock()
	segments := slices.Clone(s.history.segments)
	s.mu.Unlock()
	for _, seg := range segments {
		s.mu.Lock()
		blocks := r.begin(seg)
		s.mu.Unlock()
		r.replay(blocks, until)
	}
}

// locate returns the segment and the blocks that cover a time. It restarts from the segment's base state, unless
// replaying can continue forward in the same segment.
func (r *HistoryReader) locate(at event.Time) (seg *segment, blocks [][]byte) {
	s := r.store
	s.drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.history.segments {
		if i == 0 && !s.history.complete() && c.base.at > at {
			break
		}
		if i == 0 || c.base.at <= at {
			seg = c
		}
	}
	if seg == nil {
		return nil, nil
	}
	if r.segment == seg && r.state != nil && at >= r.lastTime {
		return seg, r.blocks(seg)
	}
	return seg, r.begin(seg)
}

// begin returns to the base state of a segment, and returns its blocks. The caller holds the lock of the store.
func (r *HistoryReader) begin(seg *segment) [][]byte {
	r.state = seg.base.thaw(&r.store.state.requests, r.unpack)
	r.block, r.offset, r.done, r.report, r.applied = 0, 0, 0, nil, seg.base.at
	return r.blocks(seg)
}

// blocks returns the blocks of a segment, the last of them not compressed. The caller holds the lock of the store.
func (r *HistoryReader) blocks(seg *segment) [][]byte {
	blocks := slices.Clone(seg.blocks)
	if len(seg.open) > 0 {
		blocks = append(blocks, slices.Clone(seg.open))
	}
	r.openBlock = len(seg.blocks)
	return blocks
}

// complete reports whether the history reaches back to the start of the session.
func (h *history) complete() bool { return len(h.segments) > 0 && !h.segments[0].base.hasEvents }

// unpack decompresses b; nil if b is corrupt.
func (r *HistoryReader) unpack(b []byte) []byte {
	_, dec := zstdCodecs()
	out, err := dec.DecodeAll(b, nil)
	if err != nil {
		return nil
	}
	return out
}

// replay applies the entries up to a time.
func (r *HistoryReader) replay(blocks [][]byte, until event.Time) {
	for ; r.block < len(blocks); r.block, r.offset = r.block+1, 0 {
		b := blocks[r.block]
		if r.block < r.openBlock {
			b = r.unpack(b)
		}
		for r.offset < len(b) {
			e, n := readEntry(b[r.offset:])
			if n == 0 || !r.applyEntry(&e, until) {
				return
			}
			r.offset, r.done = r.offset+n, 0
		}
		if r.block >= r.openBlock { // the open block may still grow
			return
		}
	}
}

// historyEntry is one entry of the history, see history.add.
type historyEntry struct {
	kind  entryKind
	delta event.Time // time since the previous entry
	line  []byte
}

// readEntry reads an entry and returns its length in bytes, 0 if absent.
func readEntry(b []byte) (e historyEntry, n int) {
	if len(b) == 0 {
		return e, 0
	}
	since, i := binary.Uvarint(b[1:])
	if i <= 0 {
		return e, 0
	}
	size, k := binary.Uvarint(b[1+i:])
	from := 1 + i + k
	if k <= 0 || size > uint64(len(b)-from) {
		return e, 0
	}
	return historyEntry{entryKind(b[0]), event.Time(since), b[from : from+int(size)]}, from + int(size)
}

// applyEntry applies one entry to the state, without the events that were applied before. It returns false if some of
// it lies after the given time.
func (r *HistoryReader) applyEntry(e *historyEntry, until event.Time) bool {
	if r.done == 0 {
		if r.applied+e.delta > until {
			return false
		}
		r.applied += e.delta
	}
	switch e.kind {
	case entryEvents:
		return r.applyLine(e.line, until)
	case entryReport:
		return r.applyLine(applyDelta(nil, r.report, e.line), until)
	case entryMixed:
		return r.applyEvents(r.unmix(e.line), until)
	case entryDropped:
		for k := range r.state.queueDrops {
			n, size := binary.Uvarint(e.line)
			e.line = e.line[max(size, 0):]
			r.state.queueDrops[k] = n
		}
	case entryPicks:
		r.applyPicks(e.line)
	}
	return true
}

// applyLine is applyEntry for a line of the event protocol.
func (r *HistoryReader) applyLine(line []byte, until event.Time) bool {
	r.decoded = r.decode(line, r.decoded[:0])
	all := r.applyEvents(r.decoded, until)
	if all && len(r.decoded) == 1 && r.decoded[0].Kind == event.KindAggregates {
		r.report = append(r.report[:0], line...)
	}
	return all
}

// decode appends the events of a line that record wrote, which cannot fail.
func (r *HistoryReader) decode(line []byte, events []event.Event) []event.Event {
	_ = r.codec.Decode(line, func(e event.Event) { events = append(events, e) })
	return events
}

// unmix returns the events that mix encoded, in their order.
func (r *HistoryReader) unmix(b []byte) []event.Event {
	order := binary.LittleEndian.Uint64(b)
	size, n := binary.Uvarint(b[8:])
	tokens := 8 + n + int(size)
	r.steps = r.decode(b[8+n:tokens], r.steps[:0])
	r.tokens = r.decode(b[tokens:], r.tokens[:0])
	r.decoded = r.decoded[:0]
	for i, j := 0, 0; i+j < len(r.steps)+len(r.tokens); {
		if order>>(i+j)&1 == 0 {
			r.decoded, i = append(r.decoded, r.steps[i]), i+1
		} else {
			r.decoded, j = append(r.decoded, r.tokens[j]), j+1
		}
	}
	return r.decoded
}

// applyEvents is applyEntry for the events of an entry.
func (r *HistoryReader) applyEvents(events []event.Event, until event.Time) bool {
	for i := r.done; i < len(events); i++ {
		e := &events[i]
		if max(r.applied, e.At) > until {
			r.done = i
			return false
		}
		r.applied = max(r.applied, e.At)
		r.apply(e)
	}
	r.done = len(events)
	return true
}

// apply applies an event to the state.
func (r *HistoryReader) apply(e *event.Event) {
	if r.events != nil {
		r.events(*e)
	}
	r.state.apply(e)
}

// applyPicks applies router picks that were stored as differences.
func (r *HistoryReader) applyPicks(b []byte) {
	x := r.state.routing.experts
	if x == nil {
		return
	}
	used, n := binary.Uvarint(b)
	every, m := binary.Uvarint(b[max(n, 0):])
	if n <= 0 || m <= 0 {
		return
	}
	at, k := binary.Varint(b[n+m:])
	now, _ := readPicks(b[n+m+max(k, 0):], &x.current)
	r.apply(&event.Event{Kind: event.KindExperts, Layer: -1, At: event.Time(at), Data: &event.Experts{
		Layers: x.layers, Experts: x.experts, Used: int(used), EveryN: int(every), Decode: now.counts[0], Prompt: now.counts[1],
		DecodeTokens: now.tokens[0], PromptTokens: now.tokens[1],
	}})
}
