package scrape

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// maxRunners bounds the llama-servers of one Ollama that are followed.
const maxRunners = 8

// runnersEvery is how often it is looked for them, where there are fewer than models: that reads all processes of the machine. Tests have less time.
var runnersEvery = 10 * time.Second

// ollama watches the models that Ollama has in memory, all that it tells itself. What happens to requests is seen in the slots of the llama-servers
// that it starts, one for each model, where they run on this machine.
type ollama struct {
	listed  event.Time // when it was asked for its models
	models  int
	more    []event.Number
	sought  event.Time
	runners map[string]*runner // by address
}

// slotsOfRunners is the question to llama-servers as it is listed.
const slotsOfRunners = "/slots of its llama-servers"

// runner is a llama-server that Ollama has started.
type runner struct {
	client *fetch.Client
	slots  slots
}

func (o *ollama) look(ctx context.Context, s *Source) (*event.Report, error) {
	now := s.opt.Clock.Now()
	if o.listed == 0 || now-o.listed >= event.Time(ollamaEvery)*9/10 {
		if err := o.list(ctx, s); err != nil {
			return nil, err
		}
		o.listed = now
		o.find(s, now)
	}
	report := &event.Report{Interval: s.since(), More: o.more}
	from(report, "/api/ps", "")
	for _, at := range slices.Sorted(maps.Keys(o.runners)) {
		r := o.runners[at]
		list, err := askSlots(ctx, r.client, "/slots")
		if err != nil { // it has ended with its model
			r.client.Close()
			delete(o.runners, at)
			continue
		}
		part := &event.Report{Interval: report.Interval}
		r.slots.follow(list, s.opt.Clock.Now(), part)
		beside(report, part)
	}
	all := len(report.Slots)
	switch found := len(o.runners); {
	case found >= o.models && found > 0:
		from(report, slotsOfRunners, "")
	case found > 0: // sums would be those of a part of Ollama
		from(report, slotsOfRunners, fmt.Sprintf("found for %d of %d models", found, o.models))
		*report = event.Report{Interval: report.Interval, More: report.More, Sources: report.Sources, Slots: report.Slots}
		all = 0
	case o.models > 0:
		from(report, slotsOfRunners, "none was found on this machine")
	}
	if all != s.engine.Slots {
		s.engine.Slots = all
		s.introduce()
	}
	return report, nil
}

// list asks for the models in memory.
func (o *ollama) list(ctx context.Context, s *Source) error {
	running, err := identify.RunningOllama(ctx, s.client)
	if err != nil {
		return err
	}
	var list []event.Model
	var memory, vram int64
	for _, m := range running {
		list = append(list, m.Model)
		memory, vram = memory+m.Memory, vram+m.VRAM
	}
	s.models(list)
	o.models, o.more = len(list), nil
	if memory > 0 {
		o.more = []event.Number{
			{Name: "gpu_memory_share", Reading: event.From(float64(vram) / float64(memory))},
			{Name: "model_memory_bytes", Reading: event.Told(float64(memory))},
		}
	}
	return nil
}

// find looks for the llama-servers of models that have none yet.
func (o *ollama) find(s *Source, now event.Time) {
	if s.opt.Runners == nil || len(o.runners) >= min(o.models, maxRunners) || o.sought != 0 && now-o.sought < event.Time(runnersEvery) {
		return
	}
	o.sought = now
	for _, at := range s.opt.Runners() {
		if o.runners[at] != nil || len(o.runners) >= maxRunners {
			continue
		}
		client, err := fetch.New(at, fetch.Options{})
		if err != nil {
			continue
		}
		if o.runners == nil {
			o.runners = make(map[string]*runner)
		}
		o.runners[at] = &runner{client: client, slots: slots{shared: s.opt.Shared}}
	}
}

// close lets go of the connections.
func (o *ollama) close() {
	for _, r := range o.runners {
		r.client.Close()
	}
}

// beside adds what one llama-server, or one model of it, tells to what others have told. Slots are numbered on.
func beside(sum, part *event.Report) {
	for _, v := range part.Slots {
		v.Slot = len(sum.Slots)
		sum.Slots = append(sum.Slots, v)
	}
	sum.Running, sum.Waiting = plus(sum.Running, part.Running), plus(sum.Waiting, part.Waiting)
	sum.Prompt, sum.Cached = plus(sum.Prompt, part.Prompt), plus(sum.Cached, part.Cached)
	sum.Decode, sum.Prefill, sum.Generated = plus(sum.Decode, part.Decode), plus(sum.Prefill, part.Prefill), plus(sum.Generated, part.Generated)
	sum.Times = append(sum.Times, part.Times...)
	sum.KVUsed, sum.KVTotal = plus(sum.KVUsed, part.KVUsed), plus(sum.KVTotal, part.KVTotal)
	if sum.KVTotal.V > 0 {
		sum.KVUsage = event.From(sum.KVUsed.V / sum.KVTotal.V)
	}
}

// plus adds two readings; one that is absent adds nothing.
func plus(a, b event.Reading) event.Reading {
	switch {
	case !b.OK() && (a.OK() || a.Origin != event.NotReported):
		return a
	case !a.OK():
		return b
	}
	b.V += a.V
	return b
}

// pause is shorter while something is at work, as for a llama-server.
func (o *ollama) pause(interval time.Duration) time.Duration {
	if len(o.runners) == 0 {
		return max(interval, ollamaEvery)
	}
	for _, r := range o.runners {
		if r.slots.busy > 0 {
			return min(slotsEvery, interval)
		}
	}
	return interval
}
