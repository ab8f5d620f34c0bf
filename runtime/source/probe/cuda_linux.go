//go:build amd64 || arm64

package probe

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// cudaCalls are the functions of CUDA that are probed, those that a process calls most often first: they are detached first.
var cudaCalls = []struct {
	library, name string // library: begin of its name
	purpose       string // what is counted
	entry, back   string // programs at the entry and the return; "": none
}{
	{cudart, "cudaLaunchKernel", launches, cudaProgLaunchEntry, ""},
	{cudart, "cudaLaunchKernelExC", launches, cudaProgLaunchexEntry, ""},
	{cudart, "cudaLaunchCooperativeKernel", launches, cudaProgLaunchEntry, ""},
	{cudart, "cudaGraphLaunch", graphs, cudaProgGraphEntry, ""},
	{cudart, "cudaMemcpyAsync", copies, cudaProgCopyEntry, cudaProgCopyReturn},
	{cudart, "cudaMemcpy2DAsync", copies, cudaProgCopyrowsEntry, cudaProgCopyReturn},
	{cudart, "cudaMemcpy", copies, cudaProgCopynowEntry, cudaProgCopyReturn},
	{cudart, "cudaMemcpyPeerAsync", peers, cudaProgPeerEntry, ""},
	{cudart, "cudaStreamWaitEvent", joins, cudaProgJoinEntry, ""},
	{cudart, "cudaStreamSynchronize", waits, cudaProgWaitEntry, cudaProgWaitReturn},
	{cudart, "cudaDeviceSynchronize", waits, cudaProgWaitallEntry, cudaProgWaitReturn},
	{cudart, "cudaEventSynchronize", events, cudaProgWaitallEntry, cudaProgEventReturn},
	{libcuda, "cuLaunchKernel", launches, cudaProgCulaunchEntry, ""},
	{libcuda, "cuLaunchKernelEx", launches, cudaProgLaunchexEntry, ""},
	{libcuda, "cuGraphLaunch", graphs, cudaProgGraphEntry, ""},
	{libcuda, "cuMemcpyHtoDAsync_v2", toDevice, cudaProgHtodEntry, cudaProgCopyReturn},
	{libcuda, "cuMemcpyHtoD_v2", toDevice, cudaProgHtodnowEntry, cudaProgCopyReturn},
	{libcuda, "cuMemcpyDtoHAsync_v2", fromDevice, cudaProgDtohEntry, cudaProgCopyReturn},
	{libcuda, "cuMemcpyDtoH_v2", fromDevice, cudaProgDtohnowEntry, cudaProgCopyReturn},
	{libcuda, "cuMemcpyDtoDAsync_v2", onDevice, cudaProgDtodEntry, ""},
	{libcuda, "cuMemcpyDtoD_v2", onDevice, cudaProgDtodEntry, ""},
	{libcuda, "cuMemcpyAsync", anywhere, cudaProgAnyEntry, ""},
	{libcuda, "cuMemcpy", anywhere, cudaProgAnyEntry, ""},
	{libcuda, "cuStreamWaitEvent", joins, cudaProgJoinEntry, ""},
	{libcuda, "cuStreamSynchronize", waits, cudaProgWaitEntry, cudaProgWaitReturn},
	{libcuda, "cuCtxSynchronize", waits, cudaProgWaitallEntry, cudaProgWaitReturn},
	{libcuda, "cuEventSynchronize", events, cudaProgWaitallEntry, cudaProgEventReturn},
}

const (
	cudart  = "libcudart.so" // calls libcuda, so one of both is probed
	libcuda = "libcuda.so"

	launches   = "kernels launched on the GPU"
	graphs     = "graphs launched on the GPU"
	copies     = "copies to and from the GPU"
	peers      = "copies between GPUs"
	toDevice   = "copies to the GPU"
	fromDevice = "copies from the GPU"
	onDevice   = "copies on the GPU"
	anywhere   = "copies whose direction is unknown"
	joins      = "streams that wait for each other"
	waits      = "time waiting for the GPU"
	events     = "time waiting for a part of the GPU's work"
)

// Limits of the counting of calls. On a machine with an H200, a call takes 0.5 µs longer, and each of these costs the
// process nothing that could be measured.
const (
	cudaTrap   = time.Microsecond       // that a call takes longer, and its return
	cudaBudget = .01                    // share of the time that counting may take
	cudaWindow = 250 * time.Millisecond // in which calls are counted at least
	cudaSecond = time.Second / 2        // in which they are counted as long as that is within the budget; half a lease
)

