package host

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/host/cgroup"
)

// Inspects reports whether the system has the readings of an Inspector.
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

// fileOf returns the path of a file that a process names so: that process may have another root or working directory.
func fileOf(pid int, name string) string {
	if seen := seenBy(pid, name); pid != 0 {
		if _, err := os.Stat(seen); err == nil {
			return seen
		}
	}
	return name
}

// cachedFile returns the size of a file and how many bytes of it are in the page cache.
func cachedFile(name string) (size, cached event.Reading) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
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
	if !showsPages(f) {
		return 0, unix.EPERM
	}
	return mincore(f, size)
}

// showsPages reports whether mincore shows which pages of a file are resident: of a file that is neither owned nor
// writable, the kernel reports all pages as resident.
func showsPages(f *os.File) bool { return unix.Access(f.Name(), unix.W_OK) == nil }

// windowBytes is how much of a file is mapped at a time for mincore: the result takes 256 KB.
const windowBytes = 1 << 30

func mincore(f *os.File, size int64) (pages uint64, err error) {
	answers := make([]byte, windowBytes/os.Getpagesize())
	for at := int64(0); at < size; at += windowBytes {
		found, err := residentIn(f, at, int(min(windowBytes, size-at)), answers)
		if err != nil {
			return 0, err
		}
		pages += countResident(found)
	}
	return pages, nil
}

// residentIn returns for each page of a part of a file whether it is in the page cache, in the lowest bit. at is the
// start of a page. It uses the memory of answers.
func residentIn(f *os.File, at int64, n int, answers []byte) ([]byte, error) {
	window, err := unix.Mmap(int(f.Fd()), at, n, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	answers = answers[:(n+os.Getpagesize()-1)/os.Getpagesize()]
	_, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&window[0])), uintptr(n), uintptr(unsafe.Pointer(&answers[0])))
	if err := unix.Munmap(window); err != nil {
		return nil, err
	}
	if failed != 0 {
		return nil, failed
	}
	return answers, nil
}

func countResident(answers []byte) (pages uint64) {
	for _, a := range answers {
		pages += uint64(a & 1)
	}
	return pages
}

// cachedRanges adds to the pages of each expert those of its part of a tensor, and to resident those in the page cache.
func cachedRanges(f *os.File, r gguf.ExpertRange, resident, pages []uint64) error {
	page := int64(os.Getpagesize())
	answers := make([]byte, windowBytes/int(page))
	for e := range pages {
		from, end := r.Offset+int64(e)*r.Bytes, r.Offset+int64(e+1)*r.Bytes
		for from -= from % page; from < end; from += windowBytes {
			found, err := residentIn(f, from, int(min(windowBytes, end-from)), answers)
			if err != nil {
				return err
			}
			resident[e], pages[e] = resident[e]+countResident(found), pages[e]+uint64(len(found))
		}
	}
	return nil
}
