package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
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

// wroteMsg says where a report has been written.
type wroteMsg struct {
	path string
	err  error
}

// reporting is what writes the report of the moment on show. It may run beside the screen.
func (a *app) reporting() func() wroteMsg {
	make, save, s := a.session.Actions.Report, a.saveReport, a.snap
	return func() (done wroteMsg) {
		json, err := make(s)
		if err == nil {
			done.path, err = save(json)
		}
		if err != nil {
			done.err = fmt.Errorf("write report: %w", err)
		}
		return done
	}
}

// unpadded is text without the spaces at the ends of its lines.
func unpadded(text string) []byte {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return []byte(strings.Join(lines, "\n"))
}

// saveScreen writes a picture and its text into the working folder, and returns the name of the picture.
func saveScreen(at time.Time, svg, text []byte) (path string, err error) {
	base, err := numbered(at, func(base string) error { return savePair(base, svg, text) })
	return base + ".svg", err
}

// saveReport writes a report into the working folder and returns its name.
func saveReport(at time.Time, json []byte) (path string, err error) {
	base, err := numbered(at, func(base string) error { return saveNew(base+".json", json) })
	return base + ".json", err
}

// numbered saves what belongs together under a name after the time. Nothing that is there is overwritten: within one second the names are
// numbered.
func numbered(at time.Time, save func(base string) error) (base string, err error) {
	name := "llmtop-" + at.Format("20060102-150405")
	for i := 1; i <= sameSecond; i++ {
		if base = name; i > 1 {
			base = fmt.Sprintf("%s-%d", name, i)
		}
		if err = save(base); !errors.Is(err, fs.ErrExist) {
			return base, err
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
