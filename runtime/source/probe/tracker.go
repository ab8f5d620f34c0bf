package probe

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
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

	tokens []int32     // of its prompt, if its text was tokenized
	reuse  event.Reuse // with an earlier prompt

	held          bool  // its events wait until its first token was sent
	firstAt, sent int64 // of the first token, and when it was sent; 0: not seen
	events        []event.Event
}

// forward is a forward pass.
type forward struct {
	tid          uint32 // of the thread that computes it
	tokens       int    // of the batch; rows has fewer if some were lost
	began, ended int64  // ended: of llama_decode, or the synchronisation with a device after it; 0: not yet
	lost         uint64 // records of picks
	step         uint64
	rows         []row
	order        []int              // rows in the order of the graph's tensors, as far as reported
	unordered    bool               // order is incomplete
	parts        []int              // sizes of the physical batches
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
	if n := model.Layers * model.Experts; n > 0 {
		t.experts = event.Experts{
			Layers: model.Layers, Experts: model.Experts, Used: model.ExpertsUsed, Prompt: make([]uint64, n), Decode: make([]uint64, n),
		}
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
	t.now = t.time(r.at)
	if t.refused != "" {
		return
	}
	switch d := r.data.(type) {
	case *pass:
		c := t.context(d.ctx)
		c.draft = c.draft || r.kind == kindPassBegin && d.result != 0
		switch {
		case c.draft:
			t.addDraftPass(c)
		case r.kind == kindPassBegin:
			t.beginPass(c, r, d)
		case c.pass != nil:
			c.pass.ended, c.pass.lost = r.at, d.lost
			if !t.device {
				t.endPass(c)
			}
		}
	case *batch:
		t.addRows(r, d)
	case *picked:
		t.addPicks(r.tid, d)
	case *tokenized:
		t.addText(r, d)
	case *sampled:
		t.addSample(r, d)
	case *removed:
		t.remove(d)
	case *transfer:
		t.addTransfer(r, d)
	case *synced:
		if c := t.context(d.ctx); c.returned() {
			c.pass.ended = r.at
			t.endPass(c)
		}
	case *drafted:
		t.speculation.add(r, d)
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

// addRows adds a part of a batch to the pass in progress.
func (t *tracker) addRows(r record, b *batch) {
	c := t.context(b.ctx)
	f := c.pass
	if f == nil {
		return
	}
	if b.flags&physical != 0 {
		f.addOrder(b)
		return
	}
	for i := range b.n {
		v := row{token: b.token[i], seq: 0}
		if b.flags&noTokens != 0 {
			v.token = -1
		}
		if b.flags&hasSeq != 0 {
			v.seq = b.seq[i]
		}
		if b.flags&hasPos != 0 {
			v.pos, v.known = b.pos[i], true
		}
		v.output = b.flags&hasOutput != 0 && b.output[i] != 0
		f.rows = append(f.rows, v)
	}
	if b.first+b.n == b.total && len(f.rows) == b.total {
		if why := t.impossible(f.rows); why != "" {
			t.doubt(why)
			c.pass = nil
			return
		}
		if b.flags&hasOutput == 0 {
			f.rows[len(f.rows)-1].output = true
		}
		t.beginRows(c, f, r.at)
	}
}

// addOrder adds rows of a physical batch. Each is the first row of the batch with that sequence and position.
func (f *forward) addOrder(b *batch) {
	if b.first == 0 {
		f.parts = append(f.parts, b.total)
	}
	for i := range b.n {
		from := 0
		if n := len(f.order); n > 0 && f.order[n-1]+1 < len(f.rows) {
			from = f.order[n-1] + 1 // most often, the order is that of the batch
		}
		same := func(v row) bool { return v.token == b.token[i] && v.seq == b.seq[i] && (!v.known || v.pos == b.pos[i]) }
		at := slices.IndexFunc(f.rows[from:], same)
		if at >= 0 {
			at += from
		} else if at = slices.IndexFunc(f.rows, same); at < 0 {
			f.unordered = true
			return
		}
		f.order = append(f.order, at)
	}
}

// beginRows assigns the rows of a pass to requests.
func (t *tracker) beginRows(c *llamaContext, f *forward, at int64) {
	for i := range f.rows {
		v := &f.rows[i]
		k := slices.IndexFunc(f.shares, func(s share) bool { return s.seq == v.seq })
		if k < 0 {
			k = len(f.shares)
			f.shares = append(f.shares, share{seq: v.seq, first: v.pos})
		}
		s := &f.shares[k]
		if !v.known {
			v.pos = c.sequence(v.seq).length + int32(len(s.tokens))
			s.first = v.pos - int32(len(s.tokens))
		}
		s.tokens, s.last = append(s.tokens, v.token), i
		if v.output {
			s.outputs++
		}
	}
	for seq, s := range c.sequences { // a pass has the next token of every request that goes on
		if r := s.request; r != nil && r.last != 0 && !slices.ContainsFunc(f.shares, func(s share) bool { return s.seq == seq }) {
			t.end(s)
		}
	}
	for i := range f.shares {
		t.beginShare(c, f, &f.shares[i], at)
	}
}

// beginShare assigns the rows of one sequence to its request, or to a new one.
func (t *tracker) beginShare(c *llamaContext, f *forward, x *share, at int64) {
	s := c.sequence(x.seq)
	r := s.request
	switch {
	case r != nil && !r.promptDone && x.first == s.length:
	case r != nil && r.promptDone && c.samples && x.tokens[0] == r.lastToken && x.first <= s.length &&
		x.outputs == len(x.tokens) && !t.restarts(s, int(x.first), x.tokens):
		x.decode = true
	case r != nil && r.promptDone && !c.samples && len(x.tokens) == 1 && x.first == s.length:
		x.decode = true
	default:
		t.end(s)
		r = t.begin(s, x, f.began)
	}
	x.r = r
	s.put(x.first, x.tokens)
	r.active = at
	if x.decode && !c.samples && r.pass != nil { // the token that the pass before yielded
		if r.generated == 0 {
			t.about(r, event.Event{Kind: event.KindStage, Stage: event.StageFirst, Dur: f.began - r.pass.ended}, f.began)
		}
		t.token(r, r.pass, r.row, x.tokens[0], f.began)
	}
	r.computed = x.decode
	if x.decode && r.sent != 0 {
		t.release(r)
	}
	if x.decode && c.samples && len(x.tokens) > 1 {
		t.addDraft(r, len(x.tokens)-1)
	}
	if !r.promptDone {
		part := len(x.tokens) > 1 && x.outputs == len(x.tokens) && int(s.length) < r.text // embeddings are of all tokens
		r.prompt, r.promptDone = int(s.length), x.outputs > 0 && !part
	}
}

// put notes tokens that a sequence gets at a position.
func (s *sequence) put(first int32, tokens []int32) {
	s.length = first + int32(len(tokens))
	if int(first) > len(s.tokens) || s.length > maxTokens {
		s.tokens = nil // some are unknown
		return
	}
	s.tokens = append(s.tokens[:first], tokens...)
}

// begins reports whether a sequence is known to begin with tokens.
func (s *sequence) begins(tokens []int32) bool {
	return len(s.tokens) >= len(tokens) && slices.Equal(s.tokens[:len(tokens)], tokens)
}

func (c *llamaContext) sequence(seq int32) *sequence {
	s := c.sequences[seq]
	if s == nil {
		s = &sequence{}
		c.sequences[seq] = s
	}
	return s
}

// begin begins a request in a sequence. One that began before the probes gets no number, and no events. Where requests come
// over connections, one whose connection or text is unknown gets no begin, since it was received earlier.
func (t *tracker) begin(s *sequence, x *share, at int64) *request {
	r := &request{cached: int(x.first), began: at}
	s.request = r
	source := t.matching(s, r.cached, x.tokens)
	if source == nil && len(x.tokens) == 1 && x.first > s.length {
		r.promptDone, x.decode = true, true
		t.emit(event.Event{Kind: event.KindLog, Text: "a request ran before its passes were seen: the rest of it is not measured"}, at)
		return r
	}
	t.lastID++
	r.id, r.anyCached = t.lastID, source == nil && x.first > s.length
	switch {
	case source != nil:
		t.arrive(r, source, at)
	case len(t.threads) == 0 && !r.anyCached:
		t.about(r, event.Event{Kind: event.KindRequest, State: event.StateQueued, Data: &event.Request{}}, at)
	}
	t.about(r, event.Event{Kind: event.KindRequest, State: event.StateDispatched}, at)
	return r
}

// arrive emits what happened to a request before its first pass.
func (t *tracker) arrive(r *request, source *text, at int64) {
	r.text, r.tokens, r.reuse = len(source.tokens), source.tokens, t.prompts.Compare(source.tokens)
	queued := source.began
	if x := source.exchange; x != nil {
		r.exchange, x.matched, queued = x, true, x.received
	}
	t.about(r, event.Event{Kind: event.KindRequest, State: event.StateQueued, Data: &event.Request{}}, queued)
	stage := func(s event.Stage, from, to int64, tokens int) {
		t.about(r, event.Event{Kind: event.KindStage, Stage: s, Dur: to - from, N: int32(tokens)}, to)
	}
	if r.exchange != nil {
		stage(event.StageReceive, queued, source.began, 0)
	}
	stage(event.StageTokenize, source.began, source.end, len(source.tokens))
	stage(event.StageQueue, source.end, at, 0)
}

// about emits an event about a request, unless the request has no number.
func (t *tracker) about(r *request, e event.Event, at int64) {
	if r.id == 0 {
		return
	}
	e.Req = r.id
	if r.held {
		e.At, e.Layer = t.time(at), -1
		r.events = append(r.events, e)
		return
	}
	t.emit(e, at)
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
	var decode, prompt int32
	for _, x := range f.shares {
		r := x.r
		r.active, r.pass, r.row = at, f, x.last
		switch {
		case x.decode:
			decode += int32(len(x.tokens))
		default:
			prompt += int32(len(x.tokens))
			if r.promptDone {
				t.about(r, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Dur: at - r.began, N: int32(r.prompt - r.cached)}, at)
			}
		}
	}
	var used int64
	for _, s := range c.sequences {
		used += int64(s.length)
	}
	t.emit(event.Event{Kind: event.KindStep, Step: f.step, Dur: at - f.began, N: decode, Prompt: prompt}, at)
	t.emit(event.Event{Kind: event.KindKV, Data: &event.KV{Used: used}}, at)
	t.countPicks(f, at)
}

// addSample emits a sampled token.
func (t *tracker) addSample(rec record, d *sampled) {
	c := t.context(d.ctx)
	c.samples = true
	if c.returned() {
		t.endPass(c)
	}
	f := c.last
	if f == nil {
		return
	}
	row := int(d.index)
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
			t.about(x.r, event.Event{Kind: event.KindStage, Stage: event.StageFirst, Dur: rec.at - f.ended}, rec.at)
		}
		if x.decode && x.sampled > 0 {
			t.speculation.accept(x.sampled)
		}
		x.sampled++
		if f.shape >= 0 {
			t.speculation.sums.Shapes[f.shape].Tokens++
		}
		t.token(x.r, f, x.last, d.token, rec.at)
	}
}

