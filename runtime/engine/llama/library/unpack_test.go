package library

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/llama/library/fixture"
)

// unpacked unpacks an archive below a temporary folder, and returns the folder's files.
func unpacked(t testing.TB, data []byte, maxFiles int, maxBytes int64) (map[string]string, error) {
	t.Helper()
	outer := t.TempDir()
	into := filepath.Join(outer, "into")
	if err := os.Mkdir(into, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	failed := unpack(bytes.NewReader(data), root, maxFiles, maxBytes, func(int64) {})
	files := map[string]string{}
	err = filepath.WalkDir(outer, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			t.Errorf("%s is not a regular file", path)
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(outer, path)
		files[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, failed
}

func TestUnpack(t *testing.T) {
	data, _ := fixture.Archive(
		fixture.Entry{Header: tar.Header{Name: "package/", Typeflag: tar.TypeDir, Mode: 0o755}},
		fixture.File("package/a", []byte("one")), fixture.File("package/bins/x/b", []byte("two")),
	)
	got, err := unpacked(t, data, maxFiles, maxBytes)
	if err != nil || len(got) != 2 || got["into/a"] != "one" || got["into/bins/x/b"] != "two" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	link := func(kind byte, name, target string) fixture.Entry {
		return fixture.Entry{Header: tar.Header{Name: name, Typeflag: kind, Linkname: target, Mode: 0o644}}
	}
	file := func(name string) fixture.Entry { return fixture.File(name, []byte("x")) }
	for name, c := range map[string]struct {
		entries []fixture.Entry
		want    string
	}{
		"path upwards":     {[]fixture.Entry{file("package/../../outside")}, "is not allowed"},
		"absolute path":    {[]fixture.Entry{file("/etc/outside")}, "is not allowed"},
		"other top":        {[]fixture.Entry{file("elsewhere/a")}, "is not allowed"},
		"longer top":       {[]fixture.Entry{file("packages/a")}, "is not allowed"},
		"backslash":        {[]fixture.Entry{file(`package/..\..\outside`)}, "is not allowed"},
		"drive":            {[]fixture.Entry{file("package/c:outside")}, "is not allowed"},
		"the top as file":  {[]fixture.Entry{file("package")}, "is not allowed"},
		"symbolic link":    {[]fixture.Entry{link(tar.TypeSymlink, "package/a", "/etc"), file("package/a/outside")}, "neither file nor folder"},
		"hard link":        {[]fixture.Entry{link(tar.TypeLink, "package/a", "/etc/passwd")}, "neither file nor folder"},
		"device":           {[]fixture.Entry{link(tar.TypeChar, "package/a", "")}, "neither file nor folder"},
		"twice the same":   {[]fixture.Entry{file("package/a"), file("package/a")}, "exists"},
		"file as folder":   {[]fixture.Entry{file("package/a"), file("package/a/b")}, "unpack"},
		"too many entries": {[]fixture.Entry{file("package/a"), file("package/b"), file("package/c"), file("package/d")}, "more than 3 entries"},
		"too many bytes":   {[]fixture.Entry{fixture.File("package/a", make([]byte, 900)), fixture.File("package/b", make([]byte, 200))}, "more than 1000 bytes"},
		"nothing":          {nil, "no files"},
	} {
		data, _ := fixture.Archive(c.entries...)
		files, err := unpacked(t, data, 3, 1000)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
		for f := range files {
			if !strings.HasPrefix(f, "into/") {
				t.Errorf("%s: wrote %s", name, f)
			}
		}
	}
}

// TestUnpackTruncated truncates an archive at every length: each is an error.
func TestUnpackTruncated(t *testing.T) {
	whole, _ := fixture.Archive(fixture.File("package/a", bytes.Repeat([]byte("some text "), 50)))
	for n := range whole {
		if _, err := unpacked(t, whole[:n], maxFiles, maxBytes); err == nil {
			t.Fatalf("the first %d of %d bytes are accepted as complete", n, len(whole))
		}
	}
	whole[len(whole)-6] ^= 1 // checksum at the end
	if _, err := unpacked(t, whole, maxFiles, maxBytes); err == nil {
		t.Error("a wrong checksum is not detected")
	}
}

func FuzzUnpack(f *testing.F) {
	good, _ := fixture.Archive(fixture.Package("linux-x64", map[string][]byte{"libllama.so": []byte("x")})...)
	bad, _ := fixture.Archive(fixture.File("package/../../a", []byte("x")))
	f.Add(good)
	f.Add(bad)
	f.Add(good[:len(good)/2])
	const maxFiles, maxBytes = 20, 1 << 16
	f.Fuzz(func(t *testing.T, data []byte) {
		files, _ := unpacked(t, data, maxFiles, maxBytes)
		total := 0
		for name, content := range files {
			total += len(content)
			if !strings.HasPrefix(name, "into/") {
				t.Errorf("wrote %s", name)
			}
		}
		if len(files) > maxFiles || total > maxBytes {
			t.Errorf("wrote %d files of %d bytes", len(files), total)
		}
	})
}
