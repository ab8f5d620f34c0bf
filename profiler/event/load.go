package event

import "slices"

// KeepLoad adds a stage to those that are kept of a model's load, at most so many, of which of says what they are. A load begins anew with
// StageLoadOpen, or with a stage that begins after a whole load (StageLoad) has ended. A stage that is told again from the same beginning on takes the
// place of what was told before: it goes on. What kept held is never written to, so that readers may share it.
func KeepLoad[T any](kept []T, next T, most int, of func(*T) LoadStage) []T {
	now := of(&next)
	again := func(t T) bool {
		was := of(&t)
		return was.Stage == StageLoad && now.Begin >= was.End
	}
	if now.Stage == StageLoadOpen || slices.ContainsFunc(kept, again) {
		return []T{next}
	}
	i := slices.IndexFunc(kept, func(t T) bool {
		was := of(&t)
		return was.Stage == now.Stage && was.Name == now.Name && was.Begin == now.Begin
	})
	switch {
	case i >= 0:
		kept = slices.Clone(kept)
		kept[i] = next
	case len(kept) < most:
		kept = append(kept, next)
	}
	return kept
}

// LoadStage is what KeepLoad must know of a stage of a load.
type LoadStage struct {
	Stage      Stage
	Name       string // as the engine calls it
	Begin, End Time
}

// LoadStage is the stage of which an event tells.
func (e *Event) LoadStage() LoadStage {
	return LoadStage{e.Stage, e.Text, e.At - Time(e.Dur), e.At}
}
