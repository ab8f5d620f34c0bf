package sdk

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
)

// rustc skips the test if there is no compiler.
func rustc(t testing.TB) {
	t.Helper()
	if why := Supported(); why != "" {
		t.Skip(why)
	}
	if out, err := exec.Command("rustc", "--version").CombinedOutput(); err != nil { // rustup's may have no toolchain
		t.Skipf("no compiler: rustc: %v\n%s", err, out)
	}
}

// compileRust runs rustc, which must report no warnings.
func compileRust(args ...string) error {
	out, err := exec.Command("rustc", append([]string{"-D", "warnings"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("rustc %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// buildRust compiles a program.
func buildRust(t testing.TB, source string, flags ...string) string {
	t.Helper()
	rustc(t)
	binary := filepath.Join(t.TempDir(), "program")
	if err := compileRust(append(flags, "--edition", "2021", source, "-o", binary)...); err != nil {
		t.Fatal(err)
	}
	return binary
}

// folder contains the compiled example engine, which all tests share because compiling takes seconds.
var folder string

var compiled = sync.OnceValues(func() (binary string, err error) {
	binary = filepath.Join(folder, "engine")
	return binary, compileRust("-O", "--edition", "2021", "rust/testdata/engine.rs", "-o", binary)
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
	rustc(t)
	binary, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// TestUnitsOfRust runs the tests inside llmtop.rs.
func TestUnitsOfRust(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(buildRust(t, "rust/llmtop.rs", "--test")).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("test result: ok")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestEngineInRust(t *testing.T) {
	t.Parallel()
	Suite{Binary: exampleEngine(t)}.Run(t)
}

// TestSchema validates lines of all types with the schema.
func TestSchema(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../docs/event.schema.json")
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
	p := Start(t, exampleEngine(t), "ADDRESS=unix:"+Socket(t), "TEXT=1", "HELD=1", "TOKENIZER=1", "RARITIES=1")
	valid := func(line []byte) error {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			return err
		}
		return form.Validate(doc)
	}
	early := Connect(t, p.Address, valid)
	early.Read("synced")
	p.Go()
	early.Read("log")
	p.Done()
	late := Connect(t, p.Address, valid)
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

// TestRustOnOtherSystems compiles the variant without Unix sockets, and with the newer edition.
func TestRustOnOtherSystems(t *testing.T) {
	t.Parallel()
	rustc(t)
	source, err := os.ReadFile("rust/llmtop.rs")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.NewReplacer("cfg(unix)", "cfg(any())", "cfg(not(unix))", "cfg(all())").Replace(string(source))
	for edition, text := range map[string]string{"2021": elsewhere, "2024": string(source)} {
		name := filepath.Join(t.TempDir(), "llmtop.rs")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := compileRust("--edition", edition, "--crate-type", "lib", "--emit", "metadata", "--out-dir", t.TempDir(), name); err != nil {
			t.Error(err)
		}
	}
}

// writtenRust writes a program with its modules, and returns its main file.
func writtenRust(t *testing.T, dir, program string) string {
	t.Helper()
	files := map[string]string{"main.rs": program}
	for name, from := range map[string]string{"llmtop.rs": "rust/llmtop.rs", "model.rs": "rust/testdata/model.rs"} {
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

// TestEnginesOfReadmeInRust watches the engines with 5, 20 and 60 lines.
func TestEnginesOfReadmeInRust(t *testing.T) {
	t.Parallel()
	rustc(t)
	for lines, want := range Engines {
		program := Readme(t, lines, "rust", `\b(Emitter::open|(top|s|load|tokenize|part|seen)\.(queued|dispatched|step_begin|part|end|token\w*|span|picks|kv|ops|finished|cancelled|counter|add|log|close|sample_host)\()`)
		WatchReadme(t, buildRust(t, writtenRust(t, t.TempDir(), program)), check, want)
	}
}

// TestReadmeOfRust compiles and runs the programs in the README.
func TestReadmeOfRust(t *testing.T) {
	t.Parallel()
	rustc(t)
	readme, err := os.ReadFile("rust/README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?ms)^```rust\n(.*?)^```$").FindAllStringSubmatch(string(readme), -1)
	if len(programs) == 0 || strings.Count(string(readme), "\n```rust\n") != len(programs) {
		t.Fatalf("%d programs found", len(programs))
	}
	for _, program := range programs {
		dir := t.TempDir()
		cmd := exec.Command(buildRust(t, writtenRust(t, dir, program[1])))
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Dir(Socket(t)))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, program[1])
		}
	}
}
