//go:build nollama || !((linux || darwin || windows) && (amd64 || arm64))

package llama

import (
	"errors"

	"github.com/llmtop/llmtop/runtime"
)

// Built says whether this program can load llama.cpp's libraries at all.
const Built = false

// Engine cannot be had in this build.
type Engine struct{ runtime.Engine }

// Open says that this build has no such engine.
func Open(Options) (*Engine, error) {
	return nil, errors.New("open llama.cpp: this build of llmtop cannot load its libraries (build tag nollama, or another system than Linux, macOS and Windows on amd64 and arm64)")
}
