//go:build race

package cmd_test

func init() { buildFlags = append(buildFlags, "-race") }
