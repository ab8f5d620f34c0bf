package timeline

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// args are the arguments of a slice: what the viewer shows of it when it is selected.
type args map[string]any

// set adds a reading unless it is absent.
func (a args) set(name string, r event.Reading) {
	if r.OK() {
		a[name] = r.V
	}
}

// seconds adds a duration in ns, unless it is 0.
func (a args) seconds(name string, ns int64) {
	if ns != 0 {
		a[name] = float64(ns) / 1e9
	}
}

// record is one entry of the Chrome trace format. Times are in whole µs, so that slices nest exactly.
type record struct {
	Name     string `json:"name"`
	Category string `json:"cat,omitempty"`
	Phase    string `json:"ph"` // X: slice, C: counter, M: name of a track
	TS       int64  `json:"ts"`
	Dur      *int64 `json:"dur,omitempty"`
	PID      int    `json:"pid"`
	TID      int    `json:"tid"`
	Args     args   `json:"args,omitempty"`
}

// writer writes records.
type writer struct {
	out   *bufio.Writer
	json  *json.Encoder
	err   error
	begun bool
	pid   int
	tid   int // of the last track
}

func (w *writer) record(r record) {
	if w.err != nil {
		return
	}
	if w.begun {
		_ = w.out.WriteByte(',') // Flush returns its error
	}
	w.begun = true
	r.PID = w.pid
	w.err = w.json.Encode(r)
}

// micros converts a time to µs.
func micros(at event.Time) int64 { return int64(at) / int64(time.Microsecond) }

// slice writes a slice. It must lie within the slices of the same track that it overlaps.
func (w *writer) slice(track int, category, name string, start, end event.Time, a args) {
	dur := max(micros(end)-micros(start), 0)
	w.record(record{Name: name, Category: category, Phase: "X", TS: micros(start), Dur: &dur, TID: track, Args: a})
}

// count writes the values of a counter from a time on.
func (w *writer) count(name string, at event.Time, values args) {
	w.record(record{Name: name, Phase: "C", TS: micros(at), Args: values})
}

// name names the process (track 0) or one of its tracks, which are shown in order.
func (w *writer) name(kind string, track int, name string) {
	w.record(record{Name: kind + "_name", Phase: "M", TID: track, Args: args{"name": name}})
	if kind == "thread" {
		w.record(record{Name: "thread_sort_index", Phase: "M", TID: track, Args: args{"sort_index": track}})
	}
}

// tracks names tracks and returns their numbers. One of several gets a number.
func (w *writer) tracks(name string, n int) (ids []int) {
	for i := range n {
		w.tid++
		ids = append(ids, w.tid)
		if n > 1 {
			w.name("thread", w.tid, fmt.Sprintf("%s %d", name, i+1))
		} else {
			w.name("thread", w.tid, name)
		}
	}
	return ids
}

// Write writes the trace. program and its version are part of it.
func (t *Trace) Write(to io.Writer, program string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := bufio.NewWriter(to)
	w := &writer{out: out, json: clean.NewEncoder(out)}
	_, _ = out.WriteString("{\"traceEvents\":[\n")
	dropped, began := uint64(0), ""
	for i, e := range t.engines {
		w.pid, w.tid = i+1, 0
		e.write(w)
		dropped += e.dropped
		if began == "" && e.info.Epoch > 0 {
			began = time.Unix(0, e.info.Epoch).UTC().Format(time.RFC3339Nano)
		}
	}
	_, _ = out.WriteString("],\"displayTimeUnit\":\"ms\",\"otherData\":")
	if w.err == nil {
		w.err = w.json.Encode(map[string]string{
			"program": program, "time 0": began, "dropped events": fmt.Sprint(dropped), "omitted events": fmt.Sprint(t.omitted),
		})
	}
	_, _ = out.WriteString("}\n")
	if err := out.Flush(); w.err == nil {
		w.err = err
	}
	if w.err != nil {
		return fmt.Errorf("write timeline: %w", w.err)
	}
	return nil
}

// Omitted returns the number of events that were not kept because there were too many.
func (t *Trace) Omitted() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.omitted
}

// write writes all tracks of an engine.
func (e *Engine) write(w *writer) {
	name := e.name
	if name == "" {
		name = e.info.Name
	}
	if e.model != "" {
		name += " · " + e.model
	}
	w.name("process", 0, name)
	e.writeRequests(w)
	e.writePasses(w)
	if len(e.picks) > 0 {
		track := w.tracks("router picks", 1)[0]
		for _, p := range e.picks {
			a := args{}
			for l, words := range p.layers {
				a[fmt.Sprintf("layer %d", l)] = words
			}
			w.slice(track, "experts", "router picks", p.start, p.end, a)
		}
	}
	e.writeUsage(w)
	for _, c := range e.counters {
		w.count(c.name, c.at, args{"value": c.value})
	}
	e.writeGenerated(w)
}

