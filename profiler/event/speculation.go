package event

// MaxDraft is the number of positions of a draft that are counted.
const MaxDraft = 64

// Speculation is what speculative decoding costs and brings, cumulative since the model was loaded.
type Speculation struct {
	DraftTime int64    `wire:"time,always"`     // ns in which drafts were computed
	Drafted   []uint64 `wire:"drafted,always"`  // drafted tokens by their position in the draft; at most MaxDraft positions
	Accepted  []uint64 `wire:"accepted,always"` // of Drafted; as long
	Shapes    []PassShape
}

// PassShape sums the decode passes of one shape, with drafts or without. Passes with prompt tokens are in none.
type PassShape struct {
	Drafting bool   // drafts were computed for the pass, which may have come out empty
	Requests int    // that have rows in the pass
	Rows     int    // tokens that it computes: one of each request, and drafted ones
	Passes   uint64 // of this shape
	Dur      int64  // ns, of all of them
	Tokens   uint64 // that they generated
}

// Verifies reports whether passes of this shape verify drafts.
func (p *PassShape) Verifies() bool { return p.Rows > p.Requests }
