package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newManCommand returns the hidden command that writes man pages for packages. Their date is that of $SOURCE_DATE_EPOCH, or today.
func newManCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "man [COMMAND]",
		Short: "Write man pages",
		Long: `man writes the man page of a command to standard output, or with --out the pages of all commands to
files in a folder.`,
		Example: `  llmtop man bench | man -l -
  llmtop man --out man`,
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			of, err := namedCommand(c.Root(), args)
			if err != nil {
				return err
			}
			date, err := manDate()
			if err != nil {
				return err
			}
			if dir == "" {
				return writeManPage(c.OutOrStdout(), of, date)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return exit.Usagef("write man pages: %w", err)
			}
			return writeManPages(dir, of, date)
		},
	}
	c.Flags().StringVar(&dir, "out", "", "write the pages of all commands to `FOLDER`")
	return c
}

// manDate returns the date of man pages. $SOURCE_DATE_EPOCH, in seconds since 1970, makes it reproducible.
func manDate() (time.Time, error) {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		return time.Now().UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, exit.Usagef("read $SOURCE_DATE_EPOCH %q: must be a number of seconds", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// writeManPages writes the pages of a command and of all visible commands below it, as COMMAND-SUBCOMMAND.1.
func writeManPages(dir string, c *cobra.Command, date time.Time) error {
	file, err := os.Create(filepath.Join(dir, manName(c)+".1"))
	if err != nil {
		return fmt.Errorf("write man page: %w", err)
	}
	if err := errors.Join(writeManPage(file, c, date), file.Close()); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeManPages(dir, sub, date); err != nil {
				return err
			}
		}
	}
	return nil
}

// manName is the name of a command's man page.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// writeManPage writes the page of a command: its description, all its flags in groups, examples, and the pages above and below it.
func writeManPage(w io.Writer, c *cobra.Command, date time.Time) error {
	var page strings.Builder
	fmt.Fprintf(&page, "%% %q 1 %q %q %q\n", strings.ToUpper(manName(c)), date.Format(time.DateOnly), "llmtop "+version.String(), "llmtop manual")
	fmt.Fprintf(&page, "# NAME\n%s \\- %s\n", manName(c), markdown(c.Short))
	fmt.Fprintf(&page, "# SYNOPSIS\n%s\n", markdown(c.UseLine()))
	if c.Long != "" {
		fmt.Fprintf(&page, "# DESCRIPTION\n%s\n", markdown(c.Long))
	}
	group := ""
	for _, f := range commandFlags(c, true) {
		if group == "" {
			fmt.Fprintln(&page, "# OPTIONS")
		}
		if f.group != group {
			group = f.group
			fmt.Fprintln(&page, "###", group)
		}
		fmt.Fprintf(&page, "%s\n: %s\n\n", manFlag(f.Flag), markdown(flagText(f)))
	}
	if c.HasExample() {
		fmt.Fprintf(&page, "# EXAMPLES\n\n%s\n\n", markdown(c.Example))
	}
	var also []string
	if c.HasParent() {
		also = append(also, "**"+manName(c.Parent())+"**(1)")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, "**"+manName(sub)+"**(1)")
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(&page, "# SEE ALSO\n%s\n", strings.Join(also, ", "))
	}
	if _, err := w.Write(md2man.Render([]byte(page.String()))); err != nil {
		return fmt.Errorf("write man page: %w", err)
	}
	return nil
}

// manFlag is a flag's name and value, as flagName, in Markdown.
func manFlag(f *pflag.Flag) string {
	text := strings.Replace(markdown(strings.TrimSpace(flagName(f))), "--"+f.Name, "**--"+f.Name+"**", 1)
	if f.Shorthand != "" {
		text = strings.Replace(text, "-"+f.Shorthand, "**-"+f.Shorthand+"**", 1)
	}
	return text
}

// markdownMarks are the characters that Markdown reads as marks.
var markdownMarks = regexp.MustCompile("[\\\\`*_{}\\[\\]<>#|~]")

// markdown returns a help text as Markdown. Indented lines stay as they are.
func markdown(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") {
			lines[i] = "    " + line
		} else {
			lines[i] = markdownMarks.ReplaceAllString(line, `\$0`)
		}
	}
	return strings.Join(lines, "\n")
}
