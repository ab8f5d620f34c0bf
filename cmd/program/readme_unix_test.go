//go:build unix

package program_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadmeCommands runs every llmtop command of the README on a terminal. It must end successfully by itself, or open
// the screen and end on q, or serve and end on Ctrl-C.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	path := binary(t)
	model, err := filepath.Abs("../../runtime/engine/native/demo/llmtop-demo-moe-q8_0.gguf")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(model, filepath.Join(dir, "model.gguf")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "prompt.txt"), []byte("Call me Ishmael."), 0o600); err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, line := range readmeBlocks(t, "sh") {
		if strings.HasPrefix(line, "llmtop ") || strings.Contains(line, "| llmtop ") {
			commands = append(commands, line)
		}
	}
	if len(commands) < 5 {
		t.Fatalf("README.md has %d llmtop commands in its sh blocks: %q", len(commands), commands)
	}
	for _, line := range commands {
		t.Run(line, func(t *testing.T) {
			command := exec.Command("sh", "-c", "trap : INT; "+line) // Ctrl-C is for llmtop, not for the shell
			command.Dir = dir
			command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Join(dir, "run"), "PATH="+filepath.Dir(path)+string(os.PathListSeparator)+os.Getenv("PATH"))
			p := startCommand(t, 120, 36, command)
			switch p.endsOrShows("q quit", "listening: ") {
			case "q quit":
				p.keys(t, "q")
			case "listening: ":
				p.keys(t, "\x03")
			}
			if code := p.exit(t); code != 0 {
				t.Errorf("exit code %d; it shows:\n%s", code, p.text())
			}
		})
	}
}

// TestReadmeConfig runs llmtop with the config file of the README.
func TestReadmeConfig(t *testing.T) {
	t.Parallel()
	path := binary(t)
	config := filepath.Join(t.TempDir(), "config.toml")
	lines := readmeBlocks(t, "toml")
	if len(lines) == 0 {
		t.Fatal("README.md shows no config file")
	}
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, "run", "--config", config, "-n", "1", "-p", "x").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// readmeBlocks returns the lines of the code blocks of the README in a language.
func readmeBlocks(t *testing.T, language string) (lines []string) {
	t.Helper()
	file, err := os.Open("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inside := false
	for scan := bufio.NewScanner(file); scan.Scan(); {
		line := scan.Text()
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```"+language
		case inside:
			lines = append(lines, line)
		}
	}
	return lines
}

// endsOrShows waits until the program ends, or shows one of texts, which it returns.
func (p *program) endsOrShows(texts ...string) string {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case <-p.done:
			return ""
		default:
		}
		screen := p.text()
		for _, text := range texts {
			if strings.Contains(screen, text) {
				return text
			}
		}
	}
	return ""
}
