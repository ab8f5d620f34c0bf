package cmd

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	goruntime "runtime"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime"
)

// clientWatch watches this program while it measures an engine in another process. It is the sink of the samples of this machine.
type clientWatch struct {
	probe *probe

	mu           sync.Mutex // guards what follows
	cpu, machine sum
	pause        float64 // ns
	paused       bool    // it is known
}

// sum is the integral of a reading over the time in which it was known.
type sum struct{ total, time float64 }

func (s *sum) add(r event.Reading, interval int64) {
	if r.OK() {
		s.total, s.time = s.total+r.V*float64(interval), s.time+float64(interval)
	}
}

// mean is absent where nothing is known.
func (s *sum) mean() report.Number {
	if s.time == 0 {
		return report.Number(event.Absent(event.NotReported))
	}
	return report.Measured(s.total / s.time)
}

// Emit implements event.Sink.
func (w *clientWatch) Emit(e event.Event) {
	h, ok := e.Data.(*event.Host)
	if !ok || e.Kind != event.KindHost {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cpu.add(h.Self.CPU, h.Interval)
	w.machine.add(h.CPU, h.Interval)
	if h.Self.GCPause.OK() {
		w.pause, w.paused = w.pause+h.Self.GCPause.V, true
	}
}

// during watches while run runs. sample takes a sample of this machine; the caller takes another one after run.
func (w *clientWatch) during(ctx context.Context, sample func(), run func() error) error {
	sample()
	w.mu.Lock()
	w.cpu, w.machine, w.pause, w.paused = sum{}, sum{}, 0, false
	w.mu.Unlock()
	w.probe = startProbe(ctx)
	defer w.probe.stop()
	return run()
}

// client is what was seen.
func (w *clientWatch) client() report.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := report.Client{
		CPU: w.cpu.mean(), MachineCPU: w.machine.mean(), Cores: report.Measured(float64(goruntime.GOMAXPROCS(0))), ReadLag: report.Describe(w.probe.lags),
		GCPause: report.Number(event.Absent(event.NotReported)),
	}
	if w.paused {
		c.GCPause = report.Measured(w.pause / 1e9)
	}
	return c
}

// probe sends this program messages over a loopback connection and measures how long each lies there until it is read: as long as those of the
// engine would have lain.
type probe struct {
	lags []float64 // s; of the reading goroutine until it has ended
	end  context.CancelFunc
	done sync.WaitGroup
}

// How often a message is sent, and how many at most.
const (
	probeEvery = 5 * time.Millisecond
	maxProbes  = 1 << 20
)

// startProbe begins to send. Where there is no loopback it measures nothing.
func startProbe(ctx context.Context) *probe {
	ctx, cancel := context.WithCancel(ctx)
	p := &probe{end: cancel}
	from, to, err := loopback()
	if err != nil {
		return p
	}
	clock := runtime.NewClock()
	p.done.Go(func() {
		defer from.Close()
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		var message [8]byte
		for range maxProbes {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			binary.LittleEndian.PutUint64(message[:], uint64(clock.Now()))
			if _, err := from.Write(message[:]); err != nil {
				return
			}
		}
	})
	p.done.Go(func() {
		defer to.Close()
		var message [8]byte
		for {
			if _, err := io.ReadFull(to, message[:]); err != nil {
				return
			}
			lag := clock.Now() - event.Time(binary.LittleEndian.Uint64(message[:]))
			p.lags = append(p.lags, float64(lag)/1e9)
		}
	})
	return p
}

func (p *probe) stop() {
	p.end()
	p.done.Wait()
}

// loopback is a connection of this program with itself.
func loopback() (from, to net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if from, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if to, err = l.Accept(); err != nil {
		_ = from.Close()
		return nil, nil, err
	}
	return from, to, nil
}
