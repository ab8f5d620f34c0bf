package local

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/llmtop/llmtop/cmd/files"
)

// TestCommandLine checks that the command line of a report repeats the run, without outputs, screen, texts and secrets.
func TestCommandLine(t *testing.T) {
	var r Run
	c := &cobra.Command{Use: "run"}
	r.Bind(c)
	r.Prompts.Bind(c.Flags())
	files.BindReports(c.Flags())
	c.Flags().Bool("headless", false, "")
	c.Flags().IntSlice("lengths", nil, "")
	c.Flags().StringToString("shares", nil, "")
	args := []string{
		"my model.gguf", "http://me:secret@host:80/v1?key=secret", "--headless", "--json", "out.json", "--record", "x", "--theme", "light", "-p", "private", "-p", "too",
		"-f", "a,b.txt", "-f", "c.txt", "--temp", "0.5", "--isolated", "--lengths", "1,2", "--shares", "a=3", "--group", "it's",
	}
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	const want = `run --headless 'my model.gguf' http://host:80/v1 --file a,b.txt --file c.txt --group "it's" --isolated=true --lengths 1,2 -p PROMPT -p PROMPT --shares 'a=3' --temp 0.5`
	if got := r.Meta(nil).Command; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
