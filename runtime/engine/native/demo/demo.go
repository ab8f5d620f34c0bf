// Package demo contains the model that is built into the program, and prompts for it. README.md is the model card; the
// training scripts are in train.
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

// Model returns the GGUF file, 12 MB, without a copy: it must not be written to.
func Model() []byte { return unsafe.Slice(unsafe.StringData(model), len(model)) }

// Name is the file name of the model.
const Name = "llmtop-demo-moe-q8_0.gguf"

// Prompt is the beginning of a text that the model continues.
type Prompt struct {
	Kind string // text kind of the training data: "Go code", "scripture", …
	Text string
}

// prompts alternates between the five kinds.
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

// Prompts returns twenty prompts, four of each of the five kinds, alternating. The first five activate different
// experts.
func Prompts() []Prompt { return slices.Clone(prompts) }
