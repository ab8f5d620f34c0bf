//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// Types of devices. Source: ggml-backend.h.
const (
	deviceCPU        = 0
	deviceGPU        = 1
	deviceIntegrated = 2
)

// device is a device that can hold weights.
type device struct {
	name, about string
	free        uintptr // bytes
}

// gpus returns the devices that the library will use besides the CPU: discrete GPUs, or an integrated GPU if there is
// no other.
func (l *library) gpus() (found []device) {
	for _, wanted := range []int32{deviceGPU, deviceIntegrated} {
		for i := range l.devices() {
			if d := l.device(i); l.deviceType(d) == wanted {
				var free, total uintptr
				l.deviceMemory(d, &free, &total)
				found = append(found, device{l.deviceName(d), l.deviceAbout(d), free})
			}
		}
		if len(found) > 0 {
			break
		}
	}
	return found
}

// deviceInfo describes the device that the engine computes on.
func (e *Engine) deviceInfo() event.Device {
	if e.offloaded() == 0 {
		return event.Device{Name: "CPU", Kernels: e.lib.kernels, Host: true, Threads: e.opt.Threads}
	}
	d := event.Device{Name: e.devices[0].about, Kernels: e.devices[0].name, Threads: e.opt.Threads}
	if n := len(e.devices); n > 1 {
		d.Name = fmt.Sprintf("%d x %s", n, d.Name)
	}
	return d
}

// backendLine matches the log line with the file that a backend was loaded from.
var backendLine = regexp.MustCompile(`loaded CPU backend from (.+)`)

// noteBackend extracts the variant of the CPU backend from a log line: "zen4" of "libggml-cpu-zen4.so".
func (l *library) noteBackend(line string) {
	m := backendLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	name := filepath.Base(strings.TrimSpace(m[1]))
	name = strings.TrimPrefix(strings.TrimSuffix(name, filepath.Ext(name)), "lib")
	if variant := strings.TrimPrefix(name, "ggml-cpu-"); variant != name {
		l.kernels = variant
	}
}
