package ui

import (
	"os"
	"strings"
	"testing"
)

// readmeKeys returns the README's key table: the keys of the footer, the views, the way back, and the pace.
func readmeKeys() string {
	var out strings.Builder
	out.WriteString("| key | action |\n|---|---|\n")
	for _, b := range bindings {
		if b.word == "" && b.act != actView && b.act != actBack && b.act != actFaster && b.act != actSlower {
			continue
		}
		keys := "`" + strings.Join(b.keys, "`, `") + "`"
		if b.act == actView {
			keys = "`" + viewKeys[0] + "` to `" + viewKeys[numTabs-1] + "`"
		}
		where := b.views.names()
		if where != "" {
			where = "in " + where + ": "
		}
		out.WriteString("| " + keys + " | " + where + b.help + " |\n")
	}
	return out.String()
}

// The README's key table is generated from the program's; -update writes it.
func TestReadmeListsTheKeys(t *testing.T) {
	const path, begin, end = "../README.md", "## Keys\n\n", "\n## Configuration"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(file), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("the README has no section between %q and %q", begin, end)
	}
	want := readmeKeys()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for v, words := range map[view]string{viewRequests: "lists all requests", viewRequest: "takes one apart", viewLatency: "shows how latencies"} {
		if !strings.Contains(before, "`"+viewKeys[v]+"` "+words) {
			t.Errorf("the README does not contain %s %s", viewKeys[v], words)
		}
	}
	if was != want {
		t.Errorf("the README's key table is out of date (run with -update):\n%s\nwant\n%s", was, want)
	}
}
