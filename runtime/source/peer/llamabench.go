package peer

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"testing"
)

// LlamaBench runs llama-bench on a model file: the given number of repeats of a prompt, and of a text generated from an
// empty context, both in tokens; 0 skips it. It returns the tokens/s of each repeat.
func LlamaBench(tb testing.TB, model string, threads, prompt, text, repeats int) (prompts, texts []float64) {
	tb.Helper()
	c := exec.Command(Path(tb, LlamaBenchEnv), "-m", model, "-t", strconv.Itoa(threads), "-p", strconv.Itoa(prompt),
		"-n", strconv.Itoa(text), "-r", strconv.Itoa(repeats), "-o", "json")
	out, err := c.Output()
	if err != nil {
		tb.Fatal(err)
	}
	var tests []struct {
		Text    int       `json:"n_gen"`
		Samples []float64 `json:"samples_ts"`
	}
	if err := json.Unmarshal(out, &tests); err != nil {
		tb.Fatal(err)
	}
	for _, t := range tests {
		if t.Text == 0 {
			prompts = t.Samples
		} else {
			texts = t.Samples
		}
	}
	if prompt > 0 && len(prompts) != repeats || text > 0 && len(texts) != repeats {
		tb.Fatalf("llama-bench printed %s", out)
	}
	return prompts, texts
}