// findCUDA adds the functions of CUDA in the files that a process maps: of libcudart, or of libcuda without it.
func (t *Target) findCUDA(maps []mapping) {
	for _, library := range []string{cudart, libcuda} {
		for _, m := range maps {
			if !m.executable || !strings.HasPrefix(filepath.Base(m.name), library) {
				continue
			}
			file, err := elf.Open(m.path)
			if err != nil {
				continue
			}
			symbols, _ := file.DynamicSymbols()
			_ = file.Close()
			for _, c := range cudaCalls {
				exported := func(s elf.Symbol) bool { return s.Name == c.name && s.Section != elf.SHN_UNDEF }
				if c.library == library && slices.ContainsFunc(symbols, exported) {
					t.CUDA = append(t.CUDA, Symbol{Name: c.name, Purpose: c.purpose, File: m.name, path: m.path, entry: c.entry, back: c.back})
				}
			}
		}
		if len(t.CUDA) > 0 {
			return
		}
	}
}

// cuda counts the calls of CUDA that a process makes.
type cuda struct {
	target  *Target
	objects *ebpf.Collection
	calls   *toggle

	mu      sync.Mutex    // guards the fields below
	rates   event.Process // only the readings that are counted here
	windows []window      // in which all calls are counted
}

func openCUDA(t *Target) (_ *cuda, err error) {
	c := &cuda{target: t}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	spec, err := loadCuda()
	if err == nil {
		c.objects, err = ebpf.NewCollection(spec)
	}
	if err != nil {
		return nil, fmt.Errorf("load probes of CUDA: %w", err)
	}
	var probes []switched
	for _, s := range t.CUDA {
		probes = append(probes, switched{c.objects.Programs[s.entry], s, false}) // before the return: that finds when the wait began
		if s.back != "" {
			probes = append(probes, switched{c.objects.Programs[s.back], s, true})
		}
	}
	c.set(&event.Process{}, event.Absent(event.NotYet))
	c.calls, err = newToggle(probes, t.PID)
	return c, err
}

func (c *cuda) close() error {
	var err error
	if c.calls != nil {
		err = c.calls.Close()
	}
	if c.objects != nil {
		c.objects.Close()
	}
	return err
}

// run counts until ctx ends: always if that costs little, else in windows.
func (c *cuda) run(ctx context.Context) error {
	sleep := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	for ctx.Err() == nil && c.target.Alive() != 0 { // another process may get its number
		if err := c.attach(true); err != nil {
			return err
		}
		last, at := c.read(), time.Now()
		now, span := last, time.Duration(0)
		for most := cudaWindow; ; most = cudaSecond {
			sleep(most)
			now, span = c.read(), time.Since(at)
			if ctx.Err() != nil || c.target.Alive() == 0 || span > time.Duration(pickLease) || now.cost(&last) > time.Duration(cudaBudget*float64(span)) {
				break
			}
			c.publish(now.since(&last, span), 1)
			if err := c.attach(false); err != nil {
				return err
			}
			last, at = now, at.Add(span)
		}
		if err := c.detach(); err != nil {
			return err
		}
		end := c.read()
		pause := time.Duration(float64(end.cost(&last)+switchCost) / cudaBudget)
		if ctx.Err() == nil && span <= time.Duration(pickLease) { // else they may have been detached
			c.publish(now.since(&last, span), span.Seconds()/(span+pause).Seconds())
		}
		sleep(pause)
	}
	return nil
}

// attach attaches the probes, at the begin of a window, or renews their lease.
func (c *cuda) attach(begins bool) error {
	asked, err := monotonic()
	if err != nil {
		return err
	}
	if err := c.calls.set(true); err != nil {
		return err
	}
	at, err := monotonic()
	c.mu.Lock()
	defer c.mu.Unlock()
	if begins {
		if len(c.windows) == keptWindows {
			c.windows = slices.Delete(c.windows, 0, 1)
		}
		c.windows = append(c.windows, window{from: at})
	}
	c.windows[len(c.windows)-1].to = asked + pickLease
	return err
}

// detach detaches the probes, at the end of a window.
func (c *cuda) detach() error {
	at, err := monotonic()
	if err != nil {
		return err
	}
	c.mu.Lock()
	last := &c.windows[len(c.windows)-1]
	last.to = min(last.to, at)
	c.mu.Unlock()
	return c.calls.set(false)
}

// counts reports whether all calls were counted between two times, in ns of CLOCK_MONOTONIC, and whether a single thread
// launches.
func (c *cuda) counts(from, to int64) (all, alone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all = slices.ContainsFunc(c.windows, func(w window) bool { return from >= w.from && to <= w.to })
	return all, c.read().Launchers <= 1
}

