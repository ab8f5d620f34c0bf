// Command values writes the built-in model, a GGUF file, to standard output.
package main

import (
	"os"

	"github.com/llmtop/llmtop/runtime/engine/native"
)

func main() {
	if _, err := os.Stdout.Write(native.DemoModel()); err != nil {
		os.Exit(1)
	}
}
