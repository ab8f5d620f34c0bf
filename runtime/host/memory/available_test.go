package memory

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCgroup covers control groups of both versions, with and without a limit.
func TestCgroup(t *testing.T) {
	const none = 9 << 30
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no container":     {nil, none},
		"v2 without limit": {map[string]string{"memory.max": "max\n", "memory.current": "5\n"}, none},
		"v2":               {map[string]string{"memory.max": "1000\n", "memory.current": "300\n"}, 700},
		"v2 with cache": {map[string]string{
			"memory.max": "1000\n", "memory.current": "900\n", "memory.stat": "anon 100\nfile 800\ninactive_file 500\nactive_file 200\nslab x\n",
		}, 800},
		"v2 over its limit": {map[string]string{"memory.max": "1000\n", "memory.current": "1200\n"}, 0},
		"more cache than use": {map[string]string{
			"memory.max": "1000\n", "memory.current": "100\n", "memory.stat": "inactive_file 300\n",
		}, 1000},
		"v1": {map[string]string{
			"memory/memory.limit_in_bytes": "1000\n", "memory/memory.usage_in_bytes": "600\n",
			"memory/memory.stat": "inactive_file 1\ntotal_inactive_file 50\ntotal_active_file 50\n",
		}, 500},
		"both, limit in v1": {map[string]string{
			"memory.max": "max\n", "memory.current": "1\n", "memory/memory.limit_in_bytes": "80\n", "memory/memory.usage_in_bytes": "20\n",
		}, 60},
		"no numbers": {map[string]string{"memory.max": "many", "memory.current": ""}, none},
	} {
		root := t.TempDir()
		for file, content := range c.files {
			path := filepath.Join(root, "sys/fs/cgroup", file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := int64(none)
		if g, limited := ReadCgroup(root); limited {
			got = g.room(root)
		}
		if got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

// TestAvailable expects some available memory on any machine.
func TestAvailable(t *testing.T) {
	if bytes, found := Available(); found && bytes < 1<<20 {
		t.Errorf("%d bytes are available", bytes)
	}
}
