package cmd

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
)

var update = flag.Bool("update", false, "update the generated parts of the documents")

// reference returns the keys of the config file as a table.
func reference() string {
	var out strings.Builder
	out.WriteString("| key | default | |\n|---|---|---|\n")
	local.ConfigFlags().VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		value := f.DefValue
		switch f.Value.Type() {
		case "string", "duration", "targets":
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", f.Name, value, strings.ReplaceAll(usage, "|", `\|`))
	})
	return out.String()
}

// TestDocsHaveAllSettings checks that the documentation has every key of the config file.
func TestDocsHaveAllSettings(t *testing.T) {
	documented(t, "settings", reference())
}

// documented compares a generated part of the documentation.
func documented(t *testing.T, part, want string) {
	t.Helper()
	path, begin, end := "../docs/settings.md", "<!-- "+part+" -->\n", "<!-- /"+part+" -->"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(file), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the %s", path, part)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if was != want {
		t.Errorf("%s does not have this (run with -update):\n%s", path, want)
	}
}

// FuzzConfig checks that any config file is read, or refused in one line.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"theme = \"light\"\nlayout = \"latency\"", "[[alert]]\nname = \"a\"\nwhen = \"kv > 90%\"\nrun = [\"true\"]\nfor = \"1s\"",
		"[[alert]]\nname = 3", "alert = [[1]]", "layout = []", "[layout.a]\nb = 1", "tokens = -1\nfps = 1e9", "= \x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var r local.Run
		c := &cobra.Command{}
		r.Bind(c)
		if err := c.Flags().Set("config", path); err != nil {
			t.Fatal(err)
		}
		err := c.PreRunE(c, nil)
		if err != nil && (exit.Code(err) != exit.CodeUsage || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q is refused with %q, code %d", text, err, exit.Code(err))
		}
	})
}
