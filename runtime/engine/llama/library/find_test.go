package library

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/llama/library/fixture"
)

// release returns the files of a llama.cpp with a release in its build data, and backends.
func release(version string, backends ...string) map[string][]byte {
	files := with(map[string][]byte{buildData: []byte(`{"buildOptions":{"llamaCpp":{"release":"v` + version + `"}}}`)})
	for _, b := range backends {
		files["libggml-"+b+".so"] = nil
	}
	return files
}

func TestFindOrders(t *testing.T) {
	data, system, broken, named := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	fill(t, filepath.Join(data, "1-linux-x64", "bins", "linux-x64"), release("0.4.0"))
	fill(t, filepath.Join(data, "2-linux-x64", "bins", "linux-x64"), release("0.10.0"))
	fill(t, filepath.Join(data, "local-linux-amd64"), release("0.4.0", "cuda"))
	fill(t, filepath.Join(data, ".install-1", "bins", "linux-x64"), release("9.0.0"))
	fill(t, filepath.Join(data, "torn"), nil)
	fill(t, system, release("0.11.0", "vulkan"))
	fill(t, broken, fixture.Libraries(elf.EM_AARCH64))
	fill(t, named, release("0.1.0"))
	places := Places{Named: named, Data: data, System: []string{broken, t.TempDir(), system}}
	var got []string
	for _, c := range places.find("linux", "amd64") {
		line := string(c.Origin) + " " + c.Release + c.Device
		if !c.Usable() {
			line += ": " + c.Why
		}
		got = append(got, line)
	}
	want := []string{
		"LLMTOP_LLAMA_DIR 0.1.0", "installed 0.4.0cuda", "installed 0.10.0", "installed 0.4.0", "system 0.11.0vulkan",
		"installed : no llama.cpp in the folder", "system 0.5.0: built for linux/arm64, llmtop needs linux/amd64",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBest(t *testing.T) {
	good := folder(t, release("0.5.0"))
	for name, c := range map[string]struct {
		places Places
		dir    string
		want   string
	}{
		"nothing":                 {Places{}, "", "no llama.cpp on this machine; install it with: llmtop engine install llamacpp"},
		"the system's":            {Places{System: []string{good}}, good, ""},
		"none that can be used":   {Places{System: []string{folder(t, fixture.Libraries(elf.EM_AARCH64))}}, "", "built for linux/arm64"},
		"what was named is empty": {Places{Named: t.TempDir(), System: []string{good}}, "", "use the llama.cpp of LLMTOP_LLAMA_DIR"},
		"what was named is not":   {Places{Named: filepath.Join(t.TempDir(), "none")}, "", "LLMTOP_LLAMA_DIR"},
	} {
		best, err := Best(c.places.find("linux", "amd64"))
		if best.Dir != c.dir || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v", name, best.Dir, err)
		}
	}
}

func TestDataHome(t *testing.T) {
	abs, err := filepath.Abs("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		goos string
		env  map[string]string
		want string
	}{
		{"linux", map[string]string{"HOME": "h", "XDG_DATA_HOME": abs}, abs},
		{"linux", map[string]string{"HOME": "h", "XDG_DATA_HOME": "relative"}, filepath.Join("h", ".local", "share")},
		{"linux", nil, ""},
		{"darwin", map[string]string{"HOME": "h"}, filepath.Join("h", "Library", "Application Support")},
		{"windows", map[string]string{"LocalAppData": "l"}, "l"},
		{"windows", map[string]string{"HOME": "h"}, ""},
	} {
		got, err := dataHome(c.goos, func(k string) string { return c.env[k] })
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: got %q, %v", c, got, err)
		}
	}
}

func TestSystemFolders(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	list := []string{one, "relative", filepath.Join(one, "none"), two, one}
	if err := os.Symlink(one, link); err == nil { // may not be permitted on Windows
		list = append(list, link)
	}
	got := systemFolders("windows", func(string) string { return strings.Join(list, string(filepath.ListSeparator)) })
	if !slices.Equal(got, []string{one, two}) {
		t.Errorf("got %v", got)
	}
}

func FuzzLoaderFolders(f *testing.F) {
	f.Add("/usr/lib/x # here\n\ninclude /etc/*.conf\n  /opt/lib\nrelative\n")
	f.Fuzz(func(t *testing.T, conf string) {
		for _, dir := range loaderFolders(strings.NewReader(conf)) {
			if !strings.HasPrefix(dir, "/") && !filepath.IsAbs(dir) {
				t.Errorf("%q is not absolute", dir)
			}
		}
	})
}

func TestLoaderFolders(t *testing.T) {
	got := loaderFolders(strings.NewReader("/usr/lib/x # here\n\ninclude /etc/*.conf\n  /opt/lib\nrelative\n"))
	if want := []string{filepath.Clean("/usr/lib/x"), filepath.Clean("/opt/lib")}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
