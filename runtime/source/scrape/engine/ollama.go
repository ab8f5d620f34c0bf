package engine

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

var ollamaEngine = Engine{
	Kind:      Ollama,
	owners:    []string{"library"},
	answers:   isOllama,
	details:   ollamaDetails,
	collector: func(*Poller, *metrics) collector { return &ollama{} },
	Programs: []Program{
		{Name: "ollama serve", names: []string{"ollama"}, subcommands: []string{"serve"}, Port: 11434, modelBy: []string{}},
	},
	Settings: map[string]string{"--parallel": "OLLAMA_NUM_PARALLEL", "--ctx": "OLLAMA_CONTEXT_LENGTH"},
}

func isOllama(ctx context.Context, p *identification) bool {
	p.info.Version = readVersion(ctx, p, "/api/version")
	return p.info.Version != ""
}

// ollamaDetails reads the loaded models. /v1/models lists all that are installed.
func ollamaDetails(ctx context.Context, p *identification) {
	if p.info.Version == "" {
		p.info.Version = readVersion(ctx, p, "/api/version")
	}
	if loaded, err := ollamaModels(ctx, p.getJSON); err == nil {
		p.info.Models = nil
		for _, m := range loaded {
			p.info.Models = append(p.info.Models, Model{Model: m.model(), Loaded: true})
		}
	}
}

// ollamaModel is a model that Ollama has loaded.
type ollamaModel struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	VRAM    int64  `json:"size_vram"` // of Size, on GPUs
	Until   string `json:"expires_at"`
	Context int    `json:"context_length"`
	Details struct {
		Family     string `json:"family"`
		Parameters string `json:"parameter_size"`
		Level      string `json:"quantization_level"`
	} `json:"details"`
}

func (m *ollamaModel) model() event.Model {
	return event.Model{
		Name: m.Name, Architecture: m.Details.Family, Quantisation: m.Details.Level, Parameters: parseParameters(m.Details.Parameters),
		Context: max(m.Context, 0),
	}
}

// ollamaModels returns the models that Ollama has loaded.
func ollamaModels(ctx context.Context, get func(ctx context.Context, path string, into any) error) ([]ollamaModel, error) {
	var list struct {
		Models []ollamaModel `json:"models"`
	}
	err := get(ctx, "/api/ps", &list)
	return list.Models[:min(len(list.Models), maxModels)], err
}

