package cmd

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/recording"
)

// withVerb returns the arguments of a command line with the command that its first argument stands for: attach for the
// address of an engine, run for a model, replay for a recording, report for a report, tap for a file of packets. Others are returned as they are.
func withVerb(root *cobra.Command, args []string) []string {
	i := firstOperand(root, args)
	if i < 0 || slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == args[i] }) {
		return args
	}
	verb := verbOf(args[i])
	if verb == "" {
		return args
	}
	return append([]string{verb}, args...)
}

// verbs are the commands for files by the endings of their names.
var verbs = map[string]string{".gguf": "run", ".llmtop": "replay", ".json": "report", ".jsonl": "replay", ".gz": "replay", ".pcap": "tap", ".pcapng": "tap"}

// verbOf returns the command that an argument stands for, "" if it stands for none. The start of a file decides before
// its name.
func verbOf(arg string) string {
	if address.IsEngine(arg) {
		return "attach"
	}
	if rec, err := recording.Open(arg); err == nil {
		_ = rec.Close() // read only
		return "replay"
	}
	if local.IsModel(arg) {
		return "run"
	}
	return verbs[strings.ToLower(filepath.Ext(arg))]
}

// firstOperand returns the index of the first argument that is neither a flag nor the value of one, -1 if there is none.
func firstOperand(root *cobra.Command, args []string) int {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--" || strings.HasPrefix(arg, "__"): // a request of a shell for completions
			return -1
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			return i
		case takesNext(root, arg):
			i++
		}
	}
	return -1
}

// takesNext reports whether the value of a flag is the next argument.
func takesNext(root *cobra.Command, arg string) bool {
	if strings.Contains(arg, "=") {
		return false
	}
	for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
		if f := flagOf(c, arg); f != nil {
			return f.NoOptDefVal == "" && (strings.HasPrefix(arg, "--") || len(arg) == 2)
		}
	}
	return false
}

// flagOf returns the flag of a command that an argument sets, of several short ones the last; nil: none.
func flagOf(c *cobra.Command, arg string) *pflag.Flag {
	if name, long := strings.CutPrefix(arg, "--"); long {
		name, _, _ = strings.Cut(name, "=")
		return c.Flags().Lookup(name)
	}
	if len(arg) < 2 || arg[0] != '-' {
		return nil
	}
	return c.Flags().ShorthandLookup(arg[len(arg)-1:])
}

// suggestions returns what a misspelt word may mean as the end of an error: ": did you mean …?"; "" without a guess.
func suggestions(prefix, word string, names []string) string {
	guess := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, name := range names {
		guess.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	const most = 3
	near := guess.SuggestionsFor(word)
	if len(near) == 0 || len(near) > most {
		return ""
	}
	return ": did you mean " + prefix + strings.Join(near, " or "+prefix) + "?"
}

// unknownCommand returns the error for a word that is no command below c. advice follows unless there is a suggestion.
func unknownCommand(c *cobra.Command, word, advice string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := suggestions(c.CommandPath()+" ", word, names); near != "" {
		return exit.Usagef("unknown command %q%s", word, near)
	}
	return exit.Usagef("unknown command %q: %s", word, advice)
}

// flagError returns the error for a command line that the flags of a command do not allow, with what a misspelt flag may
// mean.
func flagError(c *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return exit.FlagError(err)
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return exit.Usagef("%w%s", err, suggestions("--", unknown.GetSpecifiedName(), names))
}
