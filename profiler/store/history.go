package store

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// The bounds of what a store remembers of the past.
const (
	// DefaultHistory is how many bytes of it are kept: at 20 bytes an event, two to three minutes of 1,000 tokens a second.
	DefaultHistory = 4 << 20
	// BesideHistory is the same for a program that runs beside an engine, which is short of memory.
	BesideHistory = 3 << 19
	// MaxHistory is how far it reaches at most, however little happens.
	MaxHistory = 15 * time.Minute

	historyParts  = 8        // segments that the bytes are cut into, of which the oldest goes as a whole
	segmentEvents = 40_000   // events of a segment at most: what a look at the past goes through, some 80 ms
	openBlock     = 64 << 10 // bytes of events that wait to be compressed together
	leastBlock    = 8 << 10  // the same of a history that is small
)

// history is the last minutes as they came: segments of compressed events, each of which begins with the state before its first.
type history struct {
	limit    func() int // bytes
	events   int        // of a segment at most
	segments []*segment // oldest first; events are added to the last
	at       event.Time // of the newest event: times never go back
	dropped  event.Lost // that have been told
	line     []byte
	missed   uint64 // events that could not be kept
}

// segment is one of them. What is in blocks is never written again.
type segment struct {
	key    *frozen
	blocks [][]byte
	open   []byte     // events that are not compressed yet
	at     event.Time // of the last event in open, or key.at
	events int
	size   int // bytes of key and blocks
}

// entry says what the bytes of an entry are.
type entry byte

const (
	entryEvent   entry = 'E' // a line of the event protocol
	entryPicks   entry = 'P' // router picks that are the last ones and more: every N and used, then appendPicks
	entryDropped entry = 'D' // events that the queue has dropped, by kind
)

// newHistory makes a history of at most so many bytes, or of its part of what it shares; nil of none.
func newHistory(limit int, share *Share) *history {
	h := &history{limit: func() int { return limit }, events: segmentEvents}
	switch {
	case share != nil:
		h.limit = share.join()
	case limit <= 0:
		return nil
	}
	return h
}

// packers compress and unpack for all histories. Each call takes as long as it takes, one after the other.
var packers = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(openBlock), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	dec, wrong := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil || wrong != nil {
		panic(errors.Join(err, wrong)) // the options are wrong
	}
	return enc, dec
})

func (h *history) pack(b []byte) []byte {
	enc, _ := packers()
	return enc.EncodeAll(b, nil)
}

// begin makes ready for a batch of events: it begins a segment if the last one is full, and keeps what the queue has dropped.
func (h *history) begin(s *state, now event.Time, wall func() time.Time) {
	if h == nil {
		return
	}
	h.at = max(h.at, s.started)
	if h.full() {
		h.turn(s, now, wall())
	}
	if s.dropped != h.dropped {
		h.dropped = s.dropped
		h.line = h.line[:0]
		for _, n := range s.dropped {
			h.line = binary.AppendUvarint(h.line, n)
		}
		h.add(entryDropped, h.line)
	}
}

// full reports whether the next event belongs to another segment.
func (h *history) full() bool {
	if len(h.segments) == 0 {
		return true
	}
	s, limit := h.segments[len(h.segments)-1], h.limit()
	return s.size-s.key.size >= max(limit/historyParts, min(s.key.size, limit/4)) || s.events >= h.events
}

// turn begins a segment with the state, and lets go of what is too old or too much.
func (h *history) turn(s *state, now event.Time, wall time.Time) {
	if n := len(h.segments); n > 0 {
		h.close(h.segments[n-1])
		h.segments[n-1].open = nil
	}
	key := s.freeze(h.at, now, wall, h.pack)
	h.segments = append(h.segments, &segment{key: key, at: key.at, size: key.size})
	h.forget(now)
}

// forget drops the oldest segments while there is too much, or the ones after them reach far enough.
func (h *history) forget(now event.Time) {
	size, limit := 0, h.limit()
	for _, s := range h.segments {
		size += s.size
	}
	for len(h.segments) > 1 && (size > limit || now-h.segments[1].key.at > event.Time(MaxHistory)) {
		size -= h.segments[0].size
		h.segments[0] = nil
		h.segments = h.segments[1:]
	}
}

// keep keeps an event that is about to be applied.
func (h *history) keep(s *state, e *event.Event) {
	if h == nil {
		return
	}
	kind, line := entryEvent, h.line[:0]
	if p, ok := e.Data.(*event.Experts); ok && p != nil && s.experts.continues(p) {
		kind = entryPicks
		line = binary.AppendUvarint(binary.AppendUvarint(line, uint64(p.Used)), uint64(p.EveryN))
		now := picksOf(p)
		line = appendPicks(binary.AppendVarint(line, int64(e.At)), &s.experts.now, &now)
	} else {
		var err error
		if line, err = wire.Append(line, e); err != nil {
			h.missed++
			return
		}
	}
	h.line = line
	h.at = max(h.at, e.At)
	h.add(kind, line)
}

// add adds an entry to the last segment: what it is, the time since the one before, its length, its bytes.
func (h *history) add(kind entry, line []byte) {
	s := h.segments[len(h.segments)-1]
	s.open = append(s.open, byte(kind))
	s.open = binary.AppendUvarint(s.open, uint64(h.at-s.at))
	s.open = binary.AppendUvarint(s.open, uint64(len(line)))
	s.open = append(s.open, line...)
	s.at = h.at
	s.events++
	if len(s.open) >= min(openBlock, max(h.limit()/historyParts, leastBlock)) {
		h.close(s)
	}
}

// close compresses what is open.
func (h *history) close(s *segment) {
	if len(s.open) == 0 {
		return
	}
	block := h.pack(s.open)
	s.blocks = append(s.blocks, block)
	s.size += len(block)
	s.open = s.open[:0]
}
