package table

import (
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/fleet"
)

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
