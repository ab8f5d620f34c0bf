package experts

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/expertcache"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// cache is the analysis of what a cache of experts would serve. Its work is spread over frames.
type cache struct {
	source  cacheSource
	running *expertcache.Analysis // nil: none
	result  *expertcache.Result   // newest complete one, nil before the first
	shown   bool                  // in the current frame
}

// cacheSource identifies the picks of an analysis.
type cacheSource struct {
	phase  metric.Phase
	tokens uint64 // all tokens so far
	logged bool
}

const (
	// framePicks is how many picks are analysed per frame, in whole layers: about 10 ms with 256 experts per layer.
	framePicks = 1 << 14
	// regrowth is the growth of the tokens from which they are analysed again.
	regrowth = 1.25
)

// refresh updates the analysis, once a frame.
func (k *cache) refresh(s *store.Snapshot, phase metric.Phase) {
	if !k.shown {
		k.shown = true
		k.update(s, phase)
	}
}

// update continues the analysis, or begins one if there are enough new picks.
func (k *cache) update(s *store.Snapshot, phase metric.Phase) {
	source, log := sourceOf(s, phase)
	was := k.source
	if source.phase != was.phase || source.logged != was.logged || source.tokens < was.tokens || float64(source.tokens) >= regrowth*float64(was.tokens) && source.tokens > was.tokens {
		if *k = (cache{source: source, result: k.result, shown: true}); source.phase != was.phase || source.tokens < was.tokens {
			k.result = nil
		}
		if source.logged {
			k.running = expertcache.Analyse(log)
		} else {
			k.result = s.Experts.StaticCache(source.phase)
		}
	}
	for left := framePicks; k.running != nil && left > 0; {
		left -= max(k.running.StepPicks(), 1)
		if r := k.running.Step(); r != nil {
			k.running, k.result = nil, r
		}
	}
}

// sourceOf returns what can be analysed of a phase: the log of single tokens while decoding, else counts.
func sourceOf(s *store.Snapshot, phase metric.Phase) (cacheSource, *expertcache.Log) {
	if p := matchingPicks(s); p != nil && phase != metric.Prompt {
		return cacheSource{phase: metric.Decode, tokens: p.Log.Dropped + uint64(p.Log.Tokens), logged: true}, p.Log
	}
	if phase == metric.Both {
		phase = metric.Decode
	}
	return cacheSource{phase: phase, tokens: s.Experts.Hits(metric.Session, phase).Tokens}, nil
}

// cacheTable draws what a cache of experts would serve by its slots per layer, with the budget as the cursor.
func cacheTable(a grid.Area, s *store.Snapshot, f *pane.Frame, v *View) {
	k := &v.cache
	k.refresh(s, f.Phase)
	r := k.result
	if r == nil {
		a = tableHead(a, "Expert cache")
		if k.running == nil {
			a.Wrapped(0, 0, pane.Dim, "no "+k.source.phase.String()+" tokens yet")
			return
		}
		done, of := k.running.Done()
		a.Wrapped(0, 0, pane.Dim, "analysing picks: layer "+strconv.Itoa(done)+" of "+strconv.Itoa(of))
		return
	}
	phase := k.source.phase.String()
	judged := ", " + metric.Count(float64(r.Judged)) + " tokens"
	a = tableHead(a, "Expert cache", phase+judged+" judged by those before", phase+judged, phase)
	slots := v.Budget * r.Experts / BudgetParts
	y := a.Wrapped(0, 0, pane.Plain, verdict.ExpertCache(r, slots))
	cacheShares(a.Sub(0, y, a.W, 1), r, slots)
	y++
	drawCurve(a.Sub(0, y, a.W, a.H-y), f, k, slots)
}

// policyRoles colour the curves.
var policyRoles = [expertcache.NumPolicies]theme.Role{expertcache.Static: theme.SeriesPrefill, expertcache.LRU: theme.SeriesDecode, expertcache.LFU: theme.SeriesP99}

// cacheShares writes the share of each policy.
func cacheShares(a grid.Area, r *expertcache.Result, slots int) {
	l := a.Line(0, 0)
	for p := range expertcache.NumPolicies {
		if share, ok := r.All.Share(p, slots); ok {
			l.Fit(grid.Piece{Style: grid.Fg(policyRoles[p]), Words: p.String() + " "}, grid.Piece{Style: pane.Loud, Words: metric.Percent(share)}, grid.Piece{Words: "  "})
		}
	}
	if _, ok := r.All.Share(expertcache.LRU, slots); !ok {
		l.Fit(grid.Piece{Style: pane.Dim, Words: "LRU, LFU: order not reported"})
	}
}

// curveAxis is the width of the scale of the curve.
const curveAxis = 7

// drawCurve draws the share served by slots per layer, from 0 to all experts, and marks the budget.
func drawCurve(a grid.Area, f *pane.Frame, k *cache, slots int) {
	r := k.result
	plot := a.W - curveAxis
	if a.H < 3 || plot < 8 {
		return
	}
	at := func(series, i int) float64 {
		share, _ := r.All.Share(expertcache.Policy(series), i*r.Experts/(plot-1))
		return 100 * share
	}
	series := 1
	if _, ok := r.All.Share(expertcache.LRU, 0); ok {
		series = int(expertcache.NumPolicies)
	}
	grid.Curves{
		N: plot, At: at, Top: 100, Roles: policyRoles[:series], Label: func(v, _ float64) string { return strconv.Itoa(int(v)) + " %" },
	}.Draw(a, f.Skin)
	x := curveAxis + slots*(plot-1)/r.Experts
	for y := range a.H {
		a.Under(x, y, grid.Fg(theme.Accent), f.Skin.Glyphs.Vertical)
	}
}
