// Package rust holds the tests of llmtop.rs, the emitter for engines in Rust.
package rust

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/sdk/c/harness"
)

// supported skips the test if there is no compiler.
func supported(t testing.TB) {
	t.Helper()
	if why := harness.Supported(); why != "" {
		t.Skip(why)
	}
	if out, err := exec.Command("rustc", "--version").CombinedOutput(); err != nil { // rustup's may have no toolchain
		t.Skipf("no compiler: rustc: %v\n%s", err, out)
	}
}

// compile runs rustc, which must report no warnings.
func compile(args ...string) error {
	out, err := exec.Command("rustc", append([]string{"-D", "warnings"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("rustc %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// build compiles a program.
func build(t testing.TB, source string, flags ...string) string {
	t.Helper()
	supported(t)
	binary := filepath.Join(t.TempDir(), "program")
	if err := compile(append(flags, "--edition", "2021", source, "-o", binary)...); err != nil {
		t.Fatal(err)
	}
	return binary
}

// folder contains the compiled example engine, which all tests share because compiling takes seconds.
var folder string

var compiled = sync.OnceValues(func() (binary string, err error) {
	binary = filepath.Join(folder, "engine")
	return binary, compile("-O", "--edition", "2021", "testdata/engine.rs", "-o", binary)
})

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "llmtop"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// exampleEngine is the compiled example engine.
func exampleEngine(t testing.TB) string {
	t.Helper()
	supported(t)
	binary, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// check returns a function that decodes lines as llmtop does.
func check() func([]byte) error {
	return func(line []byte) error {
		_, err := new(wire.Decoder).Decode(line, func(event.Event) {})
		return err
	}
}

// TestUnits runs the tests inside llmtop.rs.
func TestUnits(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(build(t, "llmtop.rs", "--test")).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("test result: ok")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestEngine(t *testing.T) {
	t.Parallel()
	harness.Suite{Binary: exampleEngine(t), Check: check()}.Run(t)
}

// TestSchema validates lines of all types with the schema.
func TestSchema(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../docs/event.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("event.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	form := c.MustCompile("event.schema.json")
	p := harness.Start(t, exampleEngine(t), "ADDRESS=unix:"+harness.Socket(t), "TEXT=1", "HELD=1", "TOKENIZER=1", "RARITIES=1")
	valid := func(line []byte) error {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			return err
		}
		return form.Validate(doc)
	}
	early := harness.Connect(t, p.Address, valid)
	early.Read("synced")
	p.Go()
	early.Read("log")
	p.Done()
	late := harness.Connect(t, p.Address, valid)
	late.Read("synced")
	early.Read("clock")
	p.End()
	early.Rest()
	late.Rest()
	for _, kind := range strings.Fields("hello engine model tok req stage experts kv step host count log clock sync synced bye") {
		if len(early.Of(kind, 0)) == 0 {
			t.Errorf("there was no line of type %s", kind)
		}
		if strings.Contains("hello model host experts kv count", kind) && len(late.Of(kind, 0)) == 0 {
			t.Errorf("a late reader got no line of type %s", kind)
		}
	}
}

// TestOtherSystems compiles the variant without Unix sockets, and with the newer edition.
func TestOtherSystems(t *testing.T) {
	t.Parallel()
	supported(t)
	source, err := os.ReadFile("llmtop.rs")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.NewReplacer("cfg(unix)", "cfg(any())", "cfg(not(unix))", "cfg(all())").Replace(string(source))
	for edition, text := range map[string]string{"2021": elsewhere, "2024": string(source)} {
		name := filepath.Join(t.TempDir(), "llmtop.rs")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := compile("--edition", edition, "--crate-type", "lib", "--emit", "metadata", "--out-dir", t.TempDir(), name); err != nil {
			t.Error(err)
		}
	}
}

// written writes a program with its modules, and returns its main file.
func written(t *testing.T, dir, program string) string {
	t.Helper()
	files := map[string]string{"main.rs": program}
	for name, from := range map[string]string{"llmtop.rs": "llmtop.rs", "model.rs": "testdata/model.rs"} {
		source, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(source)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "main.rs")
}

// TestEnginesOfReadme watches the engines with 5, 20 and 60 lines.
func TestEnginesOfReadme(t *testing.T) {
	t.Parallel()
	supported(t)
	for lines, want := range harness.Engines {
		program := harness.Readme(t, lines, "rust", `\b(Emitter::open|(top|s|load|tokenize|part|seen)\.(queued|dispatched|step_begin|part|end|token\w*|span|picks|kv|ops|finished|cancelled|counter|add|log|close|sample_host)\()`)
		harness.WatchReadme(t, build(t, written(t, t.TempDir(), program)), check(), want)
	}
}

// TestReadme compiles and runs the programs in the README.
func TestReadme(t *testing.T) {
	t.Parallel()
	supported(t)
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?ms)^```rust\n(.*?)^```$").FindAllStringSubmatch(string(readme), -1)
	if len(programs) == 0 || strings.Count(string(readme), "\n```rust\n") != len(programs) {
		t.Fatalf("%d programs found", len(programs))
	}
	for _, program := range programs {
		dir := t.TempDir()
		cmd := exec.Command(build(t, written(t, dir, program[1])))
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Dir(harness.Socket(t)))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, program[1])
		}
	}
}
