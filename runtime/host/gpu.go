package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

const (
	maxGPUs = 64 // upper limit for indexes
	// gpuInterval is how often GPUs are read, and searched for while there is none.
	gpuInterval, gpuSearch = time.Second, 5 * time.Second
	// gpuSilence is the age at which a GPU reading is stale.
	gpuSilence = 5 * time.Second
	// gpuGrace is how long a driver may take to return at the end.
	gpuGrace = time.Second
)

// noGPU is the reason if no driver reports a GPU.
const noGPU = "no GPU"

// gpuReader reads the GPUs of one vendor. It must not be used concurrently.
type gpuReader interface {
	// read returns all GPUs, and the processes that use them if the driver lists them. With an error, the reader is closed
	// and the GPUs are searched for again.
	read() ([]event.GPU, []event.GPUProcess, error)
	close()
}

// vendors open the readers. The first one that finds a GPU is used: a GPU of a processor beside an NVIDIA GPU is left out.
var vendors = []func(ctx context.Context) (gpuReader, error){openNVIDIA, openAMD, openIntel, openApple}

// errNoGPU is returned by vendors of which there is no GPU.
var errNoGPU = errors.New(noGPU)

// gpuWatch keeps the last reading of every GPU. A driver may take long or hang, so it is called in a goroutine of its own.
type gpuWatch struct {
	done chan struct{} // closed at the end

	mu    sync.Mutex // guards the fields below
	gpus  []event.GPU
	users []event.GPUProcess
	at    time.Time // of the last reading
	why   string    // why gpus is empty
}

// watchGPUs reads GPUs until ctx ends.
func watchGPUs(ctx context.Context) *gpuWatch {
	w := &gpuWatch{done: make(chan struct{}), why: event.NotYet.String()}
	go func() {
		defer close(w.done)
		w.run(ctx)
	}()
	return w
}

func (w *gpuWatch) run(ctx context.Context) {
	var reader gpuReader
	defer func() {
		if reader != nil {
			reader.close()
		}
	}()
	for ctx.Err() == nil {
		wait := gpuInterval
		var err error
		if reader == nil {
			reader, err = findGPUs(ctx)
		}
		if err == nil {
			err = w.sample(reader)
		}
		if err != nil {
			if reader != nil {
				reader.close()
			}
			reader, wait = nil, gpuSearch
			w.fail(err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// findGPUs opens the reader of the first vendor with a GPU. Without any, the error is that of the first driver that failed.
func findGPUs(ctx context.Context) (gpuReader, error) {
	failed := errNoGPU
	for _, open := range vendors {
		reader, err := open(ctx)
		if err == nil {
			return reader, nil
		}
		if failed == errNoGPU {
			failed = err
		}
	}
	if failed == errNoGPU {
		failed = noReadings("/")
	}
	return nil, failed
}

func (w *gpuWatch) sample(r gpuReader) error {
	gpus, users, err := r.read()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gpus, w.users, w.at, w.why = gpus, users, time.Now(), event.NotYet.String()
	return nil
}

func (w *gpuWatch) fail(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gpus, w.users, w.why = nil, nil, why
}

// read sets the last readings, or the reason why none exist.
func (w *gpuWatch) read(h *event.Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.gpus) == 0:
		h.NoGPU = w.why
	case time.Since(w.at) > gpuSilence:
		h.NoGPU = fmt.Sprintf("no data from the GPU driver since %s", w.at.Format(time.TimeOnly))
	default:
		h.GPUs, h.GPUProcesses = w.gpus, w.users
	}
}

// wait waits until the driver has returned, but not for one that hangs.
func (w *gpuWatch) wait() {
	select {
	case <-w.done:
	case <-time.After(gpuGrace):
	}
}
