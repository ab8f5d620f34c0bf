package cmd

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/profiler/report"
)

// command returns llmtop with arguments, without a terminal, a config file and output.
func command(t *testing.T, args ...string) *cobra.Command {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	c := NewRoot()
	c.SetArgs(withVerb(c, spellOut(c, args)))
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	c.SetIn(strings.NewReader(""))
	return c
}

// llmtop runs the command line in this process and returns its output.
func llmtop(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, notes bytes.Buffer
	c := command(t, args...)
	c.SetOut(&out)
	c.SetErr(&notes)
	err = c.ExecuteContext(t.Context())
	return out.String(), notes.String(), err
}

// readReport reads a report.
func readReport(tb testing.TB, name string) *report.Report {
	tb.Helper()
	file, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	r, err := report.Read(file)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
