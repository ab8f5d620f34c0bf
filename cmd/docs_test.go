package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsCommands checks the commands, arguments and flags of the shell blocks of the documents.
func TestDocsCommands(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	starts, err := filepath.Glob("../docs/quickstart/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range slices.Concat(pages, starts) {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
			script := regexp.MustCompile(`(?m)(^| +)#.*$`).ReplaceAllString(strings.ReplaceAll(block[1], "\\\n", " "), "")
			for _, m := range regexp.MustCompile(`(?m)(?:^|[;|(] ?|sudo |exec )llmtop( [^;|&>\n]*)?`).FindAllStringSubmatch(script, -1) {
				seen++
				checkCommand(t, name, words(m[1]))
			}
		}
	}
	if seen < 50 {
		t.Errorf("found %d commands", seen)
	}
}

// words splits a command as a shell does, without what it expands.
func words(line string) []string {
	var out []string
	for _, w := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(line, -1) {
		out = append(out, strings.NewReplacer("'", "", `"`, "").Replace(w))
	}
	return out
}

// checkCommand checks a command of a page without running it.
func checkCommand(t *testing.T, page string, args []string) {
	t.Helper()
	c, rest, err := NewRoot().Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: llmtop %s: %v", page, strings.Join(args, " "), err)
	}
}
