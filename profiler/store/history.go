package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// The bounds of the history.
const (
	// DefaultHistory is the default size in bytes: at 1,000 tokens/s, one to two minutes of the native engine.
	DefaultHistory = 3 << 20
	// AttachedHistory is the size in bytes when llmtop runs beside an engine that needs the memory: 1.5 MiB.
	AttachedHistory = 3 << 19
	// MaxHistory bounds how far back the history reaches when few events arrive.
	MaxHistory = 15 * time.Minute

	maxEntryEvents   = 64       // events of one entry, bits of a word: going back in time decodes at most that many too many
	historySegments  = 8        // segments per history; eviction drops a whole segment
	maxSegmentEvents = 40_000   // events of one segment: going back in time replays at most that many, about 80 ms
	crowdedFactor    = 3        // times maxSegmentEvents for a segment that starts with hundreds of open requests
	blockSize        = 64 << 10 // bytes of events that are compressed together
	minBlockSize     = 4 << 10  // bytes, for small histories
)

// history keeps the last minutes of events: segments of compressed events, each with the state before its first event.
type history struct {
	limit       func() int  // bytes
	maxEvents   int         // per segment
	segments    []*segment  // oldest first; events are appended to the last
	newest      event.Time  // time of the newest event; never decreases
	dropped     event.Drops // drop counts that were recorded last
	unencodable uint64      // events that the wire format cannot hold, not recorded
	*scratch                // while a batch is recorded
}

// scratch holds buffers. Of hundreds of histories only a few record at the same time.
type scratch struct {
	entry         []byte        // of an entry
	line          []byte        // of a line of one
	steps, tokens []event.Event // of one
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// segment is a part of the history. Blocks are never written again.
type segment struct {
	base   *frozen // state before the first event
	blocks [][]byte
	open   []byte     // events that are not compressed yet
	report []byte     // the line of the last report of aggregate metrics; nil: none yet
	at     event.Time // time of the last event in open, or base.at
	events int
	size   int // bytes of base and blocks
}

// entryKind is the type of a history entry.
type entryKind byte

const (
	entryEvents  entryKind = 'E' // one line of the event protocol: an event, or several tokens or forward passes
	entryReport  entryKind = 'R' // a report of aggregate metrics, as the difference of its line to that of the last one, see appendDelta
	entryMixed   entryKind = 'M' // forward passes and tokens: 8 bytes with a bit set for each token, a line of each, see mix
	entryPicks   entryKind = 'P' // router picks as differences: used, every N, time, then appendPicks
	entryDropped entryKind = 'D' // cumulative drop counts of the queue, by kind
)

// newHistory returns a history of at most limit bytes, or of one share of a common budget; nil if both are empty.
func newHistory(limit int, share *HistoryBudget) *history {
	h := &history{limit: func() int { return limit }, maxEvents: maxSegmentEvents}
	switch {
	case share != nil:
		h.limit = share.join()
	case limit <= 0:
		return nil
	}
	return h
}

// zstdCodecs returns the compressor and decompressor that all histories share. Calls run one at a time.
var zstdCodecs = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(blockSize), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	dec, decErr := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil || decErr != nil {
		panic(errors.Join(err, decErr)) // invalid options
	}
	return enc, dec
})

// pack compresses b. The result takes no more memory than its length: thousands of them are kept.
func (h *history) pack(b []byte) []byte {
	enc, _ := zstdCodecs()
	return bytes.Clone(enc.EncodeAll(b, nil))
}

// beginBatch prepares for a batch of events: it starts a segment if the last one is full, and records new drop counts.
func (h *history) beginBatch(s *state, now event.Time, wall func() time.Time) {
	if h == nil {
		return
	}
	h.scratch = scratches.Get().(*scratch)
	h.newest = max(h.newest, s.started)
	if h.full() {
		h.startSegment(s, now, wall())
	}
	if s.queueDrops != h.dropped {
		h.dropped = s.queueDrops
		h.entry = h.entry[:0]
		for _, n := range s.queueDrops {
			h.entry = binary.AppendUvarint(h.entry, n)
		}
		h.add(entryDropped, h.entry, nil)
	}
}

// endBatch ends what beginBatch began.
func (h *history) endBatch() {
	if h != nil {
		scratches.Put(h.scratch)
		h.scratch = nil
	}
}

// full reports whether the next event needs a new segment.
func (h *history) full() bool {
	if len(h.segments) == 0 {
		return true
	}
	s, limit := h.segments[len(h.segments)-1], h.limit()
	if s.crowded() {
		return s.size-s.base.size >= limit/2 || s.events >= crowdedFactor*h.maxEvents
	}
	return s.size-s.base.size >= max(limit/historySegments, min(2*s.base.size, limit/4)) || s.events >= h.maxEvents
}

// crowded reports whether the base state consists mostly of open requests, 1.2 KB each. Such states may exceed the
// limit, up to 12 MB for MaxOpen. Then at least two segments are kept and segments are longer, so that there is a past
// to go back to.
func (s *segment) crowded() bool { return len(s.base.requests.list) > 2*MaxRequests }