func (c *cuda) read() (all cudaCounters) {
	_ = c.objects.Variables[cudaVarCounters].Get(&all)
	return all
}

// cost returns how much longer the calls since before took.
func (c *cudaCounters) cost(before *cudaCounters) time.Duration {
	hits := c.Launches - before.Launches + c.Graphs - before.Graphs + 2*(c.Syncs-before.Syncs)
	for kind := range c.Copies {
		hits += 2 * (c.Copies[kind] - before.Copies[kind])
	}
	return time.Duration(hits) * cudaTrap
}

// since returns the rates and shares of a time. Bytes have no direction if that of a copy is unknown; where several
// threads launch, a gap of one of them does not say that the GPU had nothing to do.
func (c *cudaCounters) since(before *cudaCounters, span time.Duration) *event.Process {
	per := func(n uint64) event.Reading { return event.MeasuredValue(float64(n) / span.Seconds()) }
	share := func(ns uint64) event.Reading { return event.MeasuredValue(float64(ns) / float64(span)) }
	p := &event.Process{
		Launches: per(c.Launches - before.Launches), Graphs: per(c.Graphs - before.Graphs),
		ToGPU: per(c.Bytes[1] - before.Bytes[1]), FromGPU: per(c.Bytes[2] - before.Bytes[2]),
		GPUWait: share(c.Waited - before.Waited), Copying: share(c.Copying[0] + c.Copying[1] - before.Copying[0] - before.Copying[1]), LaunchGap: share(c.Gaps - before.Gaps),
	}
	const unknown = 4
	if c.Copies[unknown] > before.Copies[unknown] {
		p.ToGPU, p.FromGPU, p.Copying = event.Absent(event.NotReported), event.Absent(event.NotReported), event.Absent(event.NotReported)
	}
	if c.Launchers > 1 {
		p.LaunchGap = event.Absent(event.NotReported)
	}
	return p
}

// publish sets the readings that samples of the process get. counted is the share of the time in which calls are counted.
func (c *cuda) publish(p *event.Process, counted float64) { c.set(p, event.MeasuredValue(counted)) }

func (c *cuda) set(p *event.Process, counted event.Reading) {
	p.Counted = counted
	if !counted.OK() {
		for _, r := range cudaReadings(p) {
			*r = counted
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rates = *p
}

func cudaReadings(p *event.Process) []*event.Reading {
	return []*event.Reading{&p.Launches, &p.Graphs, &p.ToGPU, &p.FromGPU, &p.GPUWait, &p.Copying, &p.LaunchGap, &p.Counted}
}

// words says of which part of the time calls are counted, once that is known.
func (c *cuda) words() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := c.rates.Counted; {
	case !n.OK():
		return "calls of CUDA not counted yet, "
	case n.V < 1:
		return "calls of CUDA counted in " + metric.Percent(n.V) + " of the time, "
	}
	return "all calls of CUDA counted, "
}

// In returns a sink that adds what is counted of the process's calls of CUDA to its samples.
func (p *Probe) In(sink event.Sink) event.Sink {
	if p.cuda == nil {
		return sink
	}
	return event.SinkFunc(func(e event.Event) {
		if h, ok := e.Data.(*event.Host); ok && e.Kind == event.KindHost {
			here := *h
			p.cuda.mu.Lock()
			for i, from := range cudaReadings(&p.cuda.rates) {
				*cudaReadings(&here.Engine)[i] = *from
			}
			p.cuda.mu.Unlock()
			e.Data = &here
		}
		sink.Emit(e)
	})
}

// runCUDA watches a process that does not link llama.cpp: its requests are not seen.
func (p *Probe) runCUDA(ctx context.Context, sink event.Sink) error {
	info := event.EngineInfo{
		Name: filepath.Base(p.target.Program), PID: p.target.PID, Epoch: p.clock.Epoch(), State: event.EngineReady,
		Device: event.Device{Name: p.target.gpu}, Caps: event.CapHost,
	}
	for was := (event.EngineInfo{}); ; {
		if info.Reason = p.cuda.words() + "requests not seen, probes in process " + strconv.Itoa(p.target.PID); p.target.Alive() == 0 {
			info.State, info.Reason = event.EngineStopped, "the process has ended"
		}
		if info != was {
			was = info
			current := info
			sink.Emit(event.Event{Kind: event.KindEngine, At: p.clock.Now(), Layer: -1, Data: &current})
		}
		if info.State == event.EngineStopped {
			<-ctx.Done()
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}
