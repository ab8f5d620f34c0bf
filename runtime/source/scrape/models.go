package scrape

import (
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/identify"
)

// loaded returns the models that are in memory.
func loaded(all []identify.Model) (out []event.Model) {
	for _, m := range all {
		if m.Loaded {
			out = append(out, m.Model)
		}
	}
	return out
}

// setModels emits the served model if it has changed. For several models it emits only a name: the first name and the
// number of others.
func (s *Poller) setModels(list []event.Model) {
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

// setModelNames sets the models from names alone, completed from the server's list. The names come from metric labels,
// which name the model that runs, while the list also has adapters and aliases.
func (s *Poller) setModelNames(names []string) {
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
	s.setModels(list)
}
