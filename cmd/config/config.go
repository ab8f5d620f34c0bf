// Package config reads the config file, which sets flags and alert rules.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/clean"
)

// Use makes a command read the config file before it runs, for the flags that are not set and for alerts, and then run
// check. known are the flags that the file may set.
func Use(c *cobra.Command, alerts *[]alert.Rule, known *pflag.FlagSet, check func() error) {
	path := c.Flags().String("config", "", "config `FILE` (default "+files.ShortenHome(defaultPath())+")")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		named := *path != ""
		if err := apply(cmp.Or(*path, defaultPath()), named, alerts, known, c.Flags()); err != nil {
			return err
		}
		return check()
	}
}

// defaultPath returns the default config file: llmtop/config.toml in the user's configuration folder ($XDG_CONFIG_HOME
// on Linux).
func defaultPath() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "llmtop", "config.toml")
}

// apply sets the flags that the command line left alone from the TOML file at path. Its keys are the names of the
// flags in known. A missing file is an error only if the user named it. A key that is in known but not among the flags
// of the running command is skipped, so that one file serves all commands. Its alert rules go to alerts.
func apply(path string, named bool, alerts *[]alert.Rule, known, running *pflag.FlagSet) error {
	if path == "" {
		return nil
	}
	values := map[string]any{}
	raw, err := files.Read(path, files.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err == nil {
		_, err = toml.Decode(string(raw), &values)
	}
	if err != nil {
		return exit.Usagef("read config %s: %w", path, firstLine(err))
	}
	if *alerts, err = takeAlerts(values); err != nil {
		return exit.Usagef("read config %s: %w", path, err)
	}
	for _, key := range sortedKeys(values) {
		if known.Lookup(key) == nil {
			return exit.Usagef("read config %s: unknown key %s; known keys: %s", path, clean.Quote(key), strings.Join(FlagNames(known), ", "))
		}
		flag := running.Lookup(key)
		if flag == nil || flag.Changed {
			continue
		}
		if err := flag.Value.Set(fmt.Sprint(values[key])); err != nil {
			return exit.Usagef("read config %s: %s = %s: %w", path, key, clean.Name(fmt.Sprint(values[key])), exit.ValueError(flag, err))
		}
	}
	return nil
}

// takeAlerts moves the alert rules out of the values of a file. Its error names table and field.
func takeAlerts(values map[string]any) ([]alert.Rule, error) {
	raw, ok := values["alert"]
	delete(values, "alert")
	if !ok {
		return nil, nil
	}
	rules, ok := raw.([]map[string]any)
	if !ok {
		return nil, errors.New("alert: must be tables with the head [[alert]]")
	}
	return alert.ParseRules(rules)
}

func sortedKeys(table map[string]any) []string { return slices.Sorted(maps.Keys(table)) }

// firstLine returns the first line of an error; TOML errors may quote several lines of the file.
func firstLine(err error) error {
	text, _, cut := strings.Cut(err.Error(), "\n")
	if cut {
		err = errors.New(text)
	}
	return clean.Error(err)
}

// FlagNames returns the names of the flags of a set, sorted.
func FlagNames(set *pflag.FlagSet) (names []string) {
	set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
