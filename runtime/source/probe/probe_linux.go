//go:build amd64 || arm64

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sync/errgroup"
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
	since   int64   // ns of CLOCK_MONOTONIC when all were attached: what came before is incomplete
	picks   *toggle // of the probes of picks; nil without them
	cuda    *cuda   // nil without calls of CUDA
	every   int     // picks are counted in 1 of every passes; 0: as the budget permits; negative: none
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

// Open attaches probes to a process. Close detaches them; so does the kernel when llmtop ends. The router's picks are
// counted as hooks say.
func Open(t *Target, clock engine.Clock, hooks engine.Hooks) (*Probe, error) {
	return open(t, clock, hooks, ringBytes)
}

// Permitted returns why probes cannot watch any process of this machine, nil if nothing is known to prevent it. What
// this process lacks to attach them itself is not looked at.
func Permitted() error {
	var fs unix.Statfs_t
	for _, path := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} { // as ebpf looks for it
		if err := unix.Statfs(path, &fs); errors.Is(err, os.ErrPermission) || err == nil && fs.Type == unix.TRACEFS_MAGIC {
			return nil
		}
	}
	return errors.New("tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing")
}

// ringBytes is the size of the ring buffer: of about 30,000 decoded tokens without picks.
const ringBytes = 8 << 20

func open(t *Target, clock engine.Clock, hooks engine.Hooks, ringBytes uint32) (_ *Probe, err error) {
	if err := Permitted(); err != nil {
		return nil, fmt.Errorf("watch process %d: %w", t.PID, err)
	}
	p := &Probe{target: t, clock: clock, every: hooks.Every}
	if !hooks.Experts || !t.has(getRows) {
		p.every = -1
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("allow memory for probes: %w", err)
	}
	if len(t.CUDA) > 0 {
		if p.cuda, err = openCUDA(t); err != nil {
			return nil, err
		}
	}
	if len(t.Symbols) == 0 {
		return p, nil
	}
	spec, err := loadProbes()
	if err != nil {
		return nil, fmt.Errorf("read probes: %w", err)
	}
	spec.Maps[probesMapRing].MaxEntries = ringBytes
	if err := spec.Variables[probesVarTarget].Set(uint32(t.PID)); err != nil {
		return nil, fmt.Errorf("set process: %w", err)
	}
	var opts ebpf.CollectionOptions
	if p.cuda != nil {
		shared := p.cuda.objects.Maps[cudaMapThreads]
		spec.Maps[probesMapThreads].MaxEntries = shared.MaxEntries()
		opts.MapReplacements = map[string]*ebpf.Map{probesMapThreads: shared}
	}
	if err := spec.LoadAndAssign(&p.objects, &opts); err != nil {
		return nil, fmt.Errorf("load probes: %w", err)
	}
	if err := p.attach(); err != nil {
		return nil, err
	}
	p.ring, err = ringbuf.NewReader(p.objects.Ring)
	if err != nil {
		return nil, fmt.Errorf("open ring buffer: %w", err)
	}
	if p.since, err = monotonic(); err != nil {
		return nil, err
	}
	p.model, p.ends, err = readModel(t)
	if err != nil {
		return nil, err
	}
	if t.Alive() == 0 { // the probes may be in another process with its number
		return nil, fmt.Errorf("watch process %d: it has ended", t.PID)
	}
	return p, nil
}

