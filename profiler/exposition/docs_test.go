package exposition

import (
	flags "flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

var update = flags.Bool("update", false, "update the generated tables of docs/metrics.md")

const reference = "../../docs/metrics.md"

// TestReference checks that the generated tables of docs/metrics.md are those of the catalogue.
func TestReference(t *testing.T) {
	documented(t, "latencies", latencyTable())
	documented(t, "rates", numberTable(store.Rates))
	documented(t, "totals", numberTable(store.Totalled))
	for _, group := range store.Terms {
		if group.Part != "" {
			documented(t, group.Part, termTable(group.Rows))
		}
	}
	documented(t, "machine", hostTable(event.MachineFields[:], machineMetrics))
	documented(t, "process", hostTable(event.ProcessFields[:], processMetrics))
	documented(t, "gpu", hostTable(event.GPUFields[:], gpuMetrics))
	documented(t, "usage", usageTable())
}

// latencyTable returns a table with a row per latency.
func latencyTable() string {
	out := "| number | in JSON | definition | absent | in Prometheus | in alerts |\n|---|---|---|---|---|---|\n"
	for id := range store.Latencies {
		l, alerts := &store.Latencies[id], ""
		if l.Alert != "" {
			alerts = code(l.Alert + "_p50")
		}
		out += row(l.Name, code(l.JSON), definition(l.Help, l.Detail), l.Absent, code(latencyMetrics[id].promName), alerts)
	}
	return out
}

// numberTable returns a table with a row per number of a snapshot.
func numberTable(numbers []store.Number) string {
	out := "| number | in JSON | unit | definition | absent | in Prometheus | in alerts |\n|---|---|---|---|---|---|---|\n"
	for _, n := range numbers {
		metric := ""
		if n.Metric != "" {
			metric = instrumentNamed(n.Metric).promName
		}
		part, name, _ := strings.Cut(n.JSON, ".")
		json := code(name) + " of " + code(part)
		if name == "" {
			json = code(part)
		}
		out += row(n.Name, json, n.Unit.String(), definition(n.Help, n.Detail), n.Absent, code(metric), code(n.Alert))
	}
	return out
}

// hostTable returns a table with a row per field of the catalogue.
func hostTable[T any](rows []event.Field[T], metrics []*instrument) string {
	out := "| number | in JSON | unit | definition | in Prometheus | in alerts | in events |\n|---|---|---|---|---|---|---|\n"
	for i := range rows {
		f, metric := &rows[i], ""
		if metrics[i] != nil {
			metric = metrics[i].promName
		}
		out += row(f.Name, code(f.JSON), f.Unit.String(), definition(f.Help, f.Detail), code(metric), code(f.Own.Alert, f.Self.Alert), code(f.Key))
	}
	return out
}

// usageTable returns a table with a row per reading of the evidence for causes.
func usageTable() string {
	out := "| number | unit | definition | in events |\n|---|---|---|---|\n"
	for _, f := range event.UsageFields {
		out += row(f.Name, f.Unit.String(), definition(f.Help, f.Detail), code(f.Key))
	}
	return out
}

// termTable returns a table with a row per term, without the columns that all of them leave empty.
func termTable(terms []store.Term) string {
	rows := [][]string{{"number", "in JSON", "unit", "definition", "absent"}}
	for _, r := range terms {
		rows = append(rows, []string{r.Name, r.JSON, r.Unit, definition(r.Help, r.Detail), r.Absent})
	}
	out := ""
	for i, cells := range rows {
		var kept []string
		for column, cell := range cells {
			if slices.ContainsFunc(rows[1:], func(r []string) bool { return r[column] != "" }) {
				kept = append(kept, cell)
			}
		}
		out += row(kept...)
		if i == 0 {
			out += strings.Repeat("|---", len(kept)) + "|\n"
		}
	}
	return out
}

func row(cells ...string) string {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// definition joins the two parts of a definition.
func definition(help, detail string) string {
	if detail == "" {
		return help
	}
	return help + ". " + sentence(detail)
}

// code returns names as code, without empty ones.
func code(names ...string) string {
	var out []string
	for _, name := range names {
		if name != "" {
			out = append(out, "`"+name+"`")
		}
	}
	return strings.Join(out, ", ")
}

// documented compares a generated part of the reference.
func documented(t *testing.T, part, want string) {
	t.Helper()
	file, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s -->\n", part), fmt.Sprintf("<!-- /%s -->", part)
	before, rest, ok := strings.Cut(string(file), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table %s", reference, part)
	}
	if *update {
		if err := os.WriteFile(reference, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if was != want {
		t.Errorf("%s does not have this (run with -update):\n%s", reference, want)
	}
}
