package verdict

import (
	flags "flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"
)

var update = flags.Bool("update", false, "update the generated table of docs/causes.md")

// TestCausesAreDocumented checks that the table of docs/causes.md has the causes of the code, and that each row is
// complete. What supports and excludes a cause is written by hand.
func TestCausesAreDocumented(t *testing.T) {
	const name, begin, end = "../../docs/causes.md", "<!-- causes -->\n", "<!-- /causes -->"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	table := "| key | cause | evidence | excluded if | remedy |\n|---|---|---|---|---|\n"
	for c := range NumCauses {
		row := &Causes[c]
		supports, excludes := "", ""
		for line := range strings.Lines(string(page)) {
			if cells := strings.Split(line, " | "); len(cells) == 5 && cells[0] == "| `"+row.Key+"`" {
				supports, excludes = cells[2], cells[3]
			}
		}
		if row.Key == "" || row.Text == "" || supports == "" || c != Unknown && (row.Remedy == "" || excludes == "") {
			t.Errorf("row %d is incomplete: %+v, %q, %q", c, row, supports, excludes)
		}
		if strings.ContainsFunc(row.Key, func(r rune) bool { return r != '_' && !unicode.IsLower(r) }) {
			t.Errorf("key %q", row.Key)
		}
		table += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", row.Key, row.Text, supports, excludes, row.Remedy)
	}
	checkTable(t, name, begin, end, table)
}

// TestStatusesAreDocumented checks that the table of docs/metrics.md is that of the code.
func TestStatusesAreDocumented(t *testing.T) {
	table := "\n| row | rule |\n|---|---|\n"
	for status := NumStatuses; status > 0; status-- {
		row := Statuses[status-1]
		table += fmt.Sprintf("| `%s` | %s |\n", row.Name, row.Rule)
	}
	checkTable(t, "../../docs/metrics.md", "<!-- statuses -->\n", "<!-- /statuses -->", table+"\n")
}

// checkTable checks, or with -update writes, the part of a page between two marks.
func checkTable(t *testing.T, name, begin, end, table string) {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no such table", name)
	}
	if *update {
		if err := os.WriteFile(name, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != table {
		t.Errorf("%s: the table is not that of the code: run go test ./profiler/verdict -run Documented -update", name)
	}
}
