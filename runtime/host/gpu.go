package host

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

const (
	maxGPUs = 64 // more than any machine holds
	// gpuSilence is how long a reading of a GPU is worth showing.
	gpuSilence = 5 * time.Second
	// gpuGrace is how long nvidia-smi may take to go after it was told to.
	gpuGrace = time.Second
)

// nvidiaFields are what nvidia-smi is asked for, in the order that parseNvidia expects.
const nvidiaFields = "index,name,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu,clocks.sm"

// gpuWatch keeps the last reading of every GPU. NVIDIA's come from one nvidia-smi that stays and prints once a second, since starting
// it takes longer than reading; AMD's from files of the kernel.
type gpuWatch struct {
	done chan struct{} // closed when the child, if any, has gone

	mu   sync.Mutex
	gpus []event.GPU
	at   time.Time // of the last line
	why  string    // gpus is empty because
}

// watchGPUs starts watching until ctx ends.
func watchGPUs(ctx context.Context) *gpuWatch {
	w := &gpuWatch{done: make(chan struct{}), why: noGPU}
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		close(w.done)
		return w
	}
	w.why = event.NotYet.String()
	go func() {
		defer close(w.done)
		w.follow(exec.CommandContext(ctx, path, "--query-gpu="+nvidiaFields, "--format=csv,noheader,nounits", "-lms", "1000"))
	}()
	return w
}

// follow reads what nvidia-smi prints until it ends.
func (w *gpuWatch) follow(cmd *exec.Cmd) {
	var complaint limited
	cmd.Stderr, cmd.WaitDelay = &complaint, gpuGrace
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.fail("nvidia-smi failed: " + err.Error())
		return
	}
	said := w.scan(out)
	if err := cmd.Wait(); err != nil && said == "" {
		said = firstLine(complaint.String(), err.Error())
	}
	w.fail("nvidia-smi failed: " + firstLine(said, "it ended"))
}

// scan keeps what the lines tell. The result is the last line that told nothing, which is how nvidia-smi reports errors.
func (w *gpuWatch) scan(r io.Reader) (said string) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		index, gpu, ok := parseNvidia(lines.Text())
		if !ok {
			said = lines.Text()
			continue
		}
		w.mu.Lock()
		for len(w.gpus) <= index {
			w.gpus = append(w.gpus, event.GPU{})
		}
		w.gpus[index], w.at = gpu, time.Now()
		w.mu.Unlock()
	}
	return said
}

func (w *gpuWatch) fail(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gpus, w.why = nil, why
}

// read is the last reading, or why there is none.
func (w *gpuWatch) read() ([]event.GPU, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.why == noGPU:
		if gpus := readAMD("/"); len(gpus) > 0 {
			return gpus, ""
		}
	case len(w.gpus) > 0 && time.Since(w.at) > gpuSilence:
		return nil, fmt.Sprintf("nvidia-smi says nothing since %s", w.at.Format(time.TimeOnly))
	case len(w.gpus) > 0:
		return append([]event.GPU(nil), w.gpus...), ""
	}
	return nil, w.why
}

func (w *gpuWatch) wait() { <-w.done }

// parseNvidia reads one line of nvidia-smi's CSV; what a GPU does not tell stands there in brackets.
func parseNvidia(line string) (index int, gpu event.GPU, ok bool) {
	f := strings.Split(line, ",")
	if len(f) < 8 {
		return 0, gpu, false
	}
	i := quantity(f[0], 1)
	if !i.OK() || i.V != float64(int(i.V)) || i.V >= maxGPUs {
		return 0, gpu, false
	}
	tail := f[len(f)-6:] // a name may have commas in it
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

// firstLine is the first line of text that holds anything, or else.
func firstLine(text, otherwise string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return otherwise
}

// limited keeps the beginning of what is written to it.
type limited struct{ bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	const most = 4 << 10
	if room := most - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
