package store

import (
	"slices"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// liveRequest is a request of the ring with the state that its metrics are computed from.
type liveRequest struct {
	view            Request                    // everything received so far
	done            *Request                   // final view; nil until the request has ended; shared by all snapshots
	lastView        *Request                   // the latest view that snapshots share; nil if outdated
	itl             *metric.Histogram          // gaps; nil once the request has ended, like text
	stageTime       [event.StageSend + 1]int64 // ns per TTFT component
	tokens          []Token                    // the last ones, at most MaxTokens; nil once the request has ended
	choices         metric.Choices
	thinking        *thinking         // nil: no reasoning so far
	pacedSinceToken int64             // ns of pacing since the last token
	passGaps        *metric.Histogram // gaps between forward passes; nil: each generated one token
	early           *lateGap          // the last of the first gaps, until there is a median to judge them by
	lastStep        uint64            // of the last token
	pacedTotal      int64             // ns of pacing between tokens
	lastChoice      uint16
	holed           bool      // tokens after its first were not received, or their times cannot be compared
	load            modelLoad // the last one before the first token
	foundCold       bool      // Cold was found, the engine did not say it: TTFT has only the part of the load that it waited for
	promptCounted   bool      // its prompt is counted in the rates, see derivePrompt
	promptShared    bool      // another request came before its first token: the engine may have processed both prompts
	promptTotal     int       // its prompt tokens in the totals of the session
	promptStaged    bool      // its prompt tokens are those of a stage, which leaves out cached ones
	missedFirst     bool      // its first token was not received
	missedStart     bool      // its start was not received: there are no times before Dispatched or First
	predatesClock   bool      // it started before the clock's epoch, see beforeClock
	bounded         bool      // Options.Keep has no room for some of its tokens
	sharedTokens    bool      // others have the list: its entries stay as they are
	sharedGaps      bool      // the same
	sharedStages    bool      // the same
	atFirst         int32     // tokens that came with the first
	later           int32     // Outcome.Later; -1: unknown
	detailBytes     int       // size of the kept tokens' detail, see MaxDetail
	text            []byte
	tokensWhenSeen  int // of a polled request: tokens generated when it was first seen generating

	older, newer *liveRequest // neighbours in the ring

	tallyOwner            *tokenPicks // what kindTally and groupTally belong to
	kindTally, groupTally *tally
}

// countPrompt counts the prompt tokens that are known of a request in the totals of the session: with its first token,
// and again at its end, when the engine may report others.
func (l *liveRequest) countPrompt(c *counts) {
	n := l.view.PromptTokens
	c.PromptTokens += uint64(n - l.promptTotal)
	l.promptTotal = n
}

// copy returns the current view. It shares only lists that grow by appending.
func (l *liveRequest) copy() *Request {
	v := l.share()
	v.Tokens, v.Text = slices.Clip(l.tokens), string(l.text)
	return &v
}

// share returns the view for others: none of its lists is written to any more, except behind their ends.
func (l *liveRequest) share() Request {
	l.sharedTokens, l.sharedGaps, l.sharedStages = true, true, true
	v := l.view
	v.Layers = slices.Clone(v.Layers)
	v.Gaps, v.Stalls, v.Late = slices.Clip(v.Gaps), slices.Clip(v.Stalls), slices.Clip(v.Late)
	v.Spans, v.Stages = slices.Clip(v.Spans), slices.Clip(v.Stages)
	return v
}

// clip truncates text to n bytes and releases the rest.
func clip(text string, n int) string {
	if len(text) > n {
		return strings.Clone(text[:n])
	}
	return text
}

// prefilling returns for how long, between two times, the request waited for its first token while its prompt may have
// been processed: since it was dispatched, or if the source does not report that, since it was sent.
func (l *liveRequest) prefilling(from, to event.Time, caps event.Caps) time.Duration {
	v := &l.view
	begin := v.Dispatched
	if begin == 0 && !caps.Has(event.CapQueue) && !v.Retrospective && !v.Polled {
		begin = v.Enqueued
	}
	if begin == 0 {
		return 0
	}
	for _, end := range [...]event.Time{v.First, v.Closed} {
		if end != 0 {
			to = min(to, end)
		}
	}
	return time.Duration(max(to-max(from, begin), 0))
}

// addSpan adds a stage to the request's timeline, unless it holds limit stages already.
func (l *liveRequest) addSpan(e *event.Event, limit int) {
	if len(l.view.Spans) >= limit {
		l.view.Omitted.Spans++
		return
	}
	l.view.Spans = append(l.view.Spans, newSpan(e))
}

func newSpan(e *event.Event) StageSpan {
	return StageSpan{
		Stage: e.Stage, Name: clip(e.Text, MaxName), Layer: -1, Start: e.At - event.Time(e.Dur), End: e.At, Tokens: max(int(e.N), 0),
	}
}

// addStage adds a stage to its sum.
func (l *liveRequest) addStage(e *event.Event) {
	if e.Stage == event.StageNone {
		return
	}
	v := &l.view
	i := slices.IndexFunc(v.Stages, func(s StageSum) bool { return s.Stage == e.Stage })
	if i < 0 {
		v.Stages = append(v.Stages, StageSum{e.Stage, time.Duration(e.Dur), e.At})
		return
	}
	if l.sharedStages {
		v.Stages, l.sharedStages = slices.Clone(v.Stages), false
	}
	s := &v.Stages[i]
	s.Dur, s.End = time.Duration(event.Add(int64(s.Dur), e.Dur)), max(s.End, e.At)
}

// maxLayerTime clamps the time of one part of a layer, so that sums over layers do not overflow.
const maxLayerTime = time.Duration(maxDur)

// addLayer adds the prompt processing time of one layer. If the model has more than limit layers, it drops all of them:
// a part would mislead.
func (l *liveRequest) addLayer(i int, stage event.Stage, dur time.Duration, limit int) {
	if i >= limit {
		l.view.Layers, l.view.Omitted.Layers = nil, true
	}
	if l.view.Omitted.Layers {
		return
	}
	for len(l.view.Layers) <= i {
		l.view.Layers = append(l.view.Layers, LayerPart{})
	}
	p := &l.view.Layers[i]
	add := func(sum *time.Duration) { *sum = min(*sum+dur, maxLayerTime) }
	switch stage {
	case event.StageAttention:
		add(&p.Attention)
	case event.StageRouter:
		add(&p.Router)
	case event.StageExperts:
		add(&p.Experts)
	}
}
