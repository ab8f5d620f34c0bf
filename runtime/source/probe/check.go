package probe

import "fmt"

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
func (t *tracker) beginPass(c *llamaContext, r record, p *pass) {
	t.begun++
	if c.returned() {
		t.endPass(c)
	}
	switch {
	case p.tokens < 0 || p.tokens > maxBatch:
		t.doubt(fmt.Sprintf("a batch has %d tokens", p.tokens))
	case p.tokens > 0: // llama.cpp refuses an empty batch
		c.step++
		c.pass = &forward{tid: r.tid, tokens: p.tokens, began: r.at, step: c.step, rows: make([]row, 0, p.tokens)}
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
