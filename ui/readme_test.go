package ui

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// readmeKeys returns the README's key table: the keys of the footer, the views, the way back, and the pace.
func readmeKeys() string {
	var out strings.Builder
	out.WriteString("| key | action |\n|---|---|\n")
	a := keysOf(Config{})
	for _, b := range distinct(a.live) {
		digits := b.Keys[0] == viewKey(0)
		if b.Word == "" && !digits && !slices.Contains([]string{"back", "faster", "slower"}, b.Name) {
			continue
		}
		keys := "`" + strings.Join(b.Keys, "`, `") + "`"
		if digits {
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
	if *viewtest.Update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for v, words := range map[viewID]string{viewRequests: "lists all requests", viewRequest: "takes one apart", viewLatency: "shows how latencies"} {
		if !strings.Contains(before, "`"+viewKey(v)+"` "+words) {
			t.Errorf("the README does not contain %s %s", viewKey(v), words)
		}
	}
	if was != want {
		t.Errorf("the README's key table is out of date (run with -update):\n%s\nwant\n%s", was, want)
	}
}
