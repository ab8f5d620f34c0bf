package scrape

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/identify"
)

// loaded are the models that are in memory.
func loaded(all []identify.Model) (out []event.Model) {
	for _, m := range all {
		if m.Loaded {
			out = append(out, m.Model)
		}
	}
	return out
}

// models tells the model that is served, where it has changed. Of several the first one's properties are told, under a name that says how many
// there are.
func (s *Source) models(list []event.Model) {
	var m event.Model
	if len(list) > 0 {
		m = list[0]
	}
	if len(list) > 1 {
		m = event.Model{Name: m.Name + " and " + strconv.Itoa(len(list)-1) + " more"}
	}
	if m == s.model {
		return
	}
	s.model = m
	s.sink.Emit(event.Event{Kind: event.KindModel, At: s.opt.Clock.Now(), Layer: -1, Data: &m})
}

// named tells models of which only the names are known, unless they are those that the server has listed: adapters and aliases are listed,
// too, and metrics are labelled with the model that runs.
func (s *Source) named(names []string) {
	if len(names) == 0 || len(names) == 1 && names[0] == s.model.Name {
		return
	}
	var list []event.Model
	for _, name := range names {
		i := slices.IndexFunc(s.info.Models, func(m identify.Model) bool { return m.Name == name })
		if i >= 0 {
			list = append(list, s.info.Models[i].Model)
		} else {
			list = append(list, event.Model{Name: name})
		}
	}
	s.models(list)
}
