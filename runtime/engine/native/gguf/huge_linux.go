package gguf

import "golang.org/x/sys/unix"

// wantHugePages asks for a mapping by huge pages, as far as the kernel reads the file from now on: with small pages,
// translating addresses slows reading the weights down by a fifth. A kernel without them ignores this.
func wantHugePages(mapped []byte) { _ = unix.Madvise(mapped, unix.MADV_HUGEPAGE) }
