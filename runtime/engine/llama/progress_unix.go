//go:build !nollama && (linux || darwin) && (amd64 || arm64)

package llama

import (
	"sync"

	"github.com/ebitengine/purego"
)

// progressWorks reports whether the library can call back with a float.
const progressWorks = true

// progressCallback is progressTo as a C callback.
var progressCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(share float32, _ uintptr) uintptr {
		if progressTo == nil || progressTo(float64(share)) {
			return 1
		}
		return 0
	})
})
