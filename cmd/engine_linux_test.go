package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/runtime/engine/llama/library"
	"github.com/llmtop/llmtop/runtime/engine/llama/library/fixture"
)

// installable returns the options of an installation into a temporary folder and the pinned archive for it.
func installable(t *testing.T) library.Options {
	t.Helper()
	data, integrity := fixture.Archive(fixture.Package("test", fixture.Libraries(fixture.Machine(goruntime.GOARCH)))...)
	path := filepath.Join(t.TempDir(), "test.tgz")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return library.Options{
		From: path, Dest: t.TempDir(), Packages: []library.Package{{
			OS: goruntime.GOOS, Arch: goruntime.GOARCH, Name: "test", Version: "1.0.0", Integrity: integrity, Size: int64(len(data)),
		}},
	}
}

func TestEngineInstallPrintsProgress(t *testing.T) {
	var out bytes.Buffer
	o := installable(t)
	if err := install(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	want := "check test.tgz\nunpack test\nllama.cpp 0.5.0 installed: " + filepath.Join(o.Dest, "1.0.0-test/bins/test") + "\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	out.Reset()
	o.From = ""
	if err := install(t.Context(), o, &out); err != nil || !strings.HasPrefix(out.String(), "llama.cpp 0.5.0 already installed: ") {
		t.Errorf("the second time: %q, %v", out.String(), err)
	}
}

// TestEngineInstallOnTerminal checks that the overwritten line is removed at the end.
func TestEngineInstallOnTerminal(t *testing.T) {
	var out bytes.Buffer
	if err := install(t.Context(), installable(t), console.New(&out, true)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\r\x1b[K")
	if len(lines) < 3 || !strings.HasPrefix(lines[1], "check ") || strings.Count(out.String(), "\n") != 1 ||
		!strings.HasPrefix(lines[len(lines)-1], "llama.cpp 0.5.0 installed") {
		t.Errorf("got %q", out.String())
	}
}

func TestEngineInstallExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*library.Options)
		want   int
		words  string
	}{
		"wrong archive":  {func(o *library.Options) { o.Packages[0].Size++ }, exit.CodeUsage, "the archive does not match the pinned hash"},
		"no such file":   {func(o *library.Options) { o.From = "none" }, exit.CodeUsage, "read none: no such file or directory"},
		"unknown device": {func(o *library.Options) { o.From, o.Device = "", "tpu" }, exit.CodeUsage, `no llama.cpp package for "tpu"`},
		"no npm":         {func(o *library.Options) { o.From = "" }, exit.CodeUsage, "npm is not installed: install Node.js"},
		"no folder": {func(o *library.Options) {
			o.Dest = filepath.Join(o.From, "below", "a", "file")
			o.From = ""
		}, exit.CodeFailed, "make folder"},
	} {
		var out bytes.Buffer
		o := installable(t)
		t.Setenv("PATH", t.TempDir())
		c.change(&o)
		err := install(t.Context(), o, &out)
		if exit.Code(err) != c.want || err == nil || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: code %d, %v; it wrote %q", name, exit.Code(err), err, out.String())
		}
	}
}

func TestEngineInstallStopped(t *testing.T) {
	o := installable(t)
	npm := filepath.Join(t.TempDir(), "npm")
	// The signal arrives while npm runs, which takes longer than any test.
	script := "#!/bin/sh\nkill -INT $PPID\nexec sleep 600\n"
	if err := os.WriteFile(npm, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(npm)+":/usr/bin:/bin")
	o.From = ""
	err := install(t.Context(), o, io.Discard)
	if exit.Code(err) != exit.CodeInterrupted || !errors.Is(err, errStopped) {
		t.Errorf("got code %d, %v", exit.Code(err), err)
	}
	if left, err := os.ReadDir(o.Dest); err != nil || len(left) != 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

func TestEngineList(t *testing.T) {
	o := installable(t)
	if err := install(t.Context(), o, io.Discard); err != nil {
		t.Fatal(err)
	}
	other := fixture.Machine("arm64")
	if goruntime.GOARCH == "arm64" {
		other = fixture.Machine("amd64")
	}
	foreign := t.TempDir()
	for name, data := range fixture.Libraries(other) {
		if err := os.WriteFile(filepath.Join(foreign, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := library.Places{Data: o.Dest, System: []string{foreign}}.Find()
	var table, asJSON bytes.Buffer
	if err := errors.Join(listEngines(&table, found), writeEngines(&asJSON, found)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(table.String(), "\n")
	used := filepath.Join(o.Dest, "1.0.0-test/bins/test")
	if len(lines) != 4 || strings.Join(strings.Fields(lines[1]), " ") != "* 0.5.0 - installed "+used+" in use" ||
		!strings.Contains(strings.Join(strings.Fields(lines[2]), " "), foreign+" built for linux/") {
		t.Errorf("got\n%s", &table)
	}
	var list engineList
	if err := json.Unmarshal(asJSON.Bytes(), &list); err != nil || list.Used != used || len(list.Found) != 2 || list.Found[1].Why == "" {
		t.Errorf("got %s, %v", &asJSON, err)
	}
	table.Reset()
	asJSON.Reset()
	if err := errors.Join(listEngines(&table, nil), writeEngines(&asJSON, nil)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "llmtop engine install llamacpp") || !strings.Contains(asJSON.String(), `"found": []`) {
		t.Errorf("without any: %s %s", &table, &asJSON)
	}
}
