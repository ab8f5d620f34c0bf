package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/ui"
)

// configPath is where the config file lies when --config does not say: llmtop/config.toml in the user's
// configuration folder ($XDG_CONFIG_HOME on Linux).
func configPath() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "llmtop", "config.toml")
}

// applyConfig sets each of known's flags that the command line left alone to its value in the TOML file at path. The keys are
// the names of the flags. A file that does not exist is an error only if the user named it. A key that belongs to known but
// not to the running command's flags is passed over, so that one file serves every command. What is no setting of one line goes to tables.
func applyConfig(path string, named bool, tables *tables, known, running *pflag.FlagSet) error {
	if path == "" {
		return nil
	}
	values := map[string]any{}
	if _, err := toml.DecodeFile(path, &values); err != nil {
		if errors.Is(err, fs.ErrNotExist) && !named {
			return nil
		}
		return usagef("read config %s: %w", path, firstLine(err))
	}
	if err := tables.take(values); err != nil {
		return usagef("read config %s: %w", path, err)
	}
	for _, key := range sortedKeys(values) {
		if known.Lookup(key) == nil {
			return usagef("read config %s: unknown key %q; known keys: %s", path, key, strings.Join(flagNames(known), ", "))
		}
		flag := running.Lookup(key)
		if flag == nil || flag.Changed {
			continue
		}
		if err := flag.Value.Set(fmt.Sprint(values[key])); err != nil {
			return usagef("read config %s: %s = %v: %w", path, key, values[key], err)
		}
	}
	return nil
}

// tables are what a config file holds besides the settings that are flags.
type tables struct {
	layouts map[string]string // by name
	alerts  []alert.Rule
}

// take takes them out of a file's values. The error names table and field.
func (t *tables) take(values map[string]any) error {
	if err := t.takeAlerts(values); err != nil {
		return err
	}
	return t.takeLayouts(values)
}

func (t *tables) takeAlerts(values map[string]any) (err error) {
	raw, ok := values["alert"]
	delete(values, "alert")
	if !ok {
		return nil
	}
	rules, ok := raw.([]map[string]any)
	if !ok {
		return errors.New("alert: must be tables with the head [[alert]]")
	}
	t.alerts, err = alert.ParseRules(rules)
	return err
}

func (t *tables) takeLayouts(values map[string]any) error {
	t.layouts = map[string]string{}
	raw, ok := values["layouts"]
	delete(values, "layouts")
	if !ok {
		return nil
	}
	table, ok := raw.(map[string]any)
	if !ok {
		return fmt.Errorf("layouts: must be a table of names and layouts, as in [layouts] mine = %q", ui.LayoutSyntax)
	}
	for _, name := range sortedKeys(table) {
		text, ok := table[name].(string)
		if !ok {
			return fmt.Errorf("layouts.%.40s: must be a text like %q", name, ui.LayoutSyntax)
		}
		if _, err := ui.ParseLayout(text); err != nil {
			return fmt.Errorf("layouts.%.40s: %w", name, err)
		}
		t.layouts[name] = text
	}
	return nil
}

func sortedKeys(table map[string]any) []string { return slices.Sorted(maps.Keys(table)) }

// firstLine cuts an error's text to its first line; TOML errors may quote several lines of the file.
func firstLine(err error) error {
	text, _, cut := strings.Cut(err.Error(), "\n")
	if !cut {
		return err
	}
	return errors.New(text)
}

// flagNames lists the names of a set's flags in alphabetical order.
func flagNames(set *pflag.FlagSet) (names []string) {
	set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
