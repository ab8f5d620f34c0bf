package cmd

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// maxHelpLines is the limit of a help text: two screens of 30 lines.
const maxHelpLines = 60

// allCommands returns root and all commands below it, as they are when the program runs.
func allCommands(root *cobra.Command) []*cobra.Command {
	root.InitDefaultCompletionCmd()
	var out []*cobra.Command
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.InitDefaultHelpFlag()
		out = append(out, c)
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	return out
}

// helpOutput runs llmtop with args and returns what it prints.
func helpOutput(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := NewRoot()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		t.Fatalf("llmtop %s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

// TestEveryFlagHasAGroup checks flagGroups: each flag is in it once, and it has no flag that no command has.
func TestEveryFlagHasAGroup(t *testing.T) {
	groups := map[string]string{}
	for _, g := range flagGroups {
		for _, name := range strings.Fields(g.common + " " + g.rare) {
			if groups[name] != "" {
				t.Errorf("--%s is in groups %s and %s", name, groups[name], g.title)
			}
			groups[name] = g.title
		}
	}
	used := map[string]bool{}
	paths := map[string]bool{}
	for _, c := range allCommands(NewRoot()) {
		paths[c.CommandPath()] = true
		c.Flags().VisitAll(func(f *pflag.Flag) {
			used[f.Name] = true
			if files.IsAlias(f) {
				return
			}
			if groups[f.Name] == "" {
				t.Errorf("%s --%s: no group in flagGroups", c.CommandPath(), f.Name)
			}
		})
		for _, name := range strings.Fields(rareIn[c.CommandPath()]) {
			if c.Flags().Lookup(name) == nil {
				t.Errorf("rareIn: %s has no flag --%s", c.CommandPath(), name)
			}
		}
	}
	for name, group := range groups {
		if !used[name] {
			t.Errorf("group %s: no command has a flag --%s", group, name)
		}
	}
	for path := range rareIn {
		if !paths[path] {
			t.Errorf("rareIn: there is no command %q", path)
		}
	}
}

// maxFlags is the number of flags that llmtop may have, whatever their number of commands. A flag that only names the
// file of one format is an alias of --out and does not count.
const maxFlags = 90

// TestFlagsAreFew checks that a new flag replaces another.
func TestFlagsAreFew(t *testing.T) {
	names := map[string]bool{}
	for _, c := range allCommands(NewRoot()) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !files.IsAlias(f) {
				names[f.Name] = true
			}
		})
	}
	if len(names) > maxFlags {
		t.Errorf("%d flags, more than %d: %v", len(names), maxFlags, slices.Sorted(maps.Keys(names)))
	}
}

// TestHelpFits checks that the help of each command fits two screens and lists every common flag.
func TestHelpFits(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "/home/user/.config")
	for _, c := range allCommands(NewRoot()) {
		args := strings.Fields(c.CommandPath())[1:]
		text := helpOutput(t, append(args, "--help")...)
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		if len(lines) > maxHelpLines {
			t.Errorf("%s --help has %d lines, more than %d", c.CommandPath(), len(lines), maxHelpLines)
		}
		for _, line := range lines {
			if len([]rune(line)) > helpColumns {
				t.Errorf("%s --help: longer than %d columns: %s", c.CommandPath(), helpColumns, line)
			}
		}
		for _, f := range commandFlags(c, false) {
			if !lists(lines, f.Flag) {
				t.Errorf("%s --help does not list --%s", c.CommandPath(), f.Name)
			}
		}
	}
}

// TestHelpFlagsListsAll checks that help flags COMMAND lists every flag of the command, and help flags those of all commands.
func TestHelpFlagsListsAll(t *testing.T) {
	everything := strings.Split(helpOutput(t, "help", "flags"), "\n")
	for _, c := range allCommands(NewRoot()) {
		args := strings.Fields(c.CommandPath())[1:]
		lines := strings.Split(helpOutput(t, append([]string{"help", "flags"}, args...)...), "\n")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			if len(args) > 0 && !lists(lines, f) { // without a command it lists those of all
				t.Errorf("help flags %s does not list --%s", c.CommandPath(), f.Name)
			}
			if !c.Hidden && !lists(everything, f) {
				t.Errorf("help flags does not list --%s of %s", f.Name, c.CommandPath())
			}
		})
	}
}

// lists reports whether a help text has a line for a flag.
func lists(lines []string, f *pflag.Flag) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line+" ", flagName(f)+" ")
	})
}

// TestHelpRefusesUnknownCommands checks that help names a command that it does not know.
func TestHelpRefusesUnknownCommands(t *testing.T) {
	for _, args := range [][]string{{"help", "nonsense"}, {"help", "flags", "nonsense"}, {"help", "run", "nonsense"}, {"man", "nonsense"}} {
		_, _, err := llmtop(t, args...)
		if err == nil || exit.Code(err) != exit.CodeUsage || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("llmtop %s: %v", strings.Join(args, " "), err)
		}
	}
}

// TestManPages checks that man writes the page of a command, and man --out one for each visible command.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	page := helpOutput(t, "man", "bench")
	for _, want := range []string{`.TH "LLMTOP-BENCH" 1 "1970-01-01"`, "--burstiness", "--config", `llmtop-bench-machine\fP(1)`} {
		if !strings.Contains(page, want) {
			t.Errorf("the man page of bench does not have %q:\n%.2000s", want, page)
		}
	}
	dir := t.TempDir()
	helpOutput(t, "man", "--out", dir)
	for _, c := range allCommands(NewRoot()) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		switch visible := c.IsAvailableCommand() || !c.HasParent(); {
		case visible && err != nil:
			t.Error(err)
		case visible:
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden && !bytes.Contains(page, []byte("--"+f.Name)) {
					t.Errorf("%s does not have --%s", name, f.Name)
				}
			})
		}
	}
}