// span is a slice that needs a track on which no other overlaps it.
type span struct {
	start, end event.Time
	track      int // index of its track
}

// layOut assigns spans, sorted by their ends, to as few tracks as possible: each to the one that has been free for the
// shortest time.
func layOut(spans []span) (tracks int) {
	var ends []event.Time
	for i := range spans {
		s, best := &spans[i], -1
		for t, end := range ends {
			if end <= s.start && (best < 0 || end > ends[best]) {
				best = t
			}
		}
		if best < 0 {
			best, ends = len(ends), append(ends, 0)
		}
		s.track, ends[best] = best, s.end
	}
	return len(ends)
}

// run is a request on its track, and its wait for it.
type run struct {
	*request
	r *store.Request
	span
}

// writeRequests writes the requests: where they waited, and below it where they ran.
func (e *Engine) writeRequests(w *writer) {
	var waits, runs []run
	for _, q := range e.requests {
		r := q.final
		if r == nil || r.Enqueued == 0 {
			continue
		}
		end := r.Closed
		if end == 0 {
			end = max(e.end, r.Last, r.Enqueued)
		}
		start := r.Enqueued
		if queued := r.Dispatched == 0 && r.First == 0 && e.info.Caps.Has(event.CapQueue); !r.MissedStart && (r.Dispatched > start || queued) {
			start = r.Dispatched
			if queued {
				start = end
			}
			waits = append(waits, run{q, r, span{start: r.Enqueued, end: start}})
			if queued {
				continue
			}
		}
		runs = append(runs, run{q, r, span{start: min(start, end), end: end}})
	}
	for _, group := range []struct {
		name  string
		runs  []run
		write func(*writer, *run, int)
	}{{"waiting", waits, e.writeWait}, {"requests", runs, e.writeRun}} {
		slices.SortFunc(group.runs, func(a, b run) int {
			return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.start, b.start), cmp.Compare(a.r.ID, b.r.ID))
		})
		spans := make([]span, len(group.runs))
		for i := range group.runs {
			spans[i] = group.runs[i].span
		}
		tracks := w.tracks(group.name, layOut(spans))
		for i := range group.runs {
			group.write(w, &group.runs[i], tracks[spans[i].track])
		}
	}
}

func (e *Engine) writeWait(w *writer, q *run, track int) {
	w.slice(track, "queue", fmt.Sprintf("queue #%d", q.r.ID), q.start, q.end, args{"request": q.r.ID, "state": q.r.State.String()})
}

// writeRun writes a request, its stages before the first token, and its tokens.
func (e *Engine) writeRun(w *writer, q *run, track int) {
	r := q.r
	a := args{"request": r.ID, "state": r.State.String()}
	for name, text := range map[string]string{"reason": r.Reason, "label": r.Label, "group": r.Group, "model": r.Model} {
		if text != "" {
			a[name] = text
		}
	}
	for name, n := range map[string]int{"prompt_tokens": r.PromptTokens, "cached_tokens": r.CachedTokens, "generated_tokens": r.Generated} {
		if n > 0 {
			a[name] = n
		}
	}
	for name, reading := range map[string]event.Reading{"ttft_s": r.TTFT, "queue_s": r.STIL, "tpot_s": r.TPOT, "e2el_s": r.E2EL, "paced_s": r.Paced} {
		a.set(name, reading)
	}
	if r.MissedStart {
		a["start"] = event.NotReported.String()
	}
	if x := r.Slow; x != nil {
		a["ttft_cause"], a["ttft_evidence"] = x.Words(), x.Evidence
	}
	w.slice(track, "request", fmt.Sprintf("request #%d", r.ID), q.start, q.end, a)
	if r.First == 0 {
		return
	}
	if first := min(r.First, q.end); !r.MissedStart && first > q.start {
		name := "prefill"
		if r.Dispatched == 0 {
			name = "time to first token" // the queue, if there is one, is not reported
		}
		p := args{}
		for _, part := range r.Parts {
			stage := part.Stage.String()
			if part.Stage == event.StageNone {
				stage = "other"
			}
			p.seconds(stage+"_s", int64(part.Dur))
		}
		p.set("prefill_s", r.Prefill)
		p.set("prefill_tokens_per_s", r.PrefillRate)
		w.slice(track, "prefill", name, q.start, first, p)
		writeStages(w, track, r.Spans, q.start, first)
	}
	e.writeTokens(w, q, track)
}

// writeStages writes the stages of a request between two times. Engines that report durations only, and no times, have
// stages that overlap: the arguments of the slice around them have those.
func writeStages(w *writer, track int, spans []store.StageSpan, from, to event.Time) {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b store.StageSpan) int { return cmp.Compare(a.Start, b.Start) })
	for _, s := range spans {
		if s.Layer >= 0 || s.Start < from || s.End > to || s.End <= s.Start || s.Stage == event.StageQueue || s.Stage == event.StagePacedByOthers {
			continue
		}
		a := args{}
		a.seconds("time_s", int64(s.End-s.Start))
		if s.Tokens > 0 {
			a["tokens"] = s.Tokens
		}
		w.slice(track, "stage", s.Label(), s.Start, s.End, a)
		from = s.End
	}
}

