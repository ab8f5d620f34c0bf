//go:build amd64 || arm64

package probe

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/prompts"
)

// Bounds of what a tracker remembers.
const (
	maxContexts = 64      // contexts of models
	maxSequence = 1 << 12 // sequence ids of a context; larger ones are refused
	maxTokens   = 1 << 20 // tokens that are remembered of a sequence
	// idleEnd is how long nothing happens to a request before it is taken to have ended, in ns. The end is stamped with
	// its last token.
	idleEnd = int64(1e9)
	// syncWait is how long a device may compute a pass after llama_decode has returned, in ns.
	syncWait = int64(60e9)
	// expertsEvery is the time between two reports of the router's picks, in ns.
	expertsEvery = int64(100e6)
)

// tracker turns records into events: batches of tokens into requests. It has no state of the operating system, so that
// tests feed it records.
type tracker struct {
	sink   event.Sink
	model  event.Model
	ends   func(int32) bool // whether a token ends a text; nil: unknown
	device bool             // passes may end after llama_decode, when llama_synchronize returns
	offset int64            // ns: event.Time = CLOCK_MONOTONIC + offset
	now    event.Time       // of the last record

	contexts map[uint64]*llamaContext
	threads  map[uint32]*exchange // the last one of each thread
	texts    []*text              // tokenized, oldest first
	prompts  prompts.TokenHistory // of requests that have finished
	lastID   event.RequestID

	sampling  sampling
	experts   event.Experts
	expertsAt int64
	unsent    bool         // picks were counted since
	seen      map[int]bool // layers whose picks were seen
	whole     int          // passes whose picks were all counted
	unread    uint64       // rows of picks that could not be read
	refused   string       // why the records cannot be understood
	begun     int          // passes
	malformed uint64       // records that could not be read
	drops     event.Drops
	lostEnds  uint64 // lost ends of passes

	speculation speculation

	// counts reports whether all calls of CUDA were counted between two times, and whether a single thread launches; nil
	// without CUDA.
	counts func(from, to int64) (all, alone bool)
	starts bool // the first request starts the device
}

// llamaContext is a llama_context: the target model, or a draft.
type llamaContext struct {
	sequences map[int32]*sequence
	step      uint64
	pass      *forward // in progress
	last      *forward // ended last: samples refer to its rows
	samples   bool     // tokens are sampled with a known function
	draft     bool     // it computes drafts for another context: it has no requests
}

// sequence is a sequence of the KV cache.
type sequence struct {
	length  int32   // positions in the cache
	tokens  []int32 // at the positions from 0 on, as far as seen
	request *request
}

// request is a request in a sequence.
type request struct {
	id         event.RequestID // 0: it began before the probes
	exchange   *exchange       // in which it came; nil: unknown
	began      int64           // of its first pass
	text       int             // tokens of its text; 0: unknown
	prompt     int             // tokens so far, cached ones included
	cached     int
	anyCached  bool // what is before its first pass may be of passes that were not seen
	promptDone bool
	pass       *forward // the last one, which yields the next token; nil: none
	row        int      // in it
	generated  int
	last       int64 // of the last token; 0: none
	lastToken  int32
	active     int64 // last record about it
	computed   bool  // a pass works on its next token
	calls      promptCalls

	tokens []int32     // of its prompt, if its text was tokenized
	reuse  event.Reuse // with an earlier prompt

	held          bool  // its events wait until its first token was sent
	firstAt, sent int64 // of the first token, and when it was sent; 0: not seen
	events        []event.Event
}

// forward is a forward pass.
type forward struct {
	tid          uint32           // of the thread that computes it
	tokens       int              // of the batch; rows has fewer if some were lost
	began, ended int64            // ended: of llama_decode, or the synchronisation with a device after it; 0: not yet
	lost         uint64           // records of picks
	calls        [2]*probesCalled // at its begin and its end; nil: not counted
	step         uint64
	rows         []row
	order        []int              // rows in the order of the graph's tensors, as far as reported
	unordered    bool               // order is incomplete
	picks        map[int][][]uint16 // by layer
	shares       []share            // of the sequences that have rows
	shape        int                // of a decode pass, in the sums of speculation; -1: none
}

// share is the rows of one sequence in a pass.
type share struct {
	seq     int32
	tokens  []int32
	first   int32 // position of the first
	outputs int   // rows with outputs
	decode  bool  // the request goes on; otherwise these are prompt tokens
	last    int   // row of the last token
	sampled int   // tokens sampled from its outputs
	r       *request
}

// row is a token of a batch.
type row struct {
	token, pos, seq int32
	output          bool
	known           bool // the position is given
}

func newTracker(sink event.Sink, model event.Model, ends func(int32) bool, offset int64) *tracker {
	t := &tracker{
		sink: sink, model: model, offset: offset, ends: ends,
		contexts: map[uint64]*llamaContext{}, threads: map[uint32]*exchange{}, seen: map[int]bool{},
	}
	if model.Layers*model.Experts > 0 {
		t.experts = *engine.NewPicks(model.Layers, model.Experts, model.ExpertsUsed)
	}
	return t
}

func (t *tracker) time(at int64) event.Time { return event.Time(at + t.offset) }

func (t *tracker) emit(e event.Event, at int64) {
	e.At, e.Layer = t.time(at), -1
	t.sink.Emit(e)
}

