package report

import (
	"sync"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// The bounds of a Collector. What lies beyond them is counted and not kept; the report says how much that is.
const (
	MaxRequests = 1 << 14   // requests, each at most about 70 KB with all its layers and stalls, and 2 KB as a rule
	MaxBytes    = 256 << 20 // of all tokens together, with their texts, alternatives and picks
)

// Collector is the Sink of a run that will be reported: unlike the store, which forgets, it keeps every token of every request. Its
// memory grows with what the report will hold, up to the bounds above.
type Collector struct {
	mu       sync.Mutex // guards what follows
	order    []*record  // by the time of the first event
	byID     map[event.RequestID]*record
	bytes    int    // spent of MaxBytes
	requests uint64 // beyond MaxRequests
	tokens   uint64 // beyond MaxBytes
	usage    usage
}

// record is what is kept of one request.
type record struct {
	id       event.RequestID
	enqueued event.Time
	last     event.Time // of the last token; 0 before the first
	paced    int64      // ns paced since then
	tokens   []token
	cut      uint64                      // tokens not kept
	stages   [event.NumStages]stageTotal // over all layers
	answer   *event.Answer               // nil: it did not come over HTTP
	final    *store.Request              // as the request ended; nil before
}

// token is one token event.
type token struct {
	at      int64 // ns since the request was enqueued
	gap     int64 // ns since the token before, pacing excluded, shared among the tokens of one stamp; -1 for the first
	id      int32
	index   int32
	n       int32
	logP    float32
	hasLogP bool
	text    string
	top     []event.TopProb
	picks   []uint16
}

// stageTotal sums one stage of one request.
type stageTotal struct {
	dur int64      // ns
	end event.Time // of the last
	n   int
}

// NewCollector makes an empty collector.
func NewCollector() *Collector {
	return &Collector{byID: make(map[event.RequestID]*record)}
}

// Emit implements event.Sink.
func (c *Collector) Emit(e event.Event) {
	if h, ok := e.Data.(*event.Host); ok && e.Kind == event.KindHost {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.usage.add(h)
		return
	}
	if e.Req == 0 || (e.Kind != event.KindRequest && e.Kind != event.KindStage && e.Kind != event.KindToken) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.record(e.Req, e.At)
	switch {
	case e.Kind == event.KindToken:
		c.token(r, &e)
	case r == nil:
		if e.State == event.StateQueued {
			c.requests++
		}
	case e.Kind == event.KindStage:
		r.stage(&e)
	default:
		if o, ok := e.Data.(*event.Outcome); ok {
			c.keep(r, o.Answer)
		}
	}
}

// keep keeps how an answer came, if there is room.
func (c *Collector) keep(r *record, a *event.Answer) {
	if a == nil {
		return
	}
	if size := len(a.Messages) * int(unsafe.Sizeof(event.Message{})); c.bytes+size <= MaxBytes {
		c.bytes, r.answer = c.bytes+size, a
	}
}

// Request takes a request that has ended, with all its metrics: store.Options.OnRequest.
func (c *Collector) Request(final *store.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.record(final.ID, final.Enqueued)
	if r == nil {
		return
	}
	slim := *final // without what is kept here anyway
	slim.Tokens, slim.Gaps, slim.Text, slim.Prompt = nil, nil, "", ""
	r.final = &slim
}

// record finds the record of a request or begins it; nil beyond the bound.
func (c *Collector) record(id event.RequestID, at event.Time) *record {
	if r, ok := c.byID[id]; ok {
		return r
	}
	if len(c.order) >= MaxRequests {
		return nil
	}
	r := &record{id: id, enqueued: at}
	c.order = append(c.order, r)
	c.byID[id] = r
	return r
}

// stage adds a stage to its total.
func (r *record) stage(e *event.Event) {
	if e.Stage == event.StageNone || e.Stage >= event.NumStages {
		return
	}
	dur := max(e.Dur, 0)
	if e.Stage == event.StagePace {
		r.paced += dur
	}
	s := &r.stages[e.Stage]
	s.dur += dur
	s.end = max(s.end, e.At)
	s.n++
}

// token keeps one token event, or counts its tokens where there is no room. r is nil for a request that is not kept.
func (c *Collector) token(r *record, e *event.Event) {
	n := max(e.N, 1)
	if r == nil {
		c.tokens += uint64(n)
		return
	}
	at := max(e.At, r.last, r.enqueued)
	gap := int64(-1)
	if r.last != 0 {
		gap = max(int64(at-r.last)-r.paced, 0) / int64(n)
	}
	r.last, r.paced = at, 0
	size := weight(e)
	if c.bytes+size > MaxBytes {
		r.cut += uint64(n)
		c.tokens += uint64(n)
		return
	}
	c.bytes += size
	r.tokens = append(r.tokens, token{
		at: int64(at - r.enqueued), gap: gap, id: e.ID, index: max(e.Index, 0), n: n,
		logP: e.LogP, hasLogP: e.HasLogP, text: e.Text, top: e.Top, picks: e.Picks,
	})
}

// weight is the memory that a token takes, the slack of its growing list left out.
func weight(e *event.Event) int {
	size := int(unsafe.Sizeof(token{})) + len(e.Text) + 2*len(e.Picks)
	for i := range e.Top {
		size += int(unsafe.Sizeof(event.TopProb{})) + len(e.Top[i].Text)
	}
	return size
}
