// Package version knows the version of this program.
package version

import "runtime/debug"

// release is set by release builds.
var release = ""

// String returns the version of the release, or what the Go toolchain recorded of the build.
func String() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
