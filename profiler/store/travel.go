package store

import (
	"encoding/binary"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// Trip looks at a store's past: it rebuilds the state up to a moment out of the history, while the store goes on. It is used from one
// goroutine.
type Trip struct {
	of  *Store
	cod wire.Codec

	state *state     // at the moment of the last look; nil before the first
	in    *segment   // that it has come to
	block int        // number of the block of in that it has come to
	off   int        // bytes of that block that have been applied
	open  int        // number of the block that is not compressed
	event event.Time // of the last entry that has been applied
	at    event.Time // of the last look
	last  *Snapshot
}

// Travel begins a trip into the past, nil if no history is kept.
func (s *Store) Travel() *Trip {
	if s.history == nil {
		return nil
	}
	return &Trip{of: s}
}

// Reach is the oldest moment that can be looked at, and the present one. Without any event they are the same.
func (t *Trip) Reach() (from, to event.Time) {
	s := t.of
	s.mu.Lock()
	defer s.mu.Unlock()
	to = s.opt.Now()
	if h := s.history; len(h.segments) > 0 && s.state.begun {
		return min(max(h.segments[0].key.at, s.state.started), to), to
	}
	return to, to
}

// At is what the store showed, or would have shown, at a moment; nil if the history does not reach it any more.
func (t *Trip) At(at event.Time) *Snapshot {
	if t.last != nil && t.last.Now == at {
		return t.last
	}
	seg, blocks := t.find(at)
	if seg == nil {
		return nil
	}
	t.in = seg
	t.apply(blocks, at)
	t.at = at
	t.last = t.state.snapshot(at, seg.key.wall.Add(time.Duration(at-seg.key.now)))
	return t.last
}

// find takes the segment of a moment, and begins with its state unless the trip is in it and only has to go on.
func (t *Trip) find(at event.Time) (seg *segment, blocks [][]byte) {
	s := t.of
	s.drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.history.segments {
		if i == 0 && !s.history.whole() && c.key.at > at {
			break
		}
		if i == 0 || c.key.at <= at {
			seg = c
		}
	}
	if seg == nil {
		return nil, nil
	}
	if t.in != seg || t.state == nil || at < t.at {
		t.state = seg.key.thaw(&s.state.requests, t.unpack)
		t.block, t.off, t.event = 0, 0, seg.key.at
	}
	blocks = append(blocks, seg.blocks...)
	if len(seg.open) > 0 {
		blocks = append(blocks, append([]byte(nil), seg.open...))
	}
	t.open = len(seg.blocks)
	return seg, blocks
}

// whole reports whether the history reaches back to the beginning.
func (h *history) whole() bool { return len(h.segments) > 0 && !h.segments[0].key.state.begun }

// unpack is what was packed; nothing of what cannot be read.
func (t *Trip) unpack(b []byte) []byte {
	_, dec := packers()
	out, err := dec.DecodeAll(b, nil)
	if err != nil {
		return nil
	}
	return out
}

// settling is how long before a moment the verdicts are looked at second by second, as they are kept for a while.
const settling = event.Time(5 * time.Second)

// apply applies what had come up to a moment.
func (t *Trip) apply(blocks [][]byte, until event.Time) {
	for ; t.block < len(blocks); t.block, t.off = t.block+1, 0 {
		b := blocks[t.block]
		if t.block < t.open {
			b = t.unpack(b)
		}
		for t.off < len(b) {
			e, n := readEntry(b[t.off:])
			if n == 0 || t.event+e.since > until {
				return
			}
			if was := t.event; until-was < settling && int64(was+e.since)/int64(time.Second) > int64(was)/int64(time.Second) {
				t.state.snapshot(was, time.Time{})
			}
			t.event += e.since
			t.off += n
			t.take(&e)
		}
		if t.block >= t.open { // more may come behind what is open now
			return
		}
	}
}

// past is an entry of the history.
type past struct {
	kind  entry
	since event.Time // the one before
	line  []byte
}

// readEntry reads an entry and tells its length, 0 if there is none.
func readEntry(b []byte) (e past, n int) {
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
	return past{entry(b[0]), event.Time(since), b[from : from+int(size)]}, from + int(size)
}

// take applies an entry.
func (t *Trip) take(e *past) {
	switch e.kind {
	case entryEvent:
		_ = t.cod.Decode(e.line, func(e event.Event) { t.state.apply(&e) }) // it was written by wire.Append
	case entryDropped:
		for k := range t.state.dropped {
			n, size := binary.Uvarint(e.line)
			e.line = e.line[max(size, 0):]
			t.state.dropped[k] = n
		}
	case entryPicks:
		t.takePicks(e.line)
	}
}

// takePicks applies router picks.
func (t *Trip) takePicks(b []byte) {
	x := t.state.experts
	if x == nil {
		return
	}
	used, n := binary.Uvarint(b)
	every, m := binary.Uvarint(b[max(n, 0):])
	if n <= 0 || m <= 0 {
		return
	}
	at, k := binary.Varint(b[n+m:])
	now, _ := readPicks(b[n+m+max(k, 0):], &x.now)
	t.state.apply(&event.Event{Kind: event.KindExperts, Layer: -1, At: event.Time(at), Data: &event.Experts{
		Layers: x.layers, Experts: x.experts, Used: int(used), EveryN: int(every), Decode: now.counts[0], Prompt: now.counts[1],
		DecodeTokens: now.tokens[0], PromptTokens: now.tokens[1],
	}})
}
