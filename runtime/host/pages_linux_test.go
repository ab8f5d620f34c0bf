package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestCachedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "model.gguf")
	const size = 300_001
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	bytes, cached := cachedFile(name)
	if bytes != event.MeasuredValue(size) || !cached.OK() || cached.V < 0 || cached.V > size {
		t.Errorf("%+v of %+v, want up to %d of as many", cached, bytes, size)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pages, err := mincore(f, size)
	if most := uint64((size + os.Getpagesize() - 1) / os.Getpagesize()); err != nil || pages > most {
		t.Errorf("mincore = %d, %v; want up to %d pages", pages, err, most)
	}
	if b, c := cachedFile(t.TempDir()); b.OK() || c.OK() {
		t.Errorf("a folder has %+v of %+v", c, b)
	}
	if b, c := cachedFile("(built in)"); b.OK() || c.OK() {
		t.Errorf("a missing file has %+v of %+v", c, b)
	}
}

func TestParsePSS(t *testing.T) {
	root := tree(t, map[string]string{"rollup": "5580-7fff ---p 0 00:00 0 [rollup]\nRss:  900 kB\nPss:   700 kB\nPss_Dirty: 1 kB\n", "empty": "\n"})
	if got := parsePSS(filepath.Join(root, "rollup")); got != event.MeasuredValue(700<<10) {
		t.Errorf("PSS = %+v, want 700 kB", got)
	}
	for _, name := range []string{"empty", "none"} {
		if got := parsePSS(filepath.Join(root, name)); got.OK() {
			t.Errorf("PSS of %s = %+v", name, got)
		}
	}
}
