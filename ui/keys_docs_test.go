package ui

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// docsKeys returns the key table of docs/keys.md.
func docsKeys() string {
	var out strings.Builder
	out.WriteString("| key | action |\n|---|---|\n")
	a := keysOf(Config{})
	for _, b := range distinct(a.live) {
		keys := "`" + strings.Join(b.Keys, "`, `") + "`"
		if b.Keys[0] == viewKey(0) {
			keys = "`" + viewKey(0) + "` to `" + viewKey(numTabs-1) + "`"
		}
		where := a.viewNames(b.views)
		if where != "" {
			where = "in " + where + ": "
		}
		out.WriteString("| " + keys + " | " + where + b.Help + " |\n")
	}
	return out.String()
}

// The table of docs/keys.md is generated from the program's keys; -update writes it.
func TestDocsListTheKeys(t *testing.T) {
	const path, begin = "../docs/keys.md", "| key | action |\n"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(file), begin)
	if want := before + docsKeys(); *viewtest.Update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(file) != want {
		t.Errorf("docs/keys.md is out of date (run with -update):\n%s\nwant\n%s", file, want)
	}
}

// The README names the keys to start with, each of which exists, and the views by their numbers.
func TestReadmeKeysExist(t *testing.T) {
	file, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(file), "\n## Keys\n")
	section, _, ok := strings.Cut(rest, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(section, -1)
	if !ok || len(rows) != 10 {
		t.Fatalf("the README's section of keys has %d rows, want 10", len(rows))
	}
	live := keysOf(Config{}).live
	for _, row := range rows {
		if !slices.ContainsFunc(live, func(b binding) bool { return slices.Contains(b.Keys, row[1]) }) {
			t.Errorf("the README names the key %s, which does nothing", row[1])
		}
	}
	for v, words := range map[viewID]string{viewRequests: "lists all requests", viewRequest: "takes one apart", viewLatency: "shows how latencies"} {
		if !strings.Contains(string(file), "`"+viewKey(v)+"` "+words) {
			t.Errorf("the README does not contain %s %s", viewKey(v), words)
		}
	}
}
