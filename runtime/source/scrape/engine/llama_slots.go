package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// slotTracker follows the requests in the slots of llama.cpp's server.
type slotTracker struct {
	tasks       map[int]task   // by slot
	ids         *atomic.Uint64 // the last one of the poller
	lastSeen    event.Time     // time of the last poll; 0: none
	busy        int            // slots in use
	idleSlots   []slot         // as polled last while all were idle
	unsized     bool           // older servers: slots do not say how many cells they use
	promptGrows bool           // newer servers: n_prompt_tokens grows while the prompt is processed
	startTokens float64        // generated tokens of the tasks seen in the first poll
	ended       float64        // generated tokens of ended tasks, as of the last poll that saw them
	prompts     float64        // computed prompt tokens, as far as polls saw them
	uncached    float64        // those that a server has counted since the last poll that does not count cached ones
	reconnected bool           // since the last poll: the server may have restarted
	restarted   bool           // the slots have shown so since the counters were read

	outTally, promptTally tally // generated tokens, and computed prompt tokens
	delayRates            bool  // the server's own counts arrive with a later poll: do not compute rates before

	generated, computed float64    // tokens since ratesFrom
	ratesFrom           event.Time // start of the current rate window
	decode, prefill     event.Reading
}

// rateWindow is the shortest time over which rates are computed. Single polls are so close together that a slow model
// generates at most one token between two. It is a little less than the second after which counters are read again.
const rateWindow = event.Time(900 * time.Millisecond)

// tally combines two counts of tokens: those seen in slots, and the server's own counter, which includes short requests
// that no poll has seen.
type tally struct{ counted, reported float64 }

// add takes the tokens seen since the first poll, the increase of the server's counter since the last poll, and the
// tokens seen but not in the counter yet (live). It returns the new tokens.
func (t *tally) add(seen, counted, live float64) float64 {
	t.counted += counted
	before := t.reported
	t.reported = max(before, seen, t.counted+live)
	return t.reported - before
}

// task is the request in a slot.
type task struct {
	id      int64
	request event.RequestID
	decoded int        // generated tokens
	done    int        // computed prompt tokens
	tokens  int        // prompt tokens reported before the first generated token
	last    event.Slot // as reported last
}

// end counts the last tokens of a task that has left its slot, and returns how it ended. StateNone means that the
// server does not show it: it is too old, or the slot has a new task.
func (t *task) end(v *slot) event.State {
	more := v.Next.More
	if v.Processing || v.Task != t.id || more == nil || t.decoded == 0 { // an embedding never decodes
		return event.StateNone
	}
	n := v.Next.Decoded // newer servers reset it
	if prompt := t.last.Processed; prompt > 0 && !v.Speculative {
		n = max(n, v.Tokens-prompt)
		if !*more {
			n = max(n, v.Tokens-prompt+1) // the last token is generated, but never in the cache
		}
	}
	if v.Params.Predict > 0 {
		n = min(n, v.Params.Predict)
	}
	t.decoded = max(t.decoded, n)
	if *more {
		return event.StateCancelled
	}
	return event.StateFinished
}

// startAtZero makes all tokens count that the first poll finds in the slots, because the server started after the given
// time.
func (f *slotTracker) startAtZero(since, now event.Time) {
	f.lastSeen, f.ratesFrom, f.decode, f.prefill = since, now, event.Absent(event.NotYet), event.Absent(event.NotYet)
}

// restart ends the tasks of a server that was killed, and makes its successor's tokens count from 0: it has not counted the
// tokens of those tasks. counted: its counters show the restart, after its slots may have.
func (f *slotTracker) restart(counted bool) {
	if counted && f.restarted {
		return
	}
	clear(f.tasks)
	f.outTally.counted, f.promptTally.counted = f.outTally.reported, f.promptTally.reported
	f.ended, f.prompts, f.startTokens = f.outTally.reported, f.promptTally.reported, 0
	f.reconnected, f.restarted = false, !counted
}

// begins reports whether a slot shows that the server has restarted: it numbers its tasks from 0 again.
func (f *slotTracker) begins(v *slot) bool {
	t := f.tasks[v.ID]
	return t.request != 0 && v.Processing && (v.Task < t.id || v.Task == t.id && v.Next.Decoded < t.decoded)
}

// countOnly counts the tokens from the server's counters when the slots could not be read.
func (f *slotTracker) countOnly(now event.Time, report *event.Aggregates) {
	if f.lastSeen == 0 {
		return
	}
	f.count(report, 0, now)
	f.busy = 0
}

// errSlotAgain is returned for the joined slots of several servers: nothing shows which is whose.
var errSlotAgain = errors.New("a slot is there twice")

// fetchSlots requests the slots of a llama-server.
func fetchSlots(ctx context.Context, c *fetch.Client, path string) (list []slot, err error) {
	if err := c.JSON(ctx, path, &list); err != nil {
		return nil, err
	}
	seen := make(map[int]bool, len(list))
	for i := range list {
		if seen[list[i].ID] {
			return nil, errSlotAgain
		}
		seen[list[i].ID] = true
	}
	return list, nil
}

