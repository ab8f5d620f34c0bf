package cmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups assigns every flag of every command to a group of the help texts, which list flags in this order.
var flagGroups = []struct {
	title  string
	common string // names of the flags that --help lists, separated by spaces
	rare   string // names of the flags that only `llmtop help flags` and the man pages list
}{
	{"Prompts", "prompt file tokens", "prompts suite raw group logprobs"},
	{"Workload", "concurrency rate find-capacity prompt-tokens requests repeats run llama-bench", "burstiness warmup cold honour-eos limits"},
	{"Model", "engine ctx threads gpu-layers", "parallel pace isolated expert-sample ops from gpu"},
	{"Sampling", "temp top-k top-p seed", "min-p repeat-penalty"},
	{"Server", "to model otlp match api-key-file discover", "api interval prompt-cache prompt-salt drain keep-awake experts-used group-header api-key-over-http"},
	{"Targets", "slo", ""},
	{"Comparison", "gate threshold allow-different", ""},
	{"Screen", "theme layout plain ui", "ascii fps low-bandwidth no-mouse no-remember"},
	{"Replay", "speed paused", ""},
	{"Output", "out headless for json script budget picks", "text size batch price"},
	{"Export", "metrics-listen otlp-push", ""},
	{"Network", "listen token-file", "send-text allow-remote allow-host"},
	{"Other", "dry-run config help version", ""},
}

// rareIn lists flags that are common in general but rarely used with one command.
var rareIn = map[string]string{
	"llmtop":        "threads listen ctx gpu-layers temp top-k top-p seed layout out metrics-listen otlp-push token-file",
	"llmtop run":    "top-k top-p layout otlp-push token-file",
	"llmtop bench":  "file budget ctx gpu-layers temp top-k top-p seed theme layout plain listen token-file metrics-listen otlp-push",
	"llmtop cast":   "gpu-layers top-k top-p layout plain metrics-listen otlp-push listen token-file",
	"llmtop attach": "layout",
}

// helpColumns is the width of help texts. maxFlagColumns bounds the column of flag names: the usage of a longer name starts on the next line.
const (
	helpColumns    = 100
	maxFlagColumns = 34
)

// useHelp makes all commands below root print help with the flags in groups.
func useHelp(root *cobra.Command) {
	root.PersistentFlags().BoolP("help", "h", false, "show help")
	root.SetHelpCommand(newHelpCommand())
	root.SetUsageFunc(func(c *cobra.Command) error { return writeUsage(c.OutOrStderr(), c) })
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		text := c.Long
		if text == "" {
			text = c.Short
		}
		fmt.Fprintln(c.OutOrStdout(), strings.TrimSpace(text)+"\n")
		_ = writeUsage(c.OutOrStdout(), c) // its errors are those of the stream, which would hide this one as well
	})
}

// newHelpCommand replaces cobra's help command, to refuse unknown commands and to add help flags.
func newHelpCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command, or list all flags: llmtop help flags",
		Long: `help shows the help of a command, with its common flags. To list all flags of a command, use
llmtop help flags COMMAND; to list those of all commands, llmtop help flags.`,
		Example: `  llmtop help bench
  llmtop help flags bench`,
		ValidArgsFunction: completeCommands,
		RunE: func(c *cobra.Command, args []string) error {
			of, err := namedCommand(c.Root(), args)
			if err != nil {
				return err
			}
			return of.Help()
		},
	}
	c.AddCommand(&cobra.Command{
		Use:               "flags [COMMAND]",
		Short:             "List all flags, of one command or of all",
		ValidArgsFunction: completeCommands,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return writeAllFlags(c.OutOrStdout(), c.Root())
			}
			of, err := namedCommand(c.Root(), args)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Flags of %s\n", of.CommandPath())
			return writeFlags(c.OutOrStdout(), commandFlags(of, true))
		},
	})
	return c
}

// useCompletion adds cobra's command for completions to root, in llmtop's words.
func useCompletion(root *cobra.Command) {
	root.CompletionOptions.DisableNoDescFlag = true
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Use, c.Short = "completion SHELL", "Complete commands and flags in a shell"
		c.Long = "completion writes the script that completes llmtop's commands, flags and values in a shell."
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(c, args[0], "use bash, zsh, fish or powershell")
		}
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		c.Example = `  llmtop completion bash > ~/.local/share/bash-completion/completions/llmtop
  llmtop completion zsh > "${fpath[1]}/_llmtop"
  llmtop completion fish > ~/.config/fish/completions/llmtop.fish
  llmtop completion powershell | Out-String | Invoke-Expression`
		for _, shell := range c.Commands() {
			shell.Short = "Write the script for " + shell.Name()
			shell.Long = shell.Short + "."
		}
	}
}

// namedCommand returns the command below root with these names.
func namedCommand(root *cobra.Command, names []string) (*cobra.Command, error) {
	c, rest, err := root.Find(names)
	if err != nil || len(rest) > 0 {
		return nil, unknownCommand(cmp.Or(c, root), cmp.Or(strings.Join(rest, " "), strings.Join(names, " ")), "see llmtop --help")
	}
	return c, nil
}

