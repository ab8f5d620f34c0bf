package library

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/llama/library/fixture"
)

// world is a platform with a pinned package, whose archive is in a folder.
type world struct {
	Options
	archive string
}

// newWorld creates a world with libraries for Linux.
func newWorld(t *testing.T) world {
	t.Helper()
	if ownOS != "linux" {
		t.Skip("creates Linux libraries, which Install rejects on other systems")
	}
	return ofEntries(t, fixture.Package("test-x64", fixture.Libraries(fixture.Machine(ownArch))))
}

func ofEntries(t *testing.T, entries []fixture.Entry) world {
	t.Helper()
	data, integrity := fixture.Archive(entries...)
	p := Package{OS: ownOS, Arch: ownArch, Name: "test-x64", Version: "1.2.3", Integrity: integrity, Size: int64(len(data))}
	w := world{Options{Dest: filepath.Join(t.TempDir(), "engines"), Packages: []Package{p}}, ""}
	w.archive = filepath.Join(folder(t, map[string][]byte{p.archive(): data}), p.archive())
	w.From = w.archive
	return w
}

// left returns the names in the folder of the packages.
func (w world) left(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(w.Dest)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestInstall(t *testing.T) {
	w := newWorld(t)
	for _, from := range []string{w.archive, filepath.Dir(w.archive)} {
		var stages []Stage
		w.From, w.Report = from, func(s Stage, _ string, _, _ int64) {
			if len(stages) == 0 || stages[len(stages)-1] != s {
				stages = append(stages, s)
			}
		}
		r, err := Install(t.Context(), w.Options)
		if err != nil || !r.Checked || r.Already || !r.Candidate.Usable() || r.Candidate.Release != "0.5.0" {
			t.Fatalf("from %s: got %+v, %v", from, r, err)
		}
		if want := filepath.Join(w.Dest, "1.2.3-test-x64", "bins", "test-x64"); r.Candidate.Dir != want {
			t.Errorf("it is in %s, want %s", r.Candidate.Dir, want)
		}
		if !slices.Equal(stages, []Stage{Check, Unpack}) {
			t.Errorf("from %s: the stages are %v", from, stages)
		}
		if got := w.left(t); !slices.Equal(got, []string{"1.2.3-test-x64"}) {
			t.Errorf("from %s: the folder holds %v", from, got)
		}
	}
	w.From = "" // an installed package is not fetched again
	if r, err := Install(t.Context(), w.Options); err != nil || !r.Already {
		t.Errorf("the second time: %+v, %v", r, err)
	}
	if best, err := Best(Places{Data: w.Dest}.Find()); err != nil || best.Origin != Installed {
		t.Errorf("found %+v, %v", best, err)
	}
}

func TestInstallRefuses(t *testing.T) {
	other := fixture.Machine("arm64")
	if ownArch == "arm64" {
		other = fixture.Machine("amd64")
	}
	whole := newWorld(t)
	data, err := os.ReadFile(whole.archive)
	if err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(data)
	changed[len(changed)/2] ^= 1
	for name, c := range map[string]struct {
		world world
		want  string
	}{
		"a torn archive":       {whole.from(t, data[:len(data)-100]), "the archive does not match the pinned hash"},
		"a changed archive":    {whole.from(t, changed), "the archive does not match the pinned hash: it has SHA-512"},
		"no such file":         {world{Options{Dest: whole.Dest, Packages: whole.Packages, From: "none.tgz"}, ""}, "read none.tgz: no such file"},
		"an empty folder":      {world{Options{Dest: whole.Dest, Packages: whole.Packages, From: t.TempDir()}, ""}, "neither node-llama-cpp-test-x64-1.2.3.tgz nor libllama found in"},
		"an invalid pin":       {pinned(t, "sha512-x"), "is not a SHA-512"},
		"libraries of another": {ofEntries(t, fixture.Package("test-x64", fixture.Libraries(other))), "use the libraries: built for linux/"},
		"no libraries":         {ofEntries(t, []fixture.Entry{fixture.File("package/a", nil)}), "use the libraries: no such file"},
		"a hostile path":       {ofEntries(t, []fixture.Entry{fixture.File("package/../../a", nil)}), "is not allowed in a package"},
	} {
		_, err := Install(t.Context(), c.world.Options)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if got := c.world.left(t); len(got) != 0 {
			t.Errorf("%s leaves %v behind", name, got)
		}
	}
}

// from returns a world whose archive has the pinned size but other content.
func (w world) from(t *testing.T, data []byte) world {
	w.From = filepath.Join(folder(t, map[string][]byte{"a.tgz": data}), "a.tgz")
	return w
}

func pinned(t *testing.T, integrity string) world {
	w := newWorld(t)
	w.Packages[0].Integrity = integrity
	return w
}

func TestInstallKeepsPrevious(t *testing.T) {
	w := newWorld(t)
	if _, err := Install(t.Context(), w.Options); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Install(stopped, w.Options); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped install ends with %v", err)
	}
	if found := (Places{Data: w.Dest}).Find(); len(found) != 1 || !found[0].Usable() {
		t.Errorf("after a stopped install there is %+v", found)
	}
}

