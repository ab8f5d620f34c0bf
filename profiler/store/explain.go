package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/verdict"
)

// explain names the cause of lost time between two times with the evidence that there is.
func (s *state) explain(u *unexplained) verdict.Explanation {
	from, load := u.from, int64(0)
	l := s.requests.byID[u.req]
	if l != nil && u.index == 0 { // in the queue, nothing could slow it
		if load = l.view.LoadTime(); load == 0 {
			from = max(from, s.worked(l, u.to))
		}
	}
	i := interval(s, from, u.to)
	i.Lost, i.Wall, i.Load, i.AbsentExperts = u.lost, int64(u.to-from), load, u.absent
	if l != nil && l.view.Cold && u.index == 0 { // pages that were evicted before the model was loaded
		i.Usage.Reread = event.Absent(event.NotReported)
	}
	if u.index > 0 {
		s.promptEvidence(&i, u)
	} else if l != nil {
		i.OwnPrompt, i.Paced = s.ownPrompt(l), l.stageTime[event.StagePacedByOthers]
		with := s.settings().of(l)
		if wait := l.queueTime(&with, event.Absent(event.NotYet)); wait.OK() {
			i.Queued = nanos(wait)
		}
	}
	return verdict.Explain(&i)
}

// worked returns since when the engine worked on a request whose first token came at a moment, as far as that is known. Of
// an engine that reports no queue, it is that moment if other requests ran meanwhile: it may have waited for their slots.
func (s *state) worked(l *liveRequest, first event.Time) event.Time {
	v, caps := &l.view, s.engine.Caps
	if began := v.Began(caps); began != 0 || caps.Has(event.CapQueue) {
		return began
	}
	for o := range s.requests.newestFirst() {
		if w := &o.view; o != l && w.Enqueued < first && (w.Closed == 0 || w.Closed > v.Enqueued) {
			return first
		}
	}
	return 0
}

// ownPrompt returns how long the prompt of a request was processed, in ns, if that is its prompt's doing: other prompts
// took as long, or the engine was warm and no other was processed since; otherwise 0.
func (s *state) ownPrompt(l *liveRequest) int64 {
	if !l.view.Prefill.OK() {
		return 0
	}
	ns, prompts := nanos(l.view.Prefill), &s.causes.totals().prompts
	warm := prompts.whole == 0 && slices.ContainsFunc(s.load, func(p StageSpan) bool { return p.Stage == event.StageLoadWarmup })
	if warm || prompts.accounts(ns, cmp.Or(l.view.Computed, l.view.PromptTokens)) {
		return ns
	}
	return 0
}

// promptEvidence adds for how long prompts of other requests were processed meanwhile, and whose. A source that reports
// neither forward passes nor dispatches, such as a proxy, shows only who waited for a first token: that counts if one
// request did for at least half of the time.
func (s *state) promptEvidence(i *verdict.Interval, u *unexplained) {
	i.Prompt = s.causes.promptTime(u.req, u.from, u.to)
	passes := s.engine.Caps.Has(event.CapSteps)
	if i.Prompt == 0 && passes {
		return
	}
	o, took := s.longestPrefill(u.req, u.from, u.to)
	switch {
	case o == nil:
	case i.Prompt > 0:
		i.PromptOf = o.view.ID
	case took >= time.Duration(u.to-u.from)/2:
		i.Prompt, i.PromptOf, i.PromptAwaited = int64(took), o.view.ID, true
	}
}

// longestPrefill returns the request other than req whose prompt may have been processed for the longest part of the time
// between two times, and that part; nil without such a request.
func (s *state) longestPrefill(req event.RequestID, from, to event.Time) (longest *liveRequest, took time.Duration) {
	checked := 0
	for o := range s.requests.newestFirst() {
		if n := o.prefilling(from, to, s.engine.Caps); o.view.ID != req && n > took {
			longest, took = o, n
		}
		if checked++; checked == MaxRequests { // with thousands of requests, checking all is too slow
			break
		}
	}
	return longest, took
}

// promptTime returns for how long prompts of other requests were processed, in ns.
func (c *causes) promptTime(req event.RequestID, from, to event.Time) (ns int64) {
	for i := len(c.passes) - 1; i >= 0 && c.passes[i].to > from; i-- {
		if p := &c.passes[i]; p.req == 0 || p.req != req {
			ns = event.Add(ns, max(int64(min(p.to, to)-max(p.from, from)), 0))
		}
	}
	return min(ns, int64(to-from))
}

// explainLater explains lost time with the evidence so far, counts it, and again when more has arrived.
func (s *state) explainLater(l *liveRequest, u unexplained) verdict.Explanation {
	u.given = s.explain(&u)
	if !s.excluded(l) {
		s.causes.count(u.to, &u.given, 1, u.of())
		s.causes.late = push(s.causes.late, promptPass{u.from, u.to, u.req}, maxLate)
	}
	if len(s.causes.pending) >= maxPending {
		s.causes.pending = s.causes.pending[1:]
	}
	s.causes.pending = append(s.causes.pending, u)
	return u.given
}

// explainPending explains again what ended between two times, after a sample, until both kinds of samples have covered it.
func (s *state) explainPending(from, at event.Time) {
	c := &s.causes
	cloned := map[*Request]bool{}
	kept := make([]unexplained, 0, len(c.pending))
	for _, u := range c.pending {
		if at-u.to > evidenceDelay {
			continue
		}
		if from < u.to && u.to <= at {
			if x := s.explain(&u); x != u.given {
				l := s.requests.byID[u.req]
				if l != nil && !s.excluded(l) {
					c.count(u.to, &u.given, -1, u.of())
					c.count(u.to, &x, 1, u.of())
				}
				s.replaceCause(l, &u, &x, cloned)
				u.given = x
			}
		}
		if !reach(c.hosts, u.to) || !reach(c.usage, u.to) { // an engine without usage keeps them for evidenceDelay
			kept = append(kept, u)
		}
	}
	c.pending = kept
}

// reach reports whether the samples reach a time.
func reach[T any](list []sample[T], t event.Time) bool {
	n := len(list)
	return n > 0 && list[n-1].to >= t
}

// replaceCause replaces the explanation of a stall or a first token. Snapshots share the old lists, so that it replaces
// copies. cloned has the requests whose list is a copy already.
func (s *state) replaceCause(l *liveRequest, u *unexplained, x *verdict.Explanation, cloned map[*Request]bool) {
	replace := func(list []Stall, key *Request) []Stall {
		i := slices.IndexFunc(list, func(st Stall) bool { return st.Request == u.req && st.Index == u.index && st.At == u.to })
		if i < 0 {
			return list
		}
		if !cloned[key] {
			list, cloned[key] = slices.Clone(list), true
		}
		list[i].Explanation = x
		return list
	}
	s.latency.stalls = replace(s.latency.stalls, nil)
	if l == nil {
		return
	}
	v := &l.view
	if l.done != nil && !cloned[l.done] {
		done := *l.done
		l.done = &done
		cloned[l.done] = true
		done.Stalls = slices.Clone(done.Stalls)
		l.done.Stalls = done.Stalls
	}
	if l.done != nil {
		v = l.done
	} else {
		l.lastView = nil
	}
	if u.index == 0 {
		v.Slow = x
		return
	}
	v.Stalls = replace(v.Stalls, v)
}
