//go:build nollama || !((linux || darwin || windows) && (amd64 || arm64))

package llama

import (
	"errors"

	"github.com/llmtop/llmtop/runtime/engine"
)

// Built reports whether this program can load llama.cpp's libraries.
const Built = false

// Engine is not available in this build.
type Engine struct{ engine.Engine }

// Open returns an error: this build has no such engine.
func Open(Options) (*Engine, error) {
	return nil, errors.New("open llama.cpp: this build of llmtop cannot load its libraries (build tag nollama, or another system than Linux, macOS and Windows on amd64 and arm64)")
}
