//go:build amd64 || arm64

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// Probe watches a process.
type Probe struct {
	target  *Target
	clock   engine.Clock
	objects probesObjects
	links   []link.Link
	ring    *ringbuf.Reader
	record  ringbuf.Record
	model   event.Model
	ends    func(int32) bool // whether a token ends a text
}

// The ring buffer is read every pollEvery while there are records, and every maxPoll while there are none. A probe wakes
// nobody.
const (
	pollEvery = 20 * time.Millisecond
	maxPoll   = 100 * time.Millisecond
)

// Open attaches probes to a process. Close detaches them; so does the kernel when llmtop ends.
func Open(t *Target, clock engine.Clock) (_ *Probe, err error) {
	p := &Probe{target: t, clock: clock}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("allow memory for probes: %w", err)
	}
	spec, err := loadProbes()
	if err != nil {
		return nil, fmt.Errorf("read probes: %w", err)
	}
	if err := spec.Variables[probesVarTarget].Set(uint32(t.PID)); err != nil {
		return nil, fmt.Errorf("set process: %w", err)
	}
	if err := spec.LoadAndAssign(&p.objects, nil); err != nil {
		return nil, fmt.Errorf("load probes: %w", err)
	}
	if err := p.attach(); err != nil {
		return nil, err
	}
	p.ring, err = ringbuf.NewReader(p.objects.Ring)
	if err != nil {
		return nil, fmt.Errorf("open ring buffer: %w", err)
	}
	p.model, p.ends, err = readModel(t)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// attach attaches the programs to the functions and system calls.
func (p *Probe) attach() error {
	o := &p.objects
	entry := []*ebpf.Program{o.DecodeEntry, o.TokenizeEntry, o.RemoveEntry, o.UbatchEntry, o.SampleEntry, o.GetRowsEntry}
	back := []*ebpf.Program{o.DecodeReturn, o.TokenizeReturn, nil, nil, o.SampleReturn, nil}
	for i, s := range p.target.Symbols {
		if s.path == "" {
			continue
		}
		file, err := link.OpenExecutable(s.path)
		if err != nil {
			return fmt.Errorf("open %s: %w", s.File, err)
		}
		opts := &link.UprobeOptions{PID: p.target.PID}
		l, err := file.Uprobe(s.Name, entry[i], opts)
		if err != nil {
			return fmt.Errorf("probe %s: %w", s.Name, err)
		}
		p.links = append(p.links, l)
		if back[i] == nil {
			continue
		}
		if l, err = file.Uretprobe(s.Name, back[i], opts); err != nil {
			return fmt.Errorf("probe the return of %s: %w", s.Name, err)
		}
		p.links = append(p.links, l)
	}
	for _, call := range []struct {
		name    string
		program *ebpf.Program
	}{
		{"sys_enter_recvfrom", o.RecvfromEnter},
		{"sys_exit_recvfrom", o.RecvfromExit},
		{"sys_enter_sendto", o.SendtoEnter},
		{"sys_exit_sendto", o.SendtoExit},
	} {
		l, err := link.Tracepoint("syscalls", call.name, call.program, nil)
		if err != nil {
			return fmt.Errorf("trace %s: %w", call.name, err)
		}
		p.links = append(p.links, l)
	}
	return nil
}

// Close detaches the probes.
func (p *Probe) Close() error {
	var errs []error
	for _, l := range p.links {
		errs = append(errs, l.Close())
	}
	if p.ring != nil {
		errs = append(errs, p.ring.Close())
	}
	return errors.Join(append(errs, p.objects.Close())...)
}

// PID returns the watched process.
func (p *Probe) PID() int { return p.target.PID }

// offset returns the time on the session's clock minus CLOCK_MONOTONIC, in ns.
func offset(clock engine.Clock) (int64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	return int64(clock.Now()) - now.Nano(), nil
}

// watchEvery is how often Run checks that the process lives and whether records were lost.
const watchEvery = time.Second

// Run implements engine.Source. It returns when ctx ends; the end of the process ends only its events.
func (p *Probe) Run(ctx context.Context, sink event.Sink) error {
	shift, err := offset(p.clock)
	if err != nil {
		return err
	}
	t := newTracker(sink, p.model, p.ends, shift)
	info := event.EngineInfo{
		Name: "llama.cpp", PID: p.target.PID, Epoch: p.clock.Epoch(), State: event.EngineReady,
		Caps:   event.CapStages | event.CapTokens | event.CapKV | event.CapSteps | event.CapQueue | event.CapHost | p.target.picks(),
		Reason: "watched by probes in process " + strconv.Itoa(p.target.PID), Device: event.Device{Name: "CPU", Host: true},
	}
	introduce := func() {
		current := info
		sink.Emit(event.Event{Kind: event.KindEngine, At: p.clock.Now(), Layer: -1, Data: &current})
	}
	introduce()
	sink.Emit(event.Event{Kind: event.KindModel, At: p.clock.Now(), Layer: -1, Data: &p.model})
	checked, wait := time.Now(), pollEvery
	for ctx.Err() == nil {
		n, err := p.read(t)
		if err != nil {
			return err
		}
		if n == 0 {
			wait = min(wait+pollEvery, maxPoll)
		} else {
			wait = pollEvery
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		t.expire(int64(p.clock.Now()) - shift)
		if time.Since(checked) < watchEvery {
			continue
		}
		checked = time.Now()
		p.reportLost(t)
		switch {
		case t.refused != "":
			info.State, info.Reason = event.EngineFailed, t.refused
		case !p.target.alive():
			info.State, info.Reason = event.EngineStopped, "the process has ended"
		default:
			continue
		}
		t.endAll()
		introduce()
		<-ctx.Done()
	}
	return nil
}

// read applies the records of the ring buffer, and returns how many there were. It does not wait.
func (p *Probe) read(t *tracker) (n int, err error) {
	p.ring.SetDeadline(time.Unix(1, 0))
	for {
		err := p.ring.ReadInto(&p.record)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return n, nil
		case err != nil:
			return n, fmt.Errorf("read ring buffer: %w", err)
		}
		n++
		if r, err := parse(p.record.RawSample); err != nil {
			t.malformed++
		} else {
			t.apply(r)
		}
	}
}

// reportLost emits how many records did not fit into the ring buffer, if it has changed.
func (p *Probe) reportLost(t *tracker) {
	var lost [numKinds]uint64
	if err := p.objects.Lost.Get(&lost); err != nil {
		return
	}
	t.reportLost(lost)
}
