package event

import (
	"slices"
	"time"
)

// MinLoad is the shortest load time of a server that counts as a model load. Ollama's includes looking for the loaded
// model, some ms; starting a process that loads a small one takes 250 ms.
const MinLoad = 100 * time.Millisecond

// AddLoadStage adds a stage to the stages of a model load and returns the result, at most limit stages. describe
// returns the LoadStage of an element. A new load starts with StageLoadOpen, or with a stage that begins after a
// complete load (StageLoad) has ended. A stage with the same kind, name and begin replaces the earlier one: it has made
// progress. AddLoadStage never writes to elements of list, so that readers may share it.
func AddLoadStage[T any](list []T, next T, limit int, describe func(*T) LoadStage) []T {
	added := describe(&next)
	ended := func(t T) bool {
		s := describe(&t)
		return s.Stage == StageLoad && added.Begin >= s.End
	}
	if added.Stage == StageLoadOpen || slices.ContainsFunc(list, ended) {
		return []T{next}
	}
	i := slices.IndexFunc(list, func(t T) bool {
		s := describe(&t)
		return s.Stage == added.Stage && s.Name == added.Name && s.Begin == added.Begin
	})
	switch {
	case i >= 0:
		list = slices.Clone(list)
		list[i] = next
	case len(list) < limit:
		list = append(list, next)
	}
	return list
}

// LoadStage identifies a stage of a model load for AddLoadStage.
type LoadStage struct {
	Stage      Stage
	Name       string // engine-specific name
	Begin, End Time
}

// LoadStage returns the load stage that the event describes.
func (e *Event) LoadStage() LoadStage {
	return LoadStage{e.Stage, e.Text, e.At - Time(e.Dur), e.At}
}
