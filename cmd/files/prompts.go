package files

import (
	"io"
	"strings"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/spf13/pflag"
)

// Prompts are the sources of prompts on the command line.
type Prompts struct {
	Texts []string // -p
	Files []string // -f
	Stdin bool     // the argument -
}

// Bind adds the flags.
func (p *Prompts) Bind(set *pflag.FlagSet) {
	set.StringArrayVarP(&p.Texts, "prompt", "p", nil, "prompt `TEXT` (repeatable)")
	set.StringArrayVarP(&p.Files, "file", "f", nil, "`FILE` with one prompt (repeatable)")
}

// Read returns the prompts in the order -p, -f, standard input. None may be empty.
func (p *Prompts) Read(stdin io.Reader) (prompts []string, err error) {
	for _, text := range p.Texts {
		if text == "" {
			return nil, exit.Usagef("-p: the prompt is empty")
		}
		prompts = append(prompts, text)
	}
	for _, name := range p.Files {
		raw, err := Read(name, maxPrompt)
		text, err := prompt(raw, err, name)
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, text)
	}
	if p.Stdin {
		raw, err := ReadAll(stdin, maxPrompt)
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
		return "", exit.Usagef("read prompt from %s: %w", name, err)
	case text == "":
		return "", exit.Usagef("read prompt from %s: the prompt is empty", name)
	}
	return text, nil
}
