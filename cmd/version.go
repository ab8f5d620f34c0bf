package cmd

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by release builds.
var version = ""

// versionString returns the version of the release, or what the Go toolchain recorded of the build.
func versionString() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the Go toolchain and the platform",
		Args:  refuseArgs,
		Run: func(c *cobra.Command, _ []string) {
			fmt.Fprintf(c.OutOrStdout(), "llmtop %s %s %s/%s\n",
				versionString(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
		},
	}
}
