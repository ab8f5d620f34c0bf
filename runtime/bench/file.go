package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Prompt is one line of a file of prompts.
type Prompt struct {
	Prompt    string `json:"prompt"`
	Label     string `json:"label"`      // what kind of prompt
	Group     string `json:"group"`      // LoRA adapter or tenant
	MaxTokens *int   `json:"max_tokens"` // nil: as the benchmark says
}

// The bounds of a file of prompts.
const (
	maxLine    = 16 << 20 // bytes
	maxPrompts = 1 << 20
)

// ReadPrompts reads a file of prompts, a JSON object a line; empty lines are passed over. Errors name the line and the field.
func ReadPrompts(r io.Reader) ([]Prompt, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var out []Prompt
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		p, err := readPrompt(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if out = append(out, p); len(out) > maxPrompts {
			return nil, fmt.Errorf("line %d: more than %d prompts", n, maxPrompts)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no prompts")
	}
	return out, nil
}

func readPrompt(line []byte) (Prompt, error) {
	var p Prompt
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			if wrong.Field == "" {
				return p, fmt.Errorf("must be an object, not a %s", wrong.Value)
			}
			kind := "text"
			if wrong.Type.Kind() == reflect.Int {
				kind = "a whole number"
			}
			return p, fmt.Errorf("field %q: must be %s, not a %s", wrong.Field, kind, wrong.Value)
		}
		return p, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return p, fmt.Errorf("more than one value")
	}
	switch {
	case p.Prompt == "":
		return p, fmt.Errorf(`field "prompt": must not be empty`)
	case p.MaxTokens != nil && *p.MaxTokens < 1:
		return p, fmt.Errorf(`field "max_tokens": %d: must be 1 or more`, *p.MaxTokens)
	}
	return p, nil
}
