package native

import (
	_ "embed"
	"slices"
	"unsafe"
)

// demo is the model that is built into the program; demo/README.md is its card. A string stays in the program's read-only
// memory.
//
//go:embed demo/llmtop-demo-moe-q8_0.gguf
var demo string

// DemoModel returns the GGUF file of the built-in model, 12 MB, without a copy: it must not be written to.
func DemoModel() []byte { return unsafe.Slice(unsafe.StringData(demo), len(demo)) }

// DemoName is the file name of the built-in model.
const DemoName = "llmtop-demo-moe-q8_0.gguf"

// DemoPrompt is the beginning of a text that the built-in model continues.
type DemoPrompt struct {
	Kind string // text kind of the training data: "Go code", "scripture", …
	Text string
}

// demoPrompts alternates between the five kinds.
var demoPrompts = []DemoPrompt{
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

// DemoPrompts returns twenty prompts, four of each of the five kinds, alternating. The first five activate different
// experts.
func DemoPrompts() []DemoPrompt { return slices.Clone(demoPrompts) }
