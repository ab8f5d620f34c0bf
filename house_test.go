package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/llmtop/llmtop/"

// rules say which packages of this module each room may import, by prefix. Every package is in exactly the first room
// whose folder is a prefix of its own.
var rules = []struct {
	room string
	may  []string
}{
	{"profiler/event", []string{"profiler/event"}},
	{"profiler", []string{"profiler"}},
	{"theme", []string{"theme"}},
	{"ui", []string{"ui", "theme", "profiler"}},
	{"runtime", []string{"runtime", "profiler/event"}},
	{"cmd", []string{"ui", "theme", "profiler", "runtime"}},
}

// screens are the modules that only the top of the ui and the theme may know.
var screens = []string{"charm.land/bubbletea", "charm.land/lipgloss"}

// goFiles calls f with every Go source of the tree that is not a test, parsed.
func goFiles(t *testing.T, mode parser.Mode, f func(name string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "tools" || (name != "." && strings.HasPrefix(d.Name(), "."))) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(set, name, nil, mode)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(name), set, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestImportsPointOneWay holds the tree to the rules above.
func TestImportsPointOneWay(t *testing.T) {
	seen := 0
	goFiles(t, parser.ImportsOnly, func(name string, _ *token.FileSet, file *ast.File) {
		for _, spec := range file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			seen++
			if inner, ours := strings.CutPrefix(imported, module); ours && !allowed(path.Dir(name), inner) {
				t.Errorf("%s must not import %s", name, inner)
			}
			if hasPrefix(imported, screens...) && !hasPrefix(name, "theme/", "ui/app", "ui/update", "ui/run") {
				t.Errorf("%s must not import %s: only the theme and the top of the ui know the terminal library", name, imported)
			}
		}
	})
	if seen == 0 {
		t.Fatal("found no imports: is the test run from the root of the module?")
	}
}

func allowed(dir, imported string) bool {
	if dir == "." {
		return imported == "cmd"
	}
	for _, rule := range rules {
		if hasPrefix(dir+"/", rule.room+"/") {
			return hasPrefix(imported+"/", slashed(rule.may)...)
		}
	}
	return false
}

func slashed(rooms []string) []string {
	out := make([]string, len(rooms))
	for i, room := range rooms {
		out[i] = room + "/"
	}
	return out
}

func hasPrefix(s string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// longest is the most lines that a function may have.
const longest = 80

// TestFunctionsFitOnAScreen keeps functions short enough to read at one glance.
func TestFunctionsFitOnAScreen(t *testing.T) {
	goFiles(t, parser.SkipObjectResolution, func(name string, set *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; n > longest {
				t.Errorf("%s: %s has %d lines, more than %d", name, f.Name.Name, n, longest)
			}
		}
	})
}
