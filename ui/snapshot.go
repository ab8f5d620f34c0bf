package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// maxPerSecond bounds the files saved in one second.
const maxPerSecond = 100

// unpadded returns text without trailing spaces in its lines.
func unpadded(text string) []byte {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return []byte(strings.Join(lines, "\n"))
}

// saveScreen writes a picture and its text into the working directory, and returns the name of the picture.
func saveScreen(at time.Time, svg, text []byte) (path string, err error) {
	base, err := saveNumbered(at, func(base string) error { return savePair(base, ".svg", svg, ".txt", text) })
	return base + ".svg", err
}

// timelineSuffix ends the names of timelines.
const timelineSuffix = ".perfetto.json"

// saveReport writes a report, and a timeline unless it is nil, into the working directory. It returns their names.
func saveReport(at time.Time, json, timeline []byte) (path string, err error) {
	base, err := saveNumbered(at, func(base string) error {
		if timeline == nil {
			return saveNew(base+".json", json)
		}
		return savePair(base, ".json", json, timelineSuffix, timeline)
	})
	if timeline == nil {
		return base + ".json", err
	}
	return base + ".json and " + timelineSuffix, err
}

// saveNumbered calls save with a base name made from the time. It never overwrites a file: names of the same second get
// a number.
func saveNumbered(at time.Time, save func(base string) error) (base string, err error) {
	name := "llmtop-" + at.Format("20060102-150405")
	for i := 1; i <= maxPerSecond; i++ {
		if base = name; i > 1 {
			base = fmt.Sprintf("%s-%d", name, i)
		}
		if err = save(base); !errors.Is(err, fs.ErrExist) {
			return base, err
		}
	}
	return "", err
}

// savePair writes two files whose names differ in their suffixes, or neither.
func savePair(base, suffix string, data []byte, suffix2 string, data2 []byte) error {
	if err := saveNew(base+suffix, data); err != nil {
		return err
	}
	if err := saveNew(base+suffix2, data2); err != nil {
		_ = os.Remove(base + suffix) // report the first error
		return err
	}
	return nil
}

// saveNew creates a new file that only its owner can read, because a screen may show prompts. It removes a partly
// written file.
func saveNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // report the write error
	}
	return err
}