// ollamaFile returns the path of a model's file, whose name is on the command line of the llama-server that runs it; "" if
// it is unknown.
func ollamaFile(ctx context.Context, c *fetch.Client, model string) string {
	var about struct {
		Modelfile string `json:"modelfile"`
	}
	if c.Ask(ctx, "/api/show", map[string]string{"model": model}, &about) != nil {
		return ""
	}
	for line := range strings.Lines(about.Modelfile) {
		if file, ok := strings.CutPrefix(line, "FROM "); ok { // the first one: others are projectors
			return strings.ReplaceAll(strings.TrimSpace(file), `\`, "/")
		}
	}
	return ""
}

// parseParameters parses a number of parameters such as "30.5B"; 0 if it is invalid.
func parseParameters(text string) int64 {
	scale := 1.0
	for suffix, by := range map[string]float64{"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			text, scale = number, by
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v*scale < 1e18) {
		return 0
	}
	return int64(v * scale)
}

// maxRunners limits the number of llama-servers followed for one Ollama, and of models followed for one llama-server.
const maxRunners = 8

// While a llama-server is missing or fails, llmtop searches for it: at once, and then after pauses that double from
// ollamaEvery to runnersEvery, because a search reads all processes of the machine. Tests use shorter times.
var (
	ollamaEvery  = time.Second // also between two lists of the models in memory
	runnersEvery = 10 * time.Second
)

// ollama collects the models that Ollama has in memory, the only thing that it reports. Requests are read from the
// slots of the llama-servers that it starts, one per model, if they run on this machine.
type ollama struct {
	listedAt event.Time // when the models were read
	loaded   []event.LoadedModel
	readings []event.NamedReading
	files    map[string]string  // by name of a model in memory: the path of its file; "": unknown
	runners  map[string]*runner // by address
	searched event.Time         // when llama-servers were searched last; 0: never
	searchAt event.Time         // when to search for them next
	pause    time.Duration      // between the last search and the next one
}

// slotsOfRunners is the endpoint name of the slots of all llama-servers.
const slotsOfRunners = "/slots of its llama-servers"

// runner is a llama-server started by Ollama.
type runner struct {
	file   string // name of its model's file
	client *fetch.Client
	slots  slotTracker
	polled bool  // it has answered
	failed error // of the last poll
}

// starts reports whether it is loading its model: it has never answered, or only that it is not ready.
func (r *runner) starts() bool {
	return !r.polled && r.failed != nil && (!fetch.HasStatus(r.failed) || fetch.HasStatus(r.failed, http.StatusServiceUnavailable))
}

func (o *ollama) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	now := s.clock.Now()
	if o.listedAt == 0 || now-o.listedAt >= event.Time(ollamaEvery)*9/10 {
		if err := o.readModels(ctx, s); err != nil {
			return nil, err
		}
		o.listedAt = now
	}
	o.findRunners(s, now)
	report := &event.Aggregates{Interval: s.sinceReport(), More: o.readings, Models: o.loaded}
	addEndpoint(report, "/api/ps", "")
	known := o.readRunners(ctx, s, report)
	all, models := len(report.Slots), len(o.loaded)
	switch {
	case known >= models && known > 0:
		addEndpoint(report, slotsOfRunners, "")
	case len(o.runners) > 0: // sums would cover only a part of Ollama
		addEndpoint(report, slotsOfRunners, fmt.Sprintf("known for %d of %d models", known, models))
		*report = event.Aggregates{
			Interval: report.Interval, More: report.More, Models: report.Models, Endpoints: report.Endpoints, Slots: report.Slots,
			AtLeast: report.AtLeast,
		}
		all = 0
	case models > 0:
		addEndpoint(report, slotsOfRunners, "no llama-server found on this machine")
	}
	s.setSlots(all)
	return report, nil
}

// readRunners adds the slots of the llama-servers that respond. It returns for how many llama-servers the report is
// complete: those that respond, and those that are still loading their model.
func (o *ollama) readRunners(ctx context.Context, s *Poller, report *event.Aggregates) (known int) {
	for _, at := range slices.Sorted(maps.Keys(o.runners)) {
		r := o.runners[at]
		list, err := fetchSlots(ctx, r.client, "/slots")
		s.countMalformed(r.client.Malformed())
		if err != nil && r.failed == nil { // it may have ended, and another one may have replaced it
			o.searchAt, o.pause = 0, 0
		}
		if r.failed = err; err == nil || r.starts() {
			known++
		}
		if err != nil {
			continue
		}
		r.polled = true
		part, model := &event.Aggregates{Interval: report.Interval}, o.nameOf(r.file)
		r.slots.update(list, s.clock.Now(), part)
		for i := range part.Slots {
			part.Slots[i].Model = model
		}
		addAggregates(report, part, model)
	}
	if len(report.ByModel) < 2 {
		report.ByModel = nil
	}
	return known
}

// readModels reads the models in memory.
func (o *ollama) readModels(ctx context.Context, s *Poller) error {
	running, err := ollamaModels(ctx, s.client.JSON)
	if err != nil {
		return err
	}
	var list []event.Model
	var memory, vram int64
	files := make(map[string]string, len(running))
	o.loaded = nil
	for _, m := range running {
		one := m.model()
		until, stays := unloadTime(m.Until, s.clock.Epoch())
		size := max(m.Size, 0)
		onGPU := min(max(m.VRAM, 0), size)
		o.loaded = append(o.loaded, event.LoadedModel{
			Name: m.Name, Bytes: size, GPU: onGPU, Context: one.Context, Until: until, Stays: stays,
		})
		memory, vram = event.Add(memory, size), event.Add(vram, onGPU)
		file, before := o.files[m.Name]
		if !before { // its llama-server runs already
			o.searchAt, o.pause = 0, 0
			file = ollamaFile(ctx, s.client, m.Name)
		}
		files[m.Name] = file
		one.Path = file
		list = append(list, one)
	}
	o.files = files
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

// unloadTime returns the time at which a model is unloaded, 0 if it is invalid or past; stays reports that it is
// decades away: the model stays.
func unloadTime(stamp string, epoch int64) (until event.Time, stays bool) {
	at, err := time.Parse(time.RFC3339, stamp)
	switch {
	case err != nil || at.Before(time.Unix(0, epoch)):
		return 0, false
	case at.After(time.Unix(0, epoch).AddDate(10, 0, 0)):
		return 0, true
	}
	return event.Time(at.UnixNano() - epoch), false
}

// findRunners searches for llama-servers at the beginning and while one is missing or fails, and forgets those that have
// ended. One that the search before did not find has started since.
func (o *ollama) findRunners(s *Poller, now event.Time) {
	missing := o.searched == 0 || len(o.runners) < min(len(o.loaded), maxRunners)
	for _, r := range o.runners {
		missing = missing || r.failed != nil
	}
	if s.opt.Runners == nil || !missing || now < o.searchAt {
		return
	}
	o.pause = min(max(2*o.pause, ollamaEvery), runnersEvery)
	o.searchAt = now + event.Time(o.pause)
	found := s.opt.Runners()
	for at, r := range o.runners {
		if _, ok := found[at]; !ok {
			r.client.Close()
			delete(o.runners, at)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(found)) {
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
		r := &runner{file: found[at], client: client, slots: slotTracker{ids: &s.requests}}
		if o.searched != 0 {
			r.slots.startAtZero(o.searched, now)
		}
		o.runners[at] = r
	}
	o.searched = now
}

// nameOf returns the model in memory that has a file, "" if it is unknown. Ollama loads a file only once.
func (o *ollama) nameOf(file string) string {
	for name, its := range o.files {
		if its != "" && path.Base(its) == file {
			return name
		}
	}
	return ""
}

// close closes the connections to the llama-servers.
func (o *ollama) close() {
	for _, r := range o.runners {
		r.client.Close()
	}
}

// addAggregates adds the report of one llama-server, or of one of its models, to a sum. Slots are renumbered.
func addAggregates(sum, part *event.Aggregates, model string) {
	one := event.Rank{Name: model, Running: part.Running, Waiting: part.Waiting, KVUsage: part.KVUsage}
	if !part.AtLeast {
		one.Decode = part.Decode
	}
	sum.ByModel = append(sum.ByModel, one)
	for _, v := range part.Slots {
		v.Slot = len(sum.Slots)
		sum.Slots = append(sum.Slots, v)
	}
	sum.Running, sum.Waiting = sum.Running.Plus(part.Running), sum.Waiting.Plus(part.Waiting)
	sum.Prompt, sum.Cached = sum.Prompt.Plus(part.Prompt), sum.Cached.Plus(part.Cached)
	sum.Decode, sum.Prefill, sum.Generated = sum.Decode.Plus(part.Decode), sum.Prefill.Plus(part.Prefill), sum.Generated.Plus(part.Generated)
	sum.AtLeast = sum.AtLeast || part.AtLeast
	sum.Histograms = append(sum.Histograms, part.Histograms...)
	addRatios(sum, part)
	sum.KVUsed, sum.KVTotal = sum.KVUsed.Plus(part.KVUsed), sum.KVTotal.Plus(part.KVTotal)
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
		o.Part, o.Whole = o.Part.Plus(r.Part), o.Whole.Plus(r.Whole)
	}
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
