package screen

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestLength checks that --for is more than 0, and recorded.
func TestLength(t *testing.T) {
	for want, args := range map[string][]string{
		"--for 0s: must be more than 0":                                  {"--cast", "x", "--for", "0s"},
		"--for -1s: must be more than 0":                                 {"--cast", "x", "--for", "-1s"},
		"--script, --for and --cast-text need --cast FILE or --svg FILE": {"--for", "0s"},
		"": {"--cast", "x"},
	} {
		var c Camera
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		c.Bind(set)
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := c.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}