// update processes the slots of a poll and adds them to the report.
func (f *slotTracker) update(list []slot, now event.Time, report *event.Aggregates) {
	if f.tasks == nil {
		f.tasks = make(map[int]task)
	}
	if f.reconnected && slices.ContainsFunc(list, func(v slot) bool { return f.begins(&v) }) {
		f.restart(false)
	}
	f.reconnected = false
	live, used, total := 0.0, 0.0, 0.0 // of thousands of slots, each with whatever a server may say
	sized := true
	f.busy = 0
	for i := range list {
		v := &list[i]
		ended, end := f.tasks[v.ID], event.StateNone
		if ended.request != 0 && (!v.Processing || ended.id != v.Task) {
			end = ended.end(v)
			f.ended += float64(ended.decoded)
			delete(f.tasks, v.ID)
		}
		f.unsized = f.unsized || v.Processing && v.Tokens == 0 && (v.Next.Decoded > 0 || v.Processed > 0)
		sized = sized && v.Tokens >= 0 && float64(v.Tokens) <= event.MaxShare*float64(v.Context)
		used, total = used+float64(min(max(v.Tokens, 0), v.Context)), total+float64(max(v.Context, 0))
		out := event.Slot{Slot: v.ID, Context: max(v.Context, 0), Used: max(v.Tokens, 0)}
		if end != event.StateNone {
			last := ended.last
			last.Used, last.Context, last.Generated, last.End = out.Used, out.Context, ended.decoded, end
			out = last
		}
		if v.Processing {
			f.busy++
			before, ok := f.tasks[v.ID]
			if !ok {
				before = task{id: v.Task}
				if f.lastSeen == 0 { // tokens from before the first poll do not count
					before.decoded, before.done = v.Next.Decoded, v.Processed
					f.startTokens += float64(max(v.Next.Decoded, 0))
				}
			}
			if before.request == 0 {
				before.request = event.RequestID(f.ids.Add(1))
			}
			live += float64(max(v.Next.Decoded, 0))
			f.prompts += float64(max(v.Processed-before.done, 0))
			if v.Next.Decoded <= 0 {
				f.promptGrows = f.promptGrows || before.tokens > 0 && v.Tokens > before.tokens
				before.tokens = v.Tokens
			}
			before.decoded, before.done = max(v.Next.Decoded, 0), max(v.Processed, 0)
			out.Request, out.Generated, out.Max = before.request, before.decoded, max(v.Params.Predict, 0)
			out.Cached = max(v.Cached, 0)
			out.Processed = before.done + out.Cached
			if !f.promptGrows || before.decoded > 0 {
				out.Prompt = max(v.Tokens-before.decoded, out.Processed)
			}
			before.last = out
			f.tasks[v.ID] = before
		}
		if len(report.Slots) < wire.MaxSlots { // slots beyond the limit count only in the sums
			report.Slots = append(report.Slots, out)
		}
	}
	f.count(report, live, now)
	f.lastSeen = now
	report.Running = event.ReportedValue(float64(f.busy))
	report.KVTotal = event.DerivedValue(total)
	if f.unsized { // as the metrics of such servers say
		return
	}
	report.KVUsed, report.KVUsage = event.Absent(event.NotReported), event.Absent(event.NotReported)
	if sized {
		report.KVUsed = event.DerivedValue(used)
	}
	if sized && total > 0 {
		report.KVUsage = event.DerivedValue(used / total)
	}
}

// count adds the tokens since the last poll, and the rates. The server adds the tokens of a request to its counter when
// the request ends.
func (f *slotTracker) count(report *event.Aggregates, live float64, now event.Time) {
	counted := func(r event.Reading) float64 {
		if !r.OK() {
			return 0
		}
		return r.V
	}
	report.AtLeast = report.Generated.Origin == event.NotReported // the server has no counter of its own
	generated := f.outTally.add(f.ended+live-f.startTokens, counted(report.Generated), live-f.startTokens)
	computed := f.promptTally.add(f.prompts, max(counted(report.Prompt)-counted(report.Cached), f.uncached), 0)
	f.uncached = 0
	f.rates(report, generated, computed, now)
	if f.lastSeen == 0 && !report.Generated.OK() { // no earlier poll to count from
		report.Generated = event.Absent(event.NotYet)
		return
	}
	report.Generated = event.DerivedValue(generated)
}

// rates adds the rates in tokens/s over at least rateWindow.
func (f *slotTracker) rates(report *event.Aggregates, generated, computed float64, now event.Time) {
	if f.lastSeen == 0 {
		f.ratesFrom, f.decode, f.prefill = now, event.Absent(event.NotYet), event.Absent(event.NotYet)
	}
	f.generated, f.computed = f.generated+generated, f.computed+computed
	if took := now - f.ratesFrom; took >= rateWindow && !f.delayRates {
		seconds := float64(took) / 1e9
		f.decode, f.prefill = event.DerivedValue(f.generated/seconds), event.DerivedValue(f.computed/seconds)
		f.generated, f.computed, f.ratesFrom = 0, 0, now
	}
	report.Decode, report.Prefill = f.decode, f.prefill
}
