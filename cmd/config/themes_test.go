package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/cmd/exit"
)

// The themes of a user: good ones are offered, others keep their reason, and a chosen one is an error of the user.
func TestReadThemes(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "themes")
	if got := readThemes(folder); len(got.Own) != 0 || len(got.Bad) != 0 {
		t.Errorf("without a folder: %+v", got)
	}
	if err := os.MkdirAll(filepath.Join(folder, "folder.toml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"solar.toml": `accent = "#268bd2"`, "paper.toml": `base = "light"`, "odd.toml": `acent = "#268bd2"`,
		"dark.toml": "", "No.toml": "", "notes.txt": "not a theme",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := readThemes(folder)
	if len(got.Own) != 2 || got.Own[0].Name != "paper" || got.Own[1].Name != "solar" {
		t.Errorf("themes %+v", got.Own)
	}
	for name, want := range map[string]string{
		"odd": "odd.toml: unknown key \"acent\"", "dark": "a built-in theme has this name", "No": "lower-case letters", "folder": "folder.toml: ",
	} {
		if err := got.Bad[name]; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if len(got.Bad) != 4 {
		t.Errorf("%d bad themes", len(got.Bad))
	}
	for name, want := range map[string]string{"odd": "unknown key", "none": "must be one of dark, light, contrast, colorblind, paper, solar"} {
		err := got.Check(name)
		if err == nil || !strings.Contains(err.Error(), want) || exit.Code(err) != exit.CodeUsage {
			t.Errorf("--theme %s: %v", name, err)
		}
	}
	for _, name := range []string{"", "dark", "solar"} {
		if err := got.Check(name); err != nil {
			t.Errorf("--theme %s: %v", name, err)
		}
	}
}
