package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const module = "github.com/llmtop/llmtop/"

// rules list the packages of this module that each room may import, by prefix. A package belongs to the first room
// whose folder is a prefix of its path.
var rules = []struct {
	room string
	may  []string
}{
	{"profiler/clean", []string{"profiler/clean"}},
	{"profiler/event", []string{"profiler/event", "profiler/clean"}},
	{"profiler", []string{"profiler"}},
	{"theme", []string{"theme"}},
	{"ui/sanitize", []string{"profiler/clean"}},
	{"ui/grid", []string{"ui/sanitize", "theme", "profiler/clean"}},
	{"ui/table", []string{"ui/sanitize", "profiler"}},
	{"ui/pane", []string{"ui/grid", "ui/table", "ui/sanitize", "theme", "profiler"}},
	{"ui/input", []string{"ui/pane", "ui/grid", "ui/sanitize", "theme"}},
	{"ui/chrome", []string{"ui/pane", "ui/grid", "ui/sanitize", "theme", "profiler"}},
	{"ui/view", []string{"ui/view", "ui/chrome", "ui/input", "ui/pane", "ui/table", "ui/grid", "ui/sanitize", "theme", "profiler"}},
	{"ui", []string{"ui", "theme", "profiler"}},
	{"runtime", []string{"runtime", "profiler/event", "profiler/clean", "profiler/metric"}}, // metric: to format sizes in errors
	{"sdk/go", []string{"profiler/event", "runtime/engine", "runtime/host", "runtime/source/socket"}},
	{"cmd/session", slices.Concat(outside, []string{"cmd/session", "cmd/screen", "cmd/files", "cmd/console", "cmd/exit", "cmd/version"})},
	{"cmd", slices.Concat(outside, []string{"cmd"})},
}

// outside is what commands may import of the other rooms.
var outside = []string{"ui", "theme", "profiler", "runtime"}

// terminalLibrary is the terminal library. Only the top of ui may import it.
const terminalLibrary = "charm.land/bubbletea"

// templates call methods by their names. A program that contains them keeps every exported method of all its types.
var templates = []string{"text/template", "html/template"}

// goFiles parses every Go source of the tree except tests and calls f with it.
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

// TestImportsPointOneWay checks all imports against rules. Packages named *test help tests: no other code imports them.
func TestImportsPointOneWay(t *testing.T) {
	seen := 0
	goFiles(t, parser.ImportsOnly, func(name string, _ *token.FileSet, file *ast.File) {
		for _, spec := range file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			seen++
			inner, ours := strings.CutPrefix(imported, module)
			if ours && !allowed(path.Dir(name), inner) {
				t.Errorf("%s must not import %s", name, inner)
			}
			if ours && strings.HasSuffix(inner, "test") {
				t.Errorf("%s must not import %s: only tests may", name, inner)
			}
			if hasPrefix(imported, terminalLibrary) && !hasPrefix(name, "ui/app", "ui/update", "ui/run") {
				t.Errorf("%s must not import %s: only the top of ui may use the terminal library", name, imported)
			}
			if hasPrefix(imported, templates...) {
				t.Errorf("%s must not import %s: the program grows by 3 MB", name, imported)
			}
		}
	})
	if seen == 0 {
		t.Fatal("found no imports: run the test in the root of the module")
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

// maxFuncLines is the maximum number of lines of a function.
const maxFuncLines = 80

// TestFunctionsFitOnAScreen checks that functions are short enough to read on one screen.
func TestFunctionsFitOnAScreen(t *testing.T) {
	goFiles(t, parser.SkipObjectResolution, func(name string, set *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; n > maxFuncLines {
				t.Errorf("%s: %s has %d lines, more than %d", name, f.Name.Name, n, maxFuncLines)
			}
		}
	})
}

// streams are the files that may use the standard streams as they are, and why. All other text goes through the consoles of cmd, which clean
// it.
var streams = map[string]string{
	"cmd/console/console.go":          "it defines the consoles",
	"ui/run.go":                       "the screen, whose cells are clean",
	"runtime/engine/child/journal.go": "an engine's process to its parent, which cleans what it reads",
	"runtime/host/readband.go":        "numbers of a helper process for its parent",
}

