package screen

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestLength checks that --for is more than 0, and recorded.
func TestLength(t *testing.T) {
	for want, args := range map[string][]string{
		"--for 0s: must be more than 0":                             {"--cast", "x", "--for", "0s"},
		"--for -1s: must be more than 0":                            {"--cast", "x", "--for", "-1s"},
		"--script and --for need --out FILE.cast or --out FILE.svg": {"--for", "0s"},
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

// svgCamera returns a camera that records an animated SVG.
func svgCamera(t *testing.T) *Camera {
	t.Helper()
	c, set := &Camera{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Bind(set)
	if err := set.Parse([]string{"--out", "out.svg"}); err != nil {
		t.Fatal(err)
	}
	return c
}
