package host

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// Inspects reports whether the system has the readings of Sampler.Inspect.
const Inspects = true

// proportional returns the PSS of a process in bytes: its resident pages, each divided by the number of processes that
// map it.
func proportional(pid int) event.Reading {
	return parsePSS("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
}

func parsePSS(name string) event.Reading {
	raw, err := os.ReadFile(name)
	if err != nil {
		return readFailure(err)
	}
	if kb, ok := cgroup.Keyed(raw, "Pss"); ok {
		return measured(float64(kb) * 1024)
	}
	return event.Absent(event.NotReported)
}

// cachedFile returns the size of a file and how many bytes of it are in the page cache.
func cachedFile(name string) (size, cached event.Reading) {
	f, err := os.Open(name)
	if err != nil {
		return readFailure(err), readFailure(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return event.Absent(event.NotReported), event.Absent(event.NotReported)
	}
	size = measured(float64(info.Size()))
	pages, err := residentPages(f, info.Size())
	switch {
	case errors.Is(err, unix.EPERM):
		return size, event.Absent(event.NotPermitted)
	case err != nil:
		return size, event.Absent(event.NotReported)
	}
	return size, measured(min(float64(pages)*float64(os.Getpagesize()), size.V))
}

// residentPages counts the pages of a file in the page cache: with cachestat, or with mincore on kernels before 6.5.
func residentPages(f *os.File, size int64) (uint64, error) {
	var stat unix.Cachestat_t
	err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Len: uint64(size)}, &stat, 0)
	if err == nil {
		return stat.Cache, nil
	}
	if !errors.Is(err, unix.ENOSYS) {
		return 0, err
	}
	// For a file that is neither owned nor writable, the kernel reports all pages as resident.
	if err := unix.Access(f.Name(), unix.W_OK); err != nil {
		return 0, unix.EPERM
	}
	return mincore(f, size)
}

// windowBytes is how much of a file is mapped at a time for mincore: the result takes 256 KB.
const windowBytes = 1 << 30

func mincore(f *os.File, size int64) (pages uint64, err error) {
	answers := make([]byte, windowBytes/os.Getpagesize())
	for at := int64(0); at < size; at += windowBytes {
		n := int(min(windowBytes, size-at))
		window, err := unix.Mmap(int(f.Fd()), at, n, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return 0, err
		}
		_, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&window[0])), uintptr(n), uintptr(unsafe.Pointer(&answers[0])))
		if err := unix.Munmap(window); err != nil {
			return 0, err
		}
		if failed != 0 {
			return 0, failed
		}
		for _, a := range answers[:(n+os.Getpagesize()-1)/os.Getpagesize()] {
			pages += uint64(a & 1)
		}
	}
	return pages, nil
}