// TestTextGoesThroughTheConsoles checks that no text reaches a terminal past what takes escape sequences out of it.
func TestTextGoesThroughTheConsoles(t *testing.T) {
	goFiles(t, parser.SkipObjectResolution, func(name string, set *token.FileSet, file *ast.File) {
		if _, ok := streams[name]; ok {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			used := ""
			switch n := n.(type) {
			case *ast.SelectorExpr:
				pkg, ok := n.X.(*ast.Ident)
				if ok && (pkg.Name == "os" && (n.Sel.Name == "Stdout" || n.Sel.Name == "Stderr") || pkg.Name == "fmt" && strings.HasPrefix(n.Sel.Name, "Print")) {
					used = pkg.Name + "." + n.Sel.Name
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
					used = f.Name
				}
			}
			if used != "" {
				t.Errorf("%s uses %s: write to a console of cmd", set.Position(n.Pos()), used)
			}
			return true
		})
	})
}

// majorVersion matches the last element of the path of a module whose major version is not 1.
var majorVersion = regexp.MustCompile(`/v\d+$`)

// TestLibrariesAreDescribed checks that docs/architecture.md names every direct dependency.
func TestLibrariesAreDescribed(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(mod)) {
		name, version, ok := strings.Cut(strings.TrimSpace(line), " v")
		if !ok || strings.Contains(version, "// indirect") {
			continue
		}
		seen++
		if name = majorVersion.ReplaceAllString(name, ""); !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/architecture.md does not name %s", name)
		}
	}
	if seen == 0 {
		t.Fatal("go.mod has no dependencies")
	}
}

// maxMethodFiles is the maximum number of files of a package over which the methods of one type spread.
const maxMethodFiles = 6

// TestTypesHaveARoom checks that the methods of a type stand in few files. A type that spreads further has parts that
// should be types.
func TestTypesHaveARoom(t *testing.T) {
	files := map[string]map[string]int{} // methods by type and file
	goFiles(t, parser.SkipObjectResolution, func(name string, _ *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			of := path.Dir(name) + "." + receiver(f.Recv.List[0].Type)
			if files[of] == nil {
				files[of] = map[string]int{}
			}
			files[of][path.Base(name)]++
		}
	})
	for of, in := range files {
		if len(in) > maxMethodFiles {
			t.Errorf("%s has methods in %d files, more than %d: %v", of, len(in), maxMethodFiles, in)
		}
	}
}

// receiver returns the name of a receiver's type.
func receiver(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return receiver(expr.X)
	case *ast.IndexExpr:
		return receiver(expr.X)
	case *ast.IndexListExpr:
		return receiver(expr.X)
	case *ast.Ident:
		return expr.Name
	}
	return ""
}

// The size of the house. What needs more removes something, or raises a number and says in its commit what that bought.
const (
	maxLines    = 116_200 // of Go, without tests and generated files
	maxTypes    = 1_125
	maxPackages = 92
)

// TestTheHouseFitsItsBudgets counts the lines, types and packages of the tree.
func TestTheHouseFitsItsBudgets(t *testing.T) {
	lines, types, packages := 0, 0, map[string]bool{}
	goFiles(t, parser.ParseComments|parser.SkipObjectResolution, func(name string, set *token.FileSet, file *ast.File) {
		if ast.IsGenerated(file) {
			return
		}
		lines += set.File(file.Pos()).LineCount()
		packages[path.Dir(name)] = true
		ast.Inspect(file, func(n ast.Node) bool {
			if _, ok := n.(*ast.TypeSpec); ok {
				types++
			}
			return true
		})
	})
	if lines > maxLines || types > maxTypes || len(packages) > maxPackages {
		t.Errorf("%d lines, %d types and %d packages; at most %d, %d and %d", lines, types, len(packages), maxLines, maxTypes, maxPackages)
	}
}

// maxWords is the maximum number of words of the documents, without what tests generate from the program.
const maxWords = 36_000

// generated matches the parts of a document that a test writes, or compares with the program.
var generated = regexp.MustCompile(`(?s)<!-- [a-z ]+ -->\n.*?<!-- /[a-z ]+ -->`)

// TestTheDocsFitTheirBudget counts the words of README.md, CONTRIBUTING.md and docs.
func TestTheDocsFitTheirBudget(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	starts, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for _, name := range slices.Concat([]string{"README.md", "CONTRIBUTING.md"}, files, starts) {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text, n := generated.ReplaceAllString(string(page), ""), 0
		if name == filepath.Join("docs", "keys.md") {
			text, _, _ = strings.Cut(text, "| key | action |\n") // the rest is the table
		}
		for word := range strings.FieldsSeq(text) {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				n++
			}
		}
		t.Logf("%5d %s", n, name)
		words += n
	}
	if words > maxWords || words == 0 {
		t.Errorf("the documents have %d words, at most %d: shorten a page, or link to the one that says it already", words, maxWords)
	}
}