// token emits a token of a request, which a row of a pass yielded.
func (t *tracker) token(r *request, f *forward, row int, id int32, at int64) {
	e := event.Event{Kind: event.KindToken, ID: id, N: 1, Index: int32(r.generated), Step: f.step, Picks: f.picksOf(row, t.experts)}
	if r.generated == 0 {
		t.hold(r, at)
	}
	t.about(r, e, at)
	r.generated++
	r.last, r.lastToken, r.active, r.computed = at, id, at, false
}

// end ends the request of a sequence at its last token.
func (t *tracker) end(s *sequence) {
	r := s.request
	if r == nil {
		return
	}
	s.request = nil
	if r.held {
		r.sent = 0 // the whole answer left at once
		t.release(r)
	}
	state, reason := event.StateFinished, ""
	if r.cancelled() {
		state, reason = event.StateCancelled, "cancelled"
	} else if r.generated > 0 && t.ends != nil && t.ends(r.lastToken) {
		reason = "stop"
	}
	t.about(r, event.Event{
		Kind: event.KindRequest, State: state,
		Data: &event.Outcome{Reason: reason, Prompt: r.prompt, Cached: r.cached, AnyCached: r.anyCached, Generated: r.generated, Reuse: r.reuse},
	}, max(r.last, r.active))
	if state == event.StateFinished && r.tokens != nil {
		t.prompts.Keep(r.id, r.tokens)
	}
}

