package timeline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

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
			"program": program, "time 0": began, "dropped events": fmt.Sprint(dropped), "omitted events": fmt.Sprint(t.lacking()),
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

// Omitted returns the number of events and tokens that were not kept because there were too many.
func (t *Trace) Omitted() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lacking()
}

func (t *Trace) lacking() uint64 {
	n := t.omitted
	for _, e := range t.engines {
		for _, r := range e.requests {
			n += uint64(r.Stamped)
			for i := range r.tokens {
				n -= uint64(r.tokens[i].N)
			}
		}
	}
	return n
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

// writePasses writes the forward passes, and the size of their batches as a counter.
func (e *Engine) writePasses(w *writer) {
	slices.SortStableFunc(e.passes, func(a, b event.Event) int { return cmp.Compare(a.At, b.At) })
	spans := make([]span, len(e.passes))
	for i := range e.passes {
		p := &e.passes[i]
		spans[i] = span{start: max(p.At-event.Time(max(p.Dur, 0)), 0), end: p.At}
	}
	n := layOut(spans)
	tracks := w.tracks("forward passes", n)
	for i := range e.passes {
		p, s := &e.passes[i], spans[i]
		name := "decode"
		switch {
		case p.Prompt > 0 && p.N > 0:
			name = "prefill + decode"
		case p.Prompt > 0:
			name = "prefill"
		}
		a := args{"decode_tokens": p.N, "prompt_tokens": p.Prompt}
		if p.Step > 0 {
			a["pass"] = p.Step
		}
		for part, ns := range map[string]uint32{
			"embed_s": p.Split.Embed, "attention_s": p.Split.Attention, "router_s": p.Split.Router, "experts_s": p.Split.Experts,
			"lm_head_s": p.Split.Head, "sample_s": p.Split.Sample,
		} {
			a.seconds(part, int64(ns))
		}
		if d, _ := p.Data.(*event.Pass); d != nil {
			a["worker"] = d.Worker
			a.set("rank", d.Rank)
			a.set("queued_prefills", d.Queued.Prefills)
		}
		w.slice(tracks[s.track], "pass", name, s.start, s.end, a)
		if n > 1 {
			continue // passes run at the same time: there is no one batch
		}
		w.count("batch [tokens]", s.start, args{"decode": p.N, "prompt": p.Prompt})
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
	for i := range e.usage {
		at, u, a := e.usage[i].At, e.usage[i].Data.(*event.Usage), args{}
		for i := range event.UsageFields {
			f := &event.UsageFields[i]
			unit, factor := f.Unit.Base()
			if r := *f.At(u); r.OK() {
				a[named(f.Name, unit)] = r.V * factor
			}
		}
		start := max(at-event.Time(u.Interval), from)
		if start < at {
			w.slice(track, "usage", "sample", start, at, a)
		}
		from = max(from, at)
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
