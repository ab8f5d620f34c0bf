// Package demo holds the model that is built into the program, and prompts that suit it. Its card
// is README.md, the recipe that made it is in train.
package demo

import (
	_ "embed"
	"slices"
	"unsafe"
)

// model is a string so that it stays in the program's read-only memory.
//
//go:embed llmtop-demo-moe-q8_0.gguf
var model string

// Model is the GGUF file, 12 MB, in place: it must not be written to.
func Model() []byte { return unsafe.Slice(unsafe.StringData(model), len(model)) }

// Name is the file name of the model.
const Name = "llmtop-demo-moe-q8_0.gguf"

// Prompt is the beginning of a text for the model to continue.
type Prompt struct {
	Kind string // of text that the model was trained on: "Go code", "scripture", …
	Text string
}

// prompts take the five kinds in turn.
var prompts = []Prompt{
	{"Go code", "package main\n\nimport ("},
	{"scripture", "And it came to pass"},
	{"novel", "Call me Ishmael."},
	{"speech", "Fellow citizens of the Senate"},
	{"dictionary", "whale (noun):"},

	{"Go code", "// Read reads up to len(p) bytes into p."},
	{"scripture", "In the beginning"},
	{"novel", "The old man stood upon the quarter-deck"},
	{"speech", "The state of our Union"},
	{"dictionary", "music (noun):"},

	{"Go code", "func (b *Buffer) Write(p []byte) (n int, err error) {"},
	{"scripture", "Thus saith the LORD"},
	{"novel", "Now, when the whale"},
	{"speech", "During the past year the Congress"},
	{"dictionary", "bright (adjective):"},

	{"Go code", "type Server struct {"},
	{"scripture", "Blessed is the man that"},
	{"novel", "It was a cloudy, sultry afternoon;"},
	{"speech", "I recommend to the Congress"},
	{"dictionary", "quickly (adverb):"},
}

// Prompts are twenty prompts, four of each of the five kinds, the kinds in turn. The first five
// light different experts.
func Prompts() []Prompt { return slices.Clone(prompts) }