// expire ends requests to which nothing happens, and forgets texts that no prompt has matched. It emits what is held or
// summed.
func (t *tracker) expire(now int64) {
	t.reportSpeculation(now)
	for _, c := range t.contexts {
		if c.returned() && now-c.pass.ended > syncWait { // nobody needs its results
			t.endPass(c)
		}
		if c.pass != nil {
			continue
		}
		for _, s := range c.sequences {
			switch r := s.request; {
			case r == nil:
			case now-r.active > idleEnd, r.embedded(c):
				t.end(s)
			case r.held && r.sent == 0 && now-r.firstAt > sendWait:
				t.release(r)
			}
		}
	}
	if t.unsent && now-t.expertsAt >= expertsEvery { // no pass follows
		t.emitExperts(now)
	}
	t.texts = slices.DeleteFunc(t.texts, func(x *text) bool { return now-x.end > textAge })
}

// remove removes positions from a sequence.
func (t *tracker) remove(d *removed) {
	from := max(d.from, 0)
	for _, c := range t.contexts {
		for seq, s := range c.sequences {
			switch {
			case d.seq >= 0 && d.seq != seq:
			case d.to >= 0: // the positions of others may change
				s.tokens = nil
			default:
				s.length = min(s.length, from)
				if d.seq < 0 && s.length == 0 {
					t.end(s)
				}
			}
		}
	}
}

// endAll ends all requests.
func (t *tracker) endAll() {
	for _, c := range t.contexts {
		for _, s := range c.sequences {
			t.end(s)
		}
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
	d[event.KindStep] = lost[kindPassBegin] + lost[kindPassEnd] + lost[kindBatch] + t.malformed
	d[event.KindToken] = lost[kindSampled]
	d[event.KindExperts] = lost[kindPicked] + t.unread
	d[event.KindRequest] = lost[kindTokenized] + lost[kindReceived] + lost[kindSent] + lost[kindRemoved] + lost[kindDrafted]
	if d != t.drops {
		t.drops = d
		t.sink.Emit(event.Event{Kind: event.KindDrops, At: t.now, Layer: -1, Data: &d})
	}
}
