// Package prompts finds out where a prompt stops to be the same as an earlier one, and why: what a prefix cache can
// reuse ends there. It keeps hashes of prompts, never their text.
package prompts

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
)

// Role is what a unit of a prompt is for.
type Role uint8

// The roles.
const (
	Other     Role = iota // a prompt without roles, or another role
	System                // instructions
	Tool                  // definition of a tool
	User                  // a message of the user, or a result of a tool
	Assistant             // an earlier answer
)

// Unit is a part of a prompt, in the order in which chat templates write them: instructions, tools, other messages.
type Unit struct {
	Place string // in the request, for example "messages[3].content"
	Role  Role
	Text  string
}

// Units splits the body of a request of the OpenAI, Anthropic or Ollama interface into the parts of its prompt; nil if it
// has none. Error: the body is not a JSON object of this shape.
func Units(body []byte) ([]Unit, error) {
	var r struct { // the fields of all supported interfaces that make up a prompt
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Calls   json.RawMessage `json:"tool_calls"`
		} `json:"messages"`
		System       json.RawMessage   `json:"system"` // Anthropic, Ollama
		Instructions json.RawMessage   `json:"instructions"`
		Tools        []json.RawMessage `json:"tools"`
		Prompt       json.RawMessage   `json:"prompt"`
		Input        json.RawMessage   `json:"input"` // responses
	}
	if err := clean.UnmarshalJSON(body, &r); err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	messages, at := r.Messages, "messages"
	var plain []Unit
	if len(messages) == 0 && len(r.Input) > 0 && clean.UnmarshalJSON(r.Input, &messages) == nil {
		at = "input"
	} else {
		plain = texts(plain, "input", Other, r.Input)
	}
	plain = texts(plain, "prompt", Other, r.Prompt)
	var system, others []Unit
	system = texts(system, "system", System, r.System)
	system = texts(system, "instructions", System, r.Instructions)
	for i, m := range messages {
		role, to := roleOf(m.Role), &others
		if role == System {
			to = &system
		}
		*to = texts(*to, fmt.Sprintf("%s[%d].content", at, i), role, m.Content)
		*to = texts(*to, fmt.Sprintf("%s[%d].tool_calls", at, i), role, m.Calls)
	}
	for i, t := range r.Tools {
		system = append(system, Unit{fmt.Sprintf("tools[%d]", i), Tool, string(t)})
	}
	return append(append(system, others...), plain...), nil
}

// Lines splits a prompt without roles into its lines.
func Lines(text string) (units []Unit) {
	for line := range strings.Lines(text) {
		units = append(units, Unit{Place: fmt.Sprintf("prompt, line %d", len(units)+1), Text: line})
	}
	return units
}

func roleOf(name string) Role {
	switch strings.ToLower(name) {
	case "system", "developer":
		return System
	case "user", "tool", "function":
		return User
	case "assistant", "model":
		return Assistant
	}
	return Other
}

// texts appends the text of a value: a string, the text of the parts of a list, or else the JSON itself.
func texts(units []Unit, place string, role Role, value json.RawMessage) []Unit {
	var (
		text  string
		parts []struct {
			Text *string `json:"text"`
		}
	)
	switch {
	case len(value) == 0 || string(value) == "null":
		return units
	case json.Unmarshal(value, &text) == nil:
		return append(units, Unit{place, role, text})
	case clean.UnmarshalJSON(value, &parts) == nil && len(parts) > 0:
		for i, p := range parts {
			if p.Text != nil {
				units = append(units, Unit{fmt.Sprintf("%s[%d].text", place, i), role, *p.Text})
			}
		}
		return units
	}
	return append(units, Unit{place, role, string(value)})
}
