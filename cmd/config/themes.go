package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/theme"
)

// Themes are the built-in themes and those of the user: the files NAME.toml in the folder themes beside the default
// config file.
type Themes struct {
	Own []*theme.Palette // ascending by name
	Bad map[string]error // why a file is no theme, by the name that it would have
}

// maxThemes bounds the number of theme files that are read.
const maxThemes = 100

// themeName is what a theme of the user may be called.
var themeName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,19}$`)

// ReadThemes reads the themes of the user. A folder that cannot be read has none.
func ReadThemes() Themes {
	if defaultPath() == "" {
		return Themes{}
	}
	return readThemes(filepath.Join(filepath.Dir(defaultPath()), "themes"))
}

func readThemes(folder string) (t Themes) {
	found, _ := os.ReadDir(folder)
	for _, entry := range found[:min(len(found), maxThemes)] {
		name, ok := strings.CutSuffix(entry.Name(), ".toml")
		if !ok {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		p, err := readTheme(path, name)
		if err == nil {
			t.Own = append(t.Own, p)
			continue
		}
		if t.Bad == nil {
			t.Bad = make(map[string]error)
		}
		t.Bad[clean.Name(name)] = clean.Error(fmt.Errorf("read %s: %w", files.ShortenHome(path), err))
	}
	return t
}

func readTheme(path, name string) (*theme.Palette, error) {
	if !themeName.MatchString(name) {
		return nil, errors.New("rename it: a theme has up to 20 lower-case letters, digits and -")
	}
	if _, ok := theme.ByName(name); ok {
		return nil, errors.New("rename it: a built-in theme has this name")
	}
	text, err := files.Read(path, files.MaxConfig)
	if err != nil {
		return nil, files.Cause(err)
	}
	return theme.Parse(name, text)
}

// Check returns an error for a name of the flag --theme that is no theme; "" is one.
func (t Themes) Check(name string) error {
	all := theme.Names(slices.Concat(theme.Palettes(), t.Own))
	switch {
	case name == "" || slices.Contains(all, name):
		return nil
	case t.Bad[name] != nil:
		return exit.Usagef("--theme %s: %w", name, t.Bad[name])
	}
	return exit.Usagef("--theme %q: must be one of %s", name, strings.Join(all, ", "))
}
