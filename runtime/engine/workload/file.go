package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
)

// Prompt is one line of a prompt file.
type Prompt struct {
	Prompt    string `json:"prompt"`
	Label     string `json:"label"`      // prompt kind
	Group     string `json:"group"`      // LoRA adapter or tenant
	MaxTokens *int   `json:"max_tokens"` // nil: the default of the benchmark
}

// Limits of a prompt file.
const (
	maxFile    = 256 << 20 // bytes
	maxLine    = 16 << 20  // bytes
	maxPrompts = 1 << 20
)

// ReadPrompts reads a prompt file: one JSON object per line; empty lines are skipped. Errors name the line and the
// field.
func ReadPrompts(r io.Reader) ([]Prompt, error) {
	bounded := &io.LimitedReader{R: r, N: maxFile + 1}
	lines := bufio.NewScanner(bounded)
	lines.Buffer(nil, maxLine)
	var out []Prompt
	n := 0
	for lines.Scan() {
		n++
		if bounded.N == 0 {
			return nil, fmt.Errorf("longer than %d MiB", maxFile>>20)
		}
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
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: longer than %d MiB", n+1, maxLine>>20)
	} else if err != nil {
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
				return p, fmt.Errorf("must be an object, not a %s", clean.Name(wrong.Value))
			}
			kind := "text"
			if wrong.Type.Kind() == reflect.Int {
				kind = "a whole number"
			}
			return p, fmt.Errorf("field %s: must be %s, not a %s", clean.Quote(wrong.Field), kind, clean.Name(wrong.Value))
		}
		return p, errors.New(clean.Cut(strings.TrimPrefix(err.Error(), "json: "), clean.MaxMessage))
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
