package screen

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/llmtop/llmtop/ui"
)

func TestChoicesAreRemembered(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep", "llmtop")
	want := ui.Choices{Theme: "light", Window: "10 s", Sort: "ttft", Reverse: true}
	saveChoices(folder, ui.Choices{Theme: "dark"})
	saveChoices(folder, want)
	if got := loadChoices(folder); got != want {
		t.Errorf("recalled %+v, want %+v", got, want)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d files (%v), want the one", len(entries), err)
	}
	info, err := entries[0].Info()
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v", info.Mode())
	}
}

// TestRememberingNeverFails checks that a file that cannot be read or written is ignored.
func TestRememberingNeverFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"", file, filepath.Join(file, "below"), filepath.Join(t.TempDir(), "none")} {
		if got := loadChoices(folder); got != (ui.Choices{}) {
			t.Errorf("recalled %+v from %q", got, folder)
		}
	}
	saveChoices("", ui.Choices{Theme: "dark"})
	saveChoices(file, ui.Choices{Theme: "dark"})
}

func FuzzChoices(f *testing.F) {
	for _, seed := range []string{`{"theme":"light","reverse":true}`, `{"theme":7}`, `[]`, ``, `{"theme":"\u001b[2J"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := parseChoices(raw)
		folder := t.TempDir()
		saveChoices(folder, c)
		if again := loadChoices(folder); len(raw) < maxStateBytes/8 && again != c {
			t.Errorf("%+v was remembered as %+v", c, again)
		}
	})
}

// The terminal decides the theme unless the user has chosen one; a recorded screen depends on its flags only.
func TestWhoDecidesTheTheme(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"XDG_STATE_HOME", "LocalAppData", "HOME"} {
		t.Setenv(name, folder)
	}
	detects := func(v View) bool {
		v.layout, v.fps = "default", 10
		return v.Config().DetectTheme
	}
	if !detects(View{}) || !detects(View{noRemember: true}) {
		t.Error("the terminal does not decide at first")
	}
	if detects(View{Theme: "dark"}) || detects(View{Camera: svgCamera(t)}) {
		t.Error("the terminal decides against a flag or in a recorded screen")
	}
	saveChoices(stateFolder(), ui.Choices{Theme: "contrast"})
	if detects(View{}) || !detects(View{noRemember: true}) {
		t.Error("the terminal decides against the remembered theme, or does not with --no-remember")
	}
}
