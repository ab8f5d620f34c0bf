package screen

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"

	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/ui"
)

// stateFile is the file with the state of the screen, in stateFolder.
const stateFile = "screen.json"

// maxStateBytes is the maximum size of stateFile; llmtop writes no longer one.
const maxStateBytes = 16 << 10

// stateFolder returns the folder for state: $XDG_STATE_HOME or its counterpart on this system, "" if absent.
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

// loadChoices returns the saved state of the screen, the zero value if it cannot be read.
func loadChoices(folder string) (c ui.Choices) {
	if folder == "" {
		return c
	}
	raw, err := files.Read(filepath.Join(folder, stateFile), maxStateBytes)
	if err != nil {
		return c
	}
	return parseChoices(raw)
}

// parseChoices parses stateFile, and returns the zero value for invalid contents.
func parseChoices(raw []byte) (c ui.Choices) {
	if json.Unmarshal(raw, &c) != nil {
		return ui.Choices{}
	}
	return c
}

// saveChoices saves the state of the screen atomically, readable only by the user. It ignores errors: nothing depends
// on the file.
func saveChoices(folder string, c ui.Choices) {
	if folder == "" {
		return
	}
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil || os.MkdirAll(folder, 0o700) != nil {
		return
	}
	file, err := os.CreateTemp(folder, stateFile+".*") // readable only by its owner
	if err != nil {
		return
	}
	_, err = file.Write(append(raw, '\n'))
	if file.Close() != nil || err != nil || os.Rename(file.Name(), filepath.Join(folder, stateFile)) != nil {
		_ = os.Remove(file.Name())
	}
}
