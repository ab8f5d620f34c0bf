// Command values writes the built-in model, a GGUF file, to standard output.
package main

import (
	"os"

	"github.com/llmtop/llmtop/runtime/engine/native/demo"
)

func main() {
	if _, err := os.Stdout.Write(demo.Model()); err != nil {
		os.Exit(1)
	}
}
