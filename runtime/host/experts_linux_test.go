package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
	"github.com/llmtop/llmtop/runtime/engine/native/tensor"
)

// expertFile writes a model of 2 layers of 4 experts, of which the first layer is dense, with 64 KiB per expert and
// tensor, and returns its name.
func expertFile(t *testing.T) string {
	t.Helper()
	w := gguf.NewWriter(3).Set("general.architecture", "qwen3moe").Set("general.alignment", uint32(4096)).
		Set("qwen3moe.block_count", uint32(2)).Set("qwen3moe.expert_count", uint32(4)).Set("qwen3moe.expert_used_count", uint32(1))
	for _, part := range []string{"up", "down"} {
		w.Add(fmt.Sprintf("blk.1.ffn_%s_exps.weight", part), tensor.F32, []uint64{128, 128, 4}, make([]byte, 4*128*128*4))
	}
	name := filepath.Join(t.TempDir(), "experts.gguf")
	if err := w.WriteFile(name); err != nil {
		t.Fatal(err)
	}
	return name
}

// After the file was evicted, the experts that were read are those that the map shows as resident.
func TestCachedExperts(t *testing.T) {
	name := expertFile(t)
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const dense = event.UnknownShare
	check := func(when string, want ...uint8) {
		t.Helper()
		if layers, experts, got, err := CachedExperts(name); err != nil || layers != 2 || experts != 4 || !slices.Equal(got, want) {
			t.Errorf("%s: %d layers of %d experts: %v, %v; want %v", when, layers, experts, got, err, want)
		}
	}
	check("all written", dense, dense, dense, dense, 100, 100, 100, 100)
	model, err := gguf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	_, _, ranges := model.ExpertRanges()
	if err := model.Close(); err != nil || len(ranges) != 2 {
		t.Fatalf("%d ranges, %v; want those of two tensors", len(ranges), err)
	}
	if err := f.Sync(); err != nil { // only clean pages can be evicted
		t.Fatal(err)
	}
	for _, advice := range []int{unix.FADV_RANDOM, unix.FADV_DONTNEED} { // read nothing ahead, and evict the file
		if err := unix.Fadvise(int(f.Fd()), 0, 0, advice); err != nil {
			t.Fatal(err)
		}
	}
	if _, cached := cachedFile(name); cached.V > 64<<10 {
		t.Skip("the file system of the temporary folder keeps evicted pages, as tmpfs does")
	}
	for range 3 { // measuring reads no expert
		check("all evicted", dense, dense, dense, dense, 0, 0, 0, 0)
	}
	for _, read := range []struct{ tensor, expert int64 }{{0, 0}, {1, 0}, {0, 3}} {
		r := ranges[read.tensor]
		if _, err := f.ReadAt(make([]byte, r.Bytes), r.Offset+read.expert*r.Bytes); err != nil {
			t.Fatal(err)
		}
	}
	check("expert 0 read, and half of 3", dense, dense, dense, dense, 100, 0, 0, 50)
}

func TestCachedExpertsOfOtherFiles(t *testing.T) {
	for _, name := range []string{"(built in)", t.TempDir(), "experts_linux_test.go"} {
		if _, _, got, err := CachedExperts(name); got != nil || err == nil {
			t.Errorf("%s: %v, want an error", name, got)
		}
	}
}
