package cmd

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/spf13/cobra"
)

// newRecordCommand returns the command whose arguments spellOut replaces. It runs only where they lack the file, and
// for its help.
func newRecordCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "record FILE" + files.Recording + " [MODEL.gguf | ADDRESS...]",
		Short: "Record the events of an engine, to replay, report and compare",
		Long: `record watches engines, or runs a model, without a screen, and writes all events to a recording. It
stops on Ctrl-C, after --for, or when the prompts of the model are done, and prints the report.

record FILE ADDRESS... is llmtop attach --headless --out FILE ADDRESS..., and with a model llmtop
run --headless --out FILE MODEL.gguf: it takes their flags. To record with a screen, use those
without --headless. To record the screen itself, use llmtop cast.`,
		Example: `  llmtop record fleet.llmtop http://gpu1:8000 http://gpu2:8000 --for 60s
  llmtop record run.llmtop model.gguf -p 'Once upon a time'
  llmtop run.llmtop                                  # replays it
  llmtop report run.llmtop --out report.html`,
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return c.Help()
			}
			return exit.Usagef("record needs the file to write: llmtop record FILE%s [MODEL.gguf | ADDRESS...]; to record the screen: llmtop cast FILE%s",
				files.Recording, files.Cast)
		},
	}
}

// spellOut returns a command line with the file that record and cast take as their first argument as --out. Those of
// record become the command line of attach or run.
func spellOut(root *cobra.Command, args []string) []string {
	at := firstOperand(root, args)
	if at < 0 || args[at] != "record" && args[at] != "cast" || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		return args
	}
	rest := slices.Concat(args[:at], args[at+1:])
	file := firstOperand(root, rest)
	if file < 0 {
		return args
	}
	name := rest[file]
	rest = slices.Delete(rest, file, file+1)
	out := []string{"--out", name}
	switch ending := strings.ToLower(filepath.Ext(name)); {
	case args[at] == "cast" && (ending == files.Cast || ending == files.SVG):
		return slices.Concat([]string{"cast"}, out, rest)
	case args[at] == "record" && ending == files.Recording:
		verb := "attach"
		if of := firstOperand(root, rest); of >= 0 && verbOf(rest[of]) == "run" || of < 0 && slices.ContainsFunc(rest, func(arg string) bool { return onlyRuns(root, arg) }) {
			verb = "run"
		}
		return slices.Concat([]string{verb, "--headless"}, out, rest)
	}
	return args
}

// onlyRuns reports whether an argument is one that run takes and attach does not: its flags, and - for a prompt.
func onlyRuns(root *cobra.Command, arg string) bool {
	run, _, _ := root.Find([]string{"run"}) // both exist
	attach, _, _ := root.Find([]string{"attach"})
	return arg == "-" || flagOf(run, arg) != nil && flagOf(attach, arg) == nil
}
