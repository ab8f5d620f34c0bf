package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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
	// readShare is the part of a core that readings may take: where a reading of all GPUs of a vendor takes 0.75 ms, the next
	// one is later than after gpuInterval. The slow calls of NVML come on top (slowShare).
	readShare = 3. / 4000
	// gpuGrace is how long a driver may take to return at the end.
	gpuGrace = time.Second
)

// noGPU is the reason if no driver reports a GPU.
const noGPU = "no GPU"

// gpuReader reads the GPUs of one vendor. It must not be used concurrently.
type gpuReader interface {
	// read returns all GPUs, in the same order each time, and the processes that use them if the driver lists them. With an
	// error, the reader is closed and the GPUs are searched for again.
	read() ([]event.GPU, []event.GPUProcess, error)
	close()
}

// vendors open the readers.
var vendors = []func(ctx context.Context) (gpuReader, error){openNVIDIA, openAMD, openIntel, openApple}

// errNoGPU is returned by vendors of which there is no GPU.
var errNoGPU = errors.New(noGPU)

// gpuWatch keeps the last reading of every GPU. A driver may take long or hang, so each vendor is read in a goroutine of
// its own.
type gpuWatch struct {
	joined sync.WaitGroup
	began  time.Time

	mu    sync.Mutex // guards the fields below
	found []vendorGPUs
	order []int // indexes in found: a vendor found later does not move the GPUs before it
}

// vendorGPUs is the last reading of the GPUs of one vendor.
type vendorGPUs struct {
	gpus  []event.GPU
	users []event.GPUProcess
	at    time.Time // of the reading
	why   string    // reason why no GPU is listed
}

// watchGPUs reads GPUs until ctx ends.
func watchGPUs(ctx context.Context) *gpuWatch {
	w := &gpuWatch{began: time.Now(), found: make([]vendorGPUs, len(vendors))}
	for i, open := range vendors {
		w.joined.Go(func() { w.run(ctx, &w.found[i], open) })
	}
	return w
}

func (w *gpuWatch) run(ctx context.Context, v *vendorGPUs, open func(context.Context) (gpuReader, error)) {
	var reader gpuReader
	defer func() {
		if reader != nil {
			reader.close()
		}
	}()
	runtime.LockOSThread() // threadTime is that of the readings
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		var err error
		began := threadTime()
		if reader == nil {
			reader, err = open(ctx)
		}
		var now vendorGPUs
		if err == nil {
			now.gpus, now.users, err = reader.read()
		}
		if err != nil {
			if reader != nil {
				reader.close()
			}
			reader = nil
			if err == errNoGPU {
				err = noReadings("/")
			}
			now.why = err.Error()
		}
		w.keep(v, now)
		rest := gpuSearch
		if reader != nil {
			rest = gpuRest(time.Duration(threadTime() - began))
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}

// gpuRest returns the time to the next reading after one that took CPU time.
func gpuRest(took time.Duration) time.Duration {
	return min(max(gpuInterval, time.Duration(float64(took)/readShare)), gpuSilence-gpuInterval)
}

// keep keeps a reading. GPUs of a driver that fails stay without readings.
func (w *gpuWatch) keep(v *vendorGPUs, now vendorGPUs) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.at = time.Now(); now.why != "" {
		now.gpus = unread(v.gpus)
	}
	*v = now
}

// unread returns GPUs without their readings.
func unread(gpus []event.GPU) (out []event.GPU) {
	for i := range gpus {
		out = append(out, event.GPU{Name: gpus[i].Name, Unified: gpus[i].Unified})
	}
	return out
}

// read sets the last readings of all vendors, or the reason why none exist.
func (w *gpuWatch) read(h *event.Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	why, read := noGPU, false
	for i := range w.found {
		v := &w.found[i]
		switch {
		case v.at.IsZero() && time.Since(w.began) < gpuSilence:
			h.NoGPU = event.NotYet.String()
			return
		case len(v.gpus) > 0 && !slices.Contains(w.order, i):
			w.order = append(w.order, i)
		}
		switch {
		case why != noGPU:
		case v.why != "":
			why = v.why
		case len(v.gpus) == 0: // nvidia-smi has not printed a line
			why = event.NotYet.String()
		}
	}
	for _, i := range w.order {
		v := w.found[i]
		if v.why == "" && time.Since(v.at) > gpuSilence {
			why = fmt.Sprintf("no data from the GPU driver since %s", v.at.Format(time.TimeOnly))
			v.gpus, v.users, v.why = unread(v.gpus), nil, why
		}
		read = read || v.why == "" && len(v.gpus) > 0
		for _, u := range v.users {
			u.GPU += len(h.GPUs)
			h.GPUProcesses = append(h.GPUProcesses, u)
		}
		if v.users != nil && h.GPUProcesses == nil {
			h.GPUProcesses = []event.GPUProcess{}
		}
		h.GPUs = append(h.GPUs, v.gpus...)
	}
	if !read {
		h.GPUs, h.GPUProcesses, h.NoGPU = nil, nil, why
	}
}

// wait waits until the drivers have returned, but not for one that hangs.
func (w *gpuWatch) wait() {
	done := make(chan struct{})
	go func() {
		w.joined.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(gpuGrace):
	}
}