// writeTokens writes the decoding of a request: a slice for the time before each token. Stalls have their cause.
func (e *Engine) writeTokens(w *writer, q *run, track int) {
	r, stalls := q.r, map[event.Time]*store.Stall{}
	for i := range r.Stalls {
		stalls[r.Stalls[i].At] = &r.Stalls[i]
	}
	last := min(r.Last, q.end)
	if r.First < q.start || last <= r.First {
		return
	}
	a := args{"tokens": r.Generated}
	a.set("decode_s", r.Decode)
	a.set("decode_tokens_per_s", r.DecodeRate)
	w.slice(track, "decode", "decode", r.First, last, a)
	from := r.First
	for i := range q.tokens {
		t := &q.tokens[i]
		if t.at <= from || t.at > last {
			continue
		}
		if t.paced > 0 {
			w.slice(track, "pace", "paced", max(from, t.at-event.Time(t.paced)), t.at, nil)
			from = t.at
			continue
		}
		name, category, a := "token", "token", args{"index": t.index}
		if t.index < 0 {
			delete(a, "index")
		}
		if t.n > 1 {
			name, a["tokens"] = "tokens", t.n
		}
		if t.step > 0 {
			a["pass"] = t.step
		}
		if len(t.picked) > 0 {
			a["experts"] = t.picked
		}
		if s := stalls[t.at]; s != nil {
			name, category = "stall: "+s.Words(), "stall"
			a["cause"], a["evidence"] = s.Cause.String(), s.Evidence
			a.seconds("lost_s", s.Lost)
			a.seconds("explained_s", s.Explains)
		}
		w.slice(track, category, name, from, t.at, a)
		from = t.at
	}
}

// writePasses writes the forward passes, and the size of their batches as a counter.
func (e *Engine) writePasses(w *writer) {
	slices.SortStableFunc(e.passes, func(a, b pass) int { return cmp.Compare(a.at, b.at) })
	spans := make([]span, len(e.passes))
	for i, p := range e.passes {
		spans[i] = span{start: max(p.at-event.Time(p.dur), 0), end: p.at}
	}
	n := layOut(spans)
	tracks := w.tracks("forward passes", n)
	for i := range e.passes {
		p, s := &e.passes[i], spans[i]
		name := "decode"
		switch {
		case p.prompt > 0 && p.decode > 0:
			name = "prefill + decode"
		case p.prompt > 0:
			name = "prefill"
		}
		a := args{"decode_tokens": p.decode, "prompt_tokens": p.prompt}
		if p.step > 0 {
			a["pass"] = p.step
		}
		for part, ns := range map[string]uint32{
			"embed_s": p.split.Embed, "attention_s": p.split.Attention, "router_s": p.split.Router, "experts_s": p.split.Experts,
			"lm_head_s": p.split.Head, "sample_s": p.split.Sample,
		} {
			a.seconds(part, int64(ns))
		}
		if d := p.data; d != nil {
			a["worker"] = d.Worker
			a.set("rank", d.Rank)
			a.set("queued_prefills", d.Queued.Prefills)
		}
		w.slice(tracks[s.track], "pass", name, s.start, s.end, a)
		if n > 1 {
			continue // passes run at the same time: there is no one batch
		}
		w.count("batch [tokens]", s.start, args{"decode": p.decode, "prompt": p.prompt})
		if i+1 == len(e.passes) || micros(spans[i+1].start) > micros(s.end) {
			w.count("batch [tokens]", s.end, args{"decode": 0, "prompt": 0})
		}
	}
}

// writeUsage writes what the engine's threads did as slices, since there are samples only while requests run.
func (e *Engine) writeUsage(w *writer) {
	if len(e.usage) == 0 {
		return
	}
	track, from := w.tracks("engine threads", 1)[0], event.Time(0)
	for _, u := range e.usage {
		a := args{}
		for i := range event.UsageFields {
			f := &event.UsageFields[i]
			unit, factor := f.Unit.Base()
			if r := *f.At(u.of); r.OK() {
				a[named(f.Name, unit)] = r.V * factor
			}
		}
		start := max(u.at-event.Time(u.of.Interval), from)
		if start < u.at {
			w.slice(track, "usage", "sample", start, u.at, a)
		}
		from = max(from, u.at)
	}
}

// writeGenerated writes how many tokens were generated in each second.
func (e *Engine) writeGenerated(w *writer) {
	const name = "tokens in 1 s"
	for _, second := range slices.Sorted(maps.Keys(e.generated)) {
		w.count(name, second*1e9, args{"value": e.generated[second]})
		if e.generated[second+1] == 0 {
			w.count(name, (second+1)*1e9, args{"value": 0})
		}
	}
}
