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
	loaded    []event.LoadedModel
	searched  []string // names of the models at the last search for llama-servers
	readings  []event.NamedReading
	runnersAt event.Time
	runners   map[string]*runner // by address
}

// slotsOfRunners is the endpoint name of the slots of all llama-servers.
const slotsOfRunners = "/slots of its llama-servers"

// runner is a llama-server started by Ollama.
type runner struct {
	model  string // "": unknown
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
	report := &event.Aggregates{Interval: s.sinceReport(), More: o.readings, Models: o.loaded}
	addEndpoint(report, "/api/ps", "")
	o.readRunners(ctx, s, report)
	all, models := len(report.Slots), len(o.loaded)
	switch found := len(o.runners); {
	case found >= models && found > 0:
		addEndpoint(report, slotsOfRunners, "")
	case found > 0: // sums would cover only a part of Ollama
		addEndpoint(report, slotsOfRunners, fmt.Sprintf("found for %d of %d models", found, models))
		*report = event.Aggregates{
			Interval: report.Interval, More: report.More, Models: report.Models, Endpoints: report.Endpoints, Slots: report.Slots,
		}
		all = 0
	case models > 0:
		addEndpoint(report, slotsOfRunners, "no llama-server found on this machine")
	}
	s.setSlots(all)
	return report, nil
}

// readRunners adds the slots of the llama-servers that respond.
func (o *ollama) readRunners(ctx context.Context, s *Poller, report *event.Aggregates) {
	lists := make(map[string][]slot, len(o.runners))
	for at, r := range o.runners {
		list, err := fetchSlots(ctx, r.client, "/slots")
		s.countMalformed(r.client.Malformed())
		if err != nil { // it ended when its model was unloaded
			r.client.Close()
			delete(o.runners, at)
			continue
		}
		lists[at] = list
	}
	o.nameRunner()
	for _, at := range slices.Sorted(maps.Keys(lists)) {
		part, r := &event.Aggregates{Interval: report.Interval}, o.runners[at]
		r.slots.update(lists[at], s.clock.Now(), part)
		for i := range part.Slots {
			part.Slots[i].Model = r.model
		}
		addAggregates(report, part)
	}
}

// nameRunner finds the model of a llama-server by elimination, because neither it nor Ollama reports it: where one model
// and one llama-server are left, they belong together.
func (o *ollama) nameRunner() {
	models, unnamed := make(map[string]bool, len(o.loaded)), []*runner(nil)
	for _, m := range o.loaded {
		models[m.Name] = true
	}
	for _, r := range o.runners {
		if r.model == "" || !models[r.model] {
			r.model, unnamed = "", append(unnamed, r)
		}
		delete(models, r.model)
	}
	if len(unnamed) != 1 || len(models) != 1 || len(o.runners) != len(o.loaded) {
		return
	}
	for name := range models {
		unnamed[0].model = name
	}
}

// readModels reads the loaded models.
func (o *ollama) readModels(ctx context.Context, s *Poller) error {
	running, err := identify.RunningOllama(ctx, s.client)
	if err != nil {
		return err
	}
	var list []event.Model
	var memory, vram int64
	o.loaded = nil
	for _, m := range running {
		list = append(list, m.Model)
		o.loaded = append(o.loaded, event.LoadedModel{
			Name: m.Name, Bytes: m.Memory, GPU: m.VRAM, Context: m.Context, Until: unloadTime(m.Until, s.clock.Epoch()),
		})
		memory, vram = event.Add(memory, m.Memory), event.Add(vram, m.VRAM)
	}
	s.setModels(list)
	if len(list) == 0 {
		s.setState(event.EnginePaused, "no model in memory")
	} else {
		s.setState(event.EngineReady, "")
	}
	o.readings = nil
	if memory > 0 {
		o.readings = []event.NamedReading{
			{Name: "gpu_memory_share", Reading: event.DerivedValue(float64(vram) / float64(memory))},
			{Name: "model_memory_bytes", Reading: event.ReportedValue(float64(memory))},
		}
	}
	return nil
}

// unloadTime returns the time at which a model is unloaded; 0 if it is invalid, or decades away, which means never.
func unloadTime(stamp string, epoch int64) event.Time {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil || at.Before(time.Unix(0, epoch)) || at.After(time.Unix(0, epoch).AddDate(10, 0, 0)) {
		return 0
	}
	return event.Time(at.UnixNano() - epoch)
}

// findRunners searches for llama-servers while there are fewer than models.
func (o *ollama) findRunners(s *Poller, now event.Time) {
	var names []string
	for _, m := range o.loaded {
		names = append(names, m.Name)
	}
	changed := !slices.Equal(o.searched, names) // a model was loaded: its llama-server runs already
	if s.opt.Runners == nil || len(o.runners) >= min(len(o.loaded), maxRunners) || !changed && now-o.runnersAt < event.Time(runnersEvery) {
		return
	}
	o.runnersAt, o.searched = now, names
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
