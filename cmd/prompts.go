package cmd

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxPromptBytes bounds what is read as one prompt: far more than any context holds.
const maxPromptBytes = 64 << 20

// promptSources are the places on the command line that prompts come from.
type promptSources struct {
	texts []string // -p
	files []string // -f
	stdin bool     // the argument "-"
}

// read gathers the prompts in the order -p, -f, standard input. Every one must have text in it.
func (p promptSources) read(stdin io.Reader) (prompts []string, err error) {
	for _, text := range p.texts {
		if text == "" {
			return nil, usagef("-p: the prompt is empty")
		}
		prompts = append(prompts, text)
	}
	for _, name := range p.files {
		text, err := readPromptFile(name)
		if err != nil {
			return nil, usageError{err}
		}
		prompts = append(prompts, text)
	}
	if p.stdin {
		text, err := readPrompt(stdin, "standard input")
		if err != nil {
			return nil, usageError{err}
		}
		prompts = append(prompts, text)
	}
	return prompts, nil
}

func readPromptFile(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("read prompt: %w", err)
	}
	defer file.Close()
	return readPrompt(file, name)
}

// readPrompt reads one prompt; the newline that ends a text file is not part of it.
func readPrompt(r io.Reader, name string) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxPromptBytes+1))
	if err != nil {
		return "", fmt.Errorf("read prompt from %s: %w", name, err)
	}
	if len(raw) > maxPromptBytes {
		return "", fmt.Errorf("read prompt from %s: longer than %d MiB", name, maxPromptBytes>>20)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	if text == "" {
		return "", fmt.Errorf("read prompt from %s: the prompt is empty", name)
	}
	return text, nil
}
