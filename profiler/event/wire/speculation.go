package wire

import (
	"github.com/llmtop/llmtop/profiler/event"
)

// MaxShapes bounds the shapes of passes per line.
const MaxShapes = 256

// appendSpeculation appends what drafts cost and bring: columns for whether drafts were
// computed (0 or 1), requests, rows, passes, ns and tokens of each shape.
func appendSpeculation(dst []byte, _ *event.Event, p *event.Speculation) ([]byte, bool) {
	if len(p.Drafted) > event.MaxDraft || len(p.Accepted) != len(p.Drafted) || len(p.Shapes) > MaxShapes {
		return dst, false
	}
	for i := range p.Shapes {
		if s := &p.Shapes[i]; s.Requests < 1 || s.Rows < s.Requests || s.Rows > event.MaxTokens {
			return dst, false
		}
	}
	dst = appendInt(key(dst, "time"), max(p.DraftTime, 0))
	dst = appendUints(key(dst, "drafted"), p.Drafted...)
	dst = appendUints(key(dst, "accepted"), p.Accepted...)
	for _, c := range [...]struct {
		name string
		get  func(*event.PassShape) int64
	}{
		{"s", func(s *event.PassShape) int64 {
			if s.Drafting {
				return 1
			}
			return 0
		}},
		{"r", func(s *event.PassShape) int64 { return int64(s.Requests) }},
		{"n", func(s *event.PassShape) int64 { return int64(s.Rows) }},
		{"p", func(s *event.PassShape) int64 { return int64(min(s.Passes, event.MaxNumber)) }},
		{"d", func(s *event.PassShape) int64 { return max(s.Dur, 0) }},
		{"k", func(s *event.PassShape) int64 { return int64(min(s.Tokens, event.MaxNumber)) }},
	} {
		dst = appendArray(key(dst, c.name), p.Shapes, func(dst []byte, s event.PassShape) []byte { return appendInt(dst, c.get(&s)) })
	}
	return dst, true
}

func readSpeculation(d *Decoder) bool {
	p := new(event.Speculation)
	d.event.Kind, d.event.Data = event.KindSpeculation, p
	var columns [6][]int64
	d.members(func(key []byte) bool {
		switch string(key) {
		case "time":
			p.DraftTime = d.count()
		case "drafted":
			p.Drafted = d.counts()
		case "accepted":
			p.Accepted = d.counts()
		case "s":
			columns[0] = d.integers()
		case "r":
			columns[1] = d.integers()
		case "n":
			columns[2] = d.integers()
		case "p":
			columns[3] = d.integers()
		case "d":
			columns[4] = d.integers()
		case "k":
			columns[5] = d.integers()
		default:
			return false
		}
		return true
	})
	n := len(columns[0])
	fits := len(p.Drafted) <= event.MaxDraft && len(p.Accepted) == len(p.Drafted) && n <= MaxShapes
	for _, c := range columns {
		fits = fits && len(c) == n
	}
	for i := 0; fits && i < n; i++ {
		drafting, requests, rows := columns[0][i], columns[1][i], columns[2][i]
		fits = drafting>>1 == 0 && requests >= 1 && rows >= requests && rows <= event.MaxTokens
		for _, c := range columns[3:] {
			fits = fits && event.PlausibleCount(c[i])
		}
		if fits {
			p.Shapes = append(p.Shapes, event.PassShape{
				Drafting: drafting == 1, Requests: int(requests), Rows: int(rows), Passes: uint64(columns[3][i]), Dur: columns[4][i], Tokens: uint64(columns[5][i]),
			})
		}
	}
	return d.require(fits, "shapes, or columns of different lengths")
}
