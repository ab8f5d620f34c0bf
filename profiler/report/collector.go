package report

import (
	"sync"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// The limits of a Collector. What exceeds them is counted but not kept; the report has the counts.
const (
	MaxRequests = 1 << 14   // requests: at most about 70 KB each with all layers and stalls, typically 2 KB
	MaxBytes    = 256 << 20 // bytes of all tokens with their texts, alternatives and picks
)

// Collector is an event.Sink for runs that will be reported. Unlike the store it keeps every token of every request, up
// to the limits above.
type Collector struct {
	mu              sync.Mutex // guards what follows
	order           []*record  // in the order of the first event
	byID            map[event.RequestID]*record
	bytes           int    // used of MaxBytes
	omittedRequests uint64 // beyond MaxRequests
	omittedTokens   uint64 // beyond MaxBytes
	usage           hostUsage
}

// record is a collected request.
type record struct {
	id       event.RequestID
	enqueued event.Time
	last     event.Time // of the last token; 0 before the first
	choices  metric.Choices
	paced    int64 // ns of pacing since last
	tokens   []token
	omitted  uint64                      // tokens not kept
	stages   [event.NumStages]stageTotal // over all layers
	asked    event.Time                  // when a connection was asked for; 0: not known
	final    *store.Request              // set when the request has ended
}

// token is a token event.
type token struct {
	at      int64 // ns since the request was enqueued
	gap     int64 // ns, see metric.TokenGap; -1 for the first
	id      int32
	index   int32
	n       int32
	step    uint64
	logP    float32
	hasLogP bool
	text    string
	top     []event.TopProb
	picks   []uint16
}

// stageTotal is the sum of one stage of a request.
type stageTotal struct {
	dur int64      // ns
	end event.Time // of the last stage
	n   int
}

// NewCollector returns an empty collector.
func NewCollector() *Collector {
	return &Collector{byID: make(map[event.RequestID]*record)}
}

// Emit implements event.Sink.
func (c *Collector) Emit(e event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usage.begin(e.At)
	if h, ok := e.Data.(*event.Host); ok && e.Kind == event.KindHost {
		c.usage.add(e.At, h)
		return
	}
	if e.Req == 0 || (e.Kind != event.KindRequest && e.Kind != event.KindStage && e.Kind != event.KindToken) {
		return
	}
	r := c.record(e.Req, e.At)
	switch {
	case e.Kind == event.KindToken:
		c.token(r, &e)
	case r == nil:
		if e.State == event.StateQueued {
			c.omittedRequests++
		}
	case e.Kind == event.KindStage:
		r.stage(&e)
	default:
		if o, ok := e.Data.(*event.Outcome); ok {
			r.asked = o.Asked
		}
	}
}

// Request adds the metrics of a request that has ended; pass it as store.Options.OnRequest.
func (c *Collector) Request(final *store.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.record(final.ID, final.Enqueued)
	if r == nil {
		return
	}
	slim := *final // without what the collector keeps itself
	slim.Tokens, slim.Gaps, slim.Text, slim.Prompt = store.TokenList{}, nil, "", ""
	r.final = &slim
}

// record returns the record of a request, creating it if necessary; nil beyond MaxRequests.
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
		r.paced = event.Add(r.paced, dur)
	}
	s := &r.stages[e.Stage]
	s.dur = event.Add(s.dur, dur)
	s.end = max(s.end, e.At)
	s.n++
}

// token keeps a token event, or counts its tokens if there is no space. r is nil for a request that is not kept.
func (c *Collector) token(r *record, e *event.Event) {
	n := store.StampedTokens(e)
	if r == nil {
		c.omittedTokens += uint64(n)
		return
	}
	at := max(e.At, r.last, r.enqueued)
	gap := int64(-1)
	if last := r.choices.Add(e.Choice, at, n, metric.Choice{First: r.last, Last: r.last}); last != 0 {
		gap, _ = metric.TokenGap(int64(at-last), r.paced, n)
	}
	r.last, r.paced = at, 0
	size := weight(e)
	if c.bytes+size > MaxBytes {
		r.omitted += uint64(n)
		c.omittedTokens += uint64(n)
		return
	}
	c.bytes += size
	r.tokens = append(r.tokens, token{
		at: int64(at - r.enqueued), gap: gap, id: e.ID, index: max(e.Index, 0), n: int32(n), step: e.Step,
		logP: e.LogP, hasLogP: e.HasLogP, text: e.Text, top: e.Top, picks: e.Picks,
	})
}

// weight returns the memory of a token in bytes, without the spare capacity of its slice.
func weight(e *event.Event) int {
	size := int(unsafe.Sizeof(token{})) + len(e.Text) + 2*len(e.Picks)
	for i := range e.Top {
		size += int(unsafe.Sizeof(event.TopProb{})) + len(e.Top[i].Text)
	}
	return size
}
