package wire

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// opsLine is the times of operations: their names once, then columns for the index of the name, layer, calls and ns.
type opsLine struct {
	event.Ops
	Names []string `wire:"ops,always"`
	Name  []int64  `wire:"k,always"`
	Layer []int64  `wire:"l,always"`
	Calls []int64  `wire:"n,always"`
	Dur   []int64  `wire:"d,always"`
}

// opsOf returns the line of an event. Of more than MaxOps operations it has the longest.
func opsOf(e *event.Event) *opsLine {
	ops := dataOf[event.Ops](e)
	if ops == nil || ops.Passes < 1 {
		return nil
	}
	p := &opsLine{Ops: *ops}
	for _, t := range ops.Times[:min(len(ops.Times), MaxOps)] {
		k := slices.Index(p.Names, t.Op)
		if k < 0 {
			k, p.Names = len(p.Names), append(p.Names, t.Op)
		}
		if t.Layer >= MaxLayers || k >= MaxCount {
			return nil
		}
		p.Name, p.Layer = append(p.Name, int64(k)), append(p.Layer, int64(max(t.Layer, -1)))
		p.Calls, p.Dur = append(p.Calls, max(t.Calls, 0)), append(p.Dur, max(t.Dur, 0))
	}
	return p
}

func setOps(d *Decoder, p *opsLine) string {
	n := len(p.Name)
	fits := p.Passes > 0 && n <= MaxOps && len(p.Layer) == n && len(p.Calls) == n && len(p.Dur) == n
	for i := 0; fits && i < n; i++ {
		k, layer := p.Name[i], p.Layer[i]
		fits = k >= 0 && k < int64(len(p.Names)) && layer >= -1 && layer < MaxLayers && p.Calls[i] >= 0 && p.Dur[i] >= 0
		if fits {
			p.Times = append(p.Times, event.OpTime{Op: p.Names[k], Layer: int(layer), Calls: p.Calls[i], Dur: p.Dur[i]})
		}
	}
	ops := p.Ops // without the columns, which would stay in memory
	if d.event.Data = &ops; !fits {
		return "passes, or columns of different lengths"
	}
	return ""
}

// MaxShapes bounds the shapes of passes per line.
const MaxShapes = 256

// draftLine is what drafts cost and bring: columns for whether drafts were computed (0 or 1), requests, rows, passes, ns
// and tokens of each shape.
type draftLine struct {
	event.Speculation
	Drafting []int64 `wire:"s,always"`
	Requests []int64 `wire:"r,always"`
	Rows     []int64 `wire:"n,always"`
	Passes   []int64 `wire:"p,always"`
	Dur      []int64 `wire:"d,always"`
	Tokens   []int64 `wire:"k,always"`
}

// fits reports whether a reader takes a shape.
func fits(s *event.PassShape) bool {
	return s.Requests >= 1 && s.Rows >= s.Requests && s.Rows <= event.MaxTokens
}

func draftsOf(e *event.Event) *draftLine {
	s := dataOf[event.Speculation](e)
	if s == nil || len(s.Drafted) > event.MaxDraft || len(s.Accepted) != len(s.Drafted) || len(s.Shapes) > MaxShapes {
		return nil
	}
	p := &draftLine{Speculation: *s}
	for i := range s.Shapes {
		s, drafting := &s.Shapes[i], int64(0)
		if !fits(s) {
			return nil
		}
		if s.Drafting {
			drafting = 1
		}
		p.Drafting, p.Requests, p.Rows = append(p.Drafting, drafting), append(p.Requests, int64(s.Requests)), append(p.Rows, int64(s.Rows))
		p.Passes, p.Dur = append(p.Passes, int64(min(s.Passes, event.MaxNumber))), append(p.Dur, max(s.Dur, 0))
		p.Tokens = append(p.Tokens, int64(min(s.Tokens, event.MaxNumber)))
	}
	return p
}

func setDrafts(d *Decoder, p *draftLine) string {
	n := len(p.Drafting)
	ok := len(p.Drafted) <= event.MaxDraft && len(p.Accepted) == len(p.Drafted) && n <= MaxShapes
	for _, c := range [][]int64{p.Requests, p.Rows, p.Passes, p.Dur, p.Tokens} {
		ok = ok && len(c) == n
	}
	for i := 0; ok && i < n; i++ {
		s := event.PassShape{
			Drafting: p.Drafting[i] == 1, Requests: int(p.Requests[i]), Rows: int(p.Rows[i]),
			Passes: uint64(p.Passes[i]), Dur: p.Dur[i], Tokens: uint64(p.Tokens[i]),
		}
		ok = p.Drafting[i]>>1 == 0 && fits(&s) && p.Passes[i] >= 0 && s.Dur >= 0 && p.Tokens[i] >= 0
		p.Shapes = append(p.Shapes, s)
	}
	drafts := p.Speculation
	if d.event.Data = &drafts; !ok {
		return "shapes, or columns of different lengths"
	}
	return ""
}