// startSegment starts a segment with the current state and evicts old segments.
func (h *history) startSegment(s *state, now event.Time, wall time.Time) {
	key := freezeState(s, h.newest, now, wall, h.pack)
	if n := len(h.segments); n > 0 {
		last := h.segments[n-1]
		h.close(last)
		last.open, last.report = nil, nil
		last.size += last.base.routing.outlives(&key.routing)
	}
	h.segments = append(h.segments, &segment{base: key, at: key.at, size: key.size})
	h.evict(now)
}

// evict drops the oldest segments while the history exceeds its limit or the remaining ones cover MaxHistory.
func (h *history) evict(now event.Time) {
	size, limit := 0, h.limit()
	for _, s := range h.segments {
		size += s.size
	}
	keep := 1
	if h.segments[len(h.segments)-1].crowded() {
		keep = 2
	}
	for len(h.segments) > keep && (size > limit || now-h.segments[1].base.at > event.Time(MaxHistory)) {
		size -= h.segments[0].size
		h.segments[0] = nil
		h.segments = h.segments[1:]
	}
}

// recordedTogether returns how many of the events, at least one, record stores as one entry: the tokens and forward
// passes that follow each other.
func recordedTogether(events []event.Event) int {
	n := 0
	for n < min(len(events), maxEntryEvents) && (events[n].Kind == event.KindToken || events[n].Kind == event.KindStep && events[n].Data == nil) {
		n++
	}
	return max(n, 1)
}

// record stores events that are about to be applied, see recordedTogether.
func (h *history) record(s *state, events []event.Event) {
	if h == nil {
		return
	}
	first := &events[0]
	if p, ok := first.Data.(*event.Experts); ok && p != nil && s.routing.experts.continues(p) {
		line := binary.AppendUvarint(binary.AppendUvarint(h.entry[:0], uint64(p.Used)), uint64(p.EveryN))
		now := newPickCounts(p)
		h.entry = appendPicks(binary.AppendVarint(line, int64(first.At)), &s.routing.experts.current, &now)
		h.add(entryPicks, h.entry, events)
		return
	}
	kind, err := entryEvents, error(nil)
	switch steps := countKind(events, event.KindStep); {
	case len(events) == 1:
		h.entry, err = wire.Append(h.entry[:0], first)
	case steps == 0:
		h.entry, err = wire.AppendTokens(h.entry[:0], events, nil)
	case steps == len(events):
		h.entry, err = wire.AppendSteps(h.entry[:0], events)
	default:
		kind, err = entryMixed, h.mix(events)
	}
	switch {
	case err != nil && len(events) > 1:
		for i := range events {
			h.record(s, events[i:i+1])
		}
		return
	case err != nil:
		h.unencodable++
		return
	}
	line := h.entry
	if first.Kind == event.KindAggregates {
		kind, line = h.delta(line)
	}
	h.add(kind, line, events)
}

// delta returns an entry for the line of a report: most of it repeats the last one.
func (h *history) delta(line []byte) (entryKind, []byte) {
	s := h.segments[len(h.segments)-1]
	if s.report == nil {
		s.report = slices.Clone(line)
		return entryEvents, line
	}
	h.line = appendDelta(h.line[:0], s.report, line)
	s.report = append(s.report[:0], line...)
	return entryReport, h.line
}

func countKind(events []event.Event, k event.Kind) (n int) {
	for i := range events {
		if events[i].Kind == k {
			n++
		}
	}
	return n
}

// mix encodes forward passes and tokens that follow each other, each as one line: in columns, a token takes a few bytes,
// and it refers to the times of its pass. It fills scratch with their order, the length of the first line, and the lines.
func (h *history) mix(events []event.Event) (err error) {
	h.steps, h.tokens = h.steps[:0], h.tokens[:0]
	order := uint64(0)
	for i := range events {
		if events[i].Kind == event.KindToken {
			order |= 1 << i
			h.tokens = append(h.tokens, events[i])
		} else {
			h.steps = append(h.steps, events[i])
		}
	}
	if h.line, err = wire.AppendSteps(h.line[:0], h.steps); err != nil {
		return err
	}
	out := binary.LittleEndian.AppendUint64(h.entry[:0], order)
	out = append(binary.AppendUvarint(out, uint64(len(h.line))), h.line...)
	h.entry, err = wire.AppendTokens(out, h.tokens, h.steps)
	return err
}

// add appends an entry to the last segment: kind, time from the end of the previous entry to the first event, length,
// bytes.
func (h *history) add(kind entryKind, line []byte, events []event.Event) {
	s := h.segments[len(h.segments)-1]
	if len(events) > 0 {
		h.newest = max(h.newest, events[0].At)
	}
	s.open = append(s.open, byte(kind))
	s.open = binary.AppendUvarint(s.open, uint64(h.newest-s.at))
	s.open = binary.AppendUvarint(s.open, uint64(len(line)))
	s.open = append(s.open, line...)
	for i := range events {
		h.newest = max(h.newest, events[i].At)
	}
	s.at = h.newest
	s.events += len(events)
	if len(s.open) >= min(blockSize, max(h.limit()/(2*historySegments), minBlockSize)) {
		h.close(s)
	}
}

// close compresses the open events.
func (h *history) close(s *segment) {
	if len(s.open) == 0 {
		return
	}
	block := h.pack(s.open)
	s.blocks = append(s.blocks, block)
	s.size += len(block)
	s.open = s.open[:0]
}
