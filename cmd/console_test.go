package cmd

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Numeric returns, for every command, one of its flags that takes only numbers or durations, "" if it has none.
func Numeric() map[string]string {
	out := map[string]string{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := ""
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch f.Value.Type() {
			case "int", "uint64", "float64", "duration":
				name = f.Name
			}
		})
		out[strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "llmtop"))] = name
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand())
	return out
}

func TestOverwriteCleans(t *testing.T) {
	var out bytes.Buffer
	newConsole(&out, true).overwrite("%s", "a\x1b[2J\nb\u009b")
	if want := "\r\x1b[Ka\uFFFD b\uFFFD"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestLongErrorsAreCut(t *testing.T) {
	var out bytes.Buffer
	was := consoleErr
	consoleErr = newConsole(&out, false)
	defer func() { consoleErr = was }()
	printError(errors.New("read model: " + strings.Repeat("é", 3<<20)))
	if n := len([]rune(out.String())); n != len("llmtop: ")+maxError+len("…\n")-2 || !strings.HasSuffix(out.String(), "é…\n") {
		t.Errorf("%d characters: %.100q", n, out.String())
	}
}
