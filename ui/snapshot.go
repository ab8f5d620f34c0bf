package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/llmtop/llmtop/ui/sanitize"
)

// sameSecond bounds the snapshots of one second.
const sameSecond = 100

// snapshot writes what is on the screen as a picture and as text.
func (a *app) snapshot() {
	if a.w <= 0 {
		return
	}
	a.draw()
	a.dirty = true // the word about it is not in it
	path, err := a.save(a.grid.SVG(a.skin.Palette), unpadded(a.grid.Plain()))
	if err != nil {
		err = fmt.Errorf("write snapshot: %w", err)
	}
	a.report(err, "wrote "+path+" and .txt")
}

// writeReport has the report of the session written.
func (a *app) writeReport() {
	path, err := a.session.Actions.Report()
	a.report(err, "wrote "+sanitize.Line(path))
}

// unpadded is text without the spaces at the ends of its lines.
func unpadded(text string) []byte {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return []byte(strings.Join(lines, "\n"))
}

// saveScreen writes a picture and its text into the working folder, named after the time, and returns the name of the picture. Nothing
// that is there is overwritten: within one second the names are numbered.
func saveScreen(at time.Time, svg, text []byte) (path string, err error) {
	name := "llmtop-" + at.Format("20060102-150405")
	for i := 1; i <= sameSecond; i++ {
		base := name
		if i > 1 {
			base = fmt.Sprintf("%s-%d", name, i)
		}
		err = savePair(base, svg, text)
		if !errors.Is(err, fs.ErrExist) {
			return base + ".svg", err
		}
	}
	return "", err
}

// savePair writes both files, or neither.
func savePair(base string, svg, text []byte) error {
	if err := saveNew(base+".svg", svg); err != nil {
		return err
	}
	if err := saveNew(base+".txt", text); err != nil {
		_ = os.Remove(base + ".svg") // it is the error of the other that counts
		return err
	}
	return nil
}

// saveNew writes a file that must not be there yet, for its owner alone: a screen may show prompts. What could be written only in part
// is taken away.
func saveNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // the write has failed already
	}
	return err
}
