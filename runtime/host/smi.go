package host

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// nvidiaFields are the fields queried from nvidia-smi, in the order that parseNvidia expects.
const nvidiaFields = "index,name,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu,clocks.sm"

// smi reads NVIDIA GPUs from one long-running nvidia-smi that prints once a second, since starting it takes longer than
// reading. It is used where the driver's library cannot be loaded.
type smi struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the child has exited

	mu   sync.Mutex // guards the fields below
	gpus []event.GPU
	at   []time.Time // of the last line of each
	why  string      // why there will be no more lines; "" while the child runs
}

// openSMI starts nvidia-smi.
func openSMI(ctx context.Context) (gpuReader, error) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil, errNoGPU
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &smi{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.follow(exec.CommandContext(ctx, path, "--query-gpu="+nvidiaFields, "--format=csv,noheader,nounits", "-lms", "1000"))
	}()
	return w, nil
}

func (w *smi) close() {
	w.cancel()
	<-w.done
}

// follow reads the output of nvidia-smi until it ends.
func (w *smi) follow(cmd *exec.Cmd) {
	cmd.WaitDelay = gpuGrace
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = cmd.Stdout
		err = cmd.Start()
	}
	if err != nil {
		w.fail("nvidia-smi failed: " + err.Error())
		return
	}
	message := w.scan(out)
	if err := cmd.Wait(); err != nil && message == "" {
		message = err.Error()
	}
	w.fail("nvidia-smi failed: " + cmp.Or(message, "it ended"))
}

// scan stores the readings. It returns the last line that was not a reading, which is how nvidia-smi reports errors.
func (w *smi) scan(r io.Reader) (message string) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		index, gpu, ok := parseNvidia(lines.Text())
		if !ok {
			message = cmp.Or(strings.TrimSpace(lines.Text()), message)
			continue
		}
		w.mu.Lock()
		for len(w.gpus) <= index {
			w.gpus, w.at = append(w.gpus, event.GPU{Name: "NVIDIA GPU"}), append(w.at, time.Time{})
		}
		w.gpus[index], w.at[index] = gpu, time.Now()
		w.mu.Unlock()
	}
	return message
}

func (w *smi) fail(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gpus, w.at, w.why = nil, nil, why
}

// read implements gpuReader.
func (w *smi) read() ([]event.GPU, []event.GPUProcess, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why != "" {
		return nil, nil, errors.New(w.why)
	}
	gpus, last := unread(w.gpus), time.Time{}
	for i, at := range w.at {
		if time.Since(at) <= gpuSilence { // else it was removed
			gpus[i] = w.gpus[i]
		}
		if at.After(last) {
			last = at
		}
	}
	if len(gpus) > 0 && time.Since(last) > gpuSilence {
		return nil, nil, fmt.Errorf("no data from nvidia-smi since %s", last.Format(time.TimeOnly))
	}
	return gpus, nil, nil
}

// parseNvidia parses one line of nvidia-smi's CSV. Values that a GPU does not report are in brackets.
func parseNvidia(line string) (index int, gpu event.GPU, ok bool) {
	f := strings.Split(line, ",")
	if len(f) < 8 {
		return 0, gpu, false
	}
	i := quantity(f[0], 1)
	if !i.OK() || i.V != float64(int(i.V)) || i.V >= maxGPUs {
		return 0, gpu, false
	}
	tail := f[len(f)-6:] // the name may contain commas
	return int(i.V), event.GPU{
		Name:        strings.TrimSpace(strings.Join(f[1:len(f)-6], ",")),
		Util:        quantity(tail[0], 0.01),
		MemUsed:     quantity(tail[1], 1<<20),
		MemTotal:    quantity(tail[2], 1<<20),
		Power:       quantity(tail[3], 1),
		Temperature: quantity(tail[4], 1),
		Clock:       quantity(tail[5], 1e6),
	}, true
}