// apply applies a record.
func (t *tracker) apply(r record) {
	t.now = t.time(r.At)
	if t.refused != "" {
		return
	}
	switch d := r.data.(type) {
	case *probesPass:
		c := t.context(d.Ctx)
		c.draft = c.draft || r.Kind == kindPassBegin && d.Result != 0
		switch {
		case c.draft:
			t.addDraftPass(c)
		case r.Kind == kindPassBegin:
			t.beginPass(c, r, d)
		case c.pass != nil:
			c.pass.ended, c.pass.lost = r.At, d.Lost
			if !t.device {
				t.endPass(c)
			}
		}
	case *probesBatchMany:
		t.addRows(r, d)
	case *probesPickedMany:
		t.addPicks(r.Tid, d)
	case *probesTokenized:
		t.addText(r, d)
	case *probesSampled:
		t.addSample(r, d)
	case *probesRemoved:
		t.remove(d)
	case *probesTransfer:
		t.addTransfer(r, d)
	case *probesSynced:
		if c := t.context(d.Ctx); c.returned() {
			c.pass.ended = r.At
			t.endPass(c)
		}
	case *probesDrafted:
		t.speculation.add(r, d)
	case *probesCalled:
		if f := t.context(d.Ctx).pass; f != nil && f.tid == r.Tid {
			f.addCalls(d)
		}
	}
}

func (t *tracker) context(id uint64) *llamaContext {
	c := t.contexts[id]
	if c == nil {
		if len(t.contexts) == maxContexts {
			t.forgetContext()
		}
		c = &llamaContext{sequences: map[int32]*sequence{}}
		t.contexts[id] = c
	}
	return c
}

// forgetContext makes room for another context. It prefers one that computes nothing.
func (t *tracker) forgetContext() {
	var forgotten uint64
	for id, c := range t.contexts {
		if forgotten = id; c.pass == nil {
			break
		}
	}
	for _, s := range t.contexts[forgotten].sequences {
		t.end(s)
	}
	delete(t.contexts, forgotten)
}

// running returns the pass that a thread is computing, nil without one. The thread that calls llama_decode is the first
// of those that compute.
func (t *tracker) running(tid uint32) *forward {
	for _, c := range t.contexts {
		if c.pass != nil && c.pass.tid == tid {
			return c.pass
		}
	}
	return nil
}

// returned reports whether a pass has begun, and llama_decode has returned. A device may still compute it.
func (c *llamaContext) returned() bool { return c.pass != nil && c.pass.ended != 0 }

// endPass ends the pass in progress of a context.
func (t *tracker) endPass(c *llamaContext) {
	f := c.pass
	at := f.ended
	c.pass, c.last = nil, nil
	if len(f.rows) < f.tokens { // some were lost, and counted
		return
	}
	c.last = f
	if !t.sampling.add(f.began, at) || f.lost > 0 {
		f.picks = nil // some may be missing
	} else {
		t.lookForPicks(f, at)
	}
	t.speculation.addPass(f, at-f.began)
	calls := callsOf(t, f)
	var decode, prompt int32
	for _, x := range f.shares {
		r := x.r
		r.active, r.pass, r.row = at, f, x.last
		switch {
		case x.decode:
			decode += int32(len(x.tokens))
		default:
			prompt += int32(len(x.tokens))
			r.calls.add(f, calls)
			if r.promptDone {
				t.about(r, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Dur: at - r.began, N: int32(r.prompt - r.cached)}, at)
				reportCopies(t, r)
			}
		}
	}
	var used int64
	for _, s := range c.sequences {
		used += int64(s.length)
	}
	step := event.Event{Kind: event.KindStep, Step: f.step, Dur: at - f.began, N: decode, Prompt: prompt}
	if calls != nil {
		step.Data = calls
	}
	t.emit(step, at)
	t.emit(event.Event{Kind: event.KindKV, Data: &event.KV{Used: used}}, at)
	t.countPicks(f, at)
}

// addSample emits a sampled token.
func (t *tracker) addSample(rec record, d *probesSampled) {
	c := t.context(d.Ctx)
	c.samples = true
	if c.returned() {
		t.endPass(c)
	}
	f := c.last
	if f == nil {
		return
	}
	row := int(d.Index)
	if row < 0 {
		row += len(f.rows)
	}
	for i := range f.shares {
		x := &f.shares[i]
		s := c.sequences[x.seq]
		if row < 0 || row >= len(f.rows) || f.rows[row].seq != x.seq || s == nil || s.request != x.r || !x.r.promptDone {
			continue
		}
		if x.r.generated == 0 && !x.decode {
			t.about(x.r, event.Event{Kind: event.KindStage, Stage: event.StageFirst, Dur: rec.At - f.ended}, rec.At)
		}
		if x.decode && x.sampled > 0 {
			t.speculation.accept(x.sampled)
		}
		x.sampled++
		if f.shape >= 0 {
			t.speculation.sums.Shapes[f.shape].Tokens++
		}
		t.token(x.r, f, x.last, d.Token, rec.At)
	}
}

// reportLost emits the number of lost records, given by kind, if it has changed.
func (t *tracker) reportLost(lost [numKinds]uint64) {
	if n := lost[kindPassEnd]; n != t.lostEnds {
		t.lostEnds = n
		for _, c := range t.contexts {
			c.pass = nil // it may have ended
		}
	}
	var d event.Drops
	d[event.KindStep] = lost[kindPassBegin] + lost[kindPassEnd] + lost[kindBatch] + lost[kindCalled] + t.malformed
	d[event.KindToken] = lost[kindSampled]
	d[event.KindExperts] = lost[kindPicked] + t.unread
	d[event.KindRequest] = lost[kindTokenized] + lost[kindReceived] + lost[kindSent] + lost[kindRemoved] + lost[kindDrafted]
	if d != t.drops {
		t.drops = d
		t.sink.Emit(event.Event{Kind: event.KindDrops, At: t.now, Layer: -1, Data: &d})
	}
}
