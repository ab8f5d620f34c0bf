package host

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// apple reads the GPU of Apple's processors from ioreg, which needs no privilege. Its power and clock are available to a
// private library only.
type apple struct{ limit event.Reading }

func openApple(ctx context.Context) (gpuReader, error) {
	if runtime.GOOS != "darwin" {
		return nil, errNoGPU
	}
	var r apple
	if out, err := exec.CommandContext(ctx, "sysctl", "-n", "iogpu.wired_limit_mb").Output(); err == nil {
		if r.limit = quantity(string(out), 1<<20); r.limit.V == 0 { // the system's default, which it does not report
			r.limit = event.Absent(event.NotReported)
		}
	}
	return foundGPUs(r)
}

func (apple) close() {}

// read implements gpuReader.
func (r apple) read() ([]event.GPU, []event.GPUProcess, error) {
	out, err := exec.Command("ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("ioreg failed: %w", err)
	}
	gpus := parseIORegistry(string(out))
	if len(gpus) == 0 {
		return nil, nil, errNoGPU
	}
	for i := range gpus {
		gpus[i].MemTotal = r.limit
	}
	return gpus, nil, nil
}

// parseIORegistry reads the accelerators in ioreg's text: a line with their class each, then properties such as
// `"model" = "Apple M4"` and `"PerformanceStatistics" = {"Device Utilization %"=5,"In use system memory"=643219456}`.
func parseIORegistry(text string) (gpus []event.GPU) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "+-o ") && len(gpus) < maxGPUs {
			gpus = append(gpus, event.GPU{
				Name: "Apple GPU", Unified: true,
				Power: event.Absent(event.NotPermitted), Clock: event.Absent(event.NotPermitted),
			})
		}
		name, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok || len(gpus) == 0 {
			continue
		}
		g := &gpus[len(gpus)-1]
		switch name {
		case `"model"`:
			if model, err := strconv.Unquote(value); err == nil {
				g.Name = model
			}
		case `"PerformanceStatistics"`:
			for field := range strings.SplitSeq(strings.Trim(value, "{}"), ",") {
				key, number, _ := strings.Cut(field, "=")
				switch key {
				case `"Device Utilization %"`:
					g.Util = quantity(number, 0.01)
				case `"In use system memory"`:
					g.MemUsed = quantity(number, 1)
				}
			}
		}
	}
	return gpus
}
