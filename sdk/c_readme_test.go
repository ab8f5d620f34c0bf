package sdk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snippets returns the programs in the README, with their languages.
func snippets(t *testing.T) (programs []string, languages []language) {
	t.Helper()
	readme, err := os.ReadFile("c/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(readme), -1) {
		l, ok := map[string]language{"c": languageC, "cpp": languageCPP}[m[1]]
		if !ok {
			t.Fatalf("a snippet in %s, which no test compiles", m[1])
		}
		programs, languages = append(programs, m[2]), append(languages, l)
	}
	return programs, languages
}

// TestReadmeOfC compiles and runs the programs in the README, with and without a usable socket folder.
func TestReadmeOfC(t *testing.T) {
	programs, languages := snippets(t)
	for i, program := range programs {
		t.Run(fmt.Sprint(i, languages[i].compiler), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			binary := buildC(t, languages[i], writtenC(t, languages[i], program), "-Ic/testdata", "-Wno-missing-field-initializers", "-lm")
			for _, place := range []string{filepath.Dir(Socket(t)), "/dev/null"} {
				cmd := exec.Command(binary)
				cmd.Dir, cmd.Env = folder, append(os.Environ(), "XDG_RUNTIME_DIR="+place)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("with sockets in %s: %v: %s", place, err, out)
				}
			}
			if strings.Contains(program, "stages.csv") {
				checkStages(t, filepath.Join(folder, "stages.csv"))
			}
		})
	}
}

// TestEnginesOfReadmeInC watches the engines with 5, 20 and 60 lines.
func TestEnginesOfReadmeInC(t *testing.T) {
	for lines, want := range Engines {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			t.Parallel()
			program := Readme(t, lines, "c", `\b(llmtop_(open|queued|dispatched|step\w*|part\w*|picks|kv|ops|begin|end|ended|stage|add|counter|log|state|sample_host)\(|LLMTOP_(STEP|PART)\()`)
			binary := buildC(t, languageC, writtenC(t, languageC, program), "-Ic/testdata", "-Wno-missing-field-initializers", "-lm")
			WatchReadme(t, binary, check, want)
		})
	}
}

// writtenC writes a program to a file.
func writtenC(t *testing.T, l language, program string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "program"+filepath.Ext(l.source))
	if err := os.WriteFile(name, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// checkStages reads the file of the program that writes CSV: three requests with one stage each.
func checkStages(t *testing.T, name string) {
	t.Helper()
	rows := rowsOf(t, name)
	for i := range rows {
		if i > 0 {
			rows[i] = rows[i][:1]
		}
	}
	if want := [][]string{{"stage", "elapsed_us"}, {"attention"}, {"attention"}, {"attention"}}; !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("rows %v, want %v", rows, want)
	}
}

// TestDeclarations compiles the declarations only, with more warnings than most projects enable.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	const program = "#include \"llmtop.h\"\nllmtop_socket *top;\n"
	for l, flags := range map[language][]string{
		languageC:   {"-Wstrict-prototypes", "-Wmissing-prototypes"},
		languageCPP: {"-Wold-style-cast", "-Weffc++", "-Wzero-as-null-pointer-constant"},
	} {
		buildC(t, l, writtenC(t, l, program), append(flags, "-c")...)
	}
}

// TestNewerStandards compiles everything with newer C and C++ standards.
func TestNewerStandards(t *testing.T) {
	t.Parallel()
	for _, l := range []language{{"cc", "-std=c17", languageC.source}, {"c++", "-std=c++20", languageCPP.source}} {
		buildC(t, l, l.source, "-fsyntax-only")
	}
}

// TestUnsupported: on unsupported systems the header causes a clear compiler error.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	buildC(t, languageC, writtenC(t, languageC, "int main(void) { return 0; }\n")) // skips if there is no compiler
	for program, want := range map[string]string{
		"#define _WIN32\n#include \"llmtop.h\"\n":                                   "Linux and macOS only",
		"#include <time.h>\n#define LLMTOP_IMPLEMENTATION\n#include \"llmtop.h\"\n": "include it before other headers",
	} {
		out, err := exec.Command("cc", "-std=c11", "-Ic", "-fsyntax-only", writtenC(t, languageC, program)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s is compiled with %v, want %q: %.300s", program, err, want, out)
		}
	}
}
