package cmd

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/runtime/engine/chat"
	"github.com/llmtop/llmtop/runtime/engine/child"
	"github.com/spf13/cobra"
)

// newChildCommand returns the hidden command that runs in the child process.
func newChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: child.Command, Hidden: true, Args: refuseArgs,
		RunE: func(*cobra.Command, []string) error {
			err := child.Serve(os.Stdin, console.Raw, local.PrepareChild)
			reported, ok := errors.AsType[child.Reported](err)
			if !ok {
				return err
			}
			if words := reported.Error(); strings.Contains(words, "\n") { // has a stack; the parent got its first line
				fmt.Fprintln(console.Err, words)
			}
			return exit.Outcome(exit.Code(reported.Err), nil)
		},
	}
}

// newTemplateCommand returns the hidden command that renders a chat template.
func newTemplateCommand() *cobra.Command {
	return &cobra.Command{
		Use: chat.Command, Hidden: true, Args: refuseArgs,
		RunE: func(*cobra.Command, []string) error { return chat.Serve(os.Stdin, console.Raw) },
	}
}
