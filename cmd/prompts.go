package cmd

import (
	"io"
	"strings"
)

// promptSources are the sources of prompts on the command line.
type promptSources struct {
	texts []string // -p
	files []string // -f
	stdin bool     // the argument -
}

// read returns the prompts in the order -p, -f, standard input. None may be empty.
func (p promptSources) read(stdin io.Reader) (prompts []string, err error) {
	for _, text := range p.texts {
		if text == "" {
			return nil, usagef("-p: the prompt is empty")
		}
		prompts = append(prompts, text)
	}
	for _, name := range p.files {
		raw, err := readFile(name, maxPromptBytes)
		text, err := prompt(raw, err, name)
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, text)
	}
	if p.stdin {
		raw, err := readAll(stdin, maxPromptBytes)
		text, err := prompt(raw, err, "standard input")
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, text)
	}
	return prompts, nil
}

// prompt returns the prompt in the contents of a file, without the trailing newline, or the error of reading it.
func prompt(raw []byte, err error, name string) (string, error) {
	text := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
	switch {
	case err != nil:
		return "", usagef("read prompt from %s: %w", name, err)
	case text == "":
		return "", usagef("read prompt from %s: the prompt is empty", name)
	}
	return text, nil
}
