package cmd

import (
	"fmt"
	goruntime "runtime"

	"github.com/llmtop/llmtop/cmd/version"
	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the Go toolchain and the platform",
		Args:  refuseArgs,
		Run:   func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), versionLine()) },
	}
}

// versionLine returns what llmtop version and llmtop --version print.
func versionLine() string {
	return fmt.Sprintf("llmtop %s %s %s/%s", version.String(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
}
