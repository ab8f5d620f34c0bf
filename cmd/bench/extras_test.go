package bench

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/local"
)

// TestSLOWords checks that the command of a report repeats every --slo.
func TestSLOWords(t *testing.T) {
	args := []string{"--slo", "interactive", "--slo", "ttft=1ms,tpot=2ms"}
	c := &cobra.Command{Use: "bench"}
	new(Benchmark).Bind(c)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	want := []string{"--slo", "interactive", "--slo", "'ttft=1ms,tpot=2ms'"}
	if got := local.FlagWords(c.Flags().Lookup("slo")); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
