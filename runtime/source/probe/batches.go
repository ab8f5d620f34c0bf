//go:build amd64 || arm64

package probe

import (
	"fmt"
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// addRows adds a part of a batch to the pass in progress.
func (t *tracker) addRows(r record, b *probesBatchMany) {
	c := t.context(b.Of.Ctx)
	f := c.pass
	if f == nil {
		return
	}
	flags := b.Of.Flags
	if flags&physical != 0 {
		f.addOrder(b)
		return
	}
	for i := range b.Of.N {
		v := row{token: b.Token[i], seq: 0}
		if flags&noTokens != 0 {
			v.token = -1
		}
		if flags&hasSeq != 0 {
			v.seq = b.Seq[i]
		}
		if flags&hasPos != 0 {
			v.pos, v.known = b.Pos[i], true
		}
		v.output = flags&hasOutput != 0 && b.Output[i] != 0
		f.rows = append(f.rows, v)
	}
	if b.Of.First+b.Of.N == b.Of.Total && len(f.rows) == int(b.Of.Total) {
		if why := t.impossible(f.rows); why != "" {
			t.doubt(why)
			c.pass = nil
			return
		}
		if flags&hasOutput == 0 {
			f.rows[len(f.rows)-1].output = true
		}
		t.beginRows(c, f, r.At)
	}
}

// addOrder adds rows of a physical batch. Each is the first row of the batch with that sequence and position.
func (f *forward) addOrder(b *probesBatchMany) {
	for i := range b.Of.N {
		from := 0
		if n := len(f.order); n > 0 && f.order[n-1]+1 < len(f.rows) {
			from = f.order[n-1] + 1 // most often, the order is that of the batch
		}
		same := func(v row) bool { return v.token == b.Token[i] && v.seq == b.Seq[i] && (!v.known || v.pos == b.Pos[i]) }
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

// firstPasses is how many passes are checked before what they say is believed: what cannot be in one of them shows that
// the functions have other arguments than those that are read. Later it is counted as malformed.
const firstPasses = 16

// doubt notes a record that cannot be right.
func (t *tracker) doubt(why string) {
	t.malformed++
	if t.begun <= firstPasses {
		t.refused = why + ": this is not the llama_decode that llmtop reads"
	}
}

// beginPass begins a pass.
func (t *tracker) beginPass(c *llamaContext, r record, p *probesPass) {
	t.begun++
	if c.returned() {
		t.endPass(c)
	}
	switch {
	case p.Tokens < 0 || p.Tokens > maxBatch:
		t.doubt(fmt.Sprintf("a batch has %d tokens", p.Tokens))
	case p.Tokens > 0: // llama.cpp refuses an empty batch
		c.step++
		c.pass = &forward{tid: r.Tid, tokens: int(p.Tokens), began: r.At, step: c.step, rows: make([]row, 0, p.Tokens)}
	}
}

// impossible returns why llama.cpp would not compute a batch, "" if it may.
func (t *tracker) impossible(rows []row) string {
	next := map[int32]int32{} // position, by sequence
	for _, v := range rows {
		at, follows := next[v.seq]
		switch {
		case v.seq < 0 || v.seq >= maxSequence:
			return fmt.Sprintf("a batch has the sequence %d", v.seq)
		case v.known && v.pos < 0:
			return fmt.Sprintf("a batch has the position %d", v.pos)
		case v.token == -1: // an embedding: those of a picture may share a position
		case v.token < 0:
			return fmt.Sprintf("a batch has the token %d", v.token)
		case t.model.Vocab > 0 && int(v.token) >= t.model.Vocab:
			return fmt.Sprintf("a batch has the token %d, but the model has %d", v.token, t.model.Vocab)
		case v.known && follows && v.pos < at:
			return fmt.Sprintf("a batch has the position %d after %d", v.pos, at-1)
		}
		next[v.seq] = v.pos + 1
	}
	return ""
}
