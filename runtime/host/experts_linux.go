package host

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// maxSweep bounds the time for the experts of one file; those that are left are unknown.
const maxSweep = 2 * time.Second

// CachedExperts returns the number of layers of a GGUF file and of experts per layer, and which share of each expert is in
// the page cache, in percent, indexed [layer*experts+expert]: 100 if all of it is, 0 if no page is, event.UnknownShare
// without experts in this file. It reads only the header, and nothing ahead of it, so that it does not change what it
// measures. It fails if the file has no experts or the system does not show its pages.
func CachedExperts(name string) (layers, experts int, shares []uint8, err error) {
	f, err := openRegular(name)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("open model: %w", err)
	}
	defer f.Close()
	layers, experts, ranges, err := expertRanges(f)
	switch {
	case err != nil:
		return 0, 0, nil, err
	case len(ranges) == 0:
		return 0, 0, nil, fmt.Errorf("read experts: %s has none", name)
	case !showsPages(f):
		return 0, 0, nil, fmt.Errorf("read page cache: the kernel shows it only for files that you may write: %s", name)
	}
	resident, pages := make([]uint64, layers*experts), make([]uint64, layers*experts)
	missed := make([]bool, layers)
	for began, i := time.Now(), 0; i < len(ranges); i++ {
		l := ranges[i].Layer
		missed[l] = missed[l] || time.Since(began) > maxSweep ||
			cachedRanges(f, ranges[i], resident[l*experts:][:experts], pages[l*experts:][:experts]) != nil
	}
	shares = make([]uint8, len(pages))
	for i, n := range pages {
		switch r := resident[i]; {
		case n == 0 || missed[i/experts]:
			shares[i] = event.UnknownShare
		case r > 0:
			shares[i] = uint8(max(100*r/n, 1))
		}
	}
	return layers, experts, shares, nil
}

// expertRanges reads the header of a GGUF file.
func expertRanges(f *os.File) (layers, experts int, ranges []gguf.ExpertRange, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, nil, fmt.Errorf("open model: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() == 0 || int64(int(info.Size())) != info.Size() {
		return 0, 0, nil, fmt.Errorf("open model: %s is not a file of a model", f.Name())
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("open model: %w", err)
	}
	defer func() { _ = unix.Munmap(data) }() // the result is complete
	if err := unix.Madvise(data, unix.MADV_RANDOM); err != nil {
		return 0, 0, nil, fmt.Errorf("open model: %w", err)
	}
	model, err := gguf.Parse(data)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	layers, experts, ranges = model.ExpertRanges()
	return layers, experts, ranges, nil
}
