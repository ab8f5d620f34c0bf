package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// language is a language of the example engine, with its compiler.
type language struct{ compiler, standard, source string }

var (
	languageC   = language{"cc", "-std=c11", "c/testdata/engine.c"}
	languageCPP = language{"c++", "-std=c++17", "c/testdata/engine.cc"}
)

// buildC compiles an example engine without warnings, or skips the test.
func buildC(t testing.TB, l language, source string, flags ...string) string {
	t.Helper()
	if why := Supported(); why != "" {
		t.Skip(why)
	}
	if _, err := exec.LookPath(l.compiler); err != nil {
		t.Skipf("no compiler: %v", err)
	}
	binary := filepath.Join(t.TempDir(), "engine")
	args := append([]string{l.standard, "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-O1", "-g", "-Ic", source, "-o", binary, "-pthread"}, flags...)
	if out, err := exec.Command(l.compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", l.compiler, strings.Join(args, " "), err, out)
	}
	return binary
}

// TestEnginesInC checks engines in both languages against the protocol, and compares llmtop's data with their work.
func TestEnginesInC(t *testing.T) {
	for _, l := range []language{languageC, languageCPP} {
		t.Run(l.compiler, func(t *testing.T) {
			t.Parallel()
			binary := buildC(t, l, l.source)
			Suite{Binary: binary}.Run(t)
			t.Run("shown", func(t *testing.T) { shown(t, binary) })
		})
	}
}

// sanitized skips the test if the compiler does not support the sanitizer.
func sanitized(t *testing.T, l language, sanitizer string) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe.c")
	if err := os.WriteFile(probe, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "probe")
	if _, err := exec.LookPath(l.compiler); err != nil {
		t.Skipf("no compiler: %v", err)
	}
	if exec.Command(l.compiler, "-fsanitize="+sanitizer, probe, "-o", binary).Run() != nil || exec.Command(binary).Run() != nil {
		t.Skipf("%s cannot use the sanitizer %s here", l.compiler, sanitizer)
	}
}

func TestSanitizers(t *testing.T) {
	for sanitizer, languages := range map[string][]language{
		"address,undefined": {languageC, languageCPP},
		"thread":            {languageC}, // C++ uses the same one
	} {
		for _, l := range languages {
			t.Run(l.compiler+" "+sanitizer, func(t *testing.T) {
				t.Parallel()
				sanitized(t, l, sanitizer)
				binary := buildC(t, l, l.source, "-fsanitize="+sanitizer, "-fno-sanitize-recover=all")
				Suite{Binary: binary}.Short(t)
				if l == languageC { // which has the handlers
					obeys(t, Start(t, binary, "ADDRESS=unix:"+Socket(t), "CONTROL=1"))
				}
			})
		}
	}
}
