package ui

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// wellFormed fails if a picture is not well-formed XML.
func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		switch _, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
}

// A screenshot of any view with any external text is a well-formed picture and the text of the screen.
func TestSnapshotOfEveryView(t *testing.T) {
	for _, sc := range viewtest.Scenes {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			s := sc.Make().Snapshot()
			for _, v := range allViews {
				a := open(s, theme.NoColour, false, 120, 36)
				var svg, text []byte
				a.saveScreen = func(picture, words []byte) (string, error) {
					svg, text = picture, words
					return "name.svg", nil
				}
				a.show(v)
				want := a.screen()
				a.press("s")
				wellFormed(t, svg)
				if string(text) != string(unpadded(want)) || strings.Contains(string(text), " \n") {
					t.Errorf("the text of view %d differs from the screen:\n%s", v, text)
				}
				holds(t, a, "wrote name.svg and .txt")
			}
		})
	}
}

func TestSnapshotIsWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	at := time.Date(2026, 11, 21, 9, 8, 7, 0, time.UTC)
	if err := os.WriteFile("llmtop-20261121-090807-2.txt", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"llmtop-20261121-090807.svg", "llmtop-20261121-090807-3.svg"} {
		path, err := saveScreen(at, []byte("<svg>"), []byte(want))
		if err != nil || path != want {
			t.Fatalf("wrote %q, %v, want %q", path, err, want)
		}
		for name, holds := range map[string]string{want: "<svg>", strings.TrimSuffix(want, "svg") + "txt": want} {
			got, err := os.ReadFile(name)
			if err != nil || string(got) != holds {
				t.Errorf("%s holds %q, %v", name, got, err)
			}
			info, err := os.Stat(name)
			if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	}
	if mine, err := os.ReadFile("llmtop-20261121-090807-2.txt"); err != nil || string(mine) != "mine" {
		t.Errorf("the existing file holds %q, %v", mine, err)
	}
	if all, err := filepath.Glob("*"); err != nil || len(all) != 5 {
		t.Errorf("the directory has %v, %v", all, err)
	}
}

// A failed write shows its error and leaves no file behind.
func TestSnapshotFails(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "gone")
	if err := savePair(filepath.Join(folder, "x"), ".svg", nil, ".txt", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
	a, k := withCalls(t)
	a.saveScreen = func(_, _ []byte) (string, error) { return "", errors.New("disk is full\x1b[31m") }
	a.press("s")
	holds(t, a, "write snapshot: disk is full�")
	k.err = errors.New("no requests")
	a.Update(a.press("S")())
	holds(t, a, "write report: no requests")
}

// A report gets its own name next to the screenshots of the same second; only its owner can read it.
func TestReportsAreSaved(t *testing.T) {
	t.Chdir(t.TempDir())
	at := time.Date(2026, 11, 21, 9, 8, 7, 0, time.UTC)
	for _, want := range []string{"llmtop-20261121-090807.json", "llmtop-20261121-090807-2.json"} {
		path, err := saveReport(at, []byte(want), nil)
		if err != nil || path != want {
			t.Fatalf("wrote %q, %v, want %q", path, err, want)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	path, err := saveReport(at, []byte("report"), []byte("timeline"))
	if want := "llmtop-20261121-090807-3.json and .perfetto.json"; err != nil || path != want {
		t.Errorf("wrote %q, %v, want %q", path, err, want)
	}
	if got, err := os.ReadFile("llmtop-20261121-090807-3.perfetto.json"); err != nil || string(got) != "timeline" {
		t.Errorf("timeline %q, %v", got, err)
	}
}