// completeCommands completes the names of commands in a shell.
func completeCommands(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	above, _, err := c.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, sub := range above.Commands() {
		if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), prefix) {
			out = append(out, cobra.CompletionWithDesc(sub.Name(), sub.Short))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// writeUsage writes all of a command's help below its description: examples, usage line, commands below it, common flags.
func writeUsage(w io.Writer, c *cobra.Command) error {
	if c.HasExample() {
		fmt.Fprintf(w, "Examples:\n%s\n\n", c.Example)
	}
	fmt.Fprintln(w, "Usage:")
	if c.Runnable() {
		fmt.Fprintf(w, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n", c.CommandPath())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintln(w, "\nCommands:")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(w, "  %-*s  %s\n", c.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	common, all := commandFlags(c, false), commandFlags(c, true)
	fmt.Fprintln(w)
	if err := writeFlags(w, common); err != nil {
		return err
	}
	if more := len(all) - len(common); more > 0 {
		fmt.Fprintf(w, "\n%d more flags: llmtop help flags%s\n", more, strings.TrimPrefix(c.CommandPath(), c.Root().Name()))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "Help of a command: %s COMMAND --help\n", c.CommandPath())
	}
	return nil
}

// listedFlag is a flag in a help text.
type listedFlag struct {
	*pflag.Flag
	group    string
	commands []string // that have the flag; nil: not listed
}

// commandFlags returns a command's flags in the order of flagGroups, without the hidden ones: all of them or only the common ones.
func commandFlags(c *cobra.Command, all bool) (out []listedFlag) {
	c.InitDefaultHelpFlag() // merges the persistent flags
	rareHere := strings.Fields(rareIn[c.CommandPath()])
	for _, g := range flagGroups {
		names := strings.Fields(g.common)
		if all {
			names = append(names, strings.Fields(g.rare)...)
		}
		for _, name := range names {
			f := c.Flags().Lookup(name)
			if f != nil && !f.Hidden && (all || !slices.Contains(rareHere, name)) {
				out = append(out, listedFlag{Flag: f, group: g.title})
			}
		}
	}
	return out
}

// writeAllFlags lists the flags of all commands. Flags of one name and one usage are listed once, with the commands that have them.
func writeAllFlags(w io.Writer, root *cobra.Command) error {
	found := map[string][]*listedFlag{} // by name
	byText := map[string]*listedFlag{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, f := range commandFlags(c, true) {
			k := strings.Join([]string{f.Name, f.Usage, f.DefValue}, "\n")
			if byText[k] == nil {
				byText[k] = &f
				found[f.Name] = append(found[f.Name], &f)
			}
			byText[k].commands = append(byText[k].commands, strings.TrimPrefix(c.CommandPath(), root.Name()+" "))
		}
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				visit(sub)
			}
		}
	}
	visit(root)
	var list []listedFlag
	for _, g := range flagGroups {
		for _, name := range strings.Fields(g.common + " " + g.rare) {
			for _, f := range found[name] {
				list = append(list, *f)
			}
		}
	}
	everywhere := len(found["help"][0].commands)
	for i := range list {
		if len(list[i].commands) == everywhere {
			list[i].commands = []string{"all commands"}
		}
	}
	return writeFlags(w, list)
}

// writeFlags lists flags under the titles of their groups, in columns.
func writeFlags(w io.Writer, list []listedFlag) error {
	width := 0
	for _, f := range list {
		if n := len(flagName(f.Flag)); n <= maxFlagColumns {
			width = max(width, n)
		}
	}
	group := ""
	for _, f := range list {
		if f.group != group {
			group = f.group
			fmt.Fprintf(w, "%s:\n", group)
		}
		name, lines := flagName(f.Flag), wrap(flagText(f), helpColumns-width-2)
		if len(name) > width {
			fmt.Fprintln(w, name)
			name = ""
		}
		for _, line := range lines {
			fmt.Fprintf(w, "%-*s  %s\n", width, name, line)
			name = ""
		}
	}
	return nil
}

// flagName returns what a flag's user types, indented: "  -p, --prompt TEXT".
func flagName(f *pflag.Flag) string {
	name := "      --" + f.Name
	if f.Shorthand != "" {
		name = fmt.Sprintf("  -%s, --%s", f.Shorthand, f.Name)
	}
	value, _ := pflag.UnquoteUsage(f)
	switch value {
	case "int", "uint":
		value = "N"
	case "ints":
		value = "N,..."
	case "float":
		value = "X"
	case "float64Slice":
		value = "X,..."
	case "duration":
		value = "DURATION"
	}
	if value == "" {
		return name
	}
	if f.NoOptDefVal != "" && f.Value.Type() != "bool" {
		return name + "[=" + value + "]"
	}
	return name + " " + value
}

// flagText returns a flag's usage, its default unless that is empty or zero, and the commands that have it.
func flagText(f listedFlag) string {
	_, text := pflag.UnquoteUsage(f.Flag)
	switch value := strings.Trim(f.DefValue, "[]"); {
	case slices.Contains([]string{"", "0", "0s", "false"}, value):
	case f.Value.Type() == "string":
		text += fmt.Sprintf(" (default %q)", value)
	default:
		text += fmt.Sprintf(" (default %s)", value)
	}
	if len(f.commands) > 0 {
		text += " [" + strings.Join(f.commands, ", ") + "]"
	}
	return text
}

// wrap breaks a text at spaces into lines of at most width bytes. A longer word gets a line of its own.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
