package scrape

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/prober"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// maxSlots bounds the slots of one server that are told.
const maxSlots = 256

// slots follows the requests in the slots of llama.cpp's server.
type slots struct {
	tasks   map[int]task // by slot
	shared  *prober.Shared
	at      event.Time // of the last look; 0: none
	busy    int        // slots that work
	idle    []slot     // as they were seen last, when none worked
	grows   bool       // what the server tells of a prompt's length is what has been taken of it so far, as newer ones do
	began   int        // tokens that tasks had at the first look
	ended   int        // tokens of tasks that have ended, as far as they were seen
	prompts int        // tokens of prompts that were computed, as far as that was seen

	out, in tally // tokens that were generated, and of prompts that were computed
	waits   bool  // the server counts tokens itself, and its counts come with a later look: rates are not taken before

	generated, computed float64    // tokens since from
	from                event.Time // when the rates began
	decode, prefill     event.Reading
}

// ratesOver is how long rates are taken over at least: single looks are so close together that a slow model has no token, or one, between them. It is
// a little less than the second after which counters are read again.
const ratesOver = event.Time(900 * time.Millisecond)

// tally makes one count of what is seen in slots and of what the server counts itself, short requests included that nobody has seen.
type tally struct{ counted, told float64 }

// add takes in what was seen since the first look, and what the server has counted since the last one; live is seen but not counted yet. It
// returns what is new.
func (t *tally) add(seen, counted, live float64) float64 {
	t.counted += counted
	before := t.told
	t.told = max(before, seen, t.counted+live)
	return t.told - before
}

// task is the request in a slot.
type task struct {
	id      int64
	request event.RequestID
	decoded int // tokens
	done    int // tokens of the prompt that were computed
	tokens  int // that the server told of the prompt, before the first token
}

// unseen fills in what the server has counted where its slots were not told.
func (f *slots) unseen(now event.Time, report *event.Report) {
	if f.at == 0 {
		return
	}
	f.count(report, 0, now)
	f.busy = 0
}

// askSlots asks a llama-server for its slots.
func askSlots(ctx context.Context, c *fetch.Client, path string) (list []slot, err error) {
	if err := c.JSON(ctx, path, &list); err != nil {
		return nil, err
	}
	return list[:min(len(list), maxSlots)], nil
}

// follow takes in the slots.
func (f *slots) follow(list []slot, now event.Time, report *event.Report) {
	if f.tasks == nil {
		f.tasks = make(map[int]task)
	}
	live, used, total := 0, 0, 0
	f.busy = 0
	for i := range list {
		v := &list[i]
		if before, ok := f.tasks[v.ID]; ok && (!v.Processing || before.id != v.Task) {
			f.ended += before.decoded
			delete(f.tasks, v.ID)
		}
		used, total = used+min(max(v.Tokens, 0), v.Context), total+max(v.Context, 0)
		out := event.Slot{Slot: v.ID, Context: max(v.Context, 0), Used: max(v.Tokens, 0)}
		if v.Processing {
			f.busy++
			before, ok := f.tasks[v.ID]
			if !ok {
				before = task{id: v.Task}
				if f.at == 0 { // what was before the first look is not what has come since
					before.decoded, before.done = v.Next.Decoded, v.Processed
					f.began += max(v.Next.Decoded, 0)
				}
			}
			f.name(v, &before)
			live += max(v.Next.Decoded, 0)
			f.prompts += max(v.Processed-before.done, 0)
			if v.Next.Decoded <= 0 {
				f.grows = f.grows || before.tokens > 0 && v.Tokens > before.tokens
				before.tokens = v.Tokens
			}
			before.decoded, before.done = max(v.Next.Decoded, 0), max(v.Processed, 0)
			f.tasks[v.ID] = before
			out.Request, out.Generated, out.Max = before.request, before.decoded, max(v.Params.Predict, 0)
			out.Cached = max(v.Cached, 0)
			out.Processed = before.done + out.Cached
			if !f.grows || before.decoded > 0 {
				out.Prompt = max(v.Tokens-before.decoded, out.Processed)
			}
		}
		report.Slots = append(report.Slots, out)
	}
	f.count(report, live, now)
	f.at = now
	report.Running = event.Told(float64(f.busy))
	report.KVUsed, report.KVTotal = event.From(float64(used)), event.From(float64(total))
	report.KVUsage = event.Absent(event.NotReported)
	if total > 0 {
		report.KVUsage = event.From(float64(used) / float64(total))
	}
}

// name finds the number of the request in a slot: a new one, or that of the probe, which tells of itself.
func (f *slots) name(v *slot, t *task) {
	if t.request != 0 {
		return
	}
	var own bool
	if t.request, own = f.shared.Of(uint64(max(v.Params.Seed, 0))); !own {
		t.request = f.shared.Next()
	}
}

// count fills in the tokens since the last look, and the rates. The server counts what a request has generated when it ends.
func (f *slots) count(report *event.Report, live int, now event.Time) {
	counted := func(r event.Reading) float64 {
		if !r.OK() {
			return 0
		}
		return r.V
	}
	generated := f.out.add(float64(f.ended+live-f.began), counted(report.Generated), float64(live-f.began))
	computed := f.in.add(float64(f.prompts), max(counted(report.Prompt)-counted(report.Cached), 0), 0)
	f.rates(report, generated, computed, now)
	if f.at == 0 && !report.Generated.OK() { // nothing was counted before
		report.Generated = event.Absent(event.NotYet)
		return
	}
	report.Generated = event.From(generated)
}

// rates are tokens/s over the last second or more.
func (f *slots) rates(report *event.Report, generated, computed float64, now event.Time) {
	if f.at == 0 {
		f.from, f.decode, f.prefill = now, event.Absent(event.NotYet), event.Absent(event.NotYet)
	}
	f.generated, f.computed = f.generated+generated, f.computed+computed
	if took := now - f.from; took >= ratesOver && !f.waits {
		seconds := float64(took) / 1e9
		f.decode, f.prefill = event.From(f.generated/seconds), event.From(f.computed/seconds)
		f.generated, f.computed, f.from = 0, 0, now
	}
	report.Decode, report.Prefill = f.decode, f.prefill
}
