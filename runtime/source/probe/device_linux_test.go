//go:build amd64 || arm64

package probe

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestOpenGPUs names the GPUs that a process has open, among three of the machine.
func TestOpenGPUs(t *testing.T) {
	root := t.TempDir()
	for bus, minor := range map[string]string{"0000:1a:00.0": "0", "0000:4b:00.0": "1", "0000:b3:00.0": "12"} {
		dir := filepath.Join(root, "proc/driver/nvidia/gpus", bus)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		text := "Model: \t\t NVIDIA H200\nIRQ:   \t\t 99\nBus Location: \t " + bus + "\nDevice Minor: \t " + minor + "\n"
		if err := os.WriteFile(filepath.Join(dir, "information"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		open []string
		want string
	}{
		"one":                 {[]string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia1", "/dev/nvidia1"}, "NVIDIA H200"},
		"two":                 {[]string{"/dev/nvidia0", "/dev/nvidia12"}, "2 x NVIDIA H200"},
		"none":                {[]string{"/dev/nvidiactl", "/dev/null"}, ""},
		"one without a name":  {[]string{"/dev/nvidia7", "/dev/nvidia0"}, ""},
		"not to be looked at": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fds := filepath.Join(root, "proc/42/fd")
			_ = os.RemoveAll(fds)
			if len(c.open) > 0 {
				if err := os.MkdirAll(fds, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for i, target := range c.open {
				if err := os.Symlink(target, filepath.Join(fds, string(rune('3'+i)))); err != nil {
					t.Fatal(err)
				}
			}
			if got := openGPUs(root, 42); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if startsGPU(root, 42) {
				t.Error("it starts a GPU that this machine does not have")
			}
			dev := filepath.Join(root, "proc/42/root/dev")
			if err := errors.Join(os.MkdirAll(dev, 0o700), os.WriteFile(filepath.Join(dev, "nvidiactl"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dev)
			if got, want := startsGPU(root, 42), len(c.open) == 0 || name == "none"; got != want {
				t.Errorf("starts its GPU: %t, want %t", got, want)
			}
		})
	}
}
