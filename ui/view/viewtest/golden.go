package viewtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Update is set to write golden files instead of comparing with them.
var Update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Golden compares a frame with the golden file of a name, line by line.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got += "\n"
	if *Update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	is, want := strings.Split(got, "\n"), strings.Split(string(file), "\n")
	for y := range max(len(is), len(want)) {
		a, b := "(no line)", "(no line)"
		if y < len(is) {
			a = is[y]
		}
		if y < len(want) {
			b = want[y]
		}
		if a != b {
			t.Fatalf("%s: line %d differs (run with -update to accept it)\n got %q\nwant %q", name, y+1, a, b)
		}
	}
}

// StripStyles removes the encoder's style sequences: ESC [ digits and semicolons m, and nothing else.
func StripStyles(s string) string {
	var out strings.Builder
	for {
		at := strings.Index(s, "\x1b[")
		if at < 0 {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:at])
		end := at + 2
		for end < len(s) && (s[end] == ';' || s[end] >= '0' && s[end] <= '9') {
			end++
		}
		if end == len(s) || s[end] != 'm' {
			out.WriteString(s[at:])
			return out.String()
		}
		s = s[end+1:]
	}
}
