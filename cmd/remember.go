package cmd

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/llmtop/llmtop/ui"
)

// stateFile is what the screen remembers from one time to the next, in the user's folder for such.
const stateFile = "screen.json"

// mostState bounds that file, in bytes; a longer one is not llmtop's.
const mostState = 16 << 10

// stateFolder is where programs keep what is neither configuration nor data: $XDG_STATE_HOME, or what stands for it on this system;
// "" if there is no such place.
func stateFolder() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "llmtop")
	}
	switch runtime.GOOS {
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "llmtop")
		}
		return ""
	case "darwin":
		if dir, err := os.UserConfigDir(); err == nil { // ~/Library/Application Support
			return filepath.Join(dir, "llmtop")
		}
		return ""
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".local", "state", "llmtop")
}

// recalled is what was chosen the last time; nothing if that cannot be read.
func recalled(folder string) (c ui.Choices) {
	if folder == "" {
		return c
	}
	file, err := os.Open(filepath.Join(folder, stateFile))
	if err != nil {
		return c
	}
	defer file.Close() // read only
	raw, err := io.ReadAll(io.LimitReader(file, mostState+1))
	if err != nil {
		return c
	}
	return parseChoices(raw)
}

// parseChoices reads what remember has written; nothing of what is not like that.
func parseChoices(raw []byte) (c ui.Choices) {
	if len(raw) > mostState || json.Unmarshal(raw, &c) != nil {
		return ui.Choices{}
	}
	return c
}

// remember keeps what was chosen, whole or not at all and for the user alone. What cannot be written is not remembered, which is no reason
// to bother anybody.
func remember(folder string, c ui.Choices) {
	if folder == "" {
		return
	}
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil || os.MkdirAll(folder, 0o700) != nil {
		return
	}
	file, err := os.CreateTemp(folder, stateFile+".*") // only its owner may read it
	if err != nil {
		return
	}
	_, err = file.Write(append(raw, '\n'))
	if file.Close() != nil || err != nil || os.Rename(file.Name(), filepath.Join(folder, stateFile)) != nil {
		_ = os.Remove(file.Name())
	}
}
