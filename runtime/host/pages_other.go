//go:build !linux

package host

import "github.com/llmtop/llmtop/profiler/event"

// Inspects says whether the system tells what Sampler.Inspect is for.
const Inspects = false

// proportional is the PSS of a process, which other systems do not tell.
func proportional(int) event.Reading { return event.Absent(event.NotReported) }

// cachedFile is the size of a file and how much of it is in the page cache, which other systems do not tell.
func cachedFile(string) (size, cached event.Reading) {
	return event.Absent(event.NotReported), event.Absent(event.NotReported)
}
