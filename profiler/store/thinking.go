package store

import "github.com/llmtop/llmtop/profiler/event"

// thinking sums up a request that reasons, from its first reasoning on.
type thinking struct {
	marked   int        // tokens of reasoning
	tokens   int        // of the reasoning in progress
	span     int64      // ns since the first token of the reasoning in progress, without pacing
	before   int64      // ns from the first token to the first one of the answer, without pacing
	began    event.Time // when the answer in progress began
	answer   int64      // ns between tokens of the answer, without pacing
	gaps     int        // tokens of the answer that came in that time
	reported int        // Outcome.Reasoning
	answered int        // Outcome.Answered
	unknown  bool       // Outcome.AnyReasoning
}

// addThinking adds k tokens with a gap before each, the first ones of which may be reasoning. Reasoning that ends becomes a
// stage; limit is that of spans.
func (l *liveRequest) addThinking(e *event.Event, at event.Time, gap int64, k, limit int) {
	v, reasons := &l.view, int(min(max(e.Reasoning, 0), int32(k)))
	if v.Answered == 0 && reasons < k {
		v.Answered = at
	}
	if l.thinking == nil && reasons > 0 {
		l.thinking = new(thinking)
	}
	t := l.thinking
	if t == nil {
		return
	}
	took := max(gap, 0) * int64(k)
	follows := t.tokens > 0 // the token before is reasoning
	if follows {
		t.span += took
	}
	t.marked, t.tokens = t.marked+reasons, t.tokens+reasons
	switch {
	case reasons == k:
		t.began = 0
	case follows || reasons > 0 || t.began == 0: // the answer begins, or goes on after it
		if t.began = at; v.Answered == at {
			t.before = max(int64(at-v.First)-l.pacedTotal, 0)
		}
		l.endThinking(at, limit)
	case at != t.began:
		t.answer, t.gaps = t.answer+took, t.gaps+k
	}
}

// endThinking adds the reasoning in progress, which ended at a time, as a stage.
func (l *liveRequest) endThinking(at event.Time, limit int) {
	if t := l.thinking; t != nil && t.tokens > 0 {
		e := event.Event{Kind: event.KindStage, Stage: event.StageThinking, At: at, Dur: t.span, Layer: -1, N: int32(min(t.tokens, event.MaxTokens))}
		l.addStage(&e)
		l.addSpan(&e, limit)
		t.tokens, t.span = 0, 0
	}
}

// countThinking takes the server's counts at the end of a request.
func (l *liveRequest) countThinking(o *event.Outcome) {
	if l.thinking == nil && o.Reasoning > 0 {
		l.thinking = new(thinking)
	}
	if t := l.thinking; t != nil {
		t.reported, t.answered, t.unknown = o.Reasoning, o.Answered, o.AnyReasoning
	}
}

// measureThinking computes what reasoning adds to the metrics of a request.
func (l *liveRequest) measureThinking(absent event.Reading) {
	v, t := &l.view, l.thinking
	missing := event.Absent(event.NotReported)
	v.Answer, v.Thinking, v.AnswerTPOT, v.Reasoning, v.ReasoningRate = absent, absent, absent, absent, absent
	if t == nil || v.First == 0 {
		return
	}
	counted := t.marked
	if t.reported > 0 {
		counted = t.reported
	}
	if v.Reasoning = event.DerivedValue(float64(counted)); t.unknown && t.reported == 0 {
		v.Reasoning = missing
	}
	if t.marked == 0 { // it was not streamed: the first token is the first of the answer
		v.Answer, v.Thinking, v.AnswerTPOT, v.ReasoningRate = v.TTFT, missing, v.TPOT, missing
		return
	}
	if v.Answered != 0 {
		if v.Answer = v.TTFT; v.TTFT.OK() {
			v.Answer = seconds(nanos(v.TTFT) + t.before)
		}
	}
	if v.Choices > 1 { // they reason at the same time
		v.Thinking, v.AnswerTPOT, v.ReasoningRate = missing, missing, missing
		return
	}
	for _, st := range v.Stages {
		if st.Stage == event.StageThinking {
			v.Thinking = seconds(int64(st.Dur))
		}
	}
	gaps := t.gaps
	if t.answered > 0 {
		gaps = t.answered
	}
	switch {
	case t.unknown:
		v.AnswerTPOT, v.ReasoningRate = missing, missing
		return
	case t.answer > 0:
		v.AnswerTPOT = seconds(t.answer)
		v.AnswerTPOT.V /= float64(gaps)
	}
	if v.Answered != 0 {
		v.ReasoningRate = rate(counted, v.Thinking)
	}
}

// Reasons reports whether anything shows that the request reasons.
func (r *Request) Reasons() bool {
	return r.Reasoning.OK() || r.Thinking.OK() || r.Reasoning.Origin == event.NotReported && r.Answered != 0
}

// AnswerBy returns the time by which the user had the first token of the answer, in s: that of its first token, if nothing
// shows that it reasoned. Absent if no token of the answer came.
func (r *Request) AnswerBy() event.Reading {
	return AnswerBy(r.Answer, r.Thinking, r.Reasoning, r.TTFT)
}

// AnswerBy is Request.AnswerBy, of the numbers of a request.
func AnswerBy(answer, thinking, reasoning, ttft event.Reading) event.Reading {
	if answer.OK() || thinking.OK() || reasoning.OK() {
		return answer
	}
	return ttft
}
