package store

import (
	"iter"

	"github.com/llmtop/llmtop/profiler/event"
)

// recentAnswers is how many requests show whether answers are generated one after the other.
const recentAnswers = 64

// handedOver returns when a request got the slot of one that ended, of an engine that reports neither its queue nor when it
// processes prompts; 0: nothing shows that. The engine has the given number of slots, or 0: one, if no two of the last
// answers were generated at once. A first token after the end of another answer may be chance: that is excluded if there
// were two, or if it came as long after that end as the first token of that answer after its request.
func handedOver(r *Request, others iter.Seq[*Request], slots int) event.Time {
	all := []*Request{r}
	for o := range others {
		if o.First != 0 && o.ID != r.ID {
			all = append(all, o)
		}
		if len(all) > recentAnswers {
			break
		}
	}
	known, n, fastest := slots > 0, 0, r.First-r.Enqueued
	for _, q := range all {
		fastest = min(fastest, q.First-q.Enqueued)
	}
	slots = max(slots, 1)
	for _, q := range all {
		if ended, at := lastEnd(q, all, slots); ended == nil {
			if at != 0 { // more at once than slots
				return 0
			}
		} else if waitedFor(q, ended, at, fastest) {
			n++
		}
	}
	before, at := lastEnd(r, all, slots)
	if before == nil || !waitedFor(r, before, at, fastest) {
		return 0
	}
	alone := before.First - before.Enqueued
	if known || n > 1 || r.First-at <= 2*alone && at-r.Enqueued >= 2*alone {
		return at
	}
	return 0
}

// waitedFor reports whether a request may have waited for another one that ended at a time. Where that answer came in one
// piece, two answers that are generated at once look the same, unless the second one took its own time after it: at least
// half of what the fastest request took.
func waitedFor(q, ended *Request, at event.Time, fastest event.Time) bool {
	return at-q.Enqueued > together && (ended.Last-ended.First > together || q.First-at >= fastest/2)
}

// lastEnd returns the request that ended last while q waited for its first token and others had all slots, and when; nil
// and a time if others had all slots when that token came.
func lastEnd(q *Request, all []*Request, slots int) (last *Request, at event.Time) {
	generating := 0
	for _, o := range all {
		switch {
		case o == q || o.First > q.First:
		case o.Closed == 0 || o.Last > q.First:
			generating++
		case min(o.Closed, q.First) > max(q.Enqueued, at):
			last, at = o, min(o.Closed, q.First)
		}
	}
	if generating >= slots {
		return nil, q.First
	}
	held := 0
	for _, o := range all {
		if o != q && o.First < at && (o.Closed == 0 || o.Closed >= at) {
			held++
		}
	}
	if held < slots {
		return nil, 0
	}
	return last, at
}
