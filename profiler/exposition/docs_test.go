package exposition

import (
	flags "flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

var update = flags.Bool("update", false, "update the generated tables of docs/metrics.md")

const reference = "../../docs/metrics.md"

// TestReference checks that the generated tables of docs/metrics.md are those of the catalogue.
func TestReference(t *testing.T) {
	documented(t, "machine", hostTable(event.MachineFields[:], machineMetrics))
	documented(t, "process", hostTable(event.ProcessFields[:], processMetrics))
	documented(t, "gpu", hostTable(event.GPUFields[:], gpuMetrics))
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
