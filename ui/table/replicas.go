package table

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Replicas holds the replicas of a fleet that a filter selects, in order.
type Replicas struct {
	List[*fleet.Replica, fleet.Field]
}

// ReplicaFilters is the language of filters of replicas.
var ReplicaFilters = Language[*fleet.Replica]{
	Columns: fleet.Columns(),
	Example: "ttft>500ms model=llama waiting>4 -idle",
	Word:    func(r *fleet.Replica, column int) string { return r.Word(fleet.Field(column)) },
	Value:   func(r *fleet.Replica, column int, _ event.Time) event.Reading { return r.Cells[column].Reading },
	Search: func(r *fleet.Replica, word string) bool {
		return strings.Contains(strings.ToLower(r.Name), word) || strings.Contains(strings.ToLower(r.State), word) || strings.Contains(strings.ToLower(r.Model), word)
	},
	Parts: true,
}

// Update selects and sorts replicas.
func (l *Replicas) Update(all []*fleet.Replica) {
	l.clear()
	for _, r := range all {
		l.add(&ReplicaFilters, r, 0)
	}
	l.sort(&ReplicaFilters)
}

// SortBy sorts by a field, or reverses the order if the list is sorted by it already. Numbers start with the largest.
func (l *Replicas) SortBy(f fleet.Field) {
	if l.By == f {
		l.Down = !l.Down
		return
	}
	l.By, l.Down = f, f.Unit() != metric.Word
}