func TestInstallOwnLibraries(t *testing.T) {
	w := newWorld(t)
	files := fixture.Libraries(fixture.Machine(ownArch))
	files["unrelated.so"] = []byte("x")
	files["libggml-base.so.1"] = files["libggml-base.so"]
	delete(files, "libggml-base.so")
	w.From = folder(t, files)
	for _, link := range []string{"libggml-base.so", "libother.so"} {
		if err := os.Symlink("libggml-base.so.1", filepath.Join(w.From, link)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Install(t.Context(), w.Options)
	if err != nil || r.Checked || !r.Candidate.Usable() {
		t.Fatalf("got %+v, %v", r, err)
	}
	if target, err := os.Readlink(r.Candidate.Base); err != nil || target != "libggml-base.so.1" {
		t.Errorf("libggml-base is a link to %q, %v", target, err)
	}
	for _, name := range []string{"unrelated.so", "libother.so"} {
		if _, err := os.Lstat(filepath.Join(r.Candidate.Dir, name)); err == nil {
			t.Errorf("%s was copied", name)
		}
	}
}

// TestInstallWithNPM runs a fake npm that fetches the archive or fails.
func TestInstallWithNPM(t *testing.T) {
	w := newWorld(t)
	w.From = ""
	t.Setenv("PATH", t.TempDir())
	if _, err := Install(t.Context(), w.Options); !errors.Is(err, ErrNoNPM) || !strings.Contains(err.Error(), "npm pack @node-llama-cpp/test-x64@1.2.3 on another machine and pass the archive with --from") {
		t.Errorf("without npm: %v", err)
	}
	npm := func(script string) {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":/bin:/usr/bin")
	}
	npm("echo 'npm warn old' >&2; echo 'npm error code E404' >&2; echo 'npm error 404 No match found' >&2; exit 1\n")
	if _, err := Install(t.Context(), w.Options); err == nil || !strings.HasSuffix(err.Error(), "npm pack: 404 No match found") {
		t.Errorf("registry without the package: %v", err)
	}
	npm("exit 0\n")
	if _, err := Install(t.Context(), w.Options); err == nil || !strings.Contains(err.Error(), "npm pack did not write ") {
		t.Errorf("npm that does nothing: %v", err)
	}
	if got := w.left(t); len(got) != 0 {
		t.Errorf("failures leave %v behind", got)
	}
	npm(`[ "$1 $2 $3" = "pack --ignore-scripts @node-llama-cpp/test-x64@1.2.3" ] && cp '` + w.archive + "' .\n")
	if r, err := Install(t.Context(), w.Options); err != nil || !r.Candidate.Usable() || !r.Checked {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestInstallForReal fetches the pinned package of this platform, if LLMTOP_TEST_NPM permits npm.
func TestInstallForReal(t *testing.T) {
	if os.Getenv("LLMTOP_TEST_NPM") == "" {
		t.Skip("set LLMTOP_TEST_NPM=1 to fetch the package of llama.cpp with npm")
	}
	r, err := Install(t.Context(), Options{Dest: t.TempDir()})
	if err != nil || !r.Checked || !r.Candidate.Usable() {
		t.Errorf("got %+v, %v", r, err)
	}
}
