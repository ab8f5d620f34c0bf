package viewtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/charmbracelet/x/ansi"
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

// CheckFrame checks what holds for every frame: h rows, each exactly w cells by both ways of measuring, and no control
// codes except the encoder's styles.
func CheckFrame(t *testing.T, frame string, w, h int) {
	t.Helper()
	rows := strings.Split(frame, "\n")
	if len(rows) != h {
		t.Fatalf("%dx%d: %d rows", w, h, len(rows))
	}
	for y, row := range rows {
		plain := StripStyles(row)
		if seen, ok := checkedRows.Load(plain); ok && seen == w {
			continue
		}
		for _, r := range plain {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Fatalf("%dx%d: %U in row %d: %q", w, h, r, y, plain)
			}
		}
		if a, b := ansi.StringWidth(plain), ansi.StringWidthWc(plain); a != w || b != w {
			t.Fatalf("%dx%d: row %d is %d or %d wide: %q", w, h, y, a, b, plain)
		}
		if kept.Add(1)%10_000 == 0 { // bounds the memory
			checkedRows.Clear()
		}
		checkedRows.Store(plain, w)
	}
}

// checkedRows are those that CheckFrame has seen, with their widths: most rows of a frame were in the one before, and
// measuring takes longer than drawing.
var (
	checkedRows sync.Map
	kept        atomic.Int64
)

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
