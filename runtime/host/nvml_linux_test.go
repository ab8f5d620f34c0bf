//go:build !nollama && (amd64 || arm64)

package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// library is a fake NVML with one GPU whose counter grows by 250 mJ with each reading.
const library = `
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned int *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **device) { *device = (void *)(long)(i + 40); return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj) {
	static unsigned long long total = 123456789012ULL;
	if ((long)device != 40) return 2;
	*mj = total += 250;
	return 0;
}
`

// TestNVMLIsCalled calls the functions of a shared library with their declared arguments and results.
func TestNVMLIsCalled(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to build a shared library")
	}
	folder := t.TempDir()
	source, lib := filepath.Join(folder, "nvml.c"), filepath.Join(folder, "nvml.so")
	if err := os.WriteFile(source, []byte(library), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", lib, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g, missing := gpuEnergy(lib)
	if g == nil {
		t.Fatal(missing)
	}
	if joules, ok := g.stop(); !ok || joules != 0.25 {
		t.Errorf("%v J, %v, want 0.25", joules, ok)
	}
	if _, missing := gpuEnergy(filepath.Join(folder, "none.so")); missing != "no NVML" {
		t.Errorf("without a library: %q", missing)
	}
}
