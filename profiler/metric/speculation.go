package metric

import "github.com/llmtop/llmtop/profiler/event"

// What the profit of speculation needs.
const (
	minDraftPasses = 50  // passes with drafts
	minPlainPasses = 20  // without, of as many requests
	minCovered     = 0.5 // share of the tokens of passes with drafts whose cost without them is known
)

// Profit is what speculative decoding brings.
type Profit struct {
	Passes     uint64        // that verified drafts
	Verify     int64         // ns that they took
	Accepted   event.Reading // of the drafted tokens, 0..1
	PerPass    event.Reading // tokens that a request gets of a pass that verifies a draft; 1 without drafts
	DraftShare event.Reading // of the time of drafts and of the passes that they were computed for, 0..1
	Gain       event.Reading // tokens/s with drafts / without; NotYet: Missing says what it lacks
	Plain      uint64        // passes that verified nothing, which Gain was measured against; 0: modelled
	Missing    string
}

// ProfitOf returns what speculation brings. Its gain compares the time of the passes that drafts were computed for,
// drafts included, with the time that as many tokens take in passes that verify nothing: measured on such passes of as
// many requests, or modelled as time = a + b x rows from passes whose drafts differ in length. What happens between two
// passes (sampling, the server's loop) is not counted.
func ProfitOf(s *event.Speculation) (out Profit) {
	out.Accepted, out.PerPass, out.DraftShare = event.Absent(event.NotYet), event.Absent(event.NotYet), event.Absent(event.NotYet)
	out.Gain = event.Absent(event.NotYet)
	var drafted, accepted float64
	for i := range s.Drafted {
		drafted, accepted = drafted+float64(s.Drafted[i]), accepted+float64(s.Accepted[i])
	}
	if drafted > 0 {
		out.Accepted = event.DerivedValue(Share(accepted, drafted))
	}
	var all, covered struct{ tokens, dur, passes float64 } // of passes with Drafting; those whose cost without is known
	var verified, shares, without float64
	for i := range s.Shapes {
		p := &s.Shapes[i]
		n := float64(p.Passes)
		if p.Verifies() {
			out.Passes, out.Verify = out.Passes+p.Passes, event.Add(out.Verify, p.Dur)
			verified, shares = verified+float64(p.Tokens), shares+float64(p.Requests)*n
		}
		if !p.Drafting && !p.Verifies() {
			continue
		}
		all.tokens, all.dur, all.passes = all.tokens+float64(p.Tokens), all.dur+float64(p.Dur), all.passes+n
		if plain, passes, known := plainPass(s, p.Requests); known {
			without += float64(p.Tokens) / float64(p.Requests) * plain
			covered.tokens, covered.dur, covered.passes = covered.tokens+float64(p.Tokens), covered.dur+float64(p.Dur), covered.passes+n
			out.Plain = max(out.Plain, passes)
		}
	}
	if shares == 0 {
		out.Missing = "no pass with drafts"
		return out
	}
	out.PerPass = event.DerivedValue(verified / shares)
	out.DraftShare = event.DerivedValue(Share(float64(s.DraftTime), float64(s.DraftTime)+all.dur))
	switch {
	case out.Passes < minDraftPasses:
		out.Missing = "too few passes with drafts"
	case covered.tokens < minCovered*all.tokens || without == 0:
		out.Missing = "no passes without drafts to compare with"
	default:
		out.Gain = event.DerivedValue(without / (covered.dur + float64(s.DraftTime)*covered.passes/all.passes))
	}
	return out
}

// plainPass returns the time in ns of a pass of as many requests that verifies nothing, and the passes that it was
// measured on, 0 if it is modelled.
func plainPass(s *event.Speculation, requests int) (ns float64, passes uint64, known bool) {
	var n, sumX, sumY, sumXX, sumXY, plain float64
	lengths := 0
	for i := range s.Shapes {
		p := &s.Shapes[i]
		switch {
		case p.Requests != requests || p.Passes == 0:
		case !p.Verifies():
			plain, passes = plain+float64(p.Dur), passes+p.Passes
		case p.Passes >= minPlainPasses:
			w, x, y := float64(p.Passes), float64(p.Rows), float64(p.Dur)/float64(p.Passes)
			n, sumX, sumY, sumXX, sumXY = n+w, sumX+w*x, sumY+w*y, sumXX+w*x*x, sumXY+w*x*y
			lengths++
		}
	}
	if passes >= minPlainPasses {
		return plain / float64(passes), passes, true
	}
	if lengths < 2 {
		return 0, 0, false
	}
	slope := (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	ns = (sumY-slope*sumX)/n + slope*float64(requests)
	return ns, 0, slope >= 0 && ns > 0
}
