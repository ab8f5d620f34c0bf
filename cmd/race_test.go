//go:build race

package cmd_test

func init() { buildFlags, buildEnv = append(buildFlags, "-race"), nil }