// attach attaches the programs to the functions and system calls.
func (p *Probe) attach() error {
	o := &p.objects
	programs := map[string][2]*ebpf.Program{ // at the entry and at the return, by purpose
		passes: {o.DecodeEntry, o.DecodeReturn}, texts: {o.TokenizeEntry, o.TokenizeReturn}, reuse: {o.RemoveEntry},
		samples: {o.SampleEntry, o.SampleReturn}, drafts: {o.DraftEntry, o.DraftReturn}, resets: {o.ClearEntry},
		follows: {o.FollowEntry, o.DraftReturn}, encodes: {o.DecodeEntry, o.DecodeReturn}, syncs: {o.SyncEntry, o.SyncReturn},
	}
	sampled := map[string]*ebpf.Program{order: o.UbatchEntry, picks: o.GetRowsEntry} // only while picks are counted
	var probes []switched
	for _, s := range slices.Backward(p.target.Symbols) { // passes last: what they depend on is seen from the first one
		if s.path == "" {
			continue
		}
		if program := sampled[s.Purpose]; program != nil {
			probes = append(probes, switched{program, s, false})
			continue
		}
		file, err := link.OpenExecutable(s.path)
		if err != nil {
			return fmt.Errorf("open %s: %w", s.File, err)
		}
		opts := &link.UprobeOptions{PID: p.target.PID}
		at := programs[s.Purpose]
		l, err := file.Uprobe(s.Name, at[0], opts)
		if err != nil {
			return fmt.Errorf("probe %s: %w", s.Name, err)
		}
		p.links = append(p.links, l)
		if at[1] == nil {
			continue
		}
		if l, err = file.Uretprobe(s.Name, at[1], opts); err != nil {
			return fmt.Errorf("probe the return of %s: %w", s.Name, err)
		}
		p.links = append(p.links, l)
	}
	if p.every >= 0 {
		var err error
		if p.picks, err = newToggle(probes, p.target.PID); err != nil {
			return err
		}
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

// detach detaches the probes: all at once, since for each the kernel waits until nobody runs it.
func (p *Probe) detach() error {
	var tasks errgroup.Group
	if p.picks != nil {
		tasks.Go(p.picks.Close)
	}
	for _, l := range p.links {
		tasks.Go(l.Close)
	}
	p.picks, p.links = nil, nil
	return tasks.Wait()
}

// Close detaches the probes, and frees what they use.
func (p *Probe) Close() error {
	errs := []error{p.detach()}
	if p.cuda != nil {
		errs = append(errs, p.cuda.close())
	}
	if p.ring != nil {
		errs = append(errs, p.ring.Close())
	}
	return errors.Join(append(errs, p.objects.Close())...)
}

// CallsOnly reports whether only calls of CUDA are seen: the process does not link llama.cpp.
func (p *Probe) CallsOnly() bool { return len(p.target.Symbols) == 0 }

// PID returns the watched process, 0 once it has ended.
func (p *Probe) PID() int { return p.target.Alive() }

// Model returns the path of the watched process's model, "" if it is unknown.
func (p *Probe) Model() string { return p.target.Model }

// offset returns the time on the session's clock minus CLOCK_MONOTONIC, in ns.
func offset(clock engine.Clock) (int64, error) {
	now, err := monotonic()
	return int64(clock.Now()) - now, err
}

// monotonic returns CLOCK_MONOTONIC, in ns.
func monotonic() (int64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	return now.Nano(), nil
}

// watchEvery is how often Run checks that the process lives and whether records were lost.
const watchEvery = time.Second

// Run implements engine.Source. It returns when ctx ends; the end of the process ends only its events.
func (p *Probe) Run(ctx context.Context, sink event.Sink) error {
	if p.cuda == nil {
		return p.run(ctx, sink)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var tasks errgroup.Group
	tasks.Go(func() error {
		if err := p.cuda.run(ctx); err != nil && p.target.Alive() != 0 {
			return err
		}
		return nil
	})
	err := p.run(ctx, sink)
	stop()
	return errors.Join(err, tasks.Wait())
}

func (p *Probe) run(ctx context.Context, sink event.Sink) error {
	if p.CallsOnly() {
		return p.runCUDA(ctx, sink)
	}
	shift, err := offset(p.clock)
	if err != nil {
		return err
	}
	t := newTracker(sink, p.model, p.ends, shift)
	t.sampling.every, t.starts = max(p.every, 0), p.target.starts
	if p.cuda != nil {
		t.counts = p.cuda.counts
	}
	info := event.EngineInfo{
		Name: "llama.cpp", Version: p.target.Version, PID: p.target.PID, Epoch: p.clock.Epoch(), State: event.EngineReady,
	}
	if t.device = p.target.has(synchronize); p.target.device {
		info.Device.Name, info.Device.HostExperts = p.target.gpu, p.target.experts
	} else {
		info.Device = event.Device{Name: "CPU", Host: true}
	}
	info.Caps, info.Reason = p.view(t)
	introduce := func() {
		current := info
		sink.Emit(event.Event{Kind: event.KindEngine, At: p.clock.Now(), Layer: -1, Data: &current})
	}
	introduce()
	sink.Emit(event.Event{Kind: event.KindModel, At: p.clock.Now(), Layer: -1, Data: &p.model})
	for _, s := range p.target.Symbols {
		if s.Refused != "" {
			sink.Emit(event.Event{Kind: event.KindLog, At: p.clock.Now(), Layer: -1, Text: "not watched: " + s.Purpose + ": " + s.Refused})
		}
	}
	checked, wait := time.Now(), pollEvery
	var broken error // most often because the process ends
	for ctx.Err() == nil {
		now := int64(p.clock.Now()) - shift
		n, err := p.read(t)
		if err != nil {
			return err
		}
		t.expire(now) // what was written before now has been read
		if broken == nil {
			broken = p.samplePicks(t, shift)
		}
		if n == 0 {
			wait = min(wait+pollEvery, maxPoll)
		} else {
			wait = pollEvery
		}
		if time.Since(checked) >= watchEvery {
			checked = time.Now()
			p.reportLost(t)
			was := info
			if p.describe(t, &info); info != was {
				introduce()
			}
			if info.State != event.EngineReady {
				t.endAll()
				err := p.detach() // another process may get its number
				<-ctx.Done()
				if broken != nil {
					return nil // the end of the process was the cause
				}
				return err
			}
			if broken != nil {
				return broken
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

// view returns what is seen of the process, and how.
func (p *Probe) view(t *tracker) (event.Caps, string) {
	caps := event.CapStages | event.CapTokens | event.CapKV | event.CapSteps | event.CapQueue | event.CapHost
	how := "probes in process " + strconv.Itoa(p.target.PID)
	if p.cuda != nil {
		how = p.cuda.words() + how
	}
	switch n := t.sampling.share; {
	case p.model.Experts == 0 && p.model.Architecture != "":
		return caps, how
	case p.picks == nil:
		return caps, "router picks off, " + how
	case t.blind():
		return caps, "router picks not visible: not computed on the CPU, " + how
	case n > 1:
		how = "router picks of 1 pass in " + strconv.Itoa(n) + ", " + how
	default:
		how = "router picks of all passes, " + how
	}
	return caps | event.CapExperts | event.CapPicks, how
}

// describe updates whether the process can still be watched, and what is seen of it.
func (p *Probe) describe(t *tracker, info *event.EngineInfo) {
	switch {
	case p.target.Alive() == 0:
		info.State, info.Reason = event.EngineStopped, "the process has ended"
	case t.refused != "":
		info.State, info.Reason = event.EngineFailed, t.refused
	default:
		info.Caps, info.Reason = p.view(t)
	}
}

// samplePicks attaches or detaches the probe of picks when it is time.
func (p *Probe) samplePicks(t *tracker, shift int64) error {
	if p.picks == nil {
		return nil
	}
	var gathers uint64
	if err := p.objects.Gathers.Get(&gathers); err != nil {
		return fmt.Errorf("read calls: %w", err)
	}
	now := func() int64 { return int64(p.clock.Now()) - shift }
	switch s := &t.sampling; {
	case s.lapsed(now()):
		s.close(now(), gathers)
	case s.full(now(), gathers):
		s.close(now(), gathers)
		return p.picks.set(false)
	case s.expires(now()):
		asked := now()
		if err := p.picks.set(true); err != nil {
			return err
		}
		s.renew(asked)
	case s.due():
		asked := now()
		if err := p.picks.set(true); err != nil {
			return err
		}
		s.open(asked, now(), gathers)
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
		} else if r.At >= p.since {
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
