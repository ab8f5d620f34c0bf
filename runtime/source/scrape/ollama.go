package scrape

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
)

// maxRunners limits the number of llama-servers followed for one Ollama, and of models followed for one llama-server.
const maxRunners = 8

// runnersEvery is the time between two searches for llama-servers while fewer are found than models are loaded. A
// search reads all processes of the machine. Tests use a shorter time.
var runnersEvery = 10 * time.Second

// ollama collects the models that Ollama has in memory, the only thing that it reports. Requests are read from the
// slots of the llama-servers that it starts, one per model, if they run on this machine.
type ollama struct {
	listedAt  event.Time // when the models were read
	models    int
	listed    []string // names of the models
	searched  []string // of those, as of the last search for llama-servers
	readings  []event.NamedReading
	runnersAt event.Time
	runners   map[string]*runner // by address
}

// slotsOfRunners is the endpoint name of the slots of all llama-servers.
const slotsOfRunners = "/slots of its llama-servers"

// runner is a llama-server started by Ollama.
type runner struct {
	client *fetch.Client
	slots  slotTracker
}

func (o *ollama) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	now := s.clock.Now()
	if o.listedAt == 0 || now-o.listedAt >= event.Time(ollamaEvery)*9/10 {
		if err := o.readModels(ctx, s); err != nil {
			return nil, err
		}
		o.listedAt = now
		o.findRunners(s, now)
	}
	report := &event.Aggregates{Interval: s.sinceReport(), More: o.readings}
	addEndpoint(report, "/api/ps", "")
	for _, at := range slices.Sorted(maps.Keys(o.runners)) {
		r := o.runners[at]
		list, err := fetchSlots(ctx, r.client, "/slots")
		s.countMalformed(r.client.Malformed())
		if err != nil { // it ended when its model was unloaded
			r.client.Close()
			delete(o.runners, at)
			continue
		}
		part := &event.Aggregates{Interval: report.Interval}
		r.slots.update(list, s.clock.Now(), part)
		addAggregates(report, part)
	}
	all := len(report.Slots)
	switch found := len(o.runners); {
	case found >= o.models && found > 0:
		addEndpoint(report, slotsOfRunners, "")
	case found > 0: // sums would cover only a part of Ollama
		addEndpoint(report, slotsOfRunners, fmt.Sprintf("found for %d of %d models", found, o.models))
		*report = event.Aggregates{Interval: report.Interval, More: report.More, Endpoints: report.Endpoints, Slots: report.Slots}
		all = 0
	case o.models > 0:
		addEndpoint(report, slotsOfRunners, "no llama-server found on this machine")
	}
	s.setSlots(all)
	return report, nil
}

// readModels reads the loaded models.
func (o *ollama) readModels(ctx context.Context, s *Poller) error {
	running, err := identify.RunningOllama(ctx, s.client)
	if err != nil {
		return err
	}
	var list []event.Model
	var memory, vram int64
	o.listed = nil
	for _, m := range running {
		list, o.listed = append(list, m.Model), append(o.listed, m.Name)
		memory, vram = event.Add(memory, m.Memory), event.Add(vram, m.VRAM)
	}
	s.setModels(list)
	o.models, o.readings = len(list), nil
	if memory > 0 {
		o.readings = []event.NamedReading{
			{Name: "gpu_memory_share", Reading: event.DerivedValue(float64(vram) / float64(memory))},
			{Name: "model_memory_bytes", Reading: event.ReportedValue(float64(memory))},
		}
	}
	return nil
}

// findRunners searches for llama-servers while there are fewer than models.
func (o *ollama) findRunners(s *Poller, now event.Time) {
	changed := !slices.Equal(o.searched, o.listed) // a model was loaded: its llama-server runs already
	if s.opt.Runners == nil || len(o.runners) >= min(o.models, maxRunners) || !changed && now-o.runnersAt < event.Time(runnersEvery) {
		return
	}
	o.runnersAt, o.searched = now, o.listed
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
		o.runners[at] = &runner{client: client, slots: slotTracker{ids: s.opt.RequestIDs}}
	}
}

// close closes the connections to the llama-servers.
func (o *ollama) close() {
	for _, r := range o.runners {
		r.client.Close()
	}
}

// addAggregates adds the report of one llama-server, or of one of its models, to a sum. Slots are renumbered.
func addAggregates(sum, part *event.Aggregates) {
	for _, v := range part.Slots {
		v.Slot = len(sum.Slots)
		sum.Slots = append(sum.Slots, v)
	}
	sum.Running, sum.Waiting = sumReadings(sum.Running, part.Running), sumReadings(sum.Waiting, part.Waiting)
	sum.Prompt, sum.Cached = sumReadings(sum.Prompt, part.Prompt), sumReadings(sum.Cached, part.Cached)
	sum.Decode, sum.Prefill, sum.Generated = sumReadings(sum.Decode, part.Decode), sumReadings(sum.Prefill, part.Prefill), sumReadings(sum.Generated, part.Generated)
	sum.Histograms = append(sum.Histograms, part.Histograms...)
	addRatios(sum, part)
	sum.KVUsed, sum.KVTotal = sumReadings(sum.KVUsed, part.KVUsed), sumReadings(sum.KVTotal, part.KVTotal)
	if sum.KVTotal.V > 0 {
		sum.KVUsage = event.DerivedValue(sum.KVUsed.V / sum.KVTotal.V)
	}
}

// addRatios adds the ratios of one of several engines.
func addRatios(sum, part *event.Aggregates) {
	for _, r := range part.Ratios {
		i := slices.IndexFunc(sum.Ratios, func(o event.Ratio) bool { return o.Name == r.Name })
		if i < 0 {
			sum.Ratios = append(sum.Ratios, r)
			continue
		}
		o := &sum.Ratios[i]
		o.Part, o.Whole = sumReadings(o.Part, r.Part), sumReadings(o.Whole, r.Whole)
	}
}

// sumReadings adds two readings; an absent one adds nothing.
func sumReadings(a, b event.Reading) event.Reading {
	switch {
	case !b.OK() && (a.OK() || a.Origin != event.NotReported):
		return a
	case !a.OK():
		return b
	}
	b.V += a.V
	return b
}

// interval returns a shorter interval during work, as for a llama-server.
func (o *ollama) interval(interval time.Duration) time.Duration {
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
